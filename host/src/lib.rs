//! Cofferdam runs an LLM coding agent whose every tool is a WebAssembly component with exactly the files,
//! commands and hosts it was granted.
//!
//! The rooms, in reading order:
//!
//! - [`agent`]: the loop. Ask the model, run its calls, record the results, until it answers.
//! - [`conversation`]: the history, in which every call has its result by construction.
//! - [`policy`]: what tools ask for, what they are given, and the one function that decides.
//! - [`sandbox`]: the enclosure; the only room that knows wasmtime.
//! - [`tools`]: which tools there are, in what order they run, who is asked, and what the model is told.

pub mod agent;
pub mod config;
pub mod conversation;
pub mod policy;
pub mod sandbox;
pub mod tools;
