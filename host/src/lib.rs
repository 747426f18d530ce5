//! Cofferdam runs an LLM coding agent whose every tool is a WebAssembly component with exactly the files,
//! commands and hosts it was granted.
//!
//! The rooms, in reading order:
//!
//! - [`agent`]: the loop. Ask the model, run its calls, record the results, until it answers.
//! - [`conversation`]: the history, in which every call has its result by construction.
//! - [`model`]: the language models: wire formats, streams, retries, recordings, prices.

pub mod agent;
pub mod conversation;
pub mod model;
