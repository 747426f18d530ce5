//! Serves many clients over streamable HTTP.
//!
//! - [`HttpOptions`]: the address, who may connect, and the limits.
//! - [`HttpListener`]: listens on the address, and serves until the server shuts down.
//! - [`ClientAuthentication`]: nothing, tokens from a file, or access tokens of OAuth 2.1.
//!
//! # Who shares what
//!
//! A client of a version with sessions has a session of tool calls for each `Mcp-Session-Id`, with
//! approvals, tool state, background commands and an audit log of its own. A session belongs to the
//! principal that began it; to everybody else it does not exist.
//!
//! Requests of a version without sessions cannot be told apart beyond their principal. All of one
//! principal share tool state, background commands and an audit log, but no approvals: each
//! approval counts once. Principals never share anything but the workspace and its undo history.

mod access;
mod auth;
mod body;
mod client_states;
mod endpoint;
mod listener;
mod options;
mod response;
mod session;
mod session_table;
mod stall_guard;
mod streams;

pub use auth::{
    BearerTokens, ClientAuthentication, ClientPrincipal, ResourceServer, TokenSetupError,
};
pub(crate) use client_states::StatelessClients;
pub use listener::{HttpError, HttpListener};
pub use options::{HttpLimits, HttpOptions};
