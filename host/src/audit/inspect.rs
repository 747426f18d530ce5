//! Checking a log: its chain, its end, and the log that it was written after.

use std::io;

use serde_json::{Map, Value};

use super::chain::{ChainBreak, HashChain};
use super::head::{self, HeadContent};
use super::principal::Principal;
use super::record::{AuditRecord, PreviousLogEnd, RecordKind, SyncPolicy};
use super::store::FoundAuditLog;
use super::{AuditError, AuditLogName, AuditStore};

/// All logs of a user, each of them checked.
#[derive(Debug)]
pub struct AuditInspection {
    /// From the oldest to the newest.
    pub logs: Vec<InspectedLog>,
    /// What is wrong with their folder.
    pub directory_error: Option<AuditError>,
}

/// A log that was read and checked.
#[derive(Debug)]
pub struct InspectedLog {
    /// Its name.
    pub name: AuditLogName,
    /// Its records, up to the first bad one.
    pub records: Vec<Map<String, Value>>,
    /// The hash of each of them.
    pub hashes: Vec<String>,
    /// The first bad one.
    pub chain_break: Option<ChainBreak>,
    /// What else is wrong, each a sentence.
    pub errors: Vec<String>,
    /// How many of the records the file beside it tells of. What follows was not put on the disk
    /// before the run ended, as when it is killed, or somebody else has added it.
    pub synced_records: u64,
    /// Bytes of a last line that a crash tore. That is no fault of anybody's.
    pub torn_bytes: usize,
    /// A process is still writing it.
    pub is_open: bool,
}

impl InspectedLog {
    /// Whether it is as it was written.
    pub fn is_intact(&self) -> bool {
        self.chain_break.is_none() && self.errors.is_empty()
    }

    /// Whose it is, if it says so.
    pub fn principal(&self) -> Principal {
        match self.records.first().and_then(AuditRecord::from_fields).map(|first| first.what) {
            Some(RecordKind::Log { whose, .. }) => whose,
            Some(_) | None => Principal::default(),
        }
    }

    /// The session it belongs to.
    pub fn session(&self) -> Option<&str> {
        self.records
            .iter()
            .find(|record| record.get("kind").is_some_and(|kind| kind == "session"))?
            .get("session")?
            .as_str()
    }

    /// A record as it is on its line, its hash included.
    pub fn record_with_hash(&self, index: usize) -> Map<String, Value> {
        let mut fields = self.records.get(index).cloned().unwrap_or_default();
        fields.extend(self.hashes.get(index).map(|hash| ("hash".to_owned(), hash.as_str().into())));
        fields
    }

    /// Where it ends.
    pub(super) fn end(&self) -> PreviousLogEnd {
        let end = HashChain { hashes: self.hashes.clone(), ..HashChain::default() }.end();
        PreviousLogEnd::new(&self.name, &end)
    }
}

/// Reads and checks all logs.
pub fn inspect_logs(store: &AuditStore) -> Result<AuditInspection, AuditError> {
    // A log that is begun while this looks is seen whole the next time.
    let names = store.list()?;
    let problem = if names.is_empty() { None } else { store.check_private().err() };
    let mut logs: Vec<InspectedLog> =
        names.into_iter().map(|name| inspect_log(store, name)).collect();
    let pruned = newest_pruned(&logs);
    // What was removed on purpose may be removed by halves.
    let is_pruned = |name: &AuditLogName| {
        pruned.as_ref().is_some_and(|pruned| name.as_str() <= pruned.log.as_str())
    };
    for log in logs.iter_mut().filter(|log| log.records.is_empty() && is_pruned(&log.name)) {
        log.errors.clear();
    }
    let links: Vec<Option<String>> =
        logs.iter().map(|log| check_predecessor(log, &logs, pruned.as_ref())).collect();
    for (log, problem) in logs.iter_mut().zip(links) {
        log.errors.extend(problem);
    }
    Ok(AuditInspection { logs, directory_error: problem })
}

/// The newest log that was removed on purpose, as a good log says.
fn newest_pruned(logs: &[InspectedLog]) -> Option<PreviousLogEnd> {
    let records = logs.iter().filter(|log| log.is_intact()).flat_map(|log| &log.records);
    let newest = records
        .filter(|record| record.get("kind").is_some_and(|kind| kind == "pruned"))
        .filter_map(|record| match AuditRecord::from_fields(record)?.what {
            RecordKind::Pruned { newest, .. } => Some(newest),
            _ => None,
        });
    newest.max_by(|one, other| one.log.cmp(&other.log))
}

fn inspect_log(store: &AuditStore, name: AuditLogName) -> InspectedLog {
    // The head first: what is written meanwhile makes the log longer than its head says, which is
    // no fault.
    let head = store.read_head(&name);
    let mut log = InspectedLog {
        name,
        records: Vec::new(),
        hashes: Vec::new(),
        chain_break: None,
        errors: Vec::new(),
        synced_records: 0,
        torn_bytes: 0,
        is_open: false,
    };
    let FoundAuditLog { chain, is_open } = match store.read_log(&log.name) {
        Ok(found) => found,
        Err(error) => {
            // Killed, or out of room, between the one file and the other: it was never begun.
            let never_begun =
                error.kind() == io::ErrorKind::NotFound && head.as_ref().is_ok_and(is_empty_head);
            log.errors.extend((!never_begun).then(|| format!("it cannot be read: {error}")));
            return log;
        }
    };
    log.synced_records = match &head {
        Ok(HeadContent::End(end)) => end.lines,
        Ok(HeadContent::Empty | HeadContent::Invalid) | Err(_) => 0,
    };
    let problem = match head {
        _ if chain.first_break.is_some() => None,
        Ok(HeadContent::End(end)) => head::check_chain(&end, &chain),
        // The machine stopped before anything had to be on the disk, the head among it.
        Ok(HeadContent::Empty) if !chain.records.iter().any(is_synced_record) => None,
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && !chain.records.iter().any(is_synced_record) =>
        {
            None
        }
        Ok(HeadContent::Empty | HeadContent::Invalid) => Some(
            "the file beside it that says where it ends holds something else, so its end \
                cannot be checked"
                .into(),
        ),
        Err(error) => Some(format!(
            "the file beside it that says where it ends cannot be read \
            ({error}), so its end cannot be checked"
        )),
    };
    // Its first record is written as soon as there is a log.
    let is_empty =
        chain.records.is_empty() && chain.first_break.is_none() && !is_open && problem.is_none();
    log.errors.extend(is_empty.then(|| {
        "it has no record: it was emptied, or the machine stopped when it was begun".to_owned()
    }));
    log.errors.extend(problem);
    let begins_well = chain.records.first().is_none_or(|first| {
        first.get("kind").is_some_and(|kind| kind == "log")
            && first.get("log").and_then(Value::as_str) == Some(log.name.as_str())
    });
    if !begins_well {
        log.errors.push("it begins as another log: its file was renamed or copied".into());
    }
    InspectedLog {
        records: chain.records,
        hashes: chain.hashes,
        chain_break: chain.first_break,
        torn_bytes: chain.torn_bytes,
        is_open,
        ..log
    }
}

fn is_empty_head(head: &HeadContent) -> bool {
    match head {
        HeadContent::Empty => true,
        HeadContent::End(end) => end.lines == 0,
        HeadContent::Invalid => false,
    }
}

/// Whether a record was put on the disk at once. One that this version does not know may have been.
fn is_synced_record(record: &Map<String, Value>) -> bool {
    AuditRecord::from_fields(record)
        .is_none_or(|record| record.what.sync_policy() == SyncPolicy::Immediate)
}

/// What is wrong with the log that another one was begun after.
fn check_predecessor(
    log: &InspectedLog,
    all: &[InspectedLog],
    pruned: Option<&PreviousLogEnd>,
) -> Option<String> {
    let RecordKind::Log { after: Some(after), .. } =
        AuditRecord::from_fields(log.records.first()?)?.what
    else {
        return None;
    };
    let changed = || {
        format!(
            "line {} of the log {} is not the one that was there when this one began",
            after.lines, after.log
        )
    };
    let is_pruned = pruned.is_some_and(|pruned| after.log <= pruned.log);
    let before = all
        .iter()
        .find(|other| other.name.as_str() == after.log)
        .filter(|other| !(other.records.is_empty() && is_pruned));
    let Some(before) = before else {
        return match pruned {
            Some(pruned) if after.log < pruned.log => None,
            Some(pruned) if after.log == pruned.log => {
                let is_same = pruned.lines > after.lines
                    || pruned.lines == after.lines && pruned.hash == after.hash;
                (!is_same).then(changed)
            }
            Some(_) | None => Some(format!("the log {} that came before it is gone", after.log)),
        };
    };
    // Of none, nothing had been put on the disk.
    let line = after.lines.checked_sub(1)?;
    let there = before.hashes.get(usize::try_from(line).ok()?);
    // A log that is broken before that line, or that cannot be read, has its own problem.
    let has_its_own =
        before.chain_break.is_some() || before.records.is_empty() && !before.errors.is_empty();
    (!has_its_own && there != Some(&after.hash)).then(changed)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use super::super::test_log::{allowed_command, begin_log, call_end, call_identity, new_store};
    use super::*;
    use crate::tools::AuditSink as _;

    /// Two logs, the second begun after the first.
    fn two_logs() -> (tempfile::TempDir, AuditStore, AuditLogName, AuditLogName) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(folder.path());
        let [first, second] = [1, 2].map(|_| write_log(&store));
        (folder, store, first, second)
    }

    fn write_log(store: &AuditStore) -> AuditLogName {
        let (audit, _) = begin_log(store, false);
        audit.record_decision(&call_identity(), &allowed_command("make")).expect("recorded");
        audit.record_end(&call_identity(), &call_end(&[3]));
        audit.name().clone()
    }

    /// What is wrong with each log.
    fn all_errors(store: &AuditStore) -> Vec<String> {
        let logs = inspect_logs(store).expect("readable").logs;
        let broken = |log: &InspectedLog| {
            log.chain_break.as_ref().map(|broken| format!("line {} {}", broken.line, broken.reason))
        };
        logs.iter()
            .map(|log| {
                broken(log).into_iter().chain(log.errors.clone()).collect::<Vec<_>>().join("; ")
            })
            .collect()
    }

    fn read_lines(store: &AuditStore, name: &AuditLogName) -> Vec<String> {
        fs::read_to_string(store.log_path(name))
            .expect("readable")
            .split_inclusive('\n')
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn logs_are_good_as_they_were_written() {
        let (_folder, store, ..) = two_logs();
        assert_eq!(all_errors(&store), ["", ""]);
        assert!(
            inspect_logs(&store)
                .expect("readable")
                .logs
                .iter()
                .all(|log| log.synced_records == 4 && !log.is_open)
        );
        let (audit, _) = begin_log(&store, false);
        let logs = inspect_logs(&store).expect("readable").logs;
        assert!(
            logs[2].is_intact() && logs[2].is_open && logs[2].synced_records == 0,
            "{:?}",
            logs[2]
        );
        drop(audit);
    }

    #[test]
    fn a_changed_line_is_named() {
        let (_folder, store, first, _) = two_logs();
        let text = read_lines(&store, &first).concat();
        for (line, old, new) in
            [(1, "\"version\":1", "\"version\":2"), (3, "make", "mate"), (4, "\"ok\"", "\"no\"")]
        {
            fs::write(store.log_path(&first), text.replacen(old, new, 1)).expect("writable");
            assert_eq!(
                all_errors(&store)[0],
                format!("line {line} was changed: it does not have its hash")
            );
        }
    }

    #[test]
    fn a_missing_end_is_found_by_the_head_and_by_the_next_log() {
        let (_folder, store, first, _) = two_logs();
        let all = read_lines(&store, &first);
        fs::write(store.log_path(&first), all[..3].concat()).expect("writable");
        let missing = "its end is missing: line 3 is the last of 4 that were written".to_owned();
        let noticed = format!(
            "line 4 of the log {} is not the one that was there when this one began",
            first.as_str()
        );
        assert_eq!(all_errors(&store), [missing, noticed.clone()]);
        // Whoever takes the head along is noticed by the log that was begun after.
        let end = HashChain::read(all[..3].concat().as_bytes()).end();
        fs::write(store.head_path(&first), format!("{:>20} {}\n", end.lines, end.hash))
            .expect("writable");
        assert_eq!(all_errors(&store), ["".to_owned(), noticed]);
    }

    #[test]
    fn a_newest_log_that_was_emptied_is_found_whatever_its_head_says() {
        let (_folder, store, _, second) = two_logs();
        let (whole, head) = (
            read_lines(&store, &second).concat(),
            fs::read_to_string(store.head_path(&second)).expect("readable"),
        );
        let nothing = format!("{:>20} {}\n", 0, "0".repeat(64));
        for log in ["", &whole[..10]] {
            fs::write(store.log_path(&second), log).expect("writable");
            fs::write(store.head_path(&second), &head).expect("writable");
            assert_eq!(
                all_errors(&store)[1],
                "its end is missing: line 0 is the last of 4 that were written"
            );
            for head in ["", &nothing] {
                fs::write(store.head_path(&second), head).expect("writable");
                assert_eq!(
                    all_errors(&store)[1],
                    "it has no record: it was emptied, or the machine stopped when it was begun"
                );
            }
            fs::remove_file(store.head_path(&second)).expect("it goes");
            assert_eq!(
                all_errors(&store)[1],
                "it has no record: it was emptied, or the machine stopped when it was begun"
            );
        }
    }

    #[test]
    fn a_log_without_an_end_is_not_read_whole() {
        let (_folder, store, _, second) = two_logs();
        let file =
            fs::OpenOptions::new().write(true).open(store.log_path(&second)).expect("writable");
        file.set_len(1 << 30).expect("it can be sparse");
        assert_eq!(all_errors(&store)[1], "it cannot be read: it is longer than 1 MiB");
    }

    #[test]
    fn a_log_that_is_gone_or_goes_by_another_name_is_found() {
        let (_folder, store, first, second) = two_logs();
        fs::rename(store.log_path(&first), store.directory().join("elsewhere")).expect("it moves");
        assert!(
            all_errors(&store)[0].starts_with("it cannot be read: No such file"),
            "{:?}",
            all_errors(&store)
        );
        fs::remove_file(store.head_path(&first)).expect("it goes");
        assert_eq!(
            all_errors(&store),
            [format!("the log {} that came before it is gone", first.as_str())]
        );
        fs::copy(store.log_path(&second), store.log_path(&first)).expect("it is copied");
        fs::copy(store.head_path(&second), store.head_path(&first)).expect("it is copied");
        assert!(
            all_errors(&store)[0].contains("begins as another log"),
            "{:?}",
            all_errors(&store)
        );
    }

    #[test]
    fn each_log_is_named_by_the_next_also_when_many_begin_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(folder.path());
        write_log(&store);
        thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(|| write_log(&store)))));
        write_log(&store);
        let names = store.list().expect("readable");
        assert_eq!((names.len(), all_errors(&store).concat()), (10, String::new()));
        for name in &names[..9] {
            let kept = [store.log_path(name), store.head_path(name)]
                .map(|path| (fs::read(&path).expect("readable"), path));
            store.remove(name).expect("it goes");
            assert!(
                all_errors(&store).concat().contains("is gone"),
                "{name:?}: {:?}",
                all_errors(&store)
            );
            kept.iter().for_each(|(bytes, path)| fs::write(path, bytes).expect("writable"));
        }
    }

    #[test]
    fn a_log_is_named_though_the_clock_stood_back_or_its_end_is_not_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(folder.path());
        crate::private_dir::create(store.directory()).expect("it can be made");
        let ahead = AuditLogName::parse("29991231T000000000Z-00000000").expect("a name");
        for (n, head) in [(0, ""), (1, "garbage")] {
            let name =
                AuditLogName::parse(&format!("29991231T00000000{n}Z-00000000")).expect("a name");
            fs::write(store.head_path(&name), head).expect("writable");
            let next = write_log(&store);
            assert!(next > ahead, "{next:?}");
            store.remove(&name).expect("it goes");
            assert!(
                all_errors(&store)
                    .concat()
                    .contains(&format!("{} that came before it is gone", name.as_str())),
                "{:?}",
                all_errors(&store)
            );
            store.remove(&next).expect("it goes");
        }
    }

    fn set_mode(store: &AuditStore, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(store.directory(), fs::Permissions::from_mode(mode))
            .expect("it is ours");
    }

    #[test]
    fn a_head_that_is_gone_is_said_and_what_a_crash_leaves_behind_is_no_fault() {
        let (_folder, store, _, second) = two_logs();
        let all = read_lines(&store, &second);
        let head = fs::read(store.head_path(&second)).expect("readable");
        fs::remove_file(store.head_path(&second)).expect("it goes");
        assert!(all_errors(&store)[1].contains("cannot be read"), "{:?}", all_errors(&store));
        for text in ["", "garbage"] {
            fs::write(store.head_path(&second), text).expect("writable");
            assert!(
                all_errors(&store)[1].contains("holds something else"),
                "{:?}",
                all_errors(&store)
            );
        }
        // The machine stopped before anything had to be on the disk.
        for (kept, told) in [(1, ""), (2, ""), (2, "0")] {
            fs::write(store.log_path(&second), all[..kept].concat()).expect("writable");
            let text = if told.is_empty() {
                String::new()
            } else {
                format!("{:>20} {}\n", 0, "0".repeat(64))
            };
            fs::write(store.head_path(&second), text).expect("writable");
            assert_eq!(all_errors(&store)[1], "", "{kept} lines and {told:?}");
            fs::remove_file(store.head_path(&second)).expect("it goes");
            assert_eq!(all_errors(&store)[1], "", "{kept} lines and no head");
        }
        fs::write(store.head_path(&second), "").expect("writable");
        fs::remove_file(store.log_path(&second)).expect("it goes");
        assert_eq!(all_errors(&store)[1], "", "killed between the two files");
        fs::write(store.head_path(&second), head).expect("writable");
        assert!(
            all_errors(&store)[1].contains("cannot be read"),
            "a head that tells of lines has lost its log"
        );
    }

    #[test]
    fn what_follows_the_end_that_was_told_is_counted() {
        let (_folder, store, _, second) = two_logs();
        let all = read_lines(&store, &second);
        let forged = HashChain::read(all.concat().as_bytes())
            .end()
            .next_line(RecordKind::Gap { lost: 9 }.to_fields())
            .0;
        fs::write(store.log_path(&second), all.concat() + &forged).expect("writable");
        let logs = inspect_logs(&store).expect("readable").logs;
        assert_eq!((logs[1].synced_records, logs[1].records.len(), logs[1].is_open), (4, 5, false));
    }

    #[test]
    fn a_torn_line_is_no_fault() {
        let (_folder, store, _, second) = two_logs();
        fs::write(
            store.log_path(&second),
            read_lines(&store, &second).concat() + "{\"n\":5,\"prev\"",
        )
        .expect("writable");
        let logs = inspect_logs(&store).expect("readable").logs;
        assert!(logs[1].is_intact() && logs[1].torn_bytes == 13, "{:?}", logs[1]);
    }

    #[test]
    fn nothing_waits_for_a_fifo_and_no_link_is_followed() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let (_folder, store, first, second) = two_logs();
        fs::rename(store.log_path(&first), store.directory().join("elsewhere")).expect("it moves");
        std::os::unix::fs::symlink("elsewhere", store.log_path(&first)).expect("a link");
        fs::remove_file(store.head_path(&second)).expect("it goes");
        mknodat(CWD, store.head_path(&second), FileType::Fifo, Mode::RUSR, 0).expect("a FIFO");
        let found = all_errors(&store);
        assert!(
            found[0].starts_with("it cannot be read")
                && found[1].contains("cannot be read (it is not a file)"),
            "{found:?}"
        );
        write_log(&store);
    }

    #[test]
    fn a_folder_that_is_open_to_others_is_said() {
        let (_folder, store, ..) = two_logs();
        set_mode(&store, 0o755);
        let problem = inspect_logs(&store).expect("readable").directory_error.expect("a problem");
        assert!(problem.to_string().contains("is open to others"), "{problem}");
    }
}
