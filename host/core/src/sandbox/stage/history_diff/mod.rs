//! What changes of the undo history did, compared with the workspace as it is now.
//!
//! The old state of a path is the one that its oldest change in question has kept. Everything below
//! a path that this change created or replaced belongs to it, so that later changes there need no
//! entry of their own.

mod differ;
mod old_states;

use std::time::{SystemTime, UNIX_EPOCH};

use super::UndoHistory;
use super::history::{HistoryError, UndoHistoryEntry};
use super::history_record::HistoryRecord;
use crate::policy::ChangeSet;
use crate::sandbox::workspace::Workspace;
use differ::HistoryDiffer;
use old_states::OldStates;

/// The changes to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiffScope {
    /// The newest changes of the history, this many.
    Newest(usize),
    /// The changes that began at this time or later.
    Since(SystemTime),
}

/// What changes of the history did.
#[derive(Debug)]
#[non_exhaustive]
pub struct HistoryDiff {
    /// The changes that the history still has, the oldest first.
    pub entries: Vec<UndoHistoryEntry>,
    /// The differences between the state before the oldest of them and the workspace.
    pub changes: ChangeSet,
    /// Whether all differences are listed.
    pub is_complete: bool,
}

impl UndoHistory {
    /// Compares the workspace with its state before some changes.
    ///
    /// Files that others have changed since are part of the differences. Lists at most 1,000 paths.
    ///
    /// # Errors
    /// Another process is changing files, or the history cannot be read.
    pub fn diff(
        &self,
        workspace: &Workspace,
        scope: DiffScope,
    ) -> Result<HistoryDiff, HistoryError> {
        let mut records = self.made_records()?;
        let skipped = match scope {
            DiffScope::Newest(count) => records.len().saturating_sub(count),
            DiffScope::Since(time) => {
                let since = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
                records.iter().filter(|record| number(record) < since).count()
            }
        };
        records.drain(..skipped);
        let old = OldStates::collect(&records);
        let mut differ = HistoryDiffer::new(workspace.dir());
        differ.compare_all(&old);
        // Without a lock, because the comparison may take longer than others wait for it.
        if records.iter().any(|record| !record.directory().exists()) {
            return Err(HistoryError::Busy);
        }
        Ok(HistoryDiff {
            entries: records.iter().map(HistoryRecord::to_entry).collect(),
            is_complete: differ.is_complete && old.is_complete,
            changes: ChangeSet::new(differ.changes),
        })
    }
}

/// Returns the time of a record, in microseconds since 1970.
fn number(record: &HistoryRecord) -> u128 {
    let name = record.directory().file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
