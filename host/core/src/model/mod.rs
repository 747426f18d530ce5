//! Language models behind the agent's [`LanguageModel`](crate::agent::ports::LanguageModel) port.
//!
//! [`choose`] decides which model to use, and [`connect`] makes it ready:
//!
//! - `openai` (chat completions), `responses` (OpenAI's newer API) and `anthropic` each implement
//!   one wire format. `request` converts a transcript to a request body, and `stream` assembles a
//!   response from a stream of events. Neither does I/O.
//! - `http` sends requests and reads streams, with timeouts, retries and cancellation. `sse` splits
//!   bytes into events, and `event_data` parses the data of one event.
//! - [`ReplayModel`] plays a recording. [`RecordingModel`] makes one while another model responds.
//! - [`cost`] computes the price of a response.

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
pub(crate) use connect::default_base_url;
pub use connect::{base_url, connect};
pub use pricing::cost;
pub use recorder::{RecordError, RecordingModel};
pub use recording::RecordingError;
pub use replay::ReplayModel;
pub use retry::RetryTiming;
