//! Write tools for Cofferdam in Rust.
//!
//! A plugin is a WebAssembly component with one or more tools. A tool is a type that implements
//! [`Tool`]; [`export_tools!`] exports tools from the component. This is a complete plugin:
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
//!     const DESCRIPTION: &'static str =
//!         "Counts the words of a text file. Use it instead of reading the file.";
//!     type Input = Input;
//!
//!     fn capabilities() -> Vec<Capability> {
//!         vec![Capability::ReadFiles]
//!     }
//!
//!     fn call(input: Input) -> Result<Output, ToolError> {
//!         let text = std::fs::read_to_string(&input.path)
//!             .map_err(ToolError::io("read", &input.path))?;
//!         Ok(Output::text(words(&text).to_string()))
//!     }
//! }
//!
//! /// A separate function, so that a test needs neither a file nor WebAssembly.
//! fn words(text: &str) -> usize {
//!     text.split_whitespace().count()
//! }
//!
//! export_tools!(CountWords);
//! # fn main() { assert_eq!(words("two words"), 2); }
//! ```
//!
//! A test in the same file:
//!
//! ```
//! # use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath};
//! # #[derive(serde::Deserialize, schemars::JsonSchema)]
//! # struct Input { path: WorkspacePath }
//! # struct CountWords;
//! # impl Tool for CountWords {
//! #     const NAME: &'static str = "count_words";
//! #     const DESCRIPTION: &'static str = "";
//! #     type Input = Input;
//! #     fn capabilities() -> Vec<Capability> { vec![Capability::ReadFiles] }
//! #     fn call(input: Input) -> Result<Output, ToolError> {
//! #         let text = std::fs::read_to_string(&input.path)
//! #             .map_err(ToolError::io("read", &input.path))?;
//! #         Ok(Output::text(text.split_whitespace().count().to_string()))
//! #     }
//! # }
//! use cofferdam_sdk::test::Host;
//!
//! let mut host = Host::new().with_file("a.txt", "one two");
//! assert_eq!(host.call::<CountWords>(r#"{"path": "a.txt"}"#), Ok(Output::text("2")));
//! assert!(host.call::<CountWords>(r#"{"path": "b.txt"}"#).is_err());
//! ```
//!
//! Its `Cargo.toml` has `crate-type = ["cdylib", "rlib"]` (the second is for tests) and depends on
//! this crate, `serde` and `schemars`. Build it with
//! `cargo build --release --target wasm32-wasip2`.
//!
//! # Permissions
//!
//! A tool requests permissions with [`Tool::capabilities`], and the user's policy decides which of
//! them it gets. With [`Capability::ReadFiles`], `std::fs` sees the workspace as the root
//! directory, and [`workspace`] walks it. The other capabilities give access to [`commands`] and
//! [`jobs`], [`state`], [`agents`], [`plans`] and [`http`]. Without the permission, a call of these
//! modules fails with an ordinary error. [`progress`] needs no permission.
//!
//! Each call gets a new instance, so a `static` does not survive the call. Use [`state`] to keep
//! values for the session. Standard output and standard error go to the host's log. If a tool
//! panics, the call fails with the panic message.
//!
//! # Testing
//!
//! The crate also builds for the development machine. [`test::Host`] calls a tool as the host does:
//! with JSON text, with a workspace, and with only the requested permissions. [`declare`] returns
//! the declaration that the host sees. Put the logic of a tool into functions that a test can call
//! directly.

pub mod agents;
#[doc(hidden)]
pub mod bindings;
mod capability;
pub mod commands;
mod error;
mod export;
pub mod http;
mod imports;
pub mod jobs;
pub mod listing;
mod output;
mod path;
pub mod plans;
pub mod progress;
mod schema;
pub mod state;
#[cfg(not(target_family = "wasm"))]
pub mod test;
mod tool;
pub mod workspace;

pub use bindings::cofferdam::plugin::types::Denial;
pub use bindings::exports::cofferdam::plugin::tools::{
    Annotation, Body, Content, InputProblem, Output, Tool as Declaration, ToolError,
};
pub use capability::{Capability, Hint};
pub use export::{call, declare, unknown_tool};
pub use output::View;
pub use path::WorkspacePath;
pub use schema::of as json_schema;
pub use tool::Tool;
