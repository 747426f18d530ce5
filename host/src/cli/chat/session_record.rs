//! Where what is said goes: one journal for each session of a chat, begun with its first request.

use crate::cli::context::AppContext;
use crate::cli::sessions;
use crate::sandbox::Workspace;
use crate::session::{SessionId, SessionJournal};

/// The record of a conversation.
pub(super) enum SessionRecord {
    /// The user wants none.
    Disabled,
    /// It begins with the first words.
    Pending,
    /// It is being written.
    Active(SessionJournal),
    /// It could not be begun, or not be written any more; what was written is there.
    Failed(Option<SessionId>),
}

impl SessionRecord {
    /// The journal for a request, begun if need be; and what the user should be told.
    pub(super) fn take_journal(
        &mut self,
        parts: &AppContext,
        workspace: &Workspace,
    ) -> (Option<SessionJournal>, Option<String>) {
        match std::mem::replace(self, Self::Failed(None)) {
            Self::Active(journal) => {
                *self = Self::Failed(Some(journal.id().clone()));
                (Some(journal), None)
            }
            Self::Pending => match sessions::create(parts, workspace) {
                Ok(session) => {
                    *self = Self::Failed(Some(session.journal.id().clone()));
                    (Some(session.journal), None)
                }
                Err(warning) => (None, Some(warning)),
            },
            same @ (Self::Disabled | Self::Failed(_)) => {
                *self = same;
                (None, None)
            }
        }
    }

    /// After the request.
    pub(super) fn return_journal(&mut self, journal: Option<SessionJournal>) {
        if let Some(journal) = journal {
            *self = Self::Active(journal);
        }
    }

    /// The session's name, once it has one.
    pub(super) fn session_id(&self) -> Option<&SessionId> {
        match self {
            Self::Active(journal) => Some(journal.id()),
            Self::Failed(id) => id.as_ref(),
            Self::Disabled | Self::Pending => None,
        }
    }
}
