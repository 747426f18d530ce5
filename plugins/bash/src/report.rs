//! How a command ended, in words for the model.

use cofferdam_sdk::commands::{Ending, Finished};
use cofferdam_sdk::{Output, ToolError};

/// A command that fails is an answer, because its output and its code are what the model wants to
/// know. One that ran out of time is an error, with what it had written.
pub(crate) fn report(finished: &Finished, timeout: u32) -> Result<Output, ToolError> {
    let mut text = streams(finished);
    match finished.ending {
        Ending::Exited(0) if text.is_empty() => text.push_str("(no output)"),
        Ending::Exited(0) => {}
        Ending::Exited(code) => line(&mut text, &format!("exit code {code}")),
        Ending::Killed(signal) => {
            line(&mut text, &format!("killed by signal {signal}{}", name(signal)))
        }
        Ending::TimedOut => {
            line(
                &mut text,
                &format!(
                    "timed out after {timeout} s; the command and all that it had started were \
                        killed"
                ),
            );
            return Err(ToolError::timed_out(text));
        }
    }
    Ok(Output::text(text))
}

/// Standard output, then standard error; the latter has a label if there is something to tell it
/// from.
fn streams(finished: &Finished) -> String {
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

/// Appends a line, on a line of its own.
fn line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

/// The signals that say something about a program. Their numbers are the same on every Unix.
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
    use super::*;

    fn text(ending: Ending, stdout: &str, stderr: &str) -> Result<Output, ToolError> {
        report(
            &Finished {
                ending,
                stdout: stdout.to_owned(),
                stderr: stderr.to_owned(),
                duration: 0.5,
            },
            120,
        )
    }

    fn output(text: &str) -> Result<Output, ToolError> {
        Ok(Output::text(text))
    }

    #[test]
    fn r120_both_streams_are_told_apart() {
        assert_eq!(text(Ending::Exited(0), "out\n", ""), output("out\n"));
        assert_eq!(text(Ending::Exited(0), "", "err\n"), output("err\n"));
        assert_eq!(text(Ending::Exited(0), "out", "err\n"), output("out\nstderr:\nerr\n"));
        assert_eq!(text(Ending::Exited(0), "", ""), output("(no output)"));
    }

    #[test]
    fn r120_the_exit_code_is_told() {
        assert_eq!(text(Ending::Exited(1), "", ""), output("exit code 1"));
        assert_eq!(
            text(Ending::Exited(101), "out", "err"),
            output("out\nstderr:\nerr\nexit code 101")
        );
        assert_eq!(
            text(Ending::Killed(9), "out\n", ""),
            output("out\nkilled by signal 9 (SIGKILL)")
        );
        assert_eq!(text(Ending::Killed(64), "", ""), output("killed by signal 64"));
    }

    #[test]
    fn r120_a_timeout_is_an_error_with_the_output_so_far() {
        assert_eq!(
            text(Ending::TimedOut, "so far", ""),
            Err(ToolError::timed_out(
                "so far\ntimed out after 120 s; the command and all that it had started were killed"
            ))
        );
    }
}
