//! The session record of a chat: one journal per session, begun with its first request.

use crate::context::AppContext;
use crate::sessions;
use cofferdam::sandbox::Workspace;
use cofferdam::session::{SessionId, SessionJournal};

/// The state of a chat's session record.
pub(super) enum SessionRecord {
    /// The user disabled the recording.
    Disabled,
    /// The journal begins with the first request.
    Pending,
    /// The journal is open.
    Active(SessionJournal),
    /// The journal cannot be created or written. Records written before remain.
    Failed(Option<SessionId>),
}

impl SessionRecord {
    /// Takes the journal for a request, and creates it if necessary. Also returns a warning for the
    /// user.
    pub(super) fn take_journal(
        &mut self,
        context: &AppContext,
        workspace: &Workspace,
    ) -> (Option<SessionJournal>, Option<String>) {
        match std::mem::replace(self, Self::Failed(None)) {
            Self::Active(journal) => {
                *self = Self::Failed(Some(journal.id().clone()));
                (Some(journal), None)
            }
            Self::Pending => match sessions::create(context, workspace) {
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

    /// Returns the journal after the request.
    pub(super) fn return_journal(&mut self, journal: Option<SessionJournal>) {
        if let Some(journal) = journal {
            *self = Self::Active(journal);
        }
    }

    /// Returns the ID of the session, once it has one.
    pub(super) fn session_id(&self) -> Option<&SessionId> {
        match self {
            Self::Active(journal) => Some(journal.id()),
            Self::Failed(id) => id.as_ref(),
            Self::Disabled | Self::Pending => None,
        }
    }
}
