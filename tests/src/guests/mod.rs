//! Hostile guests: components made of a few lines of WebAssembly text, one for each way to
//! misbehave.
//!
//! A guest is a file of `tests/guests` that holds what is special about it, mostly the function
//! `$call`. The rest comes from the kit (`kit.wat`): memory, an allocator, `list-tools` from a
//! description in Rust, and helpers to answer with. In a guest
//!
//! - `@"text"` stands for the address and the length of that text,
//! - `$interface.function` is an import, such as `$commands.run` or `$filesystem.open-at`, with its
//!   flat signature; naming it imports it, and nothing else is imported; `$interface.new-resource`
//!   is a constructor,
//! - a function or memory that the kit has too, such as `$realloc`, takes the place of the kit's.
//!
//! A [`TestHost`] is a host with guests in it, as the command line would put it together.

#![expect(clippy::expect_used, reason = "a harness has nobody to return an error to")]

mod approver;
mod declaration;
mod delegate;
mod module;
pub mod nested;
mod test_guest;
mod test_host;

pub use approver::ScriptedApprover;
pub use declaration::GuestTool;
pub use delegate::ScriptedDelegate;
pub use test_guest::{TestGuest, encode_component};
pub use test_host::{
    CallOutcome, TestHost, TestHostBuilder, TurnReport, commands, shared_commands, shared_sandbox,
};
