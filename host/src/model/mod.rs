//! Language models behind the agent's [`Model`](crate::agent::ports::Model) port.
//!
//! [`choose`] settles which model is meant, [`connect`] makes it ready:
//!
//! - `openai` (chat completions), `responses` (OpenAI's newer one) and `anthropic` each hold one
//!   wire format: how a transcript becomes a request (`request`) and how a stream of events becomes
//!   a response (`stream`). Both are pure.
//! - `http` sends and reads, with timeouts, further attempts and cancellation; `sse` cuts bytes
//!   into events, `event_data` reads one.
//! - [`ReplayModel`] answers from a recording, [`RecordingModel`] makes one while another model
//!   answers.
//! - [`cost`] counts money.

mod anthropic;
mod api_key;
mod choice;
mod connect;
mod error_details;
mod escaped_key;
mod event_data;
mod failure;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod known_models;
mod ollama;
mod openai;
mod pricing;
mod recorder;
mod recording;
mod replay;
mod responses;
mod retry;
mod sse;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod test_vectors;
mod usage;
mod web_page;
mod wire;
mod wire_ids;

pub use api_key::ApiKey;
pub use choice::{
    ModelChoice, ModelChoiceError, ModelSettings, ModelSpec, OpenAiApi, ProviderKind, choose,
};
pub use connect::{base_url, connect};
pub use pricing::cost;
pub use recorder::{RecordError, RecordingModel};
pub use recording::RecordingError;
pub use replay::ReplayModel;
pub use retry::RetryTiming;
