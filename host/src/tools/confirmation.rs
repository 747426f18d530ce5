//! When a call of a tool that is confirmed each time is put to the user, and what a call is decided
//! on.

use super::CatalogTool;
use crate::policy::{Effect, FileGrant, ToolId};

/// When each call of a tool is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmationRule {
    /// Never: only its effects are decided on.
    Never,
    /// Before it starts.
    BeforeStart,
    /// With what it writes, or at its end if that is nothing: before anybody hears of its result.
    AtEnd,
    /// With each command that it runs, as a rule for the tool demands.
    PerCommand,
}

impl CatalogTool {
    /// The tool as rules know it.
    pub fn id(&self) -> ToolId<'_> {
        ToolId::new(&self.declaration.name, self.plugin.digest().as_str())
    }

    /// When its calls are confirmed.
    pub fn confirmation_rule(&self) -> ConfirmationRule {
        confirmation(
            self.confirm,
            self.grants.files,
            self.grants.commands,
            self.declaration.confirm,
        )
    }

    /// The effects that are decided on when a call does this, in order, what confirms the call
    /// among them. `None` is a call that does nothing to the outside world.
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
