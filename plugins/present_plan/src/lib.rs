//! The `present_plan` tool: shows the user a plan in plan mode, and hears whether it is accepted.

use cofferdam_sdk::plans::{self, PlanError};
use cofferdam_sdk::{Capability, Output, Tool, ToolError, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct PresentPlan;

/// What is to be done.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The plan in Markdown: the steps in order, the files that each touches, how it will be
    /// checked, and what is left open.
    plan: String,
}

impl Tool for PresentPlan {
    const NAME: &'static str = "present_plan";
    const DESCRIPTION: &'static str = "Shows the user your plan and waits for their answer. Only \
        in plan mode, once you have read enough to be sure of \
        the plan. If the user accepts it, plan mode is over and you carry the plan out. If not, \
        the result holds the user's words: change the plan \
        accordingly and present it again. Outside of plan mode do not call it; do the work.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::PresentPlan]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        if input.plan.trim().is_empty() {
            return Err(ToolError::invalid_input(
                "/plan",
                "the plan is empty. Write down what you are going to do, step by step",
            ));
        }
        let mode = plans::present(input.plan.trim()).map_err(|error| match error {
            PlanError::Invalid(message) => ToolError::invalid_input("/plan", message),
            denied @ PlanError::Denied(_) => denied.into(),
        })?;
        Ok(Output::text(format!(
            "The user accepted the plan. Plan mode is over, and the mode is now `{mode}`. Carry \
                the plan out, step by step."
        )))
    }
}

export_tools!(PresentPlan);

#[cfg(test)]
mod tests {
    use cofferdam_sdk::Denial;
    use cofferdam_sdk::test::Host;

    use super::*;

    #[test]
    fn r126_an_accepted_plan_is_to_be_carried_out() {
        let mut host = Host::new().on_plan(|plan| {
            assert_eq!(plan, "1. Read");
            Ok("auto-edit".into())
        });
        let answer = host.call::<PresentPlan>(r#"{"plan":"\n1. Read\n"}"#);
        assert!(matches!(answer, Ok(output) if format!("{output:?}").contains("the mode is now \
                `auto-edit`")));
    }

    #[test]
    fn r126_a_refusal_is_passed_on() {
        let denial = Denial {
            code: "mode".into(),
            reason: "the session is not in plan mode.".into(),
            remedy: None,
        };
        let said = denial.clone();
        let mut host = Host::new().on_plan(move |_| Err(PlanError::Denied(said.clone())));
        assert_eq!(
            host.call::<PresentPlan>(r#"{"plan":"1. Read"}"#),
            Err(ToolError::Denied(denial))
        );
    }

    #[test]
    fn r126_an_empty_plan_is_not_shown() {
        assert!(matches!(
            Host::new().call::<PresentPlan>(r#"{"plan":" \n"}"#),
            Err(ToolError::InvalidInput(problem)) if problem.pointer == "/plan"
        ));
    }
}
