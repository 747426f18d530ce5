//! The matches of one action against every rule of a policy.

use super::{Policy, TrustLevel};
use crate::layer::{PolicyRule, RuleMatchInput};
use crate::pattern::PatternMatch;
use crate::{ActionKind, ReasonedVerdict, Verdict, VerdictReason};

/// All rules that cover or might cover an action.
#[derive(Debug)]
pub(crate) struct RuleMatches<'p> {
    pub(super) policy: &'p Policy,
    pub(super) found: Vec<(TrustLevel, &'p PolicyRule, PatternMatch)>,
}

/// The result of looking up an action in an `allow` list.
pub(crate) enum ListedRule {
    Yes(VerdictReason),
    No(VerdictReason),
    NoList,
}

impl<'p> RuleMatches<'p> {
    /// Matches an action against the rules. System rules come first and rules of an untrusted
    /// project last, so that a project cannot use up the budget of the other rules.
    pub(super) fn of(policy: &'p Policy, input: &RuleMatchInput<'_>) -> Self {
        let mut rules: Vec<(TrustLevel, &PolicyRule)> = policy.rules().collect();
        rules.sort_by_key(|(voice, _)| *voice);
        let found = rules.into_iter().map(|(voice, rule)| (voice, rule, rule.matches_input(input)));
        Self {
            policy,
            found: found.filter(|(_, _, covered)| *covered > PatternMatch::No).collect(),
        }
    }

    /// Returns the verdict of the first rule with this verdict that covers the action at least as
    /// far as `at_least`. Rules of an untrusted project come last, so the reason refers to the rule
    /// with more authority.
    pub(crate) fn strict(
        &self,
        verdict: Verdict,
        at_least: PatternMatch,
    ) -> Option<ReasonedVerdict> {
        let mut covering = self.found.iter().filter(|(_, rule, covered)| {
            rule.source_rule.verdict == verdict && *covered >= at_least
        });
        let (_, rule, covered) = covering.next()?;
        let written = rule.source_rule.clone();
        Some(match covered {
            PatternMatch::Yes => ReasonedVerdict { verdict, reason: VerdictReason::Rule(written) },
            PatternMatch::Maybe | PatternMatch::No => {
                ReasonedVerdict { verdict: Verdict::Ask, reason: VerdictReason::Perhaps(written) }
            }
        })
    }

    /// Looks up an action of this kind in the `allow` list of one authority.
    pub(crate) fn listed(&self, voice: TrustLevel, kind: ActionKind) -> ListedRule {
        let mut ours = self.found.iter().filter(|(whose, rule, _)| {
            *whose == voice && rule.source_rule.verdict == Verdict::Allow
        });
        if let Some((_, rule, _)) = ours.find(|(_, _, covered)| *covered == PatternMatch::Yes) {
            return ListedRule::Yes(VerdictReason::Rule(rule.source_rule.clone()));
        }
        let layers = self.policy.layers.iter().filter(|(whose, _)| *whose == voice);
        let mut lists =
            layers.filter_map(|(_, layer)| Some((layer.source, layer.allow_lists.get(&kind)?)));
        lists.next().map_or(ListedRule::NoList, |(source, place)| {
            ListedRule::No(VerdictReason::NotListed(kind, place.clone(), source))
        })
    }
}
