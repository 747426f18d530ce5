//! When a call of a tool that is confirmed each time is put to the user, and what a call is decided on.

use super::Tool;
use crate::policy::{Effect, FileGrant, ToolId};

/// When each call of a tool is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// Never: only its effects are decided on.
    Never,
    /// Before it starts.
    BeforeStart,
    /// With what it writes, or at its end if that is nothing: before anybody hears of its result.
    AtTheEnd,
    /// With each command that it runs, as a rule for the tool demands.
    PerCommand,
}

impl Tool {
    /// The tool as rules know it.
    pub fn id(&self) -> ToolId<'_> {
        ToolId::new(&self.declared.name, self.plugin.digest().as_str())
    }

    /// When its calls are confirmed.
    pub fn confirmation(&self) -> Confirmation {
        confirmation(self.confirm, self.grants.files, self.grants.commands, self.declared.confirm)
    }

    /// The effects that are decided on when a call does this, in order, what confirms the call among them. `None` is a call that
    /// does nothing to the outside world.
    pub fn decided_effects(&self, effect: Option<Effect>) -> Vec<Effect> {
        match (self.confirmation(), effect) {
            (Confirmation::BeforeStart, effect) => std::iter::once(Effect::Confirmed).chain(effect).collect(),
            (Confirmation::AtTheEnd, Some(Effect::Write { changes, .. })) => vec![Effect::Write { changes, confirm: true }],
            (Confirmation::AtTheEnd, effect) => effect.into_iter().chain([Effect::Confirmed]).collect(),
            (Confirmation::Never | Confirmation::PerCommand, effect) => effect.into_iter().collect(),
        }
    }
}

fn confirmation(confirm: bool, files: FileGrant, commands: bool, by_itself: bool) -> Confirmation {
    match (confirm, files) {
        (false, _) => Confirmation::Never,
        (true, FileGrant::ReadWrite) => Confirmation::AtTheEnd,
        (true, FileGrant::None | FileGrant::Read) if commands && !by_itself => Confirmation::PerCommand,
        (true, FileGrant::None | FileGrant::Read) => Confirmation::BeforeStart,
    }
}
