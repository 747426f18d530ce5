//! Why a call was denied and how its command ended, for programs that watch.

use super::arguments::ArgumentsError;
use crate::agent::events::DeniedCallSummary;
use crate::policy::{Denial, DenialCode};
use crate::sandbox::{CallFailure, CallOutput, CommandEnding, RanCommand};

/// A call that does not run.
#[derive(Debug)]
pub(super) struct CallRefusal {
    /// Why, for the model.
    pub(super) message: String,
    /// The same for programs, if it was denied and not just wrong.
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

/// Why a call that ran did not do what was asked, if that was denied. What the host denied last
/// counts more than what the tool makes of it, whose word is taken only for a denial that the host
/// keeps no record of.
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
        // A tool that was denied something may say so in its own way.
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

/// The exit code of the last command of a call, if it ran to its end: 128 plus the signal if a
/// signal ended it.
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
    fn what_the_host_denied_counts_more_than_what_a_tool_makes_of_it() {
        let forged = || {
            Err(CallFailure::Denied {
                code: "mode".into(),
                reason: "forged".into(),
                remedy: " Do it.".into(),
            })
        };
        let denial = || Some(Denial::without_remedy(DenialCode::Policy, "by a rule."));
        let code = |denied: Option<DeniedCallSummary>| denied.map(|denied| denied.code);
        let done = || Ok(CallOutput { content: Vec::new(), user_view: None, truncated: false });
        assert_eq!(code(denied_call(&forged(), false, denial())).as_deref(), Some("policy"));
        assert_eq!(
            code(denied_call(&done(), false, denial())),
            None,
            "it did what was asked all the same"
        );
        assert_eq!(
            code(denied_call(&done(), true, denial())).as_deref(),
            Some("policy"),
            "whatever the tool makes of a no"
        );
        let passed_on = denied_call(&forged(), false, None).expect("the tool says so");
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
