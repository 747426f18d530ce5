//! How a server is reached.

use cofferdam::config::{SecretSource, ServerSettings, ServerTransport};
use cofferdam::policy::FileGrant;
use cofferdam::sandbox::ServerSpec;

use super::http::HttpServerTarget;
use crate::login::LoginStore;

/// How a server is reached, with everything that this needs.
///
/// This enum is closed: code that connects to servers has to treat each kind.
#[derive(Clone, Debug)]
pub enum ServerTarget {
    /// A program on this machine, in the sandbox of commands.
    Program(ServerSpec),
    /// A server over HTTP.
    Http(HttpServerTarget),
}

impl ServerTarget {
    /// Creates the endpoint of a configured server. `read_secret` returns the secret of a header.
    ///
    /// # Errors
    ///
    /// A secret cannot be read or sent. The error is a sentence without a full stop.
    pub fn new(
        settings: &ServerSettings,
        read_secret: impl FnMut(&SecretSource) -> Result<String, String>,
    ) -> Result<Self, String> {
        match &settings.transport {
            ServerTransport::Program(program) => Ok(Self::Program(program.to_spec())),
            ServerTransport::Http(server) => {
                HttpServerTarget::new(server, read_secret).map(Self::Http)
            }
        }
    }

    /// Sends the token of a login with each request, if the server is one over HTTP.
    #[must_use]
    pub fn with_login(self, store: &LoginStore, name: &str) -> Self {
        match self {
            Self::Program(spec) => Self::Program(spec),
            Self::Http(http) => Self::Http(http.with_login(store, name)),
        }
    }

    /// Returns the access to the files of the workspace.
    pub(super) fn files(&self) -> FileGrant {
        match self {
            Self::Program(spec) => spec.files,
            Self::Http(_) => FileGrant::None,
        }
    }
}
