//! The agent core of Cofferdam, without a user interface.
//!
//! Cofferdam runs an LLM coding agent whose every tool is a WebAssembly component. Each tool can
//! use exactly the files, commands and hosts it has permission for.
//!
//! - [`agent`]: the loop. Ask the model, run its calls, record the results, until it answers.
//! - [`conversation`]: the history, in which every call has its result by construction.
//! - [`model`]: providers over HTTP, their wire formats, recordings.
//! - [`tools`]: which tools there are, in what order they run, who is asked, and what the model is
//!   told.
//! - [`policy`]: what tools ask for, what they are given, and the one function that decides.
//! - [`sandbox`]: the enclosure; the only room that knows wasmtime.
//! - [`session`]: what was said and done, kept on the disk while it happens.
//! - [`audit`]: what was decided and done, in a log that shows when it was changed.
//! - [`config`]: what the user chose, as written and as meant.
//! - [`plugins`]: plugins of strangers: fetched, kept, taken away.
//!
//! Every room may use [`terminal_escape`], texts of strangers made fit for a terminal,
//! [`private_dir`] and [`own_file`], folders and files that are the user's alone, [`image_type`],
//! what can be shown to models, [`random`], and `bounded_json`, JSON of strangers read within a
//! bound.

pub mod agent;
pub mod audit;
mod bounded_json;
pub mod config;
pub mod conversation;
pub mod image_type;
pub mod model;
pub mod plugins;
pub mod random;
pub mod sandbox;
pub mod session;
pub mod tools;

pub use cofferdam_confine::{own_file, private_dir};
pub use cofferdam_policy as policy;
pub use cofferdam_policy::terminal_escape;
