//! Exit codes: one for each outcome. Codes from 64 to 78 are those of `sysexits.h`.

use std::process::ExitCode;

use super::print::eprint_line;
use cofferdam::agent::RequestOutcome;

/// A command failed, or a tool's result is an error.
pub(super) const FAILURE: u8 = 1;
/// Standard output could not be written: `EX_IOERR`.
const LOST_OUTPUT: u8 = 74;
/// An error in the configuration, the policy or the workspace: `EX_CONFIG`.
pub(super) const CONFIGURATION_ERROR: u8 = 78;

/// Returns the exit code for the outcome of a request.
pub(super) fn outcome_code(outcome: &RequestOutcome) -> u8 {
    match outcome {
        RequestOutcome::Answered { .. } => 0,
        RequestOutcome::Limit { .. } => 3,
        RequestOutcome::Empty => 4,
        RequestOutcome::Rejected => 5,
        RequestOutcome::TimedOut { .. } => 6,
        RequestOutcome::ProviderError { .. } => 7,
        RequestOutcome::Overflow { .. } => 8,
        // `EX_SOFTWARE` in `sysexits.h`.
        RequestOutcome::InternalError { .. } => 70,
        // The exit code that a shell reports for a program ended by SIGINT.
        RequestOutcome::Aborted => 130,
    }
}

/// Reports that a command succeeded, but that its output is lost.
pub(super) fn report_lost_output(problem: &std::io::Error) -> ExitCode {
    eprint_line(&format!("cofferdam: cannot write to standard output: {problem}"));
    ExitCode::from(LOST_OUTPUT)
}

/// Prints the help for an empty command line, which is a usage error.
pub(super) fn print_help(mut command: clap::Command) -> ExitCode {
    eprint_line(&command.render_help().to_string());
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn r132_each_outcome_has_an_exit_code_of_its_own() {
        let text = String::new;
        let outcomes = [
            RequestOutcome::Answered { text: text() },
            RequestOutcome::Limit { text: text(), turns: 1 },
            RequestOutcome::Empty,
            RequestOutcome::Rejected,
            RequestOutcome::Aborted,
            RequestOutcome::TimedOut { seconds: 1 },
            RequestOutcome::ProviderError { message: text() },
            RequestOutcome::Overflow { message: text() },
            RequestOutcome::InternalError { message: text() },
        ];
        let codes: BTreeSet<u8> = outcomes.iter().map(outcome_code).collect();
        assert_eq!(codes.len(), outcomes.len());
        assert!(
            !codes.contains(&FAILURE) && !codes.contains(&2),
            "1 and 2 are reserved for errors before the request"
        );
    }
}
