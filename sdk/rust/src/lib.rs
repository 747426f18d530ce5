//! Write tools for Cofferdam in Rust.
//!
//! A plugin is a WebAssembly component with one or more tools. A tool is a type that implements
//! [`Tool`]; [`export_tools!`] turns tools into the component. This is a whole plugin:
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
//!         "Counts the words of a text file. Use it in place of reading the file.";
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
//! /// Apart from the tool, so that a test needs neither a file nor WebAssembly.
//! fn words(text: &str) -> usize {
//!     text.split_whitespace().count()
//! }
//!
//! export_tools!(CountWords);
//! # fn main() { assert_eq!(words("two words"), 2); }
//! ```
//!
//! A test of it, in the same file:
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
//! # What a tool may do
//!
//! Nothing, until it asks: [`Tool::capabilities`] is what the tool wants, the user's policy decides
//! what it gets. With [`Capability::ReadFiles`] `std::fs` sees the workspace as the root directory,
//! and [`workspace`] walks it; with [`Capability::RunCommands`] there is [`commands`], with
//! [`Capability::KeepState`] there is [`state`], with [`Capability::Delegate`] there are
//! [`agents`], with [`Capability::PresentPlan`] there are [`plans`], and with [`Capability::Fetch`]
//! there is [`http`]. What was not given fails with an ordinary error. [`progress`] is always
//! there.
//!
//! Each call gets a fresh instance: a `static` does not outlive the call, and what is to last goes
//! through [`state`]. Standard output and error end in the host's log, so a panic's message is
//! kept, and the call fails.
//!
//! # Testing
//!
//! On the development machine the crate builds and links as any other, and [`test::Host`] calls a
//! tool as the host does: from the JSON text on, with a workspace of its own, with what the tool
//! asks for and nothing else. [`declare`] shows what the host will know about a tool. What a tool
//! decides is tested best in functions of their own.

pub mod agents;
#[doc(hidden)]
pub mod bindings;
pub mod commands;
mod error;
mod export;
pub mod http;
mod lent;
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
    Capability, Content, Hints, Image, InputProblem, Output, Table, Tool as Declaration, ToolError,
    View,
};
pub use export::{call, declare, unknown_tool};
pub use path::WorkspacePath;
pub use tool::Tool;
