//! The way in for the fuzz targets: a journal without a file around it.

use super::fold::{SavedSession, UnreadableJournal};

/// Reads the bytes of a journal; `Err` names what is damaged.
pub fn read_journal(bytes: &[u8]) -> Result<SavedSession, String> {
    SavedSession::from_bytes(bytes).map_err(|unreadable| match unreadable {
        UnreadableJournal::Io(kind) => kind.to_string(),
        UnreadableJournal::NewerVersion { version } => format!("version {version}"),
        UnreadableJournal::Damaged { line, reason: problem } => format!("line {line}: {problem}"),
    })
}
