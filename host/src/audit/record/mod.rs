//! The records, as they are written and as they are read: one type for both, so that no reader
//! looks for what no writer writes. A reader of an older version meets new keys and new kinds, and
//! no old one with another meaning.

mod call;
mod effect;
mod setting;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::chain::ChainEnd;
use super::principal::Principal;
use crate::policy::{ApprovalMode, SandboxLevel, Verdict};
pub use call::{
    CallActor, CallEndRecord, CommandEnd, CommandRun, ContactRecord, ContactsRecord, TouchedRecord,
};
pub use effect::{ApprovedScope, ChangeAct, DecisionAuthority, EffectRecord, PathChangeRecord};
pub use setting::SettingChange;

/// The version of the format.
pub(super) const FORMAT_VERSION: u32 = 1;

/// A record as the object that it is on its line.
pub(super) type JsonFields = Map<String, Value>;

/// When a record has to be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncPolicy {
    /// With the next one that has to be there.
    Deferred,
    /// Before what it tells of happens.
    Immediate,
}

/// A record: what it tells, and when and in which request that was.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AuditRecord {
    /// Its number in its log.
    pub n: u64,
    /// To the millisecond, in UTC.
    pub at: String,
    /// The session, if there is one.
    pub session: Option<String>,
    /// The request, if there is one.
    pub request: Option<String>,
    /// The rest.
    #[serde(flatten)]
    pub what: RecordKind,
}

/// What a record tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RecordKind {
    /// A log begins.
    Log {
        /// Of the format.
        version: u32,
        /// Its own name.
        log: String,
        /// The program and its version.
        program: String,
        /// Who ran it, and where.
        #[serde(flatten)]
        whose: Principal,
        /// The log that was begun before this one.
        after: Option<PreviousLogEnd>,
    },
    /// What this run is.
    Session {
        /// The absolute path of the workspace.
        workspace: String,
        /// What is allowed without asking.
        mode: ApprovalMode,
        /// All rules in force, by the SHA-256 of their canonical form
        /// ([`crate::policy::Policy::canonical`]).
        policy: Option<String>,
        /// Who answers, at first.
        model: Option<String>,
        /// In less of a sandbox no command runs.
        least_command_sandbox: SandboxLevel,
        /// Whether nothing may happen without its record.
        required: bool,
    },
    /// A request begins.
    Request {
        /// Who answers it.
        model: String,
    },
    /// A request ends.
    Outcome {
        /// How, in a word.
        outcome: String,
    },
    /// An effect was decided on, and has not happened.
    Decided {
        /// Who wants it.
        #[serde(flatten)]
        actor: Box<CallActor>,
        /// What it is.
        effect: EffectRecord,
        /// What becomes of it.
        decision: Verdict,
        /// Because of what.
        by: Box<DecisionAuthority>,
        /// How long a dialog was open or waited for.
        waited_ms: u64,
    },
    /// A call that ran is over.
    Ended(Box<CallEndRecord>),
    /// A call was refused before anything of it ran.
    Refused {
        /// The call.
        call: String,
        /// The tool, as the model has named it.
        tool: String,
        /// Why.
        problem: String,
        /// Of its arguments.
        input_bytes: usize,
    },
    /// What will be allowed, or what was changed, is another from now on.
    Changed(SettingChange),
    /// Records could not be written.
    Gap {
        /// How many.
        lost: u64,
    },
    /// Logs were removed, from the oldest on.
    Pruned {
        /// How many.
        logs: u64,
        /// Their records.
        records: u64,
        /// How many of them were not as they had been written.
        bad: u64,
        /// The oldest, by name.
        oldest: String,
        /// The newest and where it ended. What is older than that is gone with it.
        newest: PreviousLogEnd,
    },
}

/// Where a log ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousLogEnd {
    /// The log, by name.
    pub log: String,
    /// How many lines it had.
    pub lines: u64,
    /// The hash of the last.
    pub hash: String,
}

impl RecordKind {
    /// When it has to be on the disk: what something may happen on the strength of, before that
    /// happens.
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
            | Self::Refused { .. } => SyncPolicy::Deferred,
            Self::Decided { decision: Verdict::Ask | Verdict::Deny, .. } => SyncPolicy::Deferred,
        }
    }

    /// As it is written.
    pub(super) fn to_fields(&self) -> JsonFields {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            // A record is made of texts and numbers, of which each has its form in JSON.
            Ok(_) | Err(_) => JsonFields::new(),
        }
    }
}

impl AuditRecord {
    /// What a line says, if this version knows its kind.
    pub fn from_fields(fields: &JsonFields) -> Option<Self> {
        serde_json::from_value(Value::Object(fields.clone())).ok()
    }
}

impl PreviousLogEnd {
    pub(super) fn new(log: &super::AuditLogName, end: &ChainEnd) -> Self {
        Self { log: log.as_str().to_owned(), lines: end.lines, hash: end.hash.clone() }
    }
}
