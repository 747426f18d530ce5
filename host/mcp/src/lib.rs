//! The Model Context Protocol (MCP) in both directions: serves the tools of a Cofferdam host to
//! clients, and lets the model of a host call the tools of servers.
//!
//! The tools run in the same engine as those of the agent loop: the same catalog, policy, sandbox,
//! limits, staged writes, undo history and audit log. This crate translates between that engine and
//! the protocol, and uses only the public names of the library `cofferdam`.
//!
//! - [`ToolServer`]: a host, the order of the calls of all clients, and the settings.
//! - [`serve_stdio`]: one client on standard input and output.
//! - [`HttpListener`]: many clients over streamable HTTP.
//! - [`clients`]: the configuration files of well-known clients.
//! - [`servers`]: MCP servers whose tools the model can call.
//! - [`login`]: the login to such servers over HTTP.
//!
//! # What the server offers
//!
//! - Tools: every tool that the policy leaves, except those that need a model or a chat of
//!   Cofferdam. Their annotations follow from their permissions. The list never changes while the
//!   server runs, so `listChanged` is not declared.
//! - Resources: the files that the tool `read_file` may read. There are no subscriptions.
//! - Logging: notices of the host. There are no prompts and no completions.
//!
//! # Who decides
//!
//! The policy and the mode of the host decide. Where the user has to decide, the server asks
//! through the client (elicitation). If the client cannot ask, the effect is denied, and the denial
//! says what would allow it. Nothing that a client sends loosens the policy or the mode.

mod approver;
mod call_result;
mod calls;
mod client_kind;
pub mod clients;
mod foreign_answer;
mod handler;
mod http;
mod invalid_message;
mod line_transport;
pub mod login;
mod message_size;
mod page_cursor;
mod question_text;
mod request_queue;
mod resources;
mod server;
pub mod servers;
mod stdio;
mod tool_list;
mod workspace_choice;

pub use http::{
    BearerTokens, ClientAuthentication, ClientPrincipal, HttpError, HttpLimits, HttpListener,
    HttpOptions, ResourceServer, TokenSetupError,
};
pub use server::{ServerOptions, ToolServer};
pub use stdio::{ServeError, serve_stdio};
pub use workspace_choice::{HostOpener, WorkspaceChoice};
