//! Texts about background commands, for the user.

use cofferdam::sandbox::{Job, JobStatus};
use cofferdam::terminal_escape;

/// The characters of a command line that are shown.
const MAX_SHOWN_LINE_LEN: usize = 100;

/// Describes a background command in one line: number, command line, state and time.
pub(super) fn describe_job(job: &Job) -> String {
    let line = terminal_escape::escape_line(job.line(), MAX_SHOWN_LINE_LEN);
    let state = match job.status() {
        JobStatus::Running => "running".to_owned(),
        JobStatus::Exited(code) => format!("ended with exit code {code}"),
        JobStatus::Stopped(reason) => format!("stopped {reason}"),
        JobStatus::Failed(reason) => format!("failed: {reason}"),
        _ => "in an unknown state".to_owned(),
    };
    format!(
        "background command {} (`{line}`): {state} after {} s",
        job.id(),
        job.elapsed().as_secs()
    )
}

/// Describes the end of a background command: its state, and what happened to its changes.
pub(super) fn describe_ended_job(job: &Job) -> String {
    let notices = job.notices();
    let lines = std::iter::once(describe_job(job)).chain(notices);
    lines.collect::<Vec<_>>().join("\n")
}
