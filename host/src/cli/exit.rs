//! Exit codes: one for each outcome. The numbers from 64 up are those of sysexits.h.

use std::process::ExitCode;

use super::print::stderr_line;
use crate::agent::Outcome;

/// A command could not be done, or a tool's result is an error.
pub(super) const FAILED: u8 = 1;
/// EX_CONFIG
pub(super) const CONFIGURATION: u8 = 78;

/// For a request.
pub(super) fn code(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Answered { .. } => 0,
        Outcome::Limit { .. } => 3,
        Outcome::Empty => 4,
        Outcome::Rejected => 5,
        Outcome::TimedOut { .. } => 6,
        Outcome::ProviderError { .. } => 7,
        Outcome::Overflow { .. } => 8,
        // EX_SOFTWARE
        Outcome::InternalError { .. } => 70,
        // What a shell reports of a program that SIGINT ended.
        Outcome::Aborted => 130,
    }
}

/// For a command line that says nothing.
pub(super) fn help(mut command: clap::Command) -> ExitCode {
    stderr_line(&command.render_help().to_string());
    ExitCode::from(2)
}

/// For a process that this program starts of itself.
pub(super) fn of_helper(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            stderr_line(&problem);
            ExitCode::from(FAILED)
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
            Outcome::Answered { text: text() },
            Outcome::Limit { text: text(), turns: 1 },
            Outcome::Empty,
            Outcome::Rejected,
            Outcome::Aborted,
            Outcome::TimedOut { seconds: 1 },
            Outcome::ProviderError { message: text() },
            Outcome::Overflow { message: text() },
            Outcome::InternalError { message: text() },
        ];
        let codes: BTreeSet<u8> = outcomes.iter().map(code).collect();
        assert_eq!(codes.len(), outcomes.len());
        assert!(!codes.contains(&FAILED) && !codes.contains(&2), "1 and 2 are for commands that did not get to a request");
    }
}
