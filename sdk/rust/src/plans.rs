//! Presenting a plan to the user in plan mode. Needs
//! [`Capability::PresentPlan`](crate::Capability::PresentPlan).

pub use crate::bindings::cofferdam::plugin::plans::PlanError;

use crate::ToolError;
use crate::imports::plans as host;

/// Presents a plan, Markdown of at most 64 KiB, and waits for the user's decision.
///
/// If the user approves the plan, plan mode ends, and the function returns the name of the new
/// mode.
pub fn present(plan: &str) -> Result<String, PlanError> {
    host::present(plan)
}

impl From<PlanError> for ToolError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Denied(denial) => Self::Denied(denial),
            PlanError::Invalid(message) => Self::invalid_input("", message),
        }
    }
}
