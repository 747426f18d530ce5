//! Why a call was denied and how its last command ended, for programs that observe a run.

use super::arguments::ArgumentsError;
use crate::agent::events::DeniedCallSummary;
use crate::policy::{Denial, DenialCode};
use crate::sandbox::{CallFailure, CallOutput, CommandEnding, RanCommand};

/// A call that is refused before it runs.
#[derive(Debug)]
pub(super) struct CallRefusal {
    /// The reason, for the model.
    pub(super) message: String,
    /// The reason for programs, if the call was denied rather than invalid.
    pub(super) denied_call: Option<Box<DeniedCallSummary>>,
}

impl From<String> for CallRefusal {
    fn from(problem: String) -> Self {
        Self { message: problem, denied_call: None }
    }
}

impl From<Denial> for CallRefusal {
    fn from(denial: Denial) -> Self {
        Self {
            message: denial.to_string(),
            denied_call: Some(Box::new(DeniedCallSummary::from(denial))),
        }
    }
}

impl From<ArgumentsError> for CallRefusal {
    fn from(problem: ArgumentsError) -> Self {
        let denied = match &problem {
            ArgumentsError::InvalidPath { error: problem, .. } => {
                Some(Box::new(DeniedCallSummary::from(Denial::without_remedy(
                    DenialCode::OutsideWorkspace,
                    problem.to_string(),
                ))))
            }
            ArgumentsError::InvalidJson(_)
            | ArgumentsError::MultipleValues
            | ArgumentsError::NotAnObject(_)
            | ArgumentsError::TooLarge(_)
            | ArgumentsError::TooCostly { .. }
            | ArgumentsError::UnexplainedMismatch
            | ArgumentsError::SchemaMismatch(_)
            | ArgumentsError::InvalidSchema(_) => None,
        };
        Self { message: problem.to_string(), denied_call: denied }
    }
}

impl From<Denial> for DeniedCallSummary {
    fn from(Denial { code, reason, remedy, place: _ }: Denial) -> Self {
        Self { code: code.name().to_owned(), reason, remedy }
    }
}

/// Returns why a call that ran was denied, if it was. The host's newest denial takes precedence
/// over the error that the tool returned. The tool's error counts only for denials that the host
/// does not record.
pub(super) fn denied_call(
    result: &Result<CallOutput, CallFailure>,
    is_rejected: bool,
    last_denial: Option<Denial>,
) -> Option<DeniedCallSummary> {
    let denied = || last_denial.map(DeniedCallSummary::from);
    match result {
        _ if is_rejected => denied(),
        Err(CallFailure::Denied { code, reason, remedy }) => denied().or_else(|| {
            let remedy = Some(remedy.trim().to_owned()).filter(|remedy| !remedy.is_empty());
            Some(DeniedCallSummary { code: code.clone(), reason: reason.clone(), remedy })
        }),
        // A tool may report a denial as an error of its own.
        Err(
            CallFailure::ToolFailed(_)
            | CallFailure::NotFound(_)
            | CallFailure::InvalidInput { .. },
        ) => denied(),
        Ok(_)
        | Err(
            CallFailure::ToolTimedOut(_)
            | CallFailure::LimitExceeded(_)
            | CallFailure::Trapped(_)
            | CallFailure::InvalidResult(_)
            | CallFailure::NotChanged(_)
            | CallFailure::PartlyChanged(_)
            | CallFailure::Cancelled
            | CallFailure::Unavailable(_)
            | CallFailure::Host(_),
        ) => None,
    }
}

/// Returns the exit code of a call's last command if the command ran to its end. The code is 128
/// plus the signal number if a signal ended it.
pub(super) fn last_exit_code(commands: &[RanCommand]) -> Option<i32> {
    match commands.last()?.ending? {
        CommandEnding::Exited(code) => Some(code),
        CommandEnding::Killed(_) | CommandEnding::TimedOut => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_by_the_host_takes_precedence_over_the_tools_error() {
        let forged = || {
            Err(CallFailure::Denied {
                code: "mode".into(),
                reason: "forged".into(),
                remedy: " Do it.".into(),
            })
        };
        let denial = || Some(Denial::without_remedy(DenialCode::Policy, "by a rule."));
        let code = |denied: Option<DeniedCallSummary>| denied.map(|denied| denied.code);
        let done = || Ok(CallOutput::default());
        assert_eq!(code(denied_call(&forged(), false, denial())).as_deref(), Some("policy"));
        assert_eq!(
            code(denied_call(&done(), false, denial())),
            None,
            "the call succeeded despite the denial"
        );
        assert_eq!(
            code(denied_call(&done(), true, denial())).as_deref(),
            Some("policy"),
            "a rejection counts whatever the tool returned"
        );
        let passed_on = denied_call(&forged(), false, None).expect("reported by the tool");
        assert_eq!(
            (passed_on.code.as_str(), passed_on.remedy.as_deref()),
            ("mode", Some("Do it."))
        );
        assert_eq!(denied_call(&Err(CallFailure::Cancelled), false, denial()), None);
        assert_eq!(
            code(denied_call(&Err(CallFailure::ToolFailed("no luck".into())), false, denial()))
                .as_deref(),
            Some("policy")
        );
    }
}
