//! The `present_plan` tool: presents a plan to the user in plan mode.

use cofferdam_sdk::plans::{self, PlanError};
use cofferdam_sdk::{Capability, Output, Tool, ToolError, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct PresentPlan;

/// The plan.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The plan in Markdown: the steps in order, the files that each step changes, how to check the
    /// result, and open questions.
    plan: String,
}

impl Tool for PresentPlan {
    const NAME: &'static str = "present_plan";
    const TITLE: Option<&'static str> = Some("Present a plan");
    const DESCRIPTION: &'static str = "Presents your plan to the user and waits for the decision. \
        Call it only in plan mode, when you have read enough to be sure of the plan. If the user \
        approves the plan, plan mode ends and you carry out the plan. If the user rejects it, the \
        result contains the user's comments: change the plan accordingly and present it again. \
        Outside plan mode, do not call it; start with the work.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::PresentPlan]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        if input.plan.trim().is_empty() {
            return Err(ToolError::invalid_input(
                "/plan",
                "the plan is empty. Write down the steps",
            ));
        }
        let mode = plans::present(input.plan.trim()).map_err(|error| match error {
            PlanError::Invalid(message) => ToolError::invalid_input("/plan", message),
            denied @ PlanError::Denied(_) => denied.into(),
        })?;
        Ok(Output::text(format!(
            "The user approved the plan. Plan mode has ended, and the mode is now `{mode}`. Carry \
                out the plan, step by step."
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
    fn r126_an_approved_plan_is_carried_out() {
        let mut host = Host::new().on_plan(|plan| {
            assert_eq!(plan, "1. Read");
            Ok("auto-edit".into())
        });
        let answer = host.call::<PresentPlan>(r#"{"plan":"\n1. Read\n"}"#);
        assert!(matches!(answer, Ok(output) if format!("{output:?}").contains("the mode is now \
                `auto-edit`")));
    }

    #[test]
    fn r126_a_denial_is_returned_unchanged() {
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
    fn r126_an_empty_plan_is_refused() {
        assert!(matches!(
            Host::new().call::<PresentPlan>(r#"{"plan":" \n"}"#),
            Err(ToolError::InvalidInput(problem)) if problem.pointer == "/plan"
        ));
    }
}
