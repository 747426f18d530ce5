//! Showing the user a plan in plan mode. Needs
//! [`Capability::PresentPlan`](crate::Capability::PresentPlan).

pub use crate::bindings::cofferdam::plugin::plans::PlanError;

use crate::ToolError;
use crate::lent::plans as host;

/// Shows a plan, which is Markdown of at most 64 KiB, and waits for the user's answer. With a yes
/// plan mode is over, and the name of the mode that is in force from then on comes back.
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
