//! The audit log: a tamper-evident record of every decision and every tool call.
//!
//! An [`AuditWriter`] writes the log of one run of the program. The dispatcher reports to it
//! through [`AuditSink`](crate::tools::AuditSink): each effect before it happens, and each call
//! when it is over. An [`AuditObserver`] reports the requests. The agent loop does not know about
//! the log.
//!
//! A log is a JSON Lines file with one record per line. Three things link the records and the logs:
//!
//! - Each line has the hash of the line before it (`chain.rs`).
//! - A small file beside the log, the head, says where the log ended (`head.rs`).
//! - The first record names the log that was started before it, with its end. The logs are thus a
//!   chain too (`store.rs`).
//!
//! [`inspect_logs`] checks all three. One process writes a log, and nothing opens it for writing
//! again (`log.rs`). [`prune_logs`] removes old logs, oldest first, and records the removal in a
//! later log.
//!
//! The kinds of records, and when each one is on disk:
//!
//! - `log`: the program starts. Synced with the next synced record.
//! - `session`: mode, policy, model and command sandbox of this run. Synced with the next synced
//!   record.
//! - `request`: a request to this model starts. Synced with the next synced record.
//! - `outcome`: a request ends. Synced at once.
//! - `decided`: an effect was allowed or denied, and has not happened yet. An allowed one is synced
//!   before the effect happens.
//! - `ended`: a call that ran has its result. Synced with the next synced record.
//! - `refused`: a call was refused before any of it ran. Synced with the next synced record.
//! - `changed`: the mode changed, the user approved, trusted or accepted something, or the user
//!   undid a change. Synced before it takes effect.
//! - `gap`: records could not be written, with their number. Synced at once.
//! - `pruned`: old logs are removed. Synced before the removal.
//!
//! All other records are synced when the run ends. The log has the size and digest of file
//! contents, never the contents.
//!
//! Keys are redacted from every text before it is written. A `decided` record without an
//! `ended` record of its call means that the call was interrupted and its outcome is unknown.

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
    ApprovedScope, AuditRecord, BackgroundRecord, CallActor, CallEndRecord, ChangeAct, CommandEnd,
    CommandRun, ContactRecord, ContactsRecord, DecisionAuthority, EffectRecord, PathChangeRecord,
    PreviousLogEnd, RecordKind, SettingChange, TouchedRecord,
};
pub use store::{AuditLogName, AuditStore};
pub use writer::{AuditObserver, AuditRunStart, AuditWriter, NotifyUser};
