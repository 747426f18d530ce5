//! All layers together, and what follows from them.
//!
//! 1. A `deny` of any layer that covers an act denies it. Nothing overrides it.
//! 2. An `ask` of any layer that covers it has it asked, each time. So does a rule that *might* cover it.
//! 3. A list `allow` that is present is all that is allowed: what is not on it is asked. That of the system stands for
//!    itself, and so does that of a project nobody trusts; those of the user, of the user's profile and of trusted
//!    projects are one list. An absent list bounds nothing, an empty one allows nothing.
//! 4. An `allow` that covers it allows it, unless it is a rule of a project that the user did not trust.
//! 5. What is left is the mode's.
//!
//! Changing a path of the built-in lists of instructions and of files that run code counts as covered by an `ask` (2).
//!
//! There are no priorities, no order and no negation. Mode `plan` stands between 1 and 2: it denies every change.

mod matches;
mod settings;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::layer::{ActionText, Layer, Level, Pattern, Placed, Rule, RuleInput, Subject, ToolId};
use super::pattern::Match;
use super::{
    AskedPaths, Because, Capability, CapabilityKind, Caps, Deed, Finding, Kind, Mode, Place, ProtectedPaths, SandboxLevel, Verdict,
    WorkspacePath,
};

pub(super) use matches::{Listed, RuleMatches};
pub use settings::{ModelEndpoint, Refusal};

/// The policy of a run. The default says nothing and leaves everything to the mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    layers: Vec<(Voice, Layer)>,
    asked: AskedPaths,
}

/// Whose word a layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Voice {
    /// Of whoever administers the machine.
    System,
    /// Of the user, who also speaks for a project by trusting its file.
    User,
    /// Of a project that nobody trusts: it can tighten and not loosen.
    Stranger,
}

impl Policy {
    /// Adds a layer. That of a project counts as a stranger's.
    pub fn add(&mut self, layer: Layer) {
        let voice = match layer.source.level() {
            Level::System => Voice::System,
            Level::User => Voice::User,
            Level::Project => Voice::Stranger,
        };
        self.add_as(voice, layer);
    }

    /// Adds the layer of a project whose file the user trusted.
    pub fn add_trusted(&mut self, layer: Layer) {
        let voice = if layer.source.level() == Level::System { Voice::System } else { Voice::User };
        self.add_as(voice, layer);
    }

    fn add_as(&mut self, voice: Voice, layer: Layer) {
        if voice != Voice::Stranger {
            self.asked.lift(&layer.protected.writable);
        }
        self.layers.push((voice, layer));
    }

    /// Knows where a link of the workspace leads, so that changing either needs the same approval.
    pub fn add_alias(&mut self, real: &WorkspacePath, link: &WorkspacePath) {
        self.asked.add_alias(real, link);
    }

    /// Knows where the links of the workspace lead now. After a look that was not complete, those of earlier looks stay known.
    pub fn learn_aliases<'a>(&mut self, aliases: impl Iterator<Item = (&'a WorkspacePath, &'a WorkspacePath)>, is_complete: bool) {
        if is_complete {
            self.asked.clear_aliases();
        }
        aliases.for_each(|(real, link)| self.asked.add_alias(real, link));
    }

    /// The paths whose change always needs approval.
    pub fn asked(&self) -> &AskedPaths {
        &self.asked
    }

    /// The layers with whose word they are.
    pub fn layers(&self) -> impl Iterator<Item = (Voice, &Layer)> {
        self.layers.iter().map(|(voice, layer)| (*voice, layer))
    }

    /// Whether a rule wants every run of a tool asked, or forbids it.
    pub fn on_tool(&self, tool: ToolId<'_>) -> Option<Finding> {
        let matches = self.match_rules(tool, &Deed::Use);
        matches.strict(Verdict::Deny, Match::Yes).or_else(|| matches.strict(Verdict::Ask, Match::Yes))
    }

    /// The list that keeps a mode from being chosen, if one does.
    pub fn forbids(&self, mode: Mode) -> Option<&Place> {
        let lists = self.layers.iter().filter_map(|(_, layer)| layer.modes.as_ref());
        lists.into_iter().find(|(modes, _)| !modes.contains(&mode)).map(|(_, place)| place)
    }

    /// The mode that comes nearest to a wanted one and is not looser, if the policy leaves any.
    pub fn nearest(&self, wanted: Mode) -> Option<Mode> {
        let up_to = Mode::FROM_STRICT.iter().position(|mode| *mode == wanted).unwrap_or_default();
        Mode::FROM_STRICT[..=up_to].iter().rev().copied().find(|mode| self.forbids(*mode).is_none())
    }

    /// The place that keeps a tool from being given what it asks for, if one does.
    pub fn withholds(&self, tool: ToolId<'_>, asked: &Capability) -> Option<&Place> {
        let about_it = self.layers.iter().flat_map(|(_, layer)| &layer.lending).filter(|lending| lending.tool.means(tool));
        about_it.into_iter().find_map(|lending| {
            // Who may write reads what it changes, so what is kept from reading does not write either.
            let reads =
                |kinds: &BTreeSet<CapabilityKind>| asked.kind() == CapabilityKind::WriteFiles && kinds.contains(&CapabilityKind::ReadFiles);
            let never = lending.never.as_ref().filter(|(kinds, _)| kinds.contains(&asked.kind()) || reads(kinds));
            let beyond = lending.at_most.as_ref().filter(|(kinds, _)| !kinds.contains(&asked.kind()));
            never.or(beyond).map(|(_, place)| place)
        })
    }

    /// What a tool asks for, and the places of this machine and its network beside every host, if it asks for that:
    /// these have to be named by somebody, and a tool for every host cannot know them.
    #[must_use]
    pub fn with_local(&self, asked: &Capability) -> Capability {
        let Capability::Fetch(patterns) = asked else { return asked.clone() };
        let heard = self.layers.iter().filter(|(voice, _)| *voice != Voice::Stranger);
        let local: Vec<&str> = heard.flat_map(|(_, layer)| &layer.local).map(|placed| placed.text.as_str()).collect();
        let mut all = patterns.clone();
        for methods in patterns.iter().filter_map(|pattern| pattern.strip_suffix('*')) {
            all.extend(local.iter().map(|place| format!("{methods}{place}")));
        }
        Capability::Fetch(all)
    }

    /// The caps of a tool: what was chosen, and no more than any layer allows.
    pub fn caps(&self, tool: ToolId<'_>, chosen: &Caps) -> Caps {
        let about_it = |subject: &Option<Subject>| subject.as_ref().is_none_or(|subject| subject.means(tool));
        let maxima = self.layers.iter().flat_map(|(_, layer)| &layer.maxima).filter(|(subject, _)| about_it(subject));
        chosen.at_most(&maxima.fold(Caps::default(), |all, (_, caps)| all.smaller(caps)))
    }

    /// The least sandbox that commands run in, if a layer says one: the most that any of them says, since no layer can take
    /// back what another demands.
    pub fn minimum_sandbox(&self) -> Option<(SandboxLevel, &Place)> {
        // Of equals the first, which is of the weightier layer.
        let all = self.layers.iter().rev().filter_map(|(_, layer)| layer.minimum.as_ref());
        all.max_by_key(|(level, _)| *level).map(|(level, place)| (*level, place))
    }

    /// What nobody reads or changes, whatever was granted.
    pub fn protected(&self) -> ProtectedPaths {
        self.layers.iter().fold(ProtectedPaths::default(), |paths, (voice, layer)| {
            layer.rules.iter().fold(paths.and_under(&layer.protected, *voice), |paths, rule| match &rule.pattern {
                Pattern::Read(pattern) => {
                    let written = Placed { text: rule.written.text.clone(), place: rule.written.place.clone() };
                    paths.and_unread(pattern, *voice, written)
                }
                Pattern::Command(_) | Pattern::Write(_) | Pattern::Fetch { .. } | Pattern::Tool => paths,
            })
        })
    }

    fn rules(&self) -> impl Iterator<Item = (Voice, &Rule)> {
        self.layers.iter().flat_map(|(voice, layer)| layer.rules.iter().map(|rule| (*voice, rule)))
    }

    /// Holds an act of a tool against every rule.
    pub(super) fn match_rules<'p>(&'p self, tool: ToolId<'_>, act: &Deed<'_>) -> RuleMatches<'p> {
        let text = ActionText::of(act);
        RuleMatches::of(self, &RuleInput::new(tool, act, &text))
    }
}

/// What a mode makes of an act that no rule is about.
pub(super) fn by_mode(mode: Mode, act: &Deed<'_>) -> Finding {
    let verdict = match (mode, act.kind()) {
        (_, Kind::Read) => return Finding { verdict: Verdict::Allow, because: Because::Reading },
        // What leaves the machine is asked in every mode: a tool that reads and one that sends would leak together.
        (Mode::Ask | Mode::Plan | Mode::AutoEdit | Mode::Auto, Kind::Fetch) => Verdict::Ask,
        (Mode::Auto, Kind::Commands | Kind::Write | Kind::Use) | (Mode::AutoEdit, Kind::Write) => Verdict::Allow,
        (Mode::Plan, Kind::Commands | Kind::Write) => Verdict::Deny,
        (Mode::Ask | Mode::AutoEdit, Kind::Commands | Kind::Use) | (Mode::Ask, Kind::Write) | (Mode::Plan, Kind::Use) => Verdict::Ask,
    };
    Finding { verdict, because: Because::Mode(mode) }
}

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
#[path = "tests.rs"]
pub(super) mod tests;
