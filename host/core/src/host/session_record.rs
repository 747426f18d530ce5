//! The record of a session on disk: one journal, begun with the first request.

use super::Host;
use crate::session::{OpenSession, SessionError, SessionId, SessionJournal, SessionStore};

/// The state of the record of a session.
#[derive(Default)]
pub enum SessionRecord {
    /// The session is not recorded.
    #[default]
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
    /// user if that fails.
    pub(super) fn take_journal(&mut self, host: &Host) -> (Option<SessionJournal>, Option<String>) {
        match std::mem::replace(self, Self::Failed(None)) {
            Self::Active(journal) => {
                *self = Self::Failed(Some(journal.id().clone()));
                (Some(journal), None)
            }
            Self::Pending => match host.create_session() {
                Ok(session) => {
                    *self = Self::Failed(Some(session.journal.id().clone()));
                    (Some(session.journal), None)
                }
                Err(problem) => (None, Some(problem)),
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
    pub fn session_id(&self) -> Option<&SessionId> {
        match self {
            Self::Active(journal) => Some(journal.id()),
            Self::Failed(id) => id.as_ref(),
            Self::Disabled | Self::Pending => None,
        }
    }
}

impl Host {
    /// Creates the journal of a new session.
    ///
    /// # Errors
    ///
    /// Returns a warning for the user if the session cannot be recorded.
    pub fn create_session(&self) -> Result<OpenSession, String> {
        let directories = self.prepared().directories().filter(|dirs| dirs.has_home());
        let Some(directories) = directories else {
            return Err("the session is not recorded: there is no home directory".to_owned());
        };
        SessionStore::new(directories.sessions())
            .create_session(self.workspace().root(), self.prepared().redactor())
            .map_err(|error: SessionError| format!("the session is not recorded: {error}"))
    }
}
