//! Checking a log: its chain, its end, and the log that it was written after.

use serde_json::{Map, Value};

use super::chain::Broken;
use super::{AuditError, LogName, Store, head};

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
    /// Bytes of a last line that a crash tore. That is no fault of anybody's.
    pub torn: usize,
}

impl Inspected {
    /// Whether it is as it was written.
    pub fn is_good(&self) -> bool {
        self.broken.is_none() && self.problems.is_empty()
    }

    /// The session it belongs to.
    pub fn session(&self) -> Option<&str> {
        self.records.iter().find(|record| record.get("kind").is_some_and(|kind| kind == "session"))?.get("session")?.as_str()
    }
}

/// Reads and checks all logs, from the oldest to the newest.
pub fn inspect(store: &Store) -> Result<Vec<Inspected>, AuditError> {
    // A log that is begun while this looks is seen whole the next time.
    let names = store.list()?;
    let mut logs: Vec<Inspected> = names.into_iter().map(|name| one(store, name)).collect();
    let links: Vec<Option<String>> = logs.iter().map(|log| link(log, &logs)).collect();
    for (log, problem) in logs.iter_mut().zip(links) {
        log.problems.extend(problem);
    }
    Ok(logs)
}

fn one(store: &Store, name: LogName) -> Inspected {
    // The head first: what is written meanwhile makes the log longer than its head says, which is no fault.
    let head = store.head(&name);
    let mut log = Inspected { name, records: Vec::new(), hashes: Vec::new(), broken: None, problems: Vec::new(), torn: 0 };
    let chain = match store.chain(&log.name) {
        Ok(chain) => chain,
        Err(error) => {
            log.problems.push(format!("it cannot be read: {error}"));
            return log;
        }
    };
    let problem = match head {
        _ if chain.broken.is_some() => None,
        Ok(Some(end)) => head::against(&end, &chain),
        // Killed before the first head was written.
        Ok(None) if chain.hashes.len() <= 1 => None,
        Ok(None) => Some("the file beside it that says where it ends holds something else, so its end cannot be checked".into()),
        Err(error) => Some(format!("the file beside it that says where it ends cannot be read ({error}), so its end cannot be checked")),
    };
    log.problems.extend(problem);
    let begins_well = chain.records.first().is_none_or(|first| {
        first.get("kind").is_some_and(|kind| kind == "log") && first.get("log").and_then(Value::as_str) == Some(log.name.as_str())
    });
    if !begins_well {
        log.problems.push("it begins as another log: its file was renamed or copied".into());
    }
    Inspected { records: chain.records, hashes: chain.hashes, broken: chain.broken, torn: chain.torn, ..log }
}

/// What is wrong with the log that another one was written after.
fn link(log: &Inspected, all: &[Inspected]) -> Option<String> {
    let after = log.records.first()?.get("after")?;
    let name = LogName::parse(after.get("log")?.as_str()?)?;
    let Some(before) = all.iter().find(|other| other.name == name) else {
        return Some(format!("the log {} that came before it is gone", name.as_str()));
    };
    let line = usize::try_from(after.get("lines")?.as_u64()?).ok()?;
    let there = before.hashes.get(line.checked_sub(1)?).map(String::as_str);
    // A log that is broken before that line has its own problem.
    (before.broken.is_none() && there != after.get("hash")?.as_str())
        .then(|| format!("line {line} of the log {} is not the one that was there when this one began", name.as_str()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::test_log::{allowed, begin, ended, store, subject};
    use super::*;
    use crate::tools::Ledger as _;

    /// Two logs, the second written after the first.
    fn two() -> (tempfile::TempDir, Store, LogName, LogName) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        let names = [1, 2].map(|_| {
            let (audit, _) = begin(&store, false);
            audit.decided(&subject(), &allowed("make")).expect("recorded");
            audit.ended(&subject(), &ended(&[3]));
            // Names have milliseconds in them.
            std::thread::sleep(std::time::Duration::from_millis(2));
            audit.name().clone()
        });
        let [first, second] = names;
        (folder, store, first, second)
    }

    /// What is wrong with each log.
    fn found(store: &Store) -> Vec<String> {
        let logs = inspect(store).expect("readable");
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
        // Whoever takes the head along is noticed by the log that was written after.
        let end = super::super::chain::Chain::read(all[..3].concat().as_bytes()).end();
        fs::write(store.head_path(&first), format!("{:>20} {}\n", end.lines, end.hash)).expect("writable");
        assert_eq!(found(&store), ["".to_owned(), noticed]);
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
    fn a_head_that_is_gone_is_said_and_one_that_a_crash_left_behind_is_not() {
        let (_folder, store, _, second) = two();
        let all = lines(&store, &second);
        fs::remove_file(store.head_path(&second)).expect("it goes");
        assert!(found(&store)[1].contains("cannot be read"), "{:?}", found(&store));
        fs::write(store.head_path(&second), "").expect("writable");
        assert!(found(&store)[1].contains("holds something else"), "{:?}", found(&store));
        fs::write(store.log_path(&second), &all[0]).expect("writable");
        assert_eq!(found(&store)[1], "", "killed before the first head was written");
    }

    #[test]
    fn a_torn_line_is_no_fault() {
        let (_folder, store, _, second) = two();
        fs::write(store.log_path(&second), lines(&store, &second).concat() + "{\"n\":5,\"prev\"").expect("writable");
        let logs = inspect(&store).expect("readable");
        assert!(logs[1].is_good() && logs[1].torn == 13, "{:?}", logs[1]);
    }
}
