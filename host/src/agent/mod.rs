//! The loop: while there is budget, fit the conversation and ask the model; if it answered, stop;
//! otherwise run its calls and record the results.
//!
//! This room knows neither WebAssembly nor HTTP nor a terminal. What it needs from them are the
//! traits in [`ports`]; what it tells them are the [`events`]. How a request can end is one list,
//! [`RequestOutcome`].
#![doc = include_str!("LIFECYCLE.md")]

mod active_time;
mod ask;
mod budget;
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
pub use budget::{DEFAULT_MAX_TURNS, InvalidTurnLimit, TurnLimit};
pub use compact::CompactionOutcome;
pub use interventions::InterventionSettings;
pub use outcome::RequestOutcome;
pub use request::{Agent, RequestId};
pub use sub_agents::{SUB_AGENT_TURN_LIMIT, SubAgentMaker};
pub use system_prompt::SystemPrompt;
