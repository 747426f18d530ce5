//! The `plans` interface: the guest presents a plan, and the host returns whether the user accepts
//! it. If the user rejects it, the user's comments go to the model directly; the guest only gets a
//! denial.

use std::sync::Arc;

use super::bindings::cofferdam::plugin::plans as wit;
use super::call_state::{CallState, not_granted};
use crate::policy::Denial;

/// The longest plan, 64 KiB by the WIT contract. Nobody reads more in a dialog.
const MAX_PLAN_LEN: usize = 64 << 10;

impl wit::Host for CallState {
    async fn present(&mut self, plan: String) -> Result<String, wit::PlanError> {
        let Some(gate) = &self.plan_gate else {
            return Err(denied(not_granted("present plans", "present-plan")));
        };
        if plan.trim().is_empty() {
            return Err(wit::PlanError::Invalid("the plan is empty".into()));
        }
        if plan.len() > MAX_PLAN_LEN {
            return Err(wit::PlanError::Invalid(format!(
                "the plan has {} bytes; the limit is {MAX_PLAN_LEN}",
                plan.len()
            )));
        }
        let decision = gate(plan);

        // The user may take any time to decide.
        let clock = Arc::clone(&self.clock);
        let _waiting = clock.pause();
        decision.await.map(|mode| mode.name().to_owned()).map_err(denied)
    }
}

fn denied(denial: Denial) -> wit::PlanError {
    wit::PlanError::Denied(denial.into())
}
