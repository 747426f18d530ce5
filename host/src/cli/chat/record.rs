//! Where what is said goes: one journal for each session of a chat, begun with its first request.

use crate::cli::assemble::Parts;
use crate::cli::sessions;
use crate::sandbox::Workspace;
use crate::session::{Journal, SessionId};

/// The record of a conversation.
pub(super) enum Record {
    /// The user wants none.
    Off,
    /// It begins with the first words.
    NotYet,
    /// It is being written.
    On(Journal),
    /// It could not be begun, or not be written any more; what was written is there.
    Lost(Option<SessionId>),
}

impl Record {
    /// The journal for a request, begun if need be; and what the user should be told.
    pub(super) fn take(&mut self, parts: &Parts, workspace: &Workspace) -> (Option<Journal>, Option<String>) {
        match std::mem::replace(self, Self::Lost(None)) {
            Self::On(journal) => {
                *self = Self::Lost(Some(journal.id().clone()));
                (Some(journal), None)
            }
            Self::NotYet => match sessions::begun(parts, workspace) {
                Ok(session) => {
                    *self = Self::Lost(Some(session.journal.id().clone()));
                    (Some(session.journal), None)
                }
                Err(warning) => (None, Some(warning)),
            },
            same @ (Self::Off | Self::Lost(_)) => {
                *self = same;
                (None, None)
            }
        }
    }

    /// After the request.
    pub(super) fn give_back(&mut self, journal: Option<Journal>) {
        if let Some(journal) = journal {
            *self = Self::On(journal);
        }
    }

    /// The session's name, once it has one.
    pub(super) fn id(&self) -> Option<&SessionId> {
        match self {
            Self::On(journal) => Some(journal.id()),
            Self::Lost(id) => id.as_ref(),
            Self::Off | Self::NotYet => None,
        }
    }
}
