//! MCP servers whose tools the model can call.
//!
//! A [`McpServer`] is a source of tools for a host. Its tools are the ones that the user accepted;
//! nothing runs until the first call. Then the server starts in the sandbox of commands, or the
//! host connects to it over HTTP, and it has to list the same tools. [`inspect_server`] starts a
//! server only to see what it offers.
//!
//! A server is hostile: everything that it sends is limited before the SDK sees it
//! ([`message_guard`]), and nothing that it says gives it a permission. A server that crashes,
//! hangs or floods fails the call, and the next call starts it again, after a pause that grows.

mod call_output;
mod client_transport;
mod connection;
mod endpoint;
mod handshake;
mod http;
mod inspection;
mod listing;
mod message_guard;
mod peer;
mod restart;
mod server_requests;
mod source;

pub use endpoint::ServerTarget;
pub use http::HttpServerTarget;
pub use inspection::{ServerInspection, inspect_server};
pub use source::McpServer;

use std::time::Duration;

/// The time limits of the client.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ServerTimeouts {
    /// The time for a server to start and to answer the first request.
    pub start: Duration,
    /// The time to list all tools.
    pub list: Duration,
}

impl Default for ServerTimeouts {
    fn default() -> Self {
        Self { start: Duration::from_secs(30), list: Duration::from_secs(15) }
    }
}

/// The longest text of a server in a message, in characters.
const MAX_SHOWN_TEXT_LEN: usize = 300;

/// Formats a text of a server for a message: escaped, in one line and short.
pub(crate) fn shown(text: &str) -> String {
    cofferdam::terminal_escape::escape_line(text, MAX_SHOWN_TEXT_LEN)
}
