//! Records of tool calls: who made the call, and how it ended.

use serde::{Deserialize, Serialize};

use crate::conversation::ResultStatus;
use crate::policy::{Grants, SandboxLevel};
use crate::tools::{CommandChange, CommandConnection};

/// The identity of a call, its tool, and the permissions of the tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallActor {
    /// The id of the call in the conversation.
    pub call: String,
    /// The name of the tool.
    pub tool: String,
    /// The SHA-256 of the tool's component.
    pub component: String,
    /// Where the component comes from, such as `built-in bash`.
    pub origin: String,
    /// The scheduling tier of the tool, such as `write`.
    pub tier: String,
    /// The permissions of the tool.
    pub grants: Grants,
}

/// The result and the costs of a call that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallEndRecord {
    /// The call and its tool.
    #[serde(flatten)]
    pub actor: CallActor,
    /// The status of the result.
    pub status: ResultStatus,
    /// The kind of failure, if the call failed in its sandbox.
    pub failure: Option<String>,
    /// The numbers of the `decided` records of the call.
    pub decided: Vec<u64>,
    /// The number of denials without a record of their own.
    pub more_denials: u64,
    /// The commands that the call started, in order.
    pub commands: Vec<CommandRun>,
    /// The time in the guest and in the functions it called, in milliseconds.
    pub active_ms: u64,
    /// The time spent waiting for the user in dialogs, in milliseconds.
    pub waited_ms: u64,
    /// The time from start to end, in milliseconds.
    pub wall_ms: u64,
    /// The size of the tool's input.
    pub input_bytes: usize,
    /// The size of the tool's result.
    pub output_bytes: usize,
    /// The size of the tool's log output.
    pub log_bytes: usize,
    /// The peak memory of the guest.
    pub memory_bytes: usize,
    /// The paths that the call opened, if any.
    pub touched: Option<TouchedRecord>,
    /// The HTTP requests that the call sent, if any.
    pub contacted: Option<ContactsRecord>,
}

/// A background command at a checkpoint or at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BackgroundRecord {
    /// The call that started the command, and its tool.
    #[serde(flatten)]
    pub actor: CallActor,
    /// The command, with the changes that were committed now. Its ending is `None` if it still runs
    /// or if the host stopped it.
    pub command: CommandRun,
}

/// A command that a call started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandRun {
    /// The SHA-256 of the exact command line.
    pub line_sha256: String,
    /// The sandbox that the command ran in.
    pub level: SandboxLevel,
    /// How the command ended. `None` if it was stopped together with its call.
    pub ending: Option<CommandEnd>,
    /// What the host did about changes that the command made to protected paths.
    pub remarks: Vec<String>,
    /// The changes that the command made to the workspace; empty if it wrote the workspace
    /// directly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<CommandChange>,
    /// The number of changes that are not listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_changes: u64,
    /// The connections that the command asked the proxy for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<CommandConnection>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The way in which a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CommandEnd {
    /// The command exited with this code.
    Exited(i32),
    /// The command was killed by this signal.
    Killed(i32),
    /// The command exceeded its time limit.
    TimedOut,
}

/// The paths that a call opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TouchedRecord {
    /// Paths that the call read.
    pub read: Vec<String>,
    /// Paths that the call staged for writing, creating, moving or removing.
    pub written: Vec<String>,
    /// Root directories that the call walked.
    pub walked: Vec<String>,
    /// The number of paths that are not listed.
    pub more: usize,
}

/// The HTTP requests that a call sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContactsRecord {
    /// The first requests.
    pub requests: Vec<ContactRecord>,
    /// The number of requests that are not listed.
    pub more: usize,
}

/// An HTTP request that a call sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContactRecord {
    /// The HTTP method, such as `GET`.
    pub method: String,
    /// The host with its port.
    pub host: String,
    /// The address that the host connected to.
    pub address: Option<String>,
    /// The status code of the response.
    pub status: Option<u16>,
}
