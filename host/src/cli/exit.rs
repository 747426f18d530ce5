//! Exit codes: one for each outcome. The numbers from 64 up are those of sysexits.h.

use std::process::ExitCode;

use super::print::eprint_line;
use crate::agent::RequestOutcome;

/// A command could not be done, or a tool's result is an error.
pub(super) const FAILURE: u8 = 1;
/// EX_CONFIG
pub(super) const CONFIGURATION_ERROR: u8 = 78;

/// For a request.
pub(super) fn outcome_code(outcome: &RequestOutcome) -> u8 {
    match outcome {
        RequestOutcome::Answered { .. } => 0,
        RequestOutcome::Limit { .. } => 3,
        RequestOutcome::Empty => 4,
        RequestOutcome::Rejected => 5,
        RequestOutcome::TimedOut { .. } => 6,
        RequestOutcome::ProviderError { .. } => 7,
        RequestOutcome::Overflow { .. } => 8,
        // EX_SOFTWARE
        RequestOutcome::InternalError { .. } => 70,
        // What a shell reports of a program that SIGINT ended.
        RequestOutcome::Aborted => 130,
    }
}

/// For a command line that says nothing.
pub(super) fn print_help(mut command: clap::Command) -> ExitCode {
    eprint_line(&command.render_help().to_string());
    ExitCode::from(2)
}

/// For a process that this program starts of itself.
pub(super) fn helper_exit_code(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprint_line(&problem);
            ExitCode::from(FAILURE)
        }
    }
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
            "1 and 2 are for commands that did not get to a request"
        );
    }
}
