//! Cofferdam runs an LLM coding agent whose every tool is a WebAssembly component with exactly the
//! files, commands and hosts it was granted.
//!
//! The rooms, in reading order:
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
//! - [`authoring`]: writing plugins: templates, builds, and what every component has to stand.
//! - [`config`]: what the user chose, as written and as meant.
//! - [`plugins`]: plugins of strangers: fetched, kept, taken away.
//! - [`cli`]: the commands; the only room that prints.
//!
//! Every room may use [`terminal_escape`], texts of strangers made fit for a terminal,
//! [`private_dir`] and [`own_file`], folders and files that are the user's alone, [`image_type`], what can be shown to models,
//! [`random`], and `bounded_json`, JSON of strangers read within a bound.

pub mod agent;
pub mod audit;
pub mod authoring;
mod bounded_json;
pub mod cli;
pub mod config;
pub mod conversation;
pub mod image_type;
pub mod model;
pub mod own_file;
pub mod plugins;
pub mod policy;
pub mod private_dir;
pub mod random;
pub mod sandbox;
pub mod session;
pub mod terminal_escape;
pub mod tools;
