//! Removes old logs in a way that keeps the remaining chain of logs verifiable.
//!
//! Logs are removed from the oldest on, without a gap. Before the first one is removed, a record in
//! a later log says where the last removed log ended. The log after that one is checked against
//! this record.

use super::record::RecordKind;
use super::{AuditError, AuditStore, AuditWriter, InspectedLog, inspect_logs};

/// The logs that were removed, or would be removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneReport {
    /// The number of logs.
    pub logs: u64,
    /// The number of records in these logs.
    pub records: u64,
    /// The number of these logs that failed verification.
    pub invalid_logs: u64,
    /// A log that is old enough but still open in a process. It and all later logs stay.
    pub stopped_at: Option<String>,
}

/// An error that kept some or all logs from being removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PruneError {
    /// The logs cannot be read or removed.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The record of the removal cannot be written.
    #[error("nothing was removed, because the removal cannot be recorded: {0}")]
    RecordFailed(std::io::Error),
    /// A log fails verification.
    #[error(
        "nothing was removed: log {0} failed verification (see `cofferdam audit verify`), and \
            removing it would destroy the evidence\nhint: copy the log if you need it, and pass \
            `--force`"
    )]
    InvalidLog(String),
}

/// Removes the logs that were started before a moment and records this in `audit`.
///
/// Logs that fail verification are removed only with `force`.
///
/// # Errors
///
/// Returns an error if a log fails verification (without `force`), if the removal cannot be
/// recorded, or if a log cannot be read or removed. Only the last of these can leave some logs
/// removed.
pub fn prune_logs(
    store: &AuditStore,
    audit: &AuditWriter,
    before: jiff::Timestamp,
    force: bool,
) -> Result<PruneReport, PruneError> {
    let logs = inspect_logs(store)?.logs;
    let is_old = |log: &&InspectedLog| {
        log.name < *audit.name() && log.name.started_at().is_some_and(|time| time < before)
    };
    let old: Vec<&InspectedLog> = logs.iter().take_while(is_old).collect();
    let removed: Vec<&InspectedLog> = old.iter().take_while(|log| !log.is_open).copied().collect();
    if let (Some(bad), false) = (removed.iter().find(|log| !log.is_intact()), force) {
        return Err(PruneError::InvalidLog(bad.name.as_str().to_owned()));
    }
    let pruned = PruneReport {
        logs: removed.len() as u64,
        records: removed.iter().map(|log| log.records.len() as u64).sum(),
        invalid_logs: removed.iter().filter(|log| !log.is_intact()).count() as u64,
        stopped_at: old.get(removed.len()).map(|log| log.name.as_str().to_owned()),
    };
    let (Some(oldest), Some(newest)) = (removed.first(), removed.last()) else { return Ok(pruned) };
    let what = RecordKind::Pruned {
        logs: pruned.logs,
        records: pruned.records,
        bad: pruned.invalid_logs,
        oldest: oldest.name.as_str().to_owned(),
        newest: newest.end(),
    };
    audit.append(&what).map_err(PruneError::RecordFailed)?;
    for log in removed {
        store.remove(&log.name)?;
    }
    Ok(pruned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::AuditLogName;
    use super::super::test_log::{allowed_command, begin_log, call_identity, new_store};
    use super::*;
    use crate::tools::AuditSink as _;

    /// Returns a store with one finished log for each of these years.
    fn store_with_years(years: &[u32]) -> (tempfile::TempDir, AuditStore) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = new_store(directory.path());
        for year in years {
            let (audit, _) = begin_log(&store, false);
            audit.record_decision(&call_identity(), &allowed_command("make")).expect("recorded");
            let name = audit.name().clone();
            drop(audit);
            // Rename the files as if the log had been started in that year.
            let dated =
                AuditLogName::parse(&format!("{year}0101T000000000Z-00000000")).expect("a name");
            for (from, to) in [
                (store.log_path(&name), store.log_path(&dated)),
                (store.head_path(&name), store.head_path(&dated)),
            ] {
                fs::rename(from, to).expect("it moves");
            }
            rewrite_log(&store, &dated, &name);
        }
        (directory, store)
    }

    /// Rewrites a log with valid hashes, as anyone with write access could.
    fn rewrite_log(store: &AuditStore, name: &AuditLogName, before: &AuditLogName) {
        use super::super::chain::{ChainEnd, HashChain};
        let chain = HashChain::read(&fs::read(store.log_path(name)).expect("readable"));
        let mut end = ChainEnd::default();
        let mut text = String::new();
        for mut record in chain.records {
            record.retain(|key, _| key != "n" && key != "prev");
            if record.get("log").is_some_and(|log| log == before.as_str()) {
                record.insert("log".into(), name.as_str().into());
            }
            let (line, next) = end.next_line(record);
            text.push_str(&line);
            end = next;
        }
        fs::write(store.log_path(name), text).expect("writable");
        fs::write(store.head_path(name), format!("{:>20} {}\n", end.lines, end.hash))
            .expect("writable");
    }

    fn start_of_year(year: u32) -> jiff::Timestamp {
        format!("{year}-06-01T00:00:00Z").parse().expect("a time")
    }

    fn all_errors(store: &AuditStore) -> Vec<String> {
        inspect_logs(store).expect("readable").logs.into_iter().flat_map(|log| log.errors).collect()
    }

    #[test]
    fn the_remaining_logs_pass_verification_after_pruning() {
        let (_directory, store) = store_with_years(&[2001, 2002, 2003, 2004]);
        assert_eq!(all_errors(&store), [""; 0]);
        let (audit, _) = begin_log(&store, true);
        let pruned =
            prune_logs(&store, &audit, start_of_year(2002), false).expect("they are pruned");
        drop(audit);
        assert_eq!((pruned.logs, pruned.records, pruned.stopped_at), (2, 6, None));
        assert_eq!((store.list().expect("readable").len(), all_errors(&store)), (3, vec![]));
        // Prune again. The record of the first removal may go, because nothing depends on it any
        // more.
        let (audit, _) = begin_log(&store, true);
        assert_eq!(
            prune_logs(&store, &audit, start_of_year(2999), false).expect("they are pruned").logs,
            3
        );
        drop(audit);
        assert_eq!((store.list().expect("readable").len(), all_errors(&store)), (1, vec![]));
    }

    #[test]
    fn a_log_that_is_removed_without_a_record_is_reported() {
        let (_directory, store) = store_with_years(&[2001, 2002, 2003, 2004]);
        let (audit, _) = begin_log(&store, true);
        prune_logs(&store, &audit, start_of_year(2001), false).expect("it is removed");
        drop(audit);
        let third = AuditLogName::parse("20030101T000000000Z-00000000").expect("a name");
        store.remove(&third).expect("it is removed");
        assert_eq!(
            all_errors(&store),
            ["the previous log 20030101T000000000Z-00000000 is missing"]
        );
    }

    #[test]
    fn pruning_can_be_interrupted_at_any_moment() {
        let (_directory, store) = store_with_years(&[2001, 2002, 2003]);
        let names = store.list().expect("readable");
        let kept: Vec<_> =
            names.iter().map(|name| fs::read(store.head_path(name)).expect("readable")).collect();
        let (audit, _) = begin_log(&store, true);
        prune_logs(&store, &audit, start_of_year(2002), false).expect("they are pruned");
        drop(audit);
        // Only the head of the second log is left, and it names a log that is also gone.
        fs::write(store.head_path(&names[1]), &kept[1]).expect("writable");
        assert_eq!(all_errors(&store), [""; 0]);
    }

    #[test]
    fn a_changed_or_open_log_is_not_pruned() {
        let (_directory, store) = store_with_years(&[2001, 2002]);
        let names = store.list().expect("readable");
        let text = fs::read_to_string(store.log_path(&names[1])).expect("readable");
        fs::write(store.log_path(&names[1]), text.replace("make", "mate")).expect("writable");
        let (audit, _) = begin_log(&store, true);
        let refused = prune_logs(&store, &audit, start_of_year(2999), false)
            .expect_err("it is evidence")
            .to_string();
        assert!(
            refused.contains(names[1].as_str()) && store.list().expect("readable").len() == 3,
            "{refused}"
        );
        let pruned =
            prune_logs(&store, &audit, start_of_year(2999), true).expect("they are pruned");
        assert_eq!((pruned.logs, pruned.invalid_logs, pruned.stopped_at), (2, 1, None));
        // Of two open logs, the later one does not remove the earlier one.
        let (other, _) = begin_log(&store, true);
        let pruned = prune_logs(&store, &other, start_of_year(9000), false).expect("nothing goes");
        assert_eq!((pruned.logs, pruned.stopped_at.as_deref()), (0, Some(audit.name().as_str())));
    }
}
