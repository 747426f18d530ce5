//! Checking a log: its chain, its end, and the log that it was written after.

use std::io;

use serde_json::{Map, Value};

use super::chain::{Broken, Chain};
use super::head::{self, Kept};
use super::record::{Durable, EndOf, Record, What};
use super::store::Found;
use super::whose::Whose;
use super::{AuditError, LogName, Store};

/// All logs of a user, each of them checked.
#[derive(Debug)]
pub struct Inspection {
    /// From the oldest to the newest.
    pub logs: Vec<Inspected>,
    /// What is wrong with their folder.
    pub problem: Option<AuditError>,
}

/// A log that was read and checked.
#[derive(Debug)]
pub struct Inspected {
    /// Its name.
    pub name: LogName,
    /// Its records, up to the first bad one.
    pub records: Vec<Map<String, Value>>,
    /// The hash of each of them.
    pub hashes: Vec<String>,
    /// The first bad one.
    pub broken: Option<Broken>,
    /// What else is wrong, each a sentence.
    pub problems: Vec<String>,
    /// How many of the records the file beside it tells of. What follows was not put on the disk before the run ended, as when
    /// it is killed, or somebody else has added it.
    pub told: u64,
    /// Bytes of a last line that a crash tore. That is no fault of anybody's.
    pub torn: usize,
    /// A process is still writing it.
    pub is_open: bool,
}

impl Inspected {
    /// Whether it is as it was written.
    pub fn is_good(&self) -> bool {
        self.broken.is_none() && self.problems.is_empty()
    }

    /// Whose it is, if it says so.
    pub fn whose(&self) -> Whose {
        match self.records.first().and_then(Record::read).map(|first| first.what) {
            Some(What::Log { whose, .. }) => whose,
            Some(_) | None => Whose::default(),
        }
    }

    /// The session it belongs to.
    pub fn session(&self) -> Option<&str> {
        self.records.iter().find(|record| record.get("kind").is_some_and(|kind| kind == "session"))?.get("session")?.as_str()
    }

    /// A record as it is on its line, its hash included.
    pub fn whole(&self, index: usize) -> Map<String, Value> {
        let mut fields = self.records.get(index).cloned().unwrap_or_default();
        fields.extend(self.hashes.get(index).map(|hash| ("hash".to_owned(), hash.as_str().into())));
        fields
    }

    /// Where it ends.
    pub(super) fn end(&self) -> EndOf {
        let end = Chain { hashes: self.hashes.clone(), ..Chain::default() }.end();
        EndOf::new(&self.name, &end)
    }
}

/// Reads and checks all logs.
pub fn inspect(store: &Store) -> Result<Inspection, AuditError> {
    // A log that is begun while this looks is seen whole the next time.
    let names = store.list()?;
    let problem = if names.is_empty() { None } else { store.is_private().err() };
    let mut logs: Vec<Inspected> = names.into_iter().map(|name| one(store, name)).collect();
    let pruned = pruned(&logs);
    // What was removed on purpose may be removed by halves.
    let is_pruned = |name: &LogName| pruned.as_ref().is_some_and(|pruned| name.as_str() <= pruned.log.as_str());
    for log in logs.iter_mut().filter(|log| log.records.is_empty() && is_pruned(&log.name)) {
        log.problems.clear();
    }
    let links: Vec<Option<String>> = logs.iter().map(|log| link(log, &logs, pruned.as_ref())).collect();
    for (log, problem) in logs.iter_mut().zip(links) {
        log.problems.extend(problem);
    }
    Ok(Inspection { logs, problem })
}

/// The newest log that was removed on purpose, as a good log says.
fn pruned(logs: &[Inspected]) -> Option<EndOf> {
    let records = logs.iter().filter(|log| log.is_good()).flat_map(|log| &log.records);
    let newest =
        records.filter(|record| record.get("kind").is_some_and(|kind| kind == "pruned")).filter_map(|record| {
            match Record::read(record)?.what {
                What::Pruned { newest, .. } => Some(newest),
                _ => None,
            }
        });
    newest.max_by(|one, other| one.log.cmp(&other.log))
}

fn one(store: &Store, name: LogName) -> Inspected {
    // The head first: what is written meanwhile makes the log longer than its head says, which is no fault.
    let head = store.head(&name);
    let mut log =
        Inspected { name, records: Vec::new(), hashes: Vec::new(), broken: None, problems: Vec::new(), told: 0, torn: 0, is_open: false };
    let Found { chain, is_open } = match store.find(&log.name) {
        Ok(found) => found,
        Err(error) => {
            // Killed, or out of room, between the one file and the other: it was never begun.
            let never_begun = error.kind() == io::ErrorKind::NotFound && head.as_ref().is_ok_and(says_nothing);
            log.problems.extend((!never_begun).then(|| format!("it cannot be read: {error}")));
            return log;
        }
    };
    log.told = match &head {
        Ok(Kept::End(end)) => end.lines,
        Ok(Kept::Nothing | Kept::Other) | Err(_) => 0,
    };
    let problem = match head {
        _ if chain.broken.is_some() => None,
        Ok(Kept::End(end)) => head::against(&end, &chain),
        // The machine stopped before anything had to be on the disk, the head among it.
        Ok(Kept::Nothing) if !chain.records.iter().any(had_to_be_there) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !chain.records.iter().any(had_to_be_there) => None,
        Ok(Kept::Nothing | Kept::Other) => {
            Some("the file beside it that says where it ends holds something else, so its end cannot be checked".into())
        }
        Err(error) => Some(format!("the file beside it that says where it ends cannot be read ({error}), so its end cannot be checked")),
    };
    // Its first record is written as soon as there is a log.
    let is_empty = chain.records.is_empty() && chain.broken.is_none() && !is_open && problem.is_none();
    log.problems.extend(is_empty.then(|| "it has no record: it was emptied, or the machine stopped when it was begun".to_owned()));
    log.problems.extend(problem);
    let begins_well = chain.records.first().is_none_or(|first| {
        first.get("kind").is_some_and(|kind| kind == "log") && first.get("log").and_then(Value::as_str) == Some(log.name.as_str())
    });
    if !begins_well {
        log.problems.push("it begins as another log: its file was renamed or copied".into());
    }
    Inspected { records: chain.records, hashes: chain.hashes, broken: chain.broken, torn: chain.torn, is_open, ..log }
}

fn says_nothing(head: &Kept) -> bool {
    match head {
        Kept::Nothing => true,
        Kept::End(end) => end.lines == 0,
        Kept::Other => false,
    }
}

/// Whether a record was put on the disk at once. One that this version does not know may have been.
fn had_to_be_there(record: &Map<String, Value>) -> bool {
    Record::read(record).is_none_or(|record| record.what.durable() == Durable::Now)
}

/// What is wrong with the log that another one was begun after.
fn link(log: &Inspected, all: &[Inspected], pruned: Option<&EndOf>) -> Option<String> {
    let What::Log { after: Some(after), .. } = Record::read(log.records.first()?)?.what else { return None };
    let changed = || format!("line {} of the log {} is not the one that was there when this one began", after.lines, after.log);
    let is_pruned = pruned.is_some_and(|pruned| after.log <= pruned.log);
    let before = all.iter().find(|other| other.name.as_str() == after.log).filter(|other| !(other.records.is_empty() && is_pruned));
    let Some(before) = before else {
        return match pruned {
            Some(pruned) if after.log < pruned.log => None,
            Some(pruned) if after.log == pruned.log => {
                let is_same = pruned.lines > after.lines || pruned.lines == after.lines && pruned.hash == after.hash;
                (!is_same).then(changed)
            }
            Some(_) | None => Some(format!("the log {} that came before it is gone", after.log)),
        };
    };
    // Of none, nothing had been put on the disk.
    let line = after.lines.checked_sub(1)?;
    let there = before.hashes.get(usize::try_from(line).ok()?);
    // A log that is broken before that line, or that cannot be read, has its own problem.
    let has_its_own = before.broken.is_some() || before.records.is_empty() && !before.problems.is_empty();
    (!has_its_own && there != Some(&after.hash)).then(changed)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use super::super::test_log::{allowed, begin, ended, store, subject};
    use super::*;
    use crate::tools::Ledger as _;

    /// Two logs, the second begun after the first.
    fn two() -> (tempfile::TempDir, Store, LogName, LogName) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        let [first, second] = [1, 2].map(|_| run(&store));
        (folder, store, first, second)
    }

    fn run(store: &Store) -> LogName {
        let (audit, _) = begin(store, false);
        audit.decided(&subject(), &allowed("make")).expect("recorded");
        audit.ended(&subject(), &ended(&[3]));
        audit.name().clone()
    }

    /// What is wrong with each log.
    fn found(store: &Store) -> Vec<String> {
        let logs = inspect(store).expect("readable").logs;
        let broken = |log: &Inspected| log.broken.as_ref().map(|broken| format!("line {} {}", broken.line, broken.problem));
        logs.iter().map(|log| broken(log).into_iter().chain(log.problems.clone()).collect::<Vec<_>>().join("; ")).collect()
    }

    fn lines(store: &Store, name: &LogName) -> Vec<String> {
        fs::read_to_string(store.log_path(name)).expect("readable").split_inclusive('\n').map(str::to_owned).collect()
    }

    #[test]
    fn logs_are_good_as_they_were_written() {
        let (_folder, store, ..) = two();
        assert_eq!(found(&store), ["", ""]);
        assert!(inspect(&store).expect("readable").logs.iter().all(|log| log.told == 4 && !log.is_open));
        let (audit, _) = begin(&store, false);
        let logs = inspect(&store).expect("readable").logs;
        assert!(logs[2].is_good() && logs[2].is_open && logs[2].told == 0, "{:?}", logs[2]);
        drop(audit);
    }

    #[test]
    fn a_changed_line_is_named() {
        let (_folder, store, first, _) = two();
        let text = lines(&store, &first).concat();
        for (line, old, new) in [(1, "\"version\":1", "\"version\":2"), (3, "make", "mate"), (4, "\"ok\"", "\"no\"")] {
            fs::write(store.log_path(&first), text.replacen(old, new, 1)).expect("writable");
            assert_eq!(found(&store)[0], format!("line {line} was changed: it does not have its hash"));
        }
    }

    #[test]
    fn a_missing_end_is_found_by_the_head_and_by_the_next_log() {
        let (_folder, store, first, _) = two();
        let all = lines(&store, &first);
        fs::write(store.log_path(&first), all[..3].concat()).expect("writable");
        let missing = "its end is missing: line 3 is the last of 4 that were written".to_owned();
        let noticed = format!("line 4 of the log {} is not the one that was there when this one began", first.as_str());
        assert_eq!(found(&store), [missing, noticed.clone()]);
        // Whoever takes the head along is noticed by the log that was begun after.
        let end = Chain::read(all[..3].concat().as_bytes()).end();
        fs::write(store.head_path(&first), format!("{:>20} {}\n", end.lines, end.hash)).expect("writable");
        assert_eq!(found(&store), ["".to_owned(), noticed]);
    }

    #[test]
    fn a_newest_log_that_was_emptied_is_found_whatever_its_head_says() {
        let (_folder, store, _, second) = two();
        let (whole, head) = (lines(&store, &second).concat(), fs::read_to_string(store.head_path(&second)).expect("readable"));
        let nothing = format!("{:>20} {}\n", 0, "0".repeat(64));
        for log in ["", &whole[..10]] {
            fs::write(store.log_path(&second), log).expect("writable");
            fs::write(store.head_path(&second), &head).expect("writable");
            assert_eq!(found(&store)[1], "its end is missing: line 0 is the last of 4 that were written");
            for head in ["", &nothing] {
                fs::write(store.head_path(&second), head).expect("writable");
                assert_eq!(found(&store)[1], "it has no record: it was emptied, or the machine stopped when it was begun");
            }
            fs::remove_file(store.head_path(&second)).expect("it goes");
            assert_eq!(found(&store)[1], "it has no record: it was emptied, or the machine stopped when it was begun");
        }
    }

    #[test]
    fn a_log_without_an_end_is_not_read_whole() {
        let (_folder, store, _, second) = two();
        let file = fs::OpenOptions::new().write(true).open(store.log_path(&second)).expect("writable");
        file.set_len(1 << 30).expect("it can be sparse");
        assert_eq!(found(&store)[1], "it cannot be read: it is longer than 1 MiB");
    }

    #[test]
    fn a_log_that_is_gone_or_goes_by_another_name_is_found() {
        let (_folder, store, first, second) = two();
        fs::rename(store.log_path(&first), store.folder().join("elsewhere")).expect("it moves");
        assert!(found(&store)[0].starts_with("it cannot be read: No such file"), "{:?}", found(&store));
        fs::remove_file(store.head_path(&first)).expect("it goes");
        assert_eq!(found(&store), [format!("the log {} that came before it is gone", first.as_str())]);
        fs::copy(store.log_path(&second), store.log_path(&first)).expect("it is copied");
        fs::copy(store.head_path(&second), store.head_path(&first)).expect("it is copied");
        assert!(found(&store)[0].contains("begins as another log"), "{:?}", found(&store));
    }

    #[test]
    fn each_log_is_named_by_the_next_also_when_many_begin_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        run(&store);
        thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(|| run(&store)))));
        run(&store);
        let names = store.list().expect("readable");
        assert_eq!((names.len(), found(&store).concat()), (10, String::new()));
        for name in &names[..9] {
            let kept = [store.log_path(name), store.head_path(name)].map(|path| (fs::read(&path).expect("readable"), path));
            store.remove(name).expect("it goes");
            assert!(found(&store).concat().contains("is gone"), "{name:?}: {:?}", found(&store));
            kept.iter().for_each(|(bytes, path)| fs::write(path, bytes).expect("writable"));
        }
    }

    #[test]
    fn a_log_is_named_though_the_clock_stood_back_or_its_end_is_not_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        crate::private::folder(store.folder()).expect("it can be made");
        let ahead = LogName::parse("29991231T000000000Z-00000000").expect("a name");
        for (n, head) in [(0, ""), (1, "garbage")] {
            let name = LogName::parse(&format!("29991231T00000000{n}Z-00000000")).expect("a name");
            fs::write(store.head_path(&name), head).expect("writable");
            let next = run(&store);
            assert!(next > ahead, "{next:?}");
            store.remove(&name).expect("it goes");
            assert!(found(&store).concat().contains(&format!("{} that came before it is gone", name.as_str())), "{:?}", found(&store));
            store.remove(&next).expect("it goes");
        }
    }

    fn set_mode(store: &Store, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(store.folder(), fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn a_head_that_is_gone_is_said_and_what_a_crash_leaves_behind_is_no_fault() {
        let (_folder, store, _, second) = two();
        let all = lines(&store, &second);
        let head = fs::read(store.head_path(&second)).expect("readable");
        fs::remove_file(store.head_path(&second)).expect("it goes");
        assert!(found(&store)[1].contains("cannot be read"), "{:?}", found(&store));
        for text in ["", "garbage"] {
            fs::write(store.head_path(&second), text).expect("writable");
            assert!(found(&store)[1].contains("holds something else"), "{:?}", found(&store));
        }
        // The machine stopped before anything had to be on the disk.
        for (kept, told) in [(1, ""), (2, ""), (2, "0")] {
            fs::write(store.log_path(&second), all[..kept].concat()).expect("writable");
            let text = if told.is_empty() { String::new() } else { format!("{:>20} {}\n", 0, "0".repeat(64)) };
            fs::write(store.head_path(&second), text).expect("writable");
            assert_eq!(found(&store)[1], "", "{kept} lines and {told:?}");
            fs::remove_file(store.head_path(&second)).expect("it goes");
            assert_eq!(found(&store)[1], "", "{kept} lines and no head");
        }
        fs::write(store.head_path(&second), "").expect("writable");
        fs::remove_file(store.log_path(&second)).expect("it goes");
        assert_eq!(found(&store)[1], "", "killed between the two files");
        fs::write(store.head_path(&second), head).expect("writable");
        assert!(found(&store)[1].contains("cannot be read"), "a head that tells of lines has lost its log");
    }

    #[test]
    fn what_follows_the_end_that_was_told_is_counted() {
        let (_folder, store, _, second) = two();
        let all = lines(&store, &second);
        let forged = Chain::read(all.concat().as_bytes()).end().next(What::Gap { lost: 9 }.fields()).0;
        fs::write(store.log_path(&second), all.concat() + &forged).expect("writable");
        let logs = inspect(&store).expect("readable").logs;
        assert_eq!((logs[1].told, logs[1].records.len(), logs[1].is_open), (4, 5, false));
    }

    #[test]
    fn a_torn_line_is_no_fault() {
        let (_folder, store, _, second) = two();
        fs::write(store.log_path(&second), lines(&store, &second).concat() + "{\"n\":5,\"prev\"").expect("writable");
        let logs = inspect(&store).expect("readable").logs;
        assert!(logs[1].is_good() && logs[1].torn == 13, "{:?}", logs[1]);
    }

    #[test]
    fn nothing_waits_for_a_fifo_and_no_link_is_followed() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let (_folder, store, first, second) = two();
        fs::rename(store.log_path(&first), store.folder().join("elsewhere")).expect("it moves");
        std::os::unix::fs::symlink("elsewhere", store.log_path(&first)).expect("a link");
        fs::remove_file(store.head_path(&second)).expect("it goes");
        mknodat(CWD, store.head_path(&second), FileType::Fifo, Mode::RUSR, 0).expect("a FIFO");
        let found = found(&store);
        assert!(found[0].starts_with("it cannot be read") && found[1].contains("cannot be read (it is not a file)"), "{found:?}");
        run(&store);
    }

    #[test]
    fn a_folder_that_is_open_to_others_is_said() {
        let (_folder, store, ..) = two();
        set_mode(&store, 0o755);
        let problem = inspect(&store).expect("readable").problem.expect("a problem");
        assert!(problem.to_string().contains("is open to others"), "{problem}");
    }
}
