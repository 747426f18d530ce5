//! The loop: while there is budget, ask the model; if it answered, stop; otherwise run its calls and record the results.
//!
//! This room knows neither WebAssembly nor HTTP nor a terminal. What it needs from them are the traits in [`ports`];
//! what it tells them are the [`events`]. How a request can end is one list, [`Outcome`].

mod ask;
mod budget;
pub mod events;
mod outcome;
pub mod ports;
mod request;
mod sub_agents;
mod submit;
mod system_prompt;

pub use budget::{DEFAULT_MAX_TURNS, InvalidTurnLimit, TurnLimit};
pub use outcome::Outcome;
pub use request::{Agent, RequestId};
pub use sub_agents::{SUB_AGENT_TURNS, SubAgentMaker};
pub use system_prompt::SystemPrompt;
