//! All layers together, and what follows from them.
//!
//! 1. A `deny` of any layer that covers an act denies it. Nothing overrides it.
//! 2. An `ask` of any layer that covers it has it asked, each time. So does a rule that *might*
//!    cover it.
//! 3. A list `allow` that is present is all that is allowed: what is not on it is asked. That of
//!    the system stands for itself, and so does that of a project nobody trusts; those of the user,
//!    of the user's profile and of trusted projects are one list. An absent list bounds nothing, an
//!    empty one allows nothing.
//! 4. An `allow` that covers it allows it, unless it is a rule of a project that the user did not
//!    trust.
//! 5. What is left is the mode's.
//!
//! Changing a path of the built-in lists of instructions and of files that run code counts as
//! covered by an `ask` (2).
//!
//! There are no priorities, no order and no negation. Mode `plan` stands between 1 and 2: it denies
//! every change.

mod matches;
mod remedy;
mod settings;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::layer::{
    ActionText, PolicyLayer, PolicyLevel, PolicyRule, RuleMatchInput, RulePattern, SourceLocated,
    ToolId, ToolSelector,
};
use super::pattern::PatternMatch;
use super::{
    Action, ActionKind, ApprovalMode, ApprovalPaths, Capability, CapabilityKind, Caps,
    ProtectedPaths, ReasonedVerdict, SandboxLevel, SourceLocation, Verdict, VerdictReason,
    WorkspacePath,
};

pub(super) use matches::{ListedRule, RuleMatches};
pub use settings::{ModelEndpoint, SettingRefusal};

/// The policy of a run. The default says nothing and leaves everything to the mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    layers: Vec<(TrustLevel, PolicyLayer)>,
    approval_paths: ApprovalPaths,
}

/// Whose word a layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TrustLevel {
    /// Of whoever administers the machine.
    System,
    /// Of the user, who also speaks for a project by trusting its file.
    User,
    /// Of a project that nobody trusts: it can tighten and not loosen.
    Stranger,
}

impl Policy {
    /// Adds a layer. That of a project counts as a stranger's.
    pub fn add_layer(&mut self, layer: PolicyLayer) {
        let voice = match layer.source.level() {
            PolicyLevel::System => TrustLevel::System,
            PolicyLevel::User => TrustLevel::User,
            PolicyLevel::Project => TrustLevel::Stranger,
        };
        self.add_layer_as(voice, layer);
    }

    /// Adds the layer of a project whose file the user trusted.
    pub fn add_trusted_layer(&mut self, layer: PolicyLayer) {
        let voice = if layer.source.level() == PolicyLevel::System {
            TrustLevel::System
        } else {
            TrustLevel::User
        };
        self.add_layer_as(voice, layer);
    }

    fn add_layer_as(&mut self, voice: TrustLevel, layer: PolicyLayer) {
        if voice != TrustLevel::Stranger {
            self.approval_paths.exempt(&layer.protected.writable);
        }
        self.layers.push((voice, layer));
    }

    /// Knows where a link of the workspace leads, so that changing either needs the same approval.
    pub fn add_alias(&mut self, real: &WorkspacePath, link: &WorkspacePath) {
        self.approval_paths.add_alias(real, link);
    }

    /// Knows where the links of the workspace lead now. After a look that was not complete, those
    /// of earlier looks stay known.
    pub fn learn_aliases<'a>(
        &mut self,
        aliases: impl Iterator<Item = (&'a WorkspacePath, &'a WorkspacePath)>,
        is_complete: bool,
    ) {
        if is_complete {
            self.approval_paths.clear_aliases();
        }
        aliases.for_each(|(real, link)| self.approval_paths.add_alias(real, link));
    }

    /// The paths whose change always needs approval.
    pub fn approval_paths(&self) -> &ApprovalPaths {
        &self.approval_paths
    }

    /// The layers with whose word they are.
    pub fn layers(&self) -> impl Iterator<Item = (TrustLevel, &PolicyLayer)> {
        self.layers.iter().map(|(voice, layer)| (*voice, layer))
    }

    /// Whether a rule wants every run of a tool asked, or forbids it.
    pub fn tool_verdict(&self, tool: ToolId<'_>) -> Option<ReasonedVerdict> {
        let matches = self.match_rules(tool, &Action::Use);
        matches
            .strict(Verdict::Deny, PatternMatch::Yes)
            .or_else(|| matches.strict(Verdict::Ask, PatternMatch::Yes))
    }

    /// The list that keeps a mode from being chosen, if one does.
    pub fn mode_denied_by(&self, mode: ApprovalMode) -> Option<&SourceLocation> {
        let lists = self.layers.iter().filter_map(|(_, layer)| layer.modes.as_ref());
        lists.into_iter().find(|(modes, _)| !modes.contains(&mode)).map(|(_, place)| place)
    }

    /// The mode that comes nearest to a wanted one and is not looser, if the policy leaves any.
    pub fn nearest_mode(&self, wanted: ApprovalMode) -> Option<ApprovalMode> {
        let up_to = ApprovalMode::STRICTEST_FIRST
            .iter()
            .position(|mode| *mode == wanted)
            .unwrap_or_default();
        ApprovalMode::STRICTEST_FIRST[..=up_to]
            .iter()
            .rev()
            .copied()
            .find(|mode| self.mode_denied_by(*mode).is_none())
    }

    /// The place that keeps a tool from being given what it asks for, if one does.
    pub fn capability_denied_by(
        &self,
        tool: ToolId<'_>,
        asked: &Capability,
    ) -> Option<&SourceLocation> {
        let about_it = self
            .layers
            .iter()
            .flat_map(|(_, layer)| &layer.grants)
            .filter(|lending| lending.tool.matches(tool));
        about_it.into_iter().find_map(|lending| {
            // Who may write reads what it changes, so what is kept from reading does not write
            // either.
            let reads = |kinds: &BTreeSet<CapabilityKind>| {
                asked.kind() == CapabilityKind::WriteFiles
                    && kinds.contains(&CapabilityKind::ReadFiles)
            };
            let never = lending
                .denied
                .as_ref()
                .filter(|(kinds, _)| kinds.contains(&asked.kind()) || reads(kinds));
            let beyond =
                lending.allowed.as_ref().filter(|(kinds, _)| !kinds.contains(&asked.kind()));
            never.or(beyond).map(|(_, place)| place)
        })
    }

    /// What a tool asks for, and the places of this machine and its network beside every host, if
    /// it asks for that: these have to be named by somebody, and a tool for every host cannot know
    /// them.
    #[must_use]
    pub fn with_local_hosts(&self, asked: &Capability) -> Capability {
        let Capability::Fetch(patterns) = asked else { return asked.clone() };
        let heard = self.layers.iter().filter(|(voice, _)| *voice != TrustLevel::Stranger);
        let local: Vec<&str> = heard
            .flat_map(|(_, layer)| &layer.local_hosts)
            .map(|placed| placed.text.as_str())
            .collect();
        let mut all = patterns.clone();
        for methods in patterns.iter().filter_map(|pattern| pattern.strip_suffix('*')) {
            all.extend(local.iter().map(|place| format!("{methods}{place}")));
        }
        Capability::Fetch(all)
    }

    /// The caps of a tool: what was chosen, and no more than any layer allows.
    pub fn effective_caps(&self, tool: ToolId<'_>, chosen: &Caps) -> Caps {
        let about_it = |subject: &Option<ToolSelector>| {
            subject.as_ref().is_none_or(|subject| subject.matches(tool))
        };
        let maxima = self
            .layers
            .iter()
            .flat_map(|(_, layer)| &layer.max_caps)
            .filter(|(subject, ..)| about_it(subject));
        chosen.limited_to(&maxima.fold(Caps::default(), |all, (_, caps, _)| all.min(caps)))
    }

    /// The least sandbox that commands run in, if a layer says one: the most that any of them says,
    /// since no layer can take back what another demands.
    pub fn minimum_sandbox(&self) -> Option<(SandboxLevel, &SourceLocation)> {
        // Of equals the first, which is of the weightier layer.
        let all = self.layers.iter().rev().filter_map(|(_, layer)| layer.minimum_sandbox.as_ref());
        all.max_by_key(|(level, _)| *level).map(|(level, place)| (*level, place))
    }

    /// What nobody reads or changes, whatever was granted.
    pub fn protected_paths(&self) -> ProtectedPaths {
        self.layers.iter().fold(ProtectedPaths::default(), |paths, (voice, layer)| {
            layer.rules.iter().fold(paths.with_rules(&layer.protected, *voice), |paths, rule| {
                match &rule.pattern {
                    RulePattern::Read(pattern) => {
                        let written = SourceLocated {
                            text: rule.source_rule.text.clone(),
                            place: rule.source_rule.place.clone(),
                        };
                        paths.with_hidden_pattern(pattern, *voice, written)
                    }
                    RulePattern::Command(_)
                    | RulePattern::Write(_)
                    | RulePattern::Fetch { .. }
                    | RulePattern::Tool => paths,
                }
            })
        })
    }

    fn rules(&self) -> impl Iterator<Item = (TrustLevel, &PolicyRule)> {
        self.layers.iter().flat_map(|(voice, layer)| layer.rules.iter().map(|rule| (*voice, rule)))
    }

    /// Holds an act of a tool against every rule.
    pub(super) fn match_rules<'p>(&'p self, tool: ToolId<'_>, act: &Action<'_>) -> RuleMatches<'p> {
        let text = ActionText::of(act);
        RuleMatches::of(self, &RuleMatchInput::new(tool, act, &text))
    }
}

/// What a mode makes of an act that no rule is about.
pub(super) fn mode_verdict(mode: ApprovalMode, act: &Action<'_>) -> ReasonedVerdict {
    let verdict = match (mode, act.kind()) {
        (_, ActionKind::Read) => {
            return ReasonedVerdict { verdict: Verdict::Allow, reason: VerdictReason::Reading };
        }
        // What leaves the machine is asked in every mode: a tool that reads and one that sends
        // would leak together.
        (
            ApprovalMode::Ask | ApprovalMode::Plan | ApprovalMode::AutoEdit | ApprovalMode::Auto,
            ActionKind::Fetch,
        ) => Verdict::Ask,
        (ApprovalMode::Auto, ActionKind::Commands | ActionKind::Write | ActionKind::Use)
        | (ApprovalMode::AutoEdit, ActionKind::Write) => Verdict::Allow,
        (ApprovalMode::Plan, ActionKind::Commands | ActionKind::Write) => Verdict::Deny,
        (ApprovalMode::Ask | ApprovalMode::AutoEdit, ActionKind::Commands | ActionKind::Use)
        | (ApprovalMode::Ask, ActionKind::Write)
        | (ApprovalMode::Plan, ActionKind::Use) => Verdict::Ask,
    };
    ReasonedVerdict { verdict, reason: VerdictReason::Mode(mode) }
}

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
#[path = "tests.rs"]
pub(super) mod tests;
