//! The combination of all policy layers.
//!
//! 1. A `deny` rule of any layer that covers an action denies it. Nothing overrides it.
//! 2. An `ask` rule of any layer that covers the action requires approval each time. So does a
//!    `deny` or `ask` rule that *might* cover it.
//! 3. If a section has an `allow` list, every action that is not in the list needs approval. The
//!    list of the system and the list of an untrusted project each apply separately. The lists of
//!    the user, of the user's profile and of trusted projects count as one list. An absent list
//!    restricts nothing; an empty list allows nothing.
//! 4. An `allow` rule that covers the action allows it, unless it belongs to an untrusted project.
//! 5. The mode applies to the remaining actions.
//!
//! A change of a path in the built-in lists of instructions and of files that run code counts as
//! covered by an `ask` rule (2).
//!
//! For the connections of commands, a level can also exclude a host ([`hosts`]).
//!
//! There are no priorities, no order and no negation. Mode `plan` applies between 1 and 2: it
//! denies every change.

mod hosts;
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

/// The policy of a run. The default has no layers and leaves every decision to the mode.
///
/// ```
/// use cofferdam_policy::{
///     Action, ApprovalMode, Policy, PolicyLayer, PolicyLevel, ToolId, Verdict,
/// };
///
/// let text = "[commands]\nallow = [\"git status *\"]";
/// let mut policy = Policy::default();
/// policy.add_layer(PolicyLayer::parse(PolicyLevel::User, "policy.toml", text)?);
/// let action = Action::Command("git status --short");
/// let found = policy.verdict(ApprovalMode::Ask, ToolId::new("bash", ""), &action);
/// assert_eq!(found.verdict, Verdict::Allow);
/// # Ok::<(), cofferdam_policy::PolicyError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    layers: Vec<(TrustLevel, PolicyLayer)>,
    approval_paths: ApprovalPaths,
}

/// The authority of a policy layer: how far the policy follows its rules.
///
/// The [`PolicyLevel`] says where a policy file is stored. A file of a project can have either of
/// two authorities: that of the user if the user trusts it, and otherwise that of a stranger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TrustLevel {
    /// The administrator of the machine.
    System,
    /// The user. The policy file of a trusted project has this authority too.
    User,
    /// An untrusted project, which can tighten the policy and never loosen it.
    Stranger,
}

impl Policy {
    /// Adds a layer. A project layer counts as untrusted.
    pub fn add_layer(&mut self, layer: PolicyLayer) {
        let voice = match layer.source.level() {
            PolicyLevel::System => TrustLevel::System,
            PolicyLevel::User => TrustLevel::User,
            PolicyLevel::Project => TrustLevel::Stranger,
        };
        self.add_layer_as(voice, layer);
    }

    /// Adds the layer of a project whose policy file the user trusts.
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

    /// Records the target of a link in the workspace, so that changing either path needs the same
    /// approval.
    pub fn add_alias(&mut self, real: &WorkspacePath, link: &WorkspacePath) {
        self.approval_paths.add_alias(real, link);
    }

    /// Updates the known targets of links in the workspace. If the search was incomplete, links
    /// from earlier searches stay known.
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

    /// Returns the paths whose changes always need approval.
    pub fn approval_paths(&self) -> &ApprovalPaths {
        &self.approval_paths
    }

    /// Returns the layers with their authority.
    pub fn layers(&self) -> impl Iterator<Item = (TrustLevel, &PolicyLayer)> {
        self.layers.iter().map(|(voice, layer)| (*voice, layer))
    }

    /// Returns the verdict of a rule that denies every run of a tool or requires approval for it.
    pub fn tool_verdict(&self, tool: ToolId<'_>) -> Option<ReasonedVerdict> {
        let matches = self.match_rules(tool, &Action::Use);
        matches
            .strict(Verdict::Deny, PatternMatch::Yes)
            .or_else(|| matches.strict(Verdict::Ask, PatternMatch::Yes))
    }

    /// Returns the verdict of the first rule that certainly denies an action of a tool.
    pub(crate) fn denied_by_rule(
        &self,
        tool: ToolId<'_>,
        action: &Action<'_>,
    ) -> Option<ReasonedVerdict> {
        self.match_rules(tool, action).strict(Verdict::Deny, PatternMatch::Yes)
    }

    /// Returns the location of the list that excludes a mode, if there is one.
    pub fn mode_denied_by(&self, mode: ApprovalMode) -> Option<&SourceLocation> {
        let lists = self.layers.iter().filter_map(|(_, layer)| layer.modes.as_ref());
        lists.into_iter().find(|(modes, _)| !modes.contains(&mode)).map(|(_, place)| place)
    }

    /// Returns the requested mode, or the nearest stricter one that the policy allows. Returns
    /// `None` if the policy allows no such mode.
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

    /// Returns the location of the rule that withholds a capability from a tool, if there is one.
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
            // A tool that writes files can also read them, so a tool without permission to read
            // cannot write either.
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

    /// Returns the capability of a tool, and adds the local hosts of the policy if the tool asks
    /// for every host. Local hosts are on this machine or its network. A pattern `*` does not cover
    /// them, and the author of a tool for every host cannot know them. Untrusted layers add none.
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

    /// Returns the limits of a tool: the configured ones, lowered to the maximum of every layer.
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

    /// Returns the minimum sandbox of commands, if any layer requires one. The strongest
    /// requirement applies, since no layer can weaken another one.
    pub fn minimum_sandbox(&self) -> Option<(SandboxLevel, &SourceLocation)> {
        // `max_by_key` returns the last of equal levels, so the reversed order prefers the first
        // layer.
        let all = self.layers.iter().rev().filter_map(|(_, layer)| layer.minimum_sandbox.as_ref());
        all.max_by_key(|(level, _)| *level).map(|(level, place)| (*level, place))
    }

    /// Returns the paths that no tool can read or change, whatever its permissions.
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
                    | RulePattern::Connect(_)
                    | RulePattern::Tool => paths,
                }
            })
        })
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = (TrustLevel, &PolicyRule)> {
        self.layers.iter().flat_map(|(voice, layer)| layer.rules.iter().map(|rule| (*voice, rule)))
    }

    /// Matches an action of a tool against every rule.
    pub(super) fn match_rules<'p>(&'p self, tool: ToolId<'_>, act: &Action<'_>) -> RuleMatches<'p> {
        let text = ActionText::of(act);
        RuleMatches::of(self, &RuleMatchInput::new(tool, act, &text))
    }
}

/// Returns the verdict of a mode about an action that no rule covers.
pub(super) fn mode_verdict(mode: ApprovalMode, act: &Action<'_>) -> ReasonedVerdict {
    let verdict = match (mode, act.kind()) {
        (_, ActionKind::Read) => {
            return ReasonedVerdict { verdict: Verdict::Allow, reason: VerdictReason::Reading };
        }
        // No mode opens the network for commands.
        (_, ActionKind::Connect) => Verdict::Deny,
        // HTTP requests need approval in every mode: one tool that reads and another that sends
        // could leak data together.
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
mod settings_tests;
#[cfg(test)]
#[path = "tests.rs"]
pub(super) mod tests;
