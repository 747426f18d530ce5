//! `cofferdam sessions delete`.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use super::local_time;
use crate::cli::error::{CliError, Done};
use crate::cli::exit;
use crate::cli::print::{stderr_line, stderr_piece};
use crate::session::Entry;
use crate::shown;

pub(super) fn run(entry: &Entry, yes: bool) -> Done {
    if !yes && !confirmed(entry)? {
        stderr_line("Nothing was deleted.");
        return Ok(ExitCode::from(exit::FAILED));
    }
    entry.delete()?;
    stderr_line(&format!("Session {} was deleted.", entry.id));
    Ok(ExitCode::SUCCESS)
}

fn confirmed(entry: &Entry) -> Result<bool, CliError> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(CliError::new("nobody can be asked here whether to delete the session: say --yes to delete it"));
    }
    // One that cannot be read can be deleted all the same.
    let first = entry.look().ok().and_then(|saved| saved.requests.first().map(|first| shown::line(&first.prompt, 60)));
    let words = first.map(|words| format!(" (\"{words}\")")).unwrap_or_default();
    stderr_piece(&format!("Delete session {}{words}, last changed {}, for good? [y/N] ", entry.id, local_time(entry.changed)));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
