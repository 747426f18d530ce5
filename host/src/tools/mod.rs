//! The tools of a run: which there are, in what order they run, who is asked, and what the model is told.
//!
//! A [`Catalog`] maps names to tools, each with the grants it holds and the tier that follows from them. The
//! [`Dispatcher`] takes the calls of a turn, checks their arguments, orders them by what their tools are *able* to do,
//! runs them in their enclosures, asks where something has to be approved, and answers every call.

mod accepted;
mod added;
mod answer;
mod approval;
mod arguments;
mod builtin;
mod catalog;
mod delegation;
mod dispatch;
mod ledger;
mod lookup;
mod memory;
mod parallel;
mod paths;
mod repetition;
mod schedule;
mod settle;
mod summary;
mod tier;

pub use accepted::{Accepted, AcceptedTool, BadLock, Lock, Standing};
pub use added::{Added, Difference};
pub use answer::Outputs;
pub use approval::{Answer, Approvals, Approver};
pub use arguments::{Arguments, ArgumentsProblem};
pub use builtin::builtin_components;
pub use catalog::{Catalog, ChosenCaps, Origin, Refused, Tool, UnknownTool, objection_to};
pub use delegation::SubAgents;
pub use dispatch::{Dispatcher, DispatcherSettings};
pub use ledger::{Change, CommandEnding, Contact, Contacts, Decided, Ended, Ground, Ledger, Ruled, Subject, Touched, Unrecorded};
pub use memory::Memory;
pub use parallel::{InvalidParallelLimit, ParallelLimit, Slots};
pub use schedule::Reorder;
pub use tier::{tier, why};
