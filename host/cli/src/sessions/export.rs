//! `cofferdam sessions export`: prints a whole session as one JSON object.

use std::process::ExitCode;

use serde::Serialize;

use crate::error::{CliError, CommandResult};
use crate::json_text::json_page;
use crate::print::print_line;
use cofferdam::conversation::Transcript;
use cofferdam::session::{JournalHeader, StoredSession};

/// The header, including keys that this version does not know, and the transcript.
#[derive(Serialize)]
struct SessionExport<'a> {
    #[serde(flatten)]
    header: Option<&'a JournalHeader>,
    transcript: &'a Transcript,
}

pub(super) fn run(entry: &StoredSession) -> CommandResult {
    print_line(&export_json(entry)?);
    Ok(ExitCode::SUCCESS)
}

/// Returns the whole session as JSON.
pub(crate) fn export_json(entry: &StoredSession) -> Result<String, CliError> {
    let saved = entry.load()?;
    let export = SessionExport { header: saved.header.as_ref(), transcript: &saved.transcript };
    Ok(json_page(&export))
}
