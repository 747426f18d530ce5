//! The record types, shared by the writer and the readers.
//!
//! One type for both keeps them from getting out of step. A newer version may add keys and kinds,
//! and never changes the meaning of an existing one.

mod call;
mod effect;
mod setting;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::chain::ChainEnd;
use super::principal::Principal;
use crate::policy::{ApprovalMode, SandboxLevel, Verdict};
pub use call::{
    BackgroundRecord, CallActor, CallEndRecord, CommandEnd, CommandRun, ContactRecord,
    ContactsRecord, TouchedRecord,
};
pub use effect::{ApprovedScope, ChangeAct, DecisionAuthority, EffectRecord, PathChangeRecord};
pub use setting::SettingChange;

/// The version of the log format.
pub(super) const FORMAT_VERSION: u32 = 1;

/// A record as a JSON object.
pub(super) type JsonFields = Map<String, Value>;

/// When a record must be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncPolicy {
    /// The record is synced together with the next one that must be on disk.
    Deferred,
    /// The record is synced before the event it describes takes effect.
    Immediate,
}

/// A record with its number, time, session and request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct AuditRecord {
    /// The number of the record in its log, counted from 1.
    pub n: u64,
    /// The UTC time of the record, to the millisecond.
    pub at: String,
    /// The id of the session, if there is one.
    pub session: Option<String>,
    /// The id of the request, if there is one.
    pub request: Option<String>,
    /// The kind of the record, with the fields of that kind.
    #[serde(flatten)]
    pub what: RecordKind,
}

/// The event that a record describes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RecordKind {
    /// A log starts.
    Log {
        /// The version of the log format.
        version: u32,
        /// The name of this log.
        log: String,
        /// The name and version of the program.
        program: String,
        /// The user who ran the program, and the machine.
        #[serde(flatten)]
        whose: Principal,
        /// The end of the log that was started before this one.
        after: Option<PreviousLogEnd>,
    },
    /// The properties of this run.
    Session {
        /// The absolute path of the workspace.
        workspace: String,
        /// The approval mode at the start.
        mode: ApprovalMode,
        /// The SHA-256 of the canonical form of all rules in force
        /// ([`crate::policy::Policy::canonical`]).
        policy: Option<String>,
        /// The model at the start.
        model: Option<String>,
        /// The weakest sandbox in which commands may run.
        least_command_sandbox: SandboxLevel,
        /// Whether effects are denied while the log cannot be written.
        required: bool,
    },
    /// A request to the model starts.
    Request {
        /// The model that answers the request.
        model: String,
    },
    /// A request to the model ends.
    Outcome {
        /// The outcome in one word, such as `aborted`.
        outcome: String,
    },
    /// A decision about an effect that has not happened yet.
    Decided {
        /// The call that wants the effect.
        #[serde(flatten)]
        actor: Box<CallActor>,
        /// The effect that was decided on.
        effect: EffectRecord,
        /// The verdict on the effect.
        decision: Verdict,
        /// The basis of the decision.
        by: Box<DecisionAuthority>,
        /// The time that a dialog was open or queued, in milliseconds.
        waited_ms: u64,
    },
    /// The end of a call that ran.
    Ended(Box<CallEndRecord>),
    /// A checkpoint of a background command, which continues, with its changes since the last one.
    BackgroundCheckpoint(Box<BackgroundRecord>),
    /// The end of a background command, with its changes since the last checkpoint.
    BackgroundEnded(Box<BackgroundRecord>),
    /// A call was refused before any of it ran.
    Refused {
        /// The id of the call.
        call: String,
        /// The name of the tool as the model wrote it.
        tool: String,
        /// The reason for the refusal.
        problem: String,
        /// The size of the call's arguments.
        input_bytes: usize,
    },
    /// The user changed what is allowed, or undid a change.
    Changed(SettingChange),
    /// Records could not be written.
    Gap {
        /// The number of lost records.
        lost: u64,
    },
    /// Logs were removed, from the oldest on.
    Pruned {
        /// The number of removed logs.
        logs: u64,
        /// The number of records in these logs.
        records: u64,
        /// The number of these logs that failed verification.
        bad: u64,
        /// The name of the oldest removed log.
        oldest: String,
        /// The end of the newest removed log. All older logs are gone too.
        newest: PreviousLogEnd,
    },
}

/// The end of a log, as recorded in a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PreviousLogEnd {
    /// The name of the log.
    pub log: String,
    /// The number of lines in the log.
    pub lines: u64,
    /// The hash of the last line.
    pub hash: String,
}

impl RecordKind {
    /// Returns when the record must be on disk.
    ///
    /// A record that permits something must be on disk before that thing happens.
    pub(super) fn sync_policy(&self) -> SyncPolicy {
        match self {
            Self::Decided { decision: Verdict::Allow, .. } => SyncPolicy::Immediate,
            Self::Changed(_) | Self::Outcome { .. } | Self::Gap { .. } | Self::Pruned { .. } => {
                SyncPolicy::Immediate
            }
            Self::Log { .. }
            | Self::Session { .. }
            | Self::Request { .. }
            | Self::Ended(_)
            | Self::BackgroundCheckpoint(_)
            | Self::BackgroundEnded(_)
            | Self::Refused { .. } => SyncPolicy::Deferred,
            Self::Decided { decision: Verdict::Ask | Verdict::Deny, .. } => SyncPolicy::Deferred,
        }
    }

    /// Returns the call that started commands, and the commands, if the record has what they did.
    pub fn commands(&self) -> Option<(&CallActor, &[CommandRun])> {
        match self {
            Self::Ended(ended) => Some((&ended.actor, &ended.commands)),
            Self::BackgroundCheckpoint(background) | Self::BackgroundEnded(background) => {
                Some((&background.actor, std::slice::from_ref(&background.command)))
            }
            _ => None,
        }
    }

    /// Converts the record to a JSON object.
    pub(super) fn to_fields(&self) -> JsonFields {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            // A record consists of text and numbers, which all have a JSON form.
            Ok(_) | Err(_) => JsonFields::new(),
        }
    }
}

impl AuditRecord {
    /// Parses a record. Returns `None` if this version does not know its kind.
    pub fn from_fields(fields: &JsonFields) -> Option<Self> {
        serde_json::from_value(Value::Object(fields.clone())).ok()
    }
}

impl PreviousLogEnd {
    pub(super) fn new(log: &super::AuditLogName, end: &ChainEnd) -> Self {
        Self { log: log.as_str().to_owned(), lines: end.lines, hash: end.hash.clone() }
    }
}
