//! Verifies logs: the chain of each log, its end, and its link to the previous log.

use std::io;

use serde_json::{Map, Value};

use super::chain::{ChainBreak, HashChain};
use super::head::{self, HeadContent};
use super::principal::Principal;
use super::record::{AuditRecord, PreviousLogEnd, RecordKind, SyncPolicy};
use super::store::FoundAuditLog;
use super::{AuditError, AuditLogName, AuditStore};

/// All logs of a user after verification.
#[derive(Debug)]
#[non_exhaustive]
pub struct AuditInspection {
    /// The logs, oldest first.
    pub logs: Vec<InspectedLog>,
    /// What is wrong with the directory of the logs, if anything.
    pub directory_error: Option<AuditError>,
}

/// A log after verification.
#[derive(Debug)]
#[non_exhaustive]
pub struct InspectedLog {
    /// The name of the log.
    pub name: AuditLogName,
    /// The records before the first bad line.
    pub records: Vec<Map<String, Value>>,
    /// The hash of each record.
    pub hashes: Vec<String>,
    /// The first bad line, if there is one.
    pub chain_break: Option<ChainBreak>,
    /// All other errors, each as a sentence.
    pub errors: Vec<String>,
    /// The number of records that the head covers.
    ///
    /// Later records were not synced before the run ended, for example because it was killed, or
    /// somebody else added them.
    pub synced_records: u64,
    /// The bytes of a last line that a crash cut off. This is not an error.
    pub torn_bytes: usize,
    /// Whether a process is still writing the log.
    pub is_open: bool,
}

impl InspectedLog {
    /// Returns whether the log passed all checks.
    pub fn is_intact(&self) -> bool {
        self.chain_break.is_none() && self.errors.is_empty()
    }

    /// Returns the user and machine in the first record, or empty values if there are none.
    pub fn principal(&self) -> Principal {
        match self.records.first().and_then(AuditRecord::from_fields).map(|first| first.what) {
            Some(RecordKind::Log { whose, .. }) => whose,
            Some(_) | None => Principal::default(),
        }
    }

    /// Returns the id of the session that the log belongs to.
    pub fn session(&self) -> Option<&str> {
        self.records
            .iter()
            .find(|record| record.get("kind").is_some_and(|kind| kind == "session"))?
            .get("session")?
            .as_str()
    }

    /// Returns a record with its hash, as it is in the file.
    pub fn record_with_hash(&self, index: usize) -> Map<String, Value> {
        let mut fields = self.records.get(index).cloned().unwrap_or_default();
        fields.extend(self.hashes.get(index).map(|hash| ("hash".to_owned(), hash.as_str().into())));
        fields
    }

    /// Returns the end of the log.
    pub(super) fn end(&self) -> PreviousLogEnd {
        let end = HashChain { hashes: self.hashes.clone(), ..HashChain::default() }.end();
        PreviousLogEnd::new(&self.name, &end)
    }
}

/// Reads and verifies all logs.
///
/// # Errors
///
/// Returns an error if the directory cannot be read. Errors in a log are part of the result.
pub fn inspect_logs(store: &AuditStore) -> Result<AuditInspection, AuditError> {
    // A log that is started during the check is complete at the next check.
    let names = store.list()?;
    let problem = if names.is_empty() { None } else { store.check_private().err() };
    let mut logs: Vec<InspectedLog> =
        names.into_iter().map(|name| inspect_log(store, name)).collect();
    let pruned = newest_pruned(&logs);
    // A removal that was interrupted leaves only some of the files.
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

/// Returns the newest log that was pruned, according to the logs that pass verification.
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
    // Read the head first. Lines written in between only make the log longer than its head says.
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
            // The process was killed, or the disk was full, between the two files: the log never
            // started.
            let never_started =
                error.kind() == io::ErrorKind::NotFound && head.as_ref().is_ok_and(is_empty_head);
            if !never_started {
                log.errors.push(format!("cannot read it: {error}"));
            }
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
        // The machine stopped before any record, and with it the head, had to be on disk.
        Ok(HeadContent::Empty) if !chain.records.iter().any(is_synced_record) => None,
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && !chain.records.iter().any(is_synced_record) =>
        {
            None
        }
        Ok(HeadContent::Empty | HeadContent::Invalid) => Some(
            "its end cannot be verified, because the file that records the end has unexpected \
                content"
                .into(),
        ),
        Err(error) => Some(format!(
            "its end cannot be verified, because the file that records the end cannot be read: \
                {error}"
        )),
    };
    // A log gets its first record as soon as it exists.
    let is_empty =
        chain.records.is_empty() && chain.first_break.is_none() && !is_open && problem.is_none();
    if is_empty {
        log.errors.push(
            "it has no records: it was emptied, or the machine stopped while it was created"
                .to_owned(),
        );
    }
    log.errors.extend(problem);
    let begins_well = chain.records.first().is_none_or(|first| {
        first.get("kind").is_some_and(|kind| kind == "log")
            && first.get("log").and_then(Value::as_str) == Some(log.name.as_str())
    });
    if !begins_well {
        log.errors
            .push("its first record belongs to another log: its file was renamed or copied".into());
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

/// Returns whether a record had to be synced at once. Records of unknown kinds count as synced.
fn is_synced_record(record: &Map<String, Value>) -> bool {
    AuditRecord::from_fields(record)
        .is_none_or(|record| record.what.sync_policy() == SyncPolicy::Immediate)
}

/// Returns what is wrong with the predecessor that a log names.
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
    let changed =
        || format!("line {} of log {} changed after this log was started", after.lines, after.log);
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
            Some(_) | None => Some(format!("the previous log {} is missing", after.log)),
        };
    };
    // Zero lines mean that nothing had been synced.
    let line = after.lines.checked_sub(1)?;
    let actual_hash = before.hashes.get(usize::try_from(line).ok()?);
    // A log that breaks before that line, or that cannot be read, has an error of its own.
    let has_own_error =
        before.chain_break.is_some() || before.records.is_empty() && !before.errors.is_empty();
    (!has_own_error && actual_hash != Some(&after.hash)).then(changed)
}

#[cfg(test)]
mod tests;
