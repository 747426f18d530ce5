//! The login to MCP servers over HTTP, with OAuth 2.1.
//!
//! [`log_in`] finds the login server of an MCP server, registers this program there, and sends the
//! user to it. The user comes back with a code, which is exchanged for tokens. A [`LoginStore`]
//! keeps them in a file that only the owner can read. [`LoginTokens`] gives them to the requests of
//! one server, and refreshes them.
//!
//! | check | standard |
//! |---|---|
//! | the metadata of the server is for this server | RFC 9728 |
//! | the metadata of the login server is from the issuer that it names | RFC 8414 |
//! | the login server supports PKCE with S256 | RFC 7636 |
//! | each request names the server that the token is for | RFC 8707 |
//! | the code comes from the browser that got the URL, and from the issuer | `state`, RFC 9207 |
//!
//! All addresses are those of strangers. Each has to be `https`, unless server and login server are
//! on this machine, and passes the address checks of the host. No redirect is followed.

mod callback;
mod challenge;
mod encoding;
mod fetch;
mod flow;
mod metadata;
mod registration;
mod store;
mod token;
mod tokens;

pub(crate) use challenge::LoginChallenge;
pub use flow::{LoginRequest, log_in};
pub use store::{LoginStore, LoginStoreError, StoredLogin};
pub use tokens::LoginTokens;

/// Why a login failed, as a sentence without a full stop. Texts of strangers in it are escaped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoginError(pub(crate) String);

impl LoginError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }
}
