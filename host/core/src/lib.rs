//! The agent core of Cofferdam, without a user interface.
//!
//! Cofferdam runs an LLM coding agent whose every tool is a WebAssembly component. Each tool can
//! use exactly the files, commands and hosts it has permission for.
//!
//! The modules, in reading order:
//!
//! - [`host`]: the entry point, with single tool calls and sessions.
//! - [`agent`]: the loop that asks the model, runs its calls and records the results.
//! - [`conversation`]: the history, in which every call has its result by construction.
//! - [`model`]: providers over HTTP, their wire formats, and recordings.
//! - [`tools`]: the catalog of tools, the order of their calls, approval, and results.
//! - [`policy`]: permissions, rules, and the function that decides.
//! - [`sandbox`]: the WebAssembly runtime for tools. Only this module uses wasmtime.
//! - [`session`]: the journal of a session, written to disk as it grows.
//! - [`audit`]: a log of decisions and effects that shows later changes.
//! - [`config`]: configuration files and policy files.
//! - [`plugins`]: third-party plugins and their acceptance: fetch, accept, store, remove.
//!
//! Every module may use [`terminal_escape`] (untrusted text made safe for a terminal),
//! [`private_dir`] and [`own_file`] (directories and files of this user alone), `image_type`
//! (images that models accept), `random`, and `bounded_json` (untrusted JSON within limits).
//!
//! # Public names
//!
//! Most programs need only [`Host`], [`HostBuilder`], [`Session`] and [`HelperProcesses`], which
//! are also at the root of the crate. Every other name has one place: the public module that it
//! belongs to. The first file of each module lists its public names with `pub use`; its submodules
//! are private. Names of `cofferdam-policy` are in [`policy`]. The file `public-api.txt` beside the
//! manifest of each crate lists its whole interface, and a test compares it with the code.
//!
//! Enums and structs that will grow are `#[non_exhaustive]`: errors, events, records and settings.
//! A type whose exhaustive `match` protects a decision stays closed, such as
//! [`policy::Verdict`], and its documentation says so.

pub mod agent;
pub mod audit;
mod bounded_json;
pub mod config;
pub mod conversation;
pub mod host;
mod image_type;
pub mod model;
pub mod plugins;
mod random;
pub mod sandbox;
pub mod session;
pub mod tools;

pub use cofferdam_confine::{own_file, private_dir};
pub use cofferdam_policy as policy;
pub use cofferdam_policy::terminal_escape;
pub use host::{HelperProcesses, Host, HostBuilder, HostError, PreparedHost, Session};
