//! `cofferdam sessions delete`: deletes a session and its prompt history.

use std::path::Path;
use std::process::ExitCode;

use super::format_local_time;
use crate::error::{CliError, CommandResult};
use crate::exit;
use crate::print::eprint_line;
use crate::{chat, confirm};
use cofferdam::session::StoredSession;
use cofferdam::terminal_escape;

/// Deletes the session, and its entries in the prompt history `prompts`.
pub(super) fn run(entry: &StoredSession, prompts: &Path, yes: bool) -> CommandResult {
    if !yes && !confirm_deletion(entry)? {
        eprint_line("Nothing was deleted.");
        return Ok(ExitCode::from(exit::FAILURE));
    }
    entry.delete()?;
    chat::remove_session(prompts, &entry.id).map_err(|error| {
        CliError::new(format!(
            "deleted session {}, but cannot remove its prompts from `{}`: {error}",
            entry.id,
            prompts.display()
        ))
    })?;
    eprint_line(&format!("Deleted session {}.", entry.id));
    Ok(ExitCode::SUCCESS)
}

fn confirm_deletion(entry: &StoredSession) -> Result<bool, CliError> {
    // An unreadable session can be deleted too.
    let first = entry.load().ok().and_then(|saved| {
        saved.requests.first().map(|first| terminal_escape::escape_line(&first.prompt, 60))
    });
    let quoted_prompt =
        first.map(|quoted_prompt| format!(" (\"{quoted_prompt}\")")).unwrap_or_default();
    let session = format!(
        "Session {}{quoted_prompt}, last changed {}",
        entry.id,
        format_local_time(entry.modified)
    );
    confirm::confirm(&session, "Delete it permanently?").ok_or_else(|| {
        CliError::new(
            "cannot ask for confirmation: there is no terminal\n\
            hint: use --yes to delete the session without asking",
        )
    })
}
