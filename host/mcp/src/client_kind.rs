//! The kinds of clients.

use crate::http::ClientPrincipal;

/// The kind of a client: how it is told apart from others.
#[derive(Clone, Debug)]
pub(crate) enum ClientKind {
    /// The program that started this one.
    Local,
    /// A session of a principal over HTTP.
    Session(ClientPrincipal),
    /// All requests of a principal over HTTP that belong to no session.
    Stateless(ClientPrincipal),
}

impl ClientKind {
    /// Returns the principal, if the client has to prove who it is.
    pub(crate) fn principal(&self) -> Option<&ClientPrincipal> {
        match self {
            Self::Local => None,
            Self::Session(principal) | Self::Stateless(principal) => Some(principal),
        }
    }

    /// Returns whether an approval may cover more than one effect. Where two clients cannot be told
    /// apart, the approval of one would count for the other.
    pub(crate) fn offers_scopes(&self) -> bool {
        !matches!(self, Self::Stateless(_))
    }
}
