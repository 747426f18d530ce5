//! A call: whose it is, and how it went.

use serde::{Deserialize, Serialize};

use crate::conversation::ResultStatus;
use crate::policy::{Grants, SandboxLevel};

/// A call, its tool, and what that holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallActor {
    /// The call, by its id in the conversation.
    pub call: String,
    /// The tool's name.
    pub tool: String,
    /// The SHA-256 of its component.
    pub component: String,
    /// Where the component comes from.
    pub origin: String,
    /// How its calls are ordered.
    pub tier: String,
    /// What it may touch.
    pub grants: Grants,
}

/// How a call went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallEndRecord {
    /// Whose it was.
    #[serde(flatten)]
    pub actor: CallActor,
    /// Its result, in a word.
    pub status: ResultStatus,
    /// The kind of failure, if it failed in its enclosure.
    pub failure: Option<String>,
    /// The numbers of the records of what was decided.
    pub decided: Vec<u64>,
    /// Denials without a record of their own.
    pub more_denials: u64,
    /// The commands that it started, in order.
    pub commands: Vec<CommandRun>,
    /// In the guest and in what it called.
    pub active_ms: u64,
    /// In dialogs.
    pub waited_ms: u64,
    /// From start to end.
    pub wall_ms: u64,
    /// Of its input.
    pub input_bytes: usize,
    /// Of what the tool returned.
    pub output_bytes: usize,
    /// Of what it printed.
    pub log_bytes: usize,
    /// The most memory it had.
    pub memory_bytes: usize,
    /// What it opened, if anything.
    pub touched: Option<TouchedRecord>,
    /// Whom it sent requests to, if anybody.
    pub contacted: Option<ContactsRecord>,
}

/// A command that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandRun {
    /// Of the very line.
    pub line_sha256: String,
    /// The sandbox that it ran in.
    pub level: SandboxLevel,
    /// How it ended; none if it was stopped with its call.
    pub ending: Option<CommandEnd>,
    /// What was done about changes that it made to protected paths.
    pub remarks: Vec<String>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// It took longer than it had.
    TimedOut,
}

/// Paths that a call has opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TouchedRecord {
    /// Read.
    pub read: Vec<String>,
    /// Written, made, moved or removed, aside.
    pub written: Vec<String>,
    /// Roots of walks.
    pub walked: Vec<String>,
    /// How many more.
    pub more: usize,
}

/// Whom a call has sent requests to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContactsRecord {
    /// The first ones.
    pub requests: Vec<ContactRecord>,
    /// How many more.
    pub more: usize,
}

/// A request that was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContactRecord {
    /// Such as `GET`.
    pub method: String,
    /// The host, with its port.
    pub host: String,
    /// The address that was dialled.
    pub address: Option<String>,
    /// The status of the response.
    pub status: Option<u16>,
}
