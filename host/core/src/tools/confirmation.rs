//! The point at which a confirmed call needs approval, and the effects that a call is decided on.

use super::{CatalogTool, ToolBackend};
use crate::policy::{Effect, FileGrant, ToolId};

/// The point at which each call of a tool is confirmed.
///
/// This enum is closed: code that matches it decides whether the user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmationRule {
    /// Calls are not confirmed; only their effects are decided on.
    Never,
    /// The user confirms the call before it starts.
    BeforeStart,
    /// The user confirms the call together with its writes, or at its end if it wrote nothing.
    /// Either way, before the model sees the result.
    AtEnd,
    /// The user confirms each command that the call runs, because a rule for the tool asks for it.
    PerCommand,
}

impl CatalogTool {
    /// Returns the identity of the tool that policy rules match.
    pub fn id(&self) -> ToolId<'_> {
        ToolId::new(&self.declaration.name, self.backend.digest().as_str())
    }

    /// Returns when the calls of this tool are confirmed.
    pub fn confirmation_rule(&self) -> ConfirmationRule {
        if let (ToolBackend::Source(_), true) = (&self.backend, self.confirm) {
            // What a server does cannot be shown before it happens.
            return ConfirmationRule::BeforeStart;
        }
        confirmation(
            self.confirm,
            self.grants.files,
            self.grants.commands,
            self.declaration.confirm,
        )
    }

    /// Returns the effects to decide on when a call has this effect, in order, including the
    /// confirmation of the call. `None` is a call without an external effect.
    pub fn decided_effects(&self, effect: Option<Effect>) -> Vec<Effect> {
        match (self.confirmation_rule(), effect) {
            (ConfirmationRule::BeforeStart, effect) => {
                std::iter::once(Effect::Confirmed).chain(effect).collect()
            }
            (ConfirmationRule::AtEnd, Some(Effect::Write { changes, .. })) => {
                vec![Effect::Write { changes, confirm: true }]
            }
            (ConfirmationRule::AtEnd, effect) => {
                effect.into_iter().chain([Effect::Confirmed]).collect()
            }
            (ConfirmationRule::Never | ConfirmationRule::PerCommand, effect) => {
                effect.into_iter().collect()
            }
        }
    }
}

fn confirmation(
    confirm: bool,
    files: FileGrant,
    commands: bool,
    by_itself: bool,
) -> ConfirmationRule {
    match (confirm, files) {
        (false, _) => ConfirmationRule::Never,
        (true, FileGrant::ReadWrite) => ConfirmationRule::AtEnd,
        (true, FileGrant::None | FileGrant::Read) if commands && !by_itself => {
            ConfirmationRule::PerCommand
        }
        (true, FileGrant::None | FileGrant::Read) => ConfirmationRule::BeforeStart,
    }
}
