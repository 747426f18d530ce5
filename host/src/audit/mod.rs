//! The audit log: what was decided, what was done, and that nobody changed the record since.
//!
//! An [`AuditWriter`] is the log of one run of the program. It is told by the dispatcher, as a
//! [`Ledger`](crate::tools::Ledger): of each effect before it happens, and of each call when it is
//! over; and by whoever watches a request, of the request. The loop knows nothing of it.
//!
//! A log is JSON Lines, one record a line, each with the hash of the one before (`chain.rs`); where
//! it ends stands in a small file beside it (`head.rs`); and its first record names the log that
//! was begun before it with its end, so that the logs are a chain as well (`store.rs`).
//! [`inspect_logs`] checks all three. A log is written by one process and never opened for writing
//! again (`log.rs`). Old logs can be removed, from the oldest on, and that is on record in a later
//! one ([`prune_logs`]).
//!
//! | kind | when | on the disk |
//! |---|---|---|
//! | `log` | the program starts | with the next that is |
//! | `session` | what this run is: mode, policy, model, sandbox of commands | with the next that is |
//! | `request` | a request begins, of this model | with the next that is |
//! | `outcome` | a request ends | at once |
//! | `decided` | an effect was allowed or denied, and has not happened | before it happens, if it does |
//! | `ended` | a call that ran has its result | with the next that is |
//! | `refused` | a call was refused before anything of it ran | with the next that is |
//! | `changed` | the mode, what was approved, trusted or accepted; a change is taken back | before it counts |
//! | `gap` | records could not be written; how many | at once |
//! | `pruned` | old logs are removed | before they are |
//!
//! What is left when the run ends is put on the disk then. Contents of files are on record by their
//! size and digest.
//!
//! Keys are taken out of every text before it is written. A `decided` without an `ended` of
//! its call was interrupted, and its outcome is unknown.

mod chain;
mod encode;
mod error;
mod head;
mod inspect;
mod log;
mod ocsf;
mod principal;
mod prune;
mod record;
mod store;
#[cfg(test)]
mod test_log;
mod writer;

pub use chain::ChainBreak;
pub use error::AuditError;
pub use inspect::{AuditInspection, InspectedLog, inspect_logs};
pub use ocsf::to_ocsf;
pub use principal::Principal;
pub use prune::{PruneError, PruneReport, prune_logs};
pub use record::{
    ApprovedScope, AuditRecord, CallActor, CallEndRecord, ChangeAct, CommandEnd, CommandRun,
    ContactRecord, ContactsRecord, DecisionAuthority, EffectRecord, PathChangeRecord,
    PreviousLogEnd, RecordKind, SettingChange, TouchedRecord,
};
pub use store::{AuditLogName, AuditStore};
pub use writer::{AuditObserver, AuditRunStart, AuditWriter, NotifyUser};
