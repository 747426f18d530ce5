//! `cofferdam sessions delete`.

use std::path::Path;
use std::process::ExitCode;

use super::local_time;
use crate::cli::error::{CliError, Done};
use crate::cli::exit;
use crate::cli::print::stderr_line;
use crate::cli::{ask, chat};
use crate::session::Entry;
use crate::shown;

/// With what was typed in it, which is kept in `prompts` for the arrow keys.
pub(super) fn run(entry: &Entry, prompts: &Path, yes: bool) -> Done {
    if !yes && !confirmed(entry)? {
        stderr_line("Nothing was deleted.");
        return Ok(ExitCode::from(exit::FAILED));
    }
    entry.delete()?;
    chat::forget(prompts, &entry.id).map_err(|error| {
        CliError::new(format!("session {} was deleted, and what was typed in it is still in {}: {error}", entry.id, prompts.display()))
    })?;
    stderr_line(&format!("Session {} was deleted.", entry.id));
    Ok(ExitCode::SUCCESS)
}

fn confirmed(entry: &Entry) -> Result<bool, CliError> {
    // One that cannot be read can be deleted all the same.
    let first = entry.look().ok().and_then(|saved| saved.requests.first().map(|first| shown::line(&first.prompt, 60)));
    let words = first.map(|words| format!(" (\"{words}\")")).unwrap_or_default();
    let session = format!("Session {}{words}, last changed {}", entry.id, local_time(entry.changed));
    ask::yes_or_no(&session, "Delete it for good?")
        .ok_or_else(|| CliError::new("there is no terminal to ask at; use --yes to delete the session"))
}
