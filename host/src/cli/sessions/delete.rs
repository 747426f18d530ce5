//! `cofferdam sessions delete`.

use std::path::Path;
use std::process::ExitCode;

use super::format_local_time;
use crate::cli::error::{CliError, CommandResult};
use crate::cli::exit;
use crate::cli::print::eprint_line;
use crate::cli::{chat, confirm};
use crate::session::StoredSession;
use crate::terminal_escape;

/// With what was typed in it, which is kept in `prompts` for the arrow keys.
pub(super) fn run(entry: &StoredSession, prompts: &Path, yes: bool) -> CommandResult {
    if !yes && !confirm_deletion(entry)? {
        eprint_line("Nothing was deleted.");
        return Ok(ExitCode::from(exit::FAILURE));
    }
    entry.delete()?;
    chat::remove_session(prompts, &entry.id).map_err(|error| {
        CliError::new(format!(
            "session {} was deleted, and what was typed in it is still in {}: {error}",
            entry.id,
            prompts.display()
        ))
    })?;
    eprint_line(&format!("Session {} was deleted.", entry.id));
    Ok(ExitCode::SUCCESS)
}

fn confirm_deletion(entry: &StoredSession) -> Result<bool, CliError> {
    // One that cannot be read can be deleted all the same.
    let first = entry.load().ok().and_then(|saved| {
        saved.requests.first().map(|first| terminal_escape::escape_line(&first.prompt, 60))
    });
    let words = first.map(|words| format!(" (\"{words}\")")).unwrap_or_default();
    let session =
        format!("Session {}{words}, last changed {}", entry.id, format_local_time(entry.modified));
    confirm::confirm(&session, "Delete it for good?").ok_or_else(|| {
        CliError::new("there is no terminal to ask at; use --yes to delete the session")
    })
}
