//! The entry point for the fuzz targets, which reads a session log from memory.

use super::fold::{SavedSession, UnreadableJournal};

/// Reads the bytes of a session log.
///
/// # Errors
/// The log is damaged or too new; the error describes the problem.
pub fn read_journal(bytes: &[u8]) -> Result<SavedSession, String> {
    SavedSession::from_bytes(bytes).map_err(|unreadable| match unreadable {
        UnreadableJournal::Io(kind) => kind.to_string(),
        UnreadableJournal::NewerVersion { version } => format!("version {version}"),
        UnreadableJournal::Damaged { line, reason } => format!("line {line}: {reason}"),
    })
}
