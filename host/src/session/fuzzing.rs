//! The way in for the fuzz targets: a journal without a file around it.

use super::fold::{Saved, Unreadable};

/// Reads the bytes of a journal; `Err` names what is damaged.
pub fn read_journal(bytes: &[u8]) -> Result<Saved, String> {
    Saved::read(bytes).map_err(|unreadable| match unreadable {
        Unreadable::Io(kind) => kind.to_string(),
        Unreadable::Newer { version } => format!("version {version}"),
        Unreadable::Damaged { line, problem } => format!("line {line}: {problem}"),
    })
}
