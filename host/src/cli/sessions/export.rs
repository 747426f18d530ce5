//! `cofferdam sessions export`: everything that a session holds, as one JSON object.

use std::process::ExitCode;

use serde::Serialize;

use crate::cli::error::{CliError, Done};
use crate::cli::print::stdout_line;
use crate::conversation::Transcript;
use crate::session::{Entry, Header};
use crate::shown;

/// The keys of the header, those that this version does not know among them, and the transcript.
#[derive(Serialize)]
struct Export<'a> {
    #[serde(flatten)]
    header: Option<&'a Header>,
    transcript: &'a Transcript,
}

pub(super) fn run(entry: &Entry) -> Done {
    stdout_line(&text(entry)?);
    Ok(ExitCode::SUCCESS)
}

/// All of a session as JSON.
pub(in crate::cli) fn text(entry: &Entry) -> Result<String, CliError> {
    let saved = entry.look()?;
    let export = Export { header: saved.header.as_ref(), transcript: &saved.transcript };
    let text = serde_json::to_string_pretty(&export).map_err(|error| CliError::new(error.to_string()))?;
    Ok(shown::json(&text))
}
