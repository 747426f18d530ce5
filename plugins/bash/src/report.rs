//! The result of a command, as text for the model.

use cofferdam_sdk::commands::{CommandOutput, ExitStatus};
use cofferdam_sdk::{Output, ToolError};

/// Returns the result of a command. A command that fails is a result, because the model needs its
/// output and its exit code. A command that timed out is an error with the output so far.
pub(crate) fn report(finished: &CommandOutput, timeout: u64) -> Result<Output, ToolError> {
    let mut text = streams(finished);
    match finished.status {
        ExitStatus::Exited(0) if text.is_empty() => text.push_str("(no output)"),
        ExitStatus::Exited(0) => {}
        ExitStatus::Exited(code) => line(&mut text, &format!("exit code {code}")),
        ExitStatus::Signaled(signal) => {
            line(&mut text, &format!("killed by signal {signal}{}", name(signal)))
        }
        ExitStatus::TimedOut => {
            line(
                &mut text,
                &format!(
                    "timed out after {timeout} s; the command and all its processes were killed"
                ),
            );
            return Err(ToolError::timed_out(text));
        }
    }
    Ok(Output::text(text))
}

/// Returns standard output, then standard error. Standard error has a label if both have text.
fn streams(finished: &CommandOutput) -> String {
    let mut text = finished.stdout.clone();
    if !finished.stderr.is_empty() {
        if !text.is_empty() {
            line(&mut text, "stderr:");
            text.push('\n');
        }
        text.push_str(&finished.stderr);
    }
    text
}

/// Appends a line.
fn line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

/// Returns the name of a common signal. The numbers are the same on every Unix.
fn name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn text(status: ExitStatus, stdout: &str, stderr: &str) -> Result<Output, ToolError> {
        report(
            &CommandOutput {
                status,
                stdout: stdout.to_owned(),
                stderr: stderr.to_owned(),
                elapsed: Duration::ZERO,
            },
            120,
        )
    }

    fn output(text: &str) -> Result<Output, ToolError> {
        Ok(Output::text(text))
    }

    #[test]
    fn r120_both_streams_are_labelled() {
        assert_eq!(text(ExitStatus::Exited(0), "out\n", ""), output("out\n"));
        assert_eq!(text(ExitStatus::Exited(0), "", "err\n"), output("err\n"));
        assert_eq!(text(ExitStatus::Exited(0), "out", "err\n"), output("out\nstderr:\nerr\n"));
        assert_eq!(text(ExitStatus::Exited(0), "", ""), output("(no output)"));
    }

    #[test]
    fn r120_the_exit_code_is_named() {
        assert_eq!(text(ExitStatus::Exited(1), "", ""), output("exit code 1"));
        assert_eq!(
            text(ExitStatus::Exited(101), "out", "err"),
            output("out\nstderr:\nerr\nexit code 101")
        );
        assert_eq!(
            text(ExitStatus::Signaled(9), "out\n", ""),
            output("out\nkilled by signal 9 (SIGKILL)")
        );
        assert_eq!(text(ExitStatus::Signaled(64), "", ""), output("killed by signal 64"));
    }

    #[test]
    fn r120_a_timeout_is_an_error_with_the_output_so_far() {
        assert_eq!(
            text(ExitStatus::TimedOut, "so far", ""),
            Err(ToolError::timed_out(
                "so far\ntimed out after 120 s; the command and all its processes were killed"
            ))
        );
    }
}
