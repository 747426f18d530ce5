//! Sessions: the record of a conversation, written to disk as it happens.
//!
//! The file of a session is a [`SessionJournal`], to which lines are only ever appended. Its
//! records are the events that the loop reports to its observers, so the loop does not depend on
//! this module. [`SessionRecorder`] is an observer that writes each event before it passes it on to
//! the other observers. So a call is recorded before it runs.
//!
//! Reading a session log builds the transcript from its records, by the same steps as the live one.
//! What a crash left open is closed as an abort would close it, and nothing is run again (R-50,
//!
//!
//! `record.rs` describes the format. [`SessionStore`] finds and lists the session files.

mod error;
mod fold;
#[doc(hidden)]
pub mod fuzzing;
mod id;
mod journal;
mod model_identity;
mod record;
mod recorder;
#[cfg(test)]
mod scripted_run;
mod store;

pub use error::SessionError;
pub use fold::{RequestEnd, SavedSession, SessionRequest};
pub use id::SessionId;
pub use journal::{RedactSecrets, SessionJournal};
pub use model_identity::ModelIdentity;
pub use record::JournalHeader;
pub use recorder::{SessionRecorder, ShutdownRecorder};
pub use store::{OpenSession, SessionScope, SessionStore, StoredSession};
