//! The `plans` interface: the guest presents a plan, and the host returns whether the user accepts
//! it. If the user rejects it, the user's comments go to the model directly; the guest only gets a
//! denial.

use std::sync::Arc;

use super::call_state::not_granted;
use super::clock::CallClock;
use super::contract::v0_2::plans as wit;
use super::gate::PlanApprovalGate;
use crate::policy::Denial;

/// The longest plan, 64 KiB by the WIT contract. Nobody reads more in a dialog.
const MAX_PLAN_LEN: usize = 64 << 10;

/// The host's state of the `plans` interface for one call.
pub(super) struct PlansHost {
    /// `None` without the permission to present plans.
    gate: Option<PlanApprovalGate>,
    clock: Arc<CallClock>,
}

impl PlansHost {
    pub(super) fn new(gate: Option<PlanApprovalGate>, clock: &Arc<CallClock>) -> Self {
        Self { gate, clock: Arc::clone(clock) }
    }
}

impl wit::Host for PlansHost {
    async fn present(&mut self, plan: String) -> Result<String, wit::PlanError> {
        let Some(gate) = &self.gate else {
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
        let _waiting = self.clock.pause();
        decision.await.map(|mode| mode.name().to_owned()).map_err(denied)
    }
}

fn denied(denial: Denial) -> wit::PlanError {
    wit::PlanError::Denied(denial.into())
}
