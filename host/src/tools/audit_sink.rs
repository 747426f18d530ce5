//! The account of what calls do, written before they do it.
//!
//! Whoever watches cannot change what happens. Whoever keeps account can, in one way: where
//! every effect has to be on record, one that cannot be recorded does not happen.

use std::time::Duration;

use super::{CatalogTool, PluginProvenance};
use crate::agent::events::Tier;
use crate::conversation::{ResultStatus, ToolCall};
use crate::policy::{AllowBasis, ApprovalMode, Denial, DenialCode, Effect, Grants, Scope, ToolId};
/// What a call has done, as its enclosure has seen it.
pub use crate::sandbox::{CommandEnding, HttpContact, HttpContacts, TouchedPaths};
use crate::sandbox::{ComponentDigest, RanCommand};

/// Keeps account.
pub trait AuditSink: Send + Sync {
    /// A call is about to start.
    fn check_ready(&self) -> Result<(), RecordFailure>;

    /// An effect was decided on and has not happened. The number of the record comes back; none
    /// where the record was lost and may be.
    fn record_decision(
        &self,
        subject: &CallIdentity,
        decided: &DecisionRecord,
    ) -> Result<Option<u64>, RecordFailure>;

    /// What will be allowed changes. An error is for what needs its record; the mode itself is in
    /// each decision that rests on it.
    fn record_change(&self, change: &AuthorityChange<'_>) -> Result<(), RecordFailure>;

    /// A call that ran has its result.
    fn record_end(&self, subject: &CallIdentity, ended: &FinishedCallRecord);

    /// A call was refused before anything of it ran.
    fn record_refusal(&self, call: &ToolCall, problem: &str);
}

/// The record could not be written, and nothing may happen without it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RecordFailure(pub String);

/// Who acts: a call, its tool, and what that holds.
#[derive(Clone, Debug)]
pub struct CallIdentity {
    /// The call, by its id in the conversation.
    pub call: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments, as the model wrote them.
    pub arguments: String,
    /// The component, by its content.
    pub digest: ComponentDigest,
    /// Where the component comes from.
    pub origin: PluginProvenance,
    /// How its calls are ordered.
    pub tier: Tier,
    /// What it may touch.
    pub grants: Grants,
}

/// Something that changes what will be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorityChange<'a> {
    /// The user chose another mode.
    ModeChanged(ApprovalMode),
    /// The user approved everything of this scope for the session.
    ScopeApproved(&'a Scope),
    /// The user trusted a file.
    FileTrusted {
        /// The file.
        path: &'a str,
        /// The SHA-256 of its content.
        digest: &'a str,
    },
    /// The user took that back, whatever its content is by now.
    FileDistrusted {
        /// The file.
        path: &'a str,
    },
    /// The user accepted a plugin as it is.
    PluginAccepted {
        /// Where it is loaded from.
        path: &'a str,
        /// Its component.
        digest: &'a ComponentDigest,
        /// What it asks for beyond what was accepted before, in words.
        new_permissions: &'a [String],
    },
    /// The user removed a plugin.
    PluginRemoved {
        /// Its name.
        name: &'a str,
        /// Where it was loaded from.
        path: &'a str,
    },
    /// The user takes a change of a tool back: its id, the tool and its paths; `None` if there is
    /// none but one that was interrupted.
    Undo(Option<(&'a str, &'a str, &'a [String])>),
}

/// What was decided on an effect.
#[derive(Clone, Debug)]
pub struct DecisionRecord {
    /// The very thing that happens, or does not.
    pub effect: Effect,
    /// Which of the two.
    pub outcome: RecordedOutcome,
    /// How long a dialog was open or waited for.
    pub waited: Duration,
}

/// Whether an effect may happen, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedOutcome {
    /// It may.
    Allowed(DecisionBasis),
    /// It may not.
    Denied(Denial),
}

/// What a permission rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionBasis {
    /// What the judge decided by.
    Policy(AllowBasis),
    /// The user said yes, this once.
    UserOnce,
    /// The user said yes, and to all of this scope in this session.
    UserForScope(Option<Scope>),
}

/// How a call went.
#[derive(Clone, Debug)]
pub struct FinishedCallRecord {
    /// Its result, in a word.
    pub status: ResultStatus,
    /// The kind of failure, if it failed in its enclosure.
    pub failure_kind: Option<&'static str>,
    /// The records of what was decided, as far as there are any.
    pub decision_records: Vec<u64>,
    /// Denials that have no record of their own, since the call had more of them than anybody
    /// reads.
    pub unrecorded_denials: u64,
    /// The commands that it started, in order.
    pub commands: Vec<RanCommand>,
    /// In the guest and in what it called.
    pub active: Duration,
    /// In dialogs.
    pub waited: Duration,
    /// From start to end.
    pub wall: Duration,
    /// Of the input, in bytes.
    pub input_bytes: usize,
    /// Of what the tool returned, in bytes.
    pub output_bytes: usize,
    /// The most memory it had, in bytes.
    pub memory_bytes: usize,
    /// Of what it printed, in bytes.
    pub log_bytes: usize,
    /// The paths that it opened, whatever it says of itself.
    pub touched: TouchedPaths,
    /// Whom it sent requests to.
    pub contacts: HttpContacts,
}

impl CallIdentity {
    /// The tool as rules know it.
    pub fn tool_id(&self) -> ToolId<'_> {
        ToolId::new(&self.tool, self.digest.as_str())
    }

    pub(super) fn new(call: &ToolCall, tool: &CatalogTool) -> Self {
        Self {
            call: call.id.to_string(),
            tool: tool.declaration.name.clone(),
            arguments: call.arguments.clone(),
            digest: tool.plugin.digest().clone(),
            origin: tool.origin.clone(),
            tier: tool.tier,
            grants: tool.grants.clone(),
        }
    }
}

impl From<RecordFailure> for Denial {
    fn from(unrecorded: RecordFailure) -> Self {
        Self::new(
            DenialCode::NotRecorded,
            format!(
                "the audit log cannot be written ({unrecorded}), and nothing happens without a \
                    record of it."
            ),
            "The user can make room for it, or set `audit.required = false`.",
        )
    }
}
