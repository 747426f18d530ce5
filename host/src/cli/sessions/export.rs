//! `cofferdam sessions export`: everything that a session holds, as one JSON object.

use std::process::ExitCode;

use serde::Serialize;

use crate::cli::error::{CliError, CommandResult};
use crate::cli::print::print_line;
use crate::conversation::Transcript;
use crate::session::{JournalHeader, StoredSession};
use crate::terminal_escape;

/// The keys of the header, those that this version does not know among them, and the transcript.
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

/// All of a session as JSON.
pub(in crate::cli) fn export_json(entry: &StoredSession) -> Result<String, CliError> {
    let saved = entry.load()?;
    let export = SessionExport { header: saved.header.as_ref(), transcript: &saved.transcript };
    let text =
        serde_json::to_string_pretty(&export).map_err(|error| CliError::new(error.to_string()))?;
    Ok(terminal_escape::escape_json(&text))
}
