//! The loop: ask the model, run its calls, record the results, until it answers.
//!
//! This room knows neither WebAssembly nor HTTP nor a terminal. What it needs from them are the
//! traits in [`ports`].

pub mod events;
mod outcome;
pub mod ports;

pub use outcome::Outcome;
