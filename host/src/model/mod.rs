//! Language models behind the agent's [`Model`](crate::agent::ports::Model) port.
//!
//! [`choose`] settles which model is meant, [`connect`] makes it ready:
//!
//! - `openai` (chat completions), `responses` (OpenAI's newer one) and `anthropic` each hold one wire format: how a transcript
//!   becomes a request (`request`) and how a stream of events becomes a response (`stream`). Both are pure.
//! - `http` sends and reads, with timeouts, further attempts and cancellation; `sse` cuts bytes into events, `event_data` reads one.
//! - [`Replay`] answers from a recording, [`Recorder`] makes one while another model answers.
//! - [`cost`] counts money.

mod anthropic;
mod choice;
mod connect;
mod event_data;
mod failure;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod known;
mod ollama;
mod openai;
mod page;
mod pricing;
mod record;
mod recording;
mod replay;
mod responses;
mod retry;
mod said;
mod secret;
mod sse;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod test_vectors;
mod usage;
mod wire;
mod wire_ids;

pub use choice::{Api, Choice, ModelChoiceError, ModelSpec, Provider, Settings, choose};
pub use connect::{base_url, connect};
pub use pricing::cost;
pub use record::{RecordError, Recorder};
pub use recording::RecordingError;
pub use replay::Replay;
pub use retry::Timing;
pub use secret::Secret;
