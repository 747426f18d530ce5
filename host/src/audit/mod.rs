//! The audit log: what was decided, what was done, and that nobody changed the record since.
//!
//! An [`Audit`] is the log of one run of the program. It is told by the dispatcher, as a [`Ledger`](crate::tools::Ledger):
//! of each effect before it happens, and of each call when it is over; and by whoever watches a request, of the request. The
//! loop knows nothing of it.
//!
//! A log is JSON Lines, one record a line, each with the hash of the one before (`chain.rs`); where it ends stands in a small
//! file beside it (`head.rs`); and its first record names the newest log before it with its end, so that the logs are a chain
//! as well. [`inspect`] checks all three. A log is written by one process and never opened for writing again (`log.rs`).
//!
//! | kind | when | on the disk |
//! |---|---|---|
//! | `log` | the program starts | before anything else |
//! | `session` | what this run is: version, mode, policy, model, sandbox of commands | before anything else |
//! | `request`, `outcome` | a request begins and ends | with the next that is |
//! | `decided` | an effect was allowed or denied, and has not happened | before it happens, if it does |
//! | `ended` | a call that ran has its result | with the next that is |
//! | `refused` | a call was refused before anything of it ran | with the next that is |
//! | `changed` | the mode changed, a scope was approved, a file was trusted | before it counts |
//! | `gap` | records could not be written; how many | with the next that is |
//!
//! Keys are taken out of every text before it is written. A `decided` without an `ended` of its call was interrupted,
//! and its outcome is unknown.

mod chain;
mod error;
mod head;
mod inspect;
mod keeper;
mod log;
mod ocsf;
mod records;
mod store;
#[cfg(test)]
mod test_log;

pub use chain::Broken;
pub use error::AuditError;
pub use inspect::{Inspected, inspect};
pub use keeper::{Audit, Begin, Notify, Watching};
pub use ocsf::ocsf;
pub use store::{LogName, Store};
