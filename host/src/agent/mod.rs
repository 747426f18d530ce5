//! The loop: while there is budget, fit the conversation and ask the model; if it answered, stop; otherwise run its calls and record the results.
//!
//! This room knows neither WebAssembly nor HTTP nor a terminal. What it needs from them are the traits in [`ports`];
//! what it tells them are the [`events`]. How a request can end is one list, [`Outcome`].
#![doc = include_str!("LIFECYCLE.md")]

mod ask;
mod budget;
mod compact;
mod course;
pub mod events;
mod fit;
mod interventions;
mod outcome;
pub mod ports;
mod request;
mod room;
mod spending;
mod sub_agents;
mod submit;
mod summarise;
mod system_prompt;
mod time;

pub use budget::{DEFAULT_MAX_TURNS, InvalidTurnLimit, TurnLimit};
pub use compact::Compacted;
pub use interventions::Interventions;
pub use outcome::Outcome;
pub use request::{Agent, RequestId};
pub use sub_agents::{SUB_AGENT_TURNS, SubAgentMaker};
pub use system_prompt::SystemPrompt;
pub use time::{ActiveTime, Pause};
