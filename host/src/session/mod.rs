//! Sessions: what was said and done, kept on the disk while it happens.
//!
//! A session is a [`SessionJournal`], a file that is only ever appended to. What goes into it is
//! what the loop tells everyone who watches, so the loop knows nothing of it: [`SessionRecorder`]
//! stands between the loop and the other watchers, and writes each thing down before it passes it
//! on. A call is therefore on record before it runs. Reading a journal folds its records
//! into a transcript, by the same steps in which the live one came about; what a crash left open is
//! closed as an abort would close it, and nothing is run again.
//!
//! The format is described in `record.rs`. Where journals are, and how they are found, is
//! [`SessionStore`].

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
