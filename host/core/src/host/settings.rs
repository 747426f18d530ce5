//! The settings of requests.

use std::time::Duration;

use crate::agent::{InterventionSettings, ParallelLimit, ReorderPolicy, TurnLimit};
use crate::sandbox::CallLimits;

/// The limits and habits of the agent loop and of tool calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestSettings {
    /// The limit on turns with tool calls in one request.
    pub turn_limit: TurnLimit,
    /// The limit on the active time of one request, without the time in dialogs.
    pub time_limit: Option<Duration>,
    /// The notes that the host may send to the model.
    pub interventions: InterventionSettings,
    /// Whether a repeated call with the same result gets a notice.
    pub repetition_notice: bool,
    /// The limit on parallel calls, shared by a request and its sub-agents.
    pub max_parallel: ParallelLimit,
    /// How far reads may move ahead of writes.
    pub reorder: ReorderPolicy,
    /// The limits of each call.
    pub call_limits: CallLimits,
}

impl Default for RequestSettings {
    fn default() -> Self {
        Self {
            turn_limit: TurnLimit::default(),
            time_limit: None,
            interventions: InterventionSettings::default(),
            repetition_notice: true,
            max_parallel: ParallelLimit::detect(),
            reorder: ReorderPolicy::Safe,
            call_limits: CallLimits::default(),
        }
    }
}
