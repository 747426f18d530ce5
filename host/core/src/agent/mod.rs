//! The agent loop, from a prompt to an outcome.
//!
//! While there is budget, the loop fits the conversation and asks the model. If the model answers,
//! the loop stops. Otherwise it runs the calls and records the results.
//!
//! This module depends on neither WebAssembly nor HTTP nor a terminal. It uses them through the
//! traits in [`ports`] and reports to them through [`events`]. [`RequestOutcome`] lists every way
//! in which a request can end.
#![doc = include_str!("LIFECYCLE.md")]

mod active_time;
mod ask;
mod budget;
mod call_settings;
mod compact;
mod context_budget;
pub mod events;
mod fit;
mod interventions;
mod outcome;
pub mod ports;
mod request;
mod request_state;
mod sub_agent_usage;
mod sub_agents;
mod submit;
mod summarise;
mod system_prompt;

pub use active_time::{ActiveTime, ClockPause};
pub use budget::{InvalidTurnLimit, TurnLimit};
pub use call_settings::{InvalidParallelLimit, ParallelLimit, ReorderPolicy};
pub use compact::CompactionOutcome;
pub use interventions::InterventionSettings;
pub use outcome::RequestOutcome;
pub use request::{Agent, RequestId};
pub(crate) use sub_agents::SUB_AGENT_TURN_LIMIT;
pub use sub_agents::SubAgentMaker;
pub use system_prompt::SystemPrompt;
