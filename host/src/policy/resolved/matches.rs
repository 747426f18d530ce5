//! How far each rule of a policy covers one action.

use super::{Policy, Voice};
use crate::policy::layer::{Rule, RuleInput};
use crate::policy::pattern::Match;
use crate::policy::{Because, Finding, Kind, Verdict};

/// Every rule that may cover an action, with how far it does.
#[derive(Debug)]
pub(in crate::policy) struct RuleMatches<'p> {
    policy: &'p Policy,
    found: Vec<(Voice, &'p Rule, Match)>,
}

/// What a list `allow` says of an act.
pub(in crate::policy) enum Listed {
    Yes(Because),
    No(Because),
    NoList,
}

impl<'p> RuleMatches<'p> {
    /// Holds an action against the rules. Those of the system come first and those of a project last, so that no project uses up the
    /// work that the others may take.
    pub(super) fn of(policy: &'p Policy, input: &RuleInput<'_>) -> Self {
        let mut rules: Vec<(Voice, &Rule)> = policy.rules().collect();
        rules.sort_by_key(|(voice, _)| *voice);
        let found = rules.into_iter().map(|(voice, rule)| (voice, rule, rule.matches_input(input)));
        Self { policy, found: found.filter(|(_, _, covered)| *covered > Match::No).collect() }
    }

    /// What a rule with this verdict that covers the act at least so far makes of it. The project's own files come last, so
    /// that of several reasons the weightier one is told.
    pub(in crate::policy) fn strict(&self, verdict: Verdict, at_least: Match) -> Option<Finding> {
        let mut covering = self.found.iter().filter(|(_, rule, covered)| rule.written.verdict == verdict && *covered >= at_least);
        let (_, rule, covered) = covering.next()?;
        let written = rule.written.clone();
        Some(match covered {
            Match::Yes => Finding { verdict, because: Because::Rule(written) },
            Match::Perhaps | Match::No => Finding { verdict: Verdict::Ask, because: Because::Perhaps(written) },
        })
    }

    /// What the list `allow` of somebody says of an act of this kind.
    pub(in crate::policy) fn listed(&self, voice: Voice, kind: Kind) -> Listed {
        let mut ours = self.found.iter().filter(|(whose, rule, _)| *whose == voice && rule.written.verdict == Verdict::Allow);
        if let Some((_, rule, _)) = ours.find(|(_, _, covered)| *covered == Match::Yes) {
            return Listed::Yes(Because::Rule(rule.written.clone()));
        }
        let layers = self.policy.layers.iter().filter(|(whose, _)| *whose == voice);
        let mut lists = layers.filter_map(|(_, layer)| Some((layer.source, layer.lists.get(&kind)?)));
        lists.next().map_or(Listed::NoList, |(source, place)| Listed::No(Because::NotListed(kind, place.clone(), source)))
    }
}
