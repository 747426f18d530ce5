//! The account of what calls do, written before they do it.
//!
//! Whoever watches cannot change what happens. Whoever keeps account can, in one way: where every effect has to be
//! on record, one that cannot be recorded does not happen.

use std::time::Duration;

use super::{Origin, Tool};
use crate::agent::events::Tier;
use crate::conversation::{Call, ResultStatus};
use crate::policy::{Basis, Code, Denial, Effect, Grants, Mode, Scope, ToolId};
/// What a call has done, as its enclosure has seen it.
pub use crate::sandbox::{CommandEnding, Contact, Contacts, Touched};
use crate::sandbox::{Digest, RanCommand};

/// Keeps account.
pub trait Ledger: Send + Sync {
    /// A call is about to start.
    fn ready(&self) -> Result<(), Unrecorded>;

    /// An effect was decided on and has not happened. The number of the record comes back; none where the record was lost
    /// and may be.
    fn decided(&self, subject: &Subject, decided: &Decided) -> Result<Option<u64>, Unrecorded>;

    /// What will be allowed changes. An error is for what needs its record; the mode itself is in each decision that rests on it.
    fn changed(&self, change: &Change<'_>) -> Result<(), Unrecorded>;

    /// A call that ran has its result.
    fn ended(&self, subject: &Subject, ended: &Ended);

    /// A call was refused before anything of it ran.
    fn refused(&self, call: &Call, problem: &str);
}

/// The record could not be written, and nothing may happen without it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unrecorded(pub String);

/// Who acts: a call, its tool, and what that holds.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The call, by its id in the conversation.
    pub call: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments, as the model wrote them.
    pub arguments: String,
    /// The component, by its content.
    pub digest: Digest,
    /// Where the component comes from.
    pub origin: Origin,
    /// How its calls are ordered.
    pub tier: Tier,
    /// What it may touch.
    pub grants: Grants,
}

/// Something that changes what will be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// The user chose another mode.
    Mode(Mode),
    /// The user approved everything of this scope for the session.
    Scope(&'a Scope),
    /// The user trusted a file.
    Trust {
        /// The file.
        path: &'a str,
        /// The SHA-256 of its content.
        digest: &'a str,
    },
    /// The user took that back, whatever its content is by now.
    Distrust {
        /// The file.
        path: &'a str,
    },
    /// The user accepted a plugin as it is.
    PluginAccepted {
        /// Where it is loaded from.
        path: &'a str,
        /// Its component.
        digest: &'a Digest,
        /// What it asks for beyond what was accepted before, in words.
        wider: &'a [String],
    },
    /// The user removed a plugin.
    PluginRemoved {
        /// Its name.
        name: &'a str,
        /// Where it was loaded from.
        path: &'a str,
    },
    /// The user takes a change of a tool back: its id, the tool and its paths; `None` if there is none but one that was
    /// interrupted.
    Undo(Option<(&'a str, &'a str, &'a [String])>),
}

/// What was decided on an effect.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The very thing that happens, or does not.
    pub effect: Effect,
    /// Which of the two.
    pub ruled: Ruled,
    /// How long a dialog was open or waited for.
    pub waited: Duration,
}

/// Whether an effect may happen, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruled {
    /// It may.
    Allowed(Ground),
    /// It may not.
    Denied(Denial),
}

/// What a permission rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ground {
    /// What the judge decided by.
    Standing(Basis),
    /// The user said yes, this once.
    User,
    /// The user said yes, and to all of this scope in this session.
    UserForScope(Option<Scope>),
}

/// How a call went.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its result, in a word.
    pub status: ResultStatus,
    /// The kind of failure, if it failed in its enclosure.
    pub failure: Option<&'static str>,
    /// The records of what was decided, as far as there are any.
    pub decisions: Vec<u64>,
    /// Denials that have no record of their own, since the call had more of them than anybody reads.
    pub more_denials: u64,
    /// The commands that it started, in order.
    pub commands: Vec<RanCommand>,
    /// In the guest and in what it called.
    pub active: Duration,
    /// In dialogs.
    pub waited: Duration,
    /// From start to end.
    pub wall: Duration,
    /// Of the input, in bytes.
    pub input: usize,
    /// Of what the tool returned, in bytes.
    pub output: usize,
    /// The most memory it had, in bytes.
    pub memory: usize,
    /// Of what it printed, in bytes.
    pub log: usize,
    /// The paths that it opened, whatever it says of itself.
    pub touched: Touched,
    /// Whom it sent requests to.
    pub contacts: Contacts,
}

impl Subject {
    /// The tool as rules know it.
    pub fn tool_id(&self) -> ToolId<'_> {
        ToolId::new(&self.tool, self.digest.as_str())
    }

    pub(super) fn of(call: &Call, tool: &Tool) -> Self {
        Self {
            call: call.id.to_string(),
            tool: tool.declared.name.clone(),
            arguments: call.arguments.clone(),
            digest: tool.plugin.digest().clone(),
            origin: tool.origin.clone(),
            tier: tool.tier,
            grants: tool.grants.clone(),
        }
    }
}

impl From<Unrecorded> for Denial {
    fn from(unrecorded: Unrecorded) -> Self {
        Self::new(
            Code::NotRecorded,
            format!("the audit log cannot be written ({unrecorded}), and nothing happens without a record of it."),
            "The user can make room for it, or set `audit.required = false`.",
        )
    }
}
