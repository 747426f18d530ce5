//! `plans`: the guest shows a plan, and the host says whether the user accepts it. What the user
//! says to a plan that is not accepted reaches the model past the guest, which only hears that it
//! was refused.

use std::sync::Arc;

use super::bindings::cofferdam::plugin::plans as wit;
use super::call_state::{CallState, not_granted};
use crate::policy::Denial;

/// The contract's 64 KiB: more than anybody reads in a dialog.
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
                "the plan has {} bytes; at most {MAX_PLAN_LEN} are shown",
                plan.len()
            )));
        }
        let asked = gate(plan);

        // A person may take as long as they like.
        let clock = Arc::clone(&self.clock);
        let _waiting = clock.pause();
        asked.await.map(|mode| mode.name().to_owned()).map_err(denied)
    }
}

fn denied(denial: Denial) -> wit::PlanError {
    wit::PlanError::Denied(denial.into())
}
