//! How far each rule of a policy covers one action.

use super::{Policy, TrustLevel};
use crate::policy::layer::{PolicyRule, RuleMatchInput};
use crate::policy::pattern::PatternMatch;
use crate::policy::{ActionKind, ReasonedVerdict, Verdict, VerdictReason};

/// Every rule that may cover an action, with how far it does.
#[derive(Debug)]
pub(in crate::policy) struct RuleMatches<'p> {
    policy: &'p Policy,
    found: Vec<(TrustLevel, &'p PolicyRule, PatternMatch)>,
}

/// What a list `allow` says of an act.
pub(in crate::policy) enum ListedRule {
    Yes(VerdictReason),
    No(VerdictReason),
    NoList,
}

impl<'p> RuleMatches<'p> {
    /// Holds an action against the rules. Those of the system come first and those of a project
    /// last, so that no project uses up the work that the others may take.
    pub(super) fn of(policy: &'p Policy, input: &RuleMatchInput<'_>) -> Self {
        let mut rules: Vec<(TrustLevel, &PolicyRule)> = policy.rules().collect();
        rules.sort_by_key(|(voice, _)| *voice);
        let found = rules.into_iter().map(|(voice, rule)| (voice, rule, rule.matches_input(input)));
        Self {
            policy,
            found: found.filter(|(_, _, covered)| *covered > PatternMatch::No).collect(),
        }
    }

    /// What a rule with this verdict that covers the act at least so far makes of it. The project's
    /// own files come last, so that of several reasons the weightier one is told.
    pub(in crate::policy) fn strict(
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

    /// What the list `allow` of somebody says of an act of this kind.
    pub(in crate::policy) fn listed(&self, voice: TrustLevel, kind: ActionKind) -> ListedRule {
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
