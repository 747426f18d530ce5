//! Clients of model providers over HTTP.
//!
//! - `openai` (chat completions), `responses` (OpenAI's newer API) and `anthropic` each implement
//!   one wire format. `request` converts a transcript to a request body, and `stream` assembles a
//!   response from a stream of events. Neither does I/O.
//! - `http` sends requests and reads streams, with timeouts, retries and cancellation. `sse` splits
//!   bytes into events, and `event_data` parses the data of one event.
//! - `ollama` finds a model on this machine.
//!
//! Without the feature `providers`, the file `no_providers.rs` takes the place of this module.

mod anthropic;
mod connect;
mod error_details;
mod event_data;
mod failure;
pub mod fuzzing;
mod http;
mod known_models;
mod ollama;
mod openai;
mod responses;
mod retry;
mod sse;
#[cfg(test)]
mod test_vectors;
mod usage;
mod web_page;
mod wire;
mod wire_ids;

pub(super) use connect::{connect_anthropic, connect_ollama, connect_openai};
pub(super) use ollama::find_ollama_model;
