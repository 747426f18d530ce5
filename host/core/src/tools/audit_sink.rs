//! The interface of the audit log, which records effects before they happen.
//!
//! An observer cannot change the run of a call. An audit sink can, in one way: if records
//! are required, an effect that cannot be recorded does not happen.

use std::time::Duration;

use super::{CatalogTool, PluginProvenance};
use crate::conversation::{ResultStatus, ToolCall};
use crate::policy::{
    AllowBasis, ApprovalMode, Denial, DenialCode, Effect, Grants, Scope, Tier, ToolId,
};
use crate::sandbox::ComponentDigest;
/// The effects of a call, as its sandbox observed them.
pub use crate::sandbox::{
    CommandChange, CommandChangeAction, CommandConnection, CommandEnding, HttpContact,
    HttpContacts, JobStage, LayerEntryKind, RanCommand, TouchedPaths,
};

/// A destination of audit records.
pub trait AuditSink: Send + Sync {
    /// Checks whether records can be written. Called before a call starts.
    ///
    /// # Errors
    ///
    /// Returns an error if records are required and cannot be written.
    fn check_ready(&self) -> Result<(), RecordFailure>;

    /// Records the decision on an effect that has not happened yet. Returns the number of the
    /// record, or `None` if the record was lost and is not required.
    ///
    /// # Errors
    ///
    /// Returns an error if the record is required and was not written.
    fn record_decision(
        &self,
        subject: &CallIdentity,
        decided: &DecisionRecord,
    ) -> Result<Option<u64>, RecordFailure>;

    /// Records a change of what will be allowed. The mode is also part of each decision that
    /// depends on it.
    ///
    /// # Errors
    ///
    /// Returns an error if the record is required and was not written.
    fn record_change(&self, change: &AuthorityChange<'_>) -> Result<(), RecordFailure>;

    /// Records that a call ended with a result.
    fn record_end(&self, subject: &CallIdentity, ended: &FinishedCallRecord);

    /// Records a checkpoint or the end of a background command of a call, with its changes.
    fn record_background_command(&self, subject: &CallIdentity, stage: JobStage, ran: &RanCommand);

    /// Records that a call was refused before it ran.
    fn record_refusal(&self, call: &ToolCall, problem: &str);
}

/// An error that means that a required record was not written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RecordFailure(pub String);

/// The identity of a call, with its tool and the permissions of the tool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallIdentity {
    /// The id of the call in the conversation.
    pub call: String,
    /// The name of the tool.
    pub tool: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// The digest of the component.
    pub digest: ComponentDigest,
    /// The origin of the component.
    pub origin: PluginProvenance,
    /// The tier of the tool, which orders its calls.
    pub tier: Tier,
    /// The permissions of the tool.
    pub grants: Grants,
}

/// A change of what will be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthorityChange<'a> {
    /// The user changed the mode.
    ModeChanged(ApprovalMode),
    /// The user approved a scope for the session.
    ScopeApproved(&'a Scope),
    /// The user trusted a file.
    FileTrusted {
        /// The path of the file.
        path: &'a str,
        /// The SHA-256 digest of its content.
        digest: &'a str,
    },
    /// The user removed the trust in a file, whatever its content is now.
    FileDistrusted {
        /// The path of the file.
        path: &'a str,
    },
    /// The user accepted a plugin in its current form.
    PluginAccepted {
        /// The path that the plugin is loaded from.
        path: &'a str,
        /// The digest of its component.
        digest: &'a ComponentDigest,
        /// The permissions that were not accepted before, described in words.
        new_permissions: &'a [String],
    },
    /// The user removed a plugin.
    PluginRemoved {
        /// The name of the plugin.
        name: &'a str,
        /// The path that the plugin was loaded from.
        path: &'a str,
    },
    /// The user undoes a change of a tool: its id, the tool, and its paths. `None` if the history
    /// only holds a change that was interrupted.
    Undo(Option<(&'a str, &'a str, &'a [String])>),
    /// The undo that was recorded before this has failed, or was not complete.
    UndoFailed {
        /// The id of the change; `None` if the history has none.
        id: Option<&'a str>,
        /// Why it failed.
        problem: &'a str,
    },
}

/// The decision on one effect.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DecisionRecord {
    /// The effect, in full detail.
    pub effect: Effect,
    /// Whether the effect is allowed.
    pub outcome: RecordedOutcome,
    /// The time that a dialog was open, or that the call waited for another dialog.
    pub waited: Duration,
}

/// The outcome of a decision and its basis.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordedOutcome {
    /// The effect is allowed.
    Allowed(DecisionBasis),
    /// The effect is denied.
    Denied(Denial),
}

/// The basis of a decision to allow an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecisionBasis {
    /// The policy or the mode allowed the effect.
    Policy(AllowBasis),
    /// The user approved the effect once.
    UserOnce,
    /// The user approved the effect, and its scope for the session.
    UserForScope(Option<Scope>),
    /// The user approved the effect and its scope for all sessions, with a rule.
    UserAlways(Option<Scope>),
}

/// The final record of a call that ran.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FinishedCallRecord {
    /// The status of the result.
    pub status: ResultStatus,
    /// The kind of failure, if the call failed in its sandbox.
    pub failure_kind: Option<&'static str>,
    /// The numbers of the records of its decisions.
    pub decision_records: Vec<u64>,
    /// The number of denials without a record of their own. The number of recorded denials per call
    /// is limited.
    pub unrecorded_denials: u64,
    /// The commands that the call started, in order.
    pub commands: Vec<RanCommand>,
    /// The time in the guest and in the host functions that it called.
    pub active: Duration,
    /// The time in dialogs.
    pub waited: Duration,
    /// The time from start to end.
    pub wall: Duration,
    /// The size of the input, in bytes.
    pub input_bytes: usize,
    /// The size of the tool's output, in bytes.
    pub output_bytes: usize,
    /// The largest memory of the guest, in bytes.
    pub memory_bytes: usize,
    /// The size of the text that the tool printed, in bytes.
    pub log_bytes: usize,
    /// The paths that the call opened, as the host observed them.
    pub touched: TouchedPaths,
    /// The hosts that the call sent requests to.
    pub contacts: HttpContacts,
}

impl CallIdentity {
    /// Returns the identity of the tool that policy rules match.
    pub fn tool_id(&self) -> ToolId<'_> {
        ToolId::new(&self.tool, self.digest.as_str())
    }

    /// Creates the identity of an inspection of a source, without a call.
    pub(super) fn for_source(source: &str, digest: ComponentDigest) -> Self {
        Self {
            call: String::new(),
            tool: format!("{source}/*"),
            arguments: "{}".to_owned(),
            digest,
            origin: PluginProvenance::Source(source.to_owned()),
            tier: Tier::Write,
            grants: Grants::default(),
        }
    }

    pub(super) fn new(call: &ToolCall, tool: &CatalogTool) -> Self {
        Self {
            call: call.id.to_string(),
            tool: tool.declaration.name.clone(),
            arguments: call.arguments.clone(),
            digest: tool.backend.digest().clone(),
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
                "the audit log cannot be written ({unrecorded}), and the policy or configuration \
                    requires an audit record of each effect."
            ),
            "The user can free disk space, or set `audit.required = false`.",
        )
    }
}
