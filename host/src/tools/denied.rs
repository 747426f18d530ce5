//! Why a call was denied and how its command ended, for programs that watch.

use super::arguments::ArgumentsProblem;
use crate::agent::events::DeniedCall;
use crate::policy::{Code, Denial};
use crate::sandbox::{CommandEnding, Failure, Output, RanCommand};

/// A call that does not run.
#[derive(Debug)]
pub(super) struct CallRefusal {
    /// Why, for the model.
    pub(super) problem: String,
    /// The same for programs, if it was denied and not just wrong.
    pub(super) denied: Option<Box<DeniedCall>>,
}

impl From<String> for CallRefusal {
    fn from(problem: String) -> Self {
        Self { problem, denied: None }
    }
}

impl From<Denial> for CallRefusal {
    fn from(denial: Denial) -> Self {
        Self { problem: denial.to_string(), denied: Some(Box::new(DeniedCall::from(denial))) }
    }
}

impl From<ArgumentsProblem> for CallRefusal {
    fn from(problem: ArgumentsProblem) -> Self {
        let denied = match &problem {
            ArgumentsProblem::Path { problem, .. } => {
                Some(Box::new(DeniedCall::from(Denial::fixed(Code::OutsideWorkspace, problem.to_string()))))
            }
            ArgumentsProblem::Syntax(_)
            | ArgumentsProblem::Several
            | ArgumentsProblem::NotAnObject(_)
            | ArgumentsProblem::TooLarge(_)
            | ArgumentsProblem::TooCostly { .. }
            | ArgumentsProblem::Unexplained
            | ArgumentsProblem::Schema(_)
            | ArgumentsProblem::NoSchema(_) => None,
        };
        Self { problem: problem.to_string(), denied }
    }
}

impl From<Denial> for DeniedCall {
    fn from(Denial { code, reason, remedy, place: _ }: Denial) -> Self {
        Self { code: code.name().to_owned(), reason, remedy }
    }
}

/// Why a call that ran did not do what was asked, if that was denied. What the host denied last counts more than what the tool
/// makes of it, whose word is taken only for a denial that the host keeps no record of.
pub(super) fn of_call(result: &Result<Output, Failure>, is_rejected: bool, last_denial: Option<Denial>) -> Option<DeniedCall> {
    let denied = || last_denial.map(DeniedCall::from);
    match result {
        _ if is_rejected => denied(),
        Err(Failure::Denied { code, reason, remedy }) => denied().or_else(|| {
            let remedy = Some(remedy.trim().to_owned()).filter(|remedy| !remedy.is_empty());
            Some(DeniedCall { code: code.clone(), reason: reason.clone(), remedy })
        }),
        // A tool that was denied something may say so in its own way.
        Err(Failure::ToolFailed(_) | Failure::NotFound(_) | Failure::InvalidInput { .. }) => denied(),
        Ok(_)
        | Err(
            Failure::ToolTimedOut(_)
            | Failure::LimitExceeded(_)
            | Failure::Trapped(_)
            | Failure::BadAnswer(_)
            | Failure::NotChanged(_)
            | Failure::HalfChanged(_)
            | Failure::Cancelled
            | Failure::Unavailable(_)
            | Failure::Host(_),
        ) => None,
    }
}

/// The exit code of the last command of a call, if it ran to its end: 128 plus the signal if a signal ended it.
pub(super) fn exit_code(commands: &[RanCommand]) -> Option<i32> {
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
        let forged = || Err(Failure::Denied { code: "mode".into(), reason: "forged".into(), remedy: " Do it.".into() });
        let denial = || Some(Denial::fixed(Code::Policy, "by a rule."));
        let code = |denied: Option<DeniedCall>| denied.map(|denied| denied.code);
        let done = || Ok(Output { content: Vec::new(), shown: None, truncated: false });
        assert_eq!(code(of_call(&forged(), false, denial())).as_deref(), Some("policy"));
        assert_eq!(code(of_call(&done(), false, denial())), None, "it did what was asked all the same");
        assert_eq!(code(of_call(&done(), true, denial())).as_deref(), Some("policy"), "whatever the tool makes of a no");
        let passed_on = of_call(&forged(), false, None).expect("the tool says so");
        assert_eq!((passed_on.code.as_str(), passed_on.remedy.as_deref()), ("mode", Some("Do it.")));
        assert_eq!(of_call(&Err(Failure::Cancelled), false, denial()), None);
        assert_eq!(code(of_call(&Err(Failure::ToolFailed("no luck".into())), false, denial())).as_deref(), Some("policy"));
    }
}
