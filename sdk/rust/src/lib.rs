//! Write tools for Cofferdam in Rust.
//!
//! A plugin is a WebAssembly component with one or more tools. A tool is a type that implements [`Tool`];
//! [`export_tools!`] turns tools into the component. This is a whole plugin:
//!
//! ```
//! use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath, export_tools};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! /// Each documented field becomes a documented property of the tool's JSON Schema.
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Input {
//!     /// The file to count.
//!     path: WorkspacePath,
//! }
//!
//! struct CountWords;
//!
//! impl Tool for CountWords {
//!     const NAME: &'static str = "count_words";
//!     const DESCRIPTION: &'static str = "Counts the words of a text file. Use it in place of reading the file.";
//!     type Input = Input;
//!
//!     fn capabilities() -> Vec<Capability> {
//!         vec![Capability::ReadFiles]
//!     }
//!
//!     fn call(input: Input) -> Result<Output, ToolError> {
//!         let text = std::fs::read_to_string(&input.path).map_err(ToolError::io("read", &input.path))?;
//!         Ok(Output::text(words(&text).to_string()))
//!     }
//! }
//!
//! /// Apart from the tool, so that a test needs neither a file nor WebAssembly.
//! fn words(text: &str) -> usize {
//!     text.split_whitespace().count()
//! }
//!
//! export_tools!(CountWords);
//! # fn main() { assert_eq!(words("two words"), 2); }
//! ```
//!
//! Its `Cargo.toml` has `crate-type = ["cdylib", "rlib"]` (the second is for tests) and depends on this crate,
//! `serde` and `schemars`. Build it with `cargo build --release --target wasm32-wasip2`.
//!
//! # What a tool may do
//!
//! Nothing, until it asks: [`Tool::capabilities`] is what the tool wants, the user's policy decides what it gets.
//! With [`Capability::ReadFiles`] `std::fs` sees the workspace as the root directory, and [`workspace`] walks it;
//! with [`Capability::RunCommands`] there is [`commands`]. What was not given fails with an ordinary error.
//! [`progress`] is always there.
//!
//! Each call gets a fresh instance: a `static` does not outlive the call. Standard output and error end in the
//! host's log, so a panic's message is kept, and the call fails.
//!
//! # Testing
//!
//! On the development machine the crate builds and links as any other, but every function that would reach the host panics.
//! Keep what a tool decides in functions of their own. [`call`] runs a tool from the JSON text on, and
//! [`declare`] shows what the host will know about it.

#[doc(hidden)]
pub mod bindings;
pub mod commands;
mod error;
mod export;
mod output;
mod path;
pub mod progress;
mod schema;
mod tool;
pub mod workspace;

pub use bindings::cofferdam::plugin::types::Denial;
pub use bindings::exports::cofferdam::plugin::tools::{
    Capability, Content, Hints, Image, InputProblem, Output, Table, Tool as Declaration, ToolError, View,
};
pub use export::{call, declare, unknown_tool};
pub use path::WorkspacePath;
pub use tool::Tool;
