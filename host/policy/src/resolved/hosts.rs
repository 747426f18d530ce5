//! The hosts that commands may connect to.
//!
//! Each level (the system, an untrusted project, the user with trusted projects) has an opinion:
//!
//! 1. Its `allow` and `ask` lists contain the host.
//! 2. Otherwise, if it has an `allow` list or a value for `unlisted`, that value decides; without a
//!    value, the host is denied.
//! 3. Otherwise it has none.
//!
//! The strictest opinion applies, so a list of the system bounds what the user can open. Only the
//! system and the user can open a host; without an opinion of theirs, commands have no network.

use super::{Policy, RuleMatches, TrustLevel};
use crate::pattern::PatternMatch;
use crate::{
    Action, ActionKind, HostAddress, ReasonedVerdict, RulePattern, SourceLocation, ToolId, Verdict,
    VerdictReason,
};

/// The opinion of one level about a host; `None` if it has none.
pub(crate) type HostOpinion = Option<ReasonedVerdict>;

impl Policy {
    /// Returns the location of a rule about the hosts of commands, if any layer has one.
    pub fn hosts_ruled_by(&self) -> Option<&SourceLocation> {
        self.layers().find_map(|(_, layer)| {
            let unlisted = layer.settings.unlisted_hosts.as_ref().map(|(_, place)| place);
            let mut rules =
                layer.rules.iter().filter(|rule| matches!(rule.pattern, RulePattern::Connect(_)));
            layer
                .allow_lists
                .get(&ActionKind::Connect)
                .or(unlisted)
                .or_else(|| rules.next().map(|rule| &rule.source_rule.place))
        })
    }

    /// Returns why a host is denied to a server that has the permission to connect to it. There is
    /// nobody to ask, so a host that needs approval is denied. The lists of the user are about
    /// commands; the user has named the hosts of the server elsewhere.
    pub(crate) fn server_host_denied_by(
        &self,
        tool: ToolId<'_>,
        host: &HostAddress,
    ) -> HostOpinion {
        let matches = self.match_rules(tool, &Action::Connect(host));
        let is_about_hosts = |finding: &ReasonedVerdict| match &finding.reason {
            VerdictReason::Rule(rule) => rule.kind == ActionKind::Connect,
            _ => true,
        };
        let asked = matches.strict(Verdict::Ask, PatternMatch::Yes).filter(is_about_hosts);
        let closed = self.network_denied_by().map(|place| ReasonedVerdict {
            verdict: Verdict::Deny,
            reason: VerdictReason::NoNetwork(Some(place.clone())),
        });
        let excluded = [TrustLevel::System, TrustLevel::Stranger].into_iter().find_map(|voice| {
            matches.host_opinion(voice).filter(|opinion| opinion.verdict != Verdict::Allow)
        });
        let denied = matches.strict(Verdict::Deny, PatternMatch::Yes);
        denied.or(closed).or(asked).or(excluded.filter(is_about_hosts))
    }

    /// Returns whether the system or the user lets commands connect to any host.
    pub fn opens_hosts(&self) -> bool {
        let heard = self.layers().filter(|(voice, _)| *voice != TrustLevel::Stranger);
        heard.into_iter().any(|(_, layer)| {
            let opens = |verdict: Verdict| verdict != Verdict::Deny;
            layer.settings.unlisted_hosts.as_ref().is_some_and(|(verdict, _)| opens(*verdict))
                || layer.rules.iter().any(|rule| {
                    matches!(rule.pattern, RulePattern::Connect(_))
                        && opens(rule.source_rule.verdict)
                })
        })
    }

    /// Returns whether a rule of the system or the user contains this IP address itself, rather
    /// than every host.
    pub fn names_address(&self, address: &HostAddress) -> bool {
        self.rules().any(|(voice, rule)| {
            let RulePattern::Connect(pattern) = &rule.pattern else { return false };
            let verdict = rule.source_rule.verdict;
            voice != TrustLevel::Stranger
                && verdict != Verdict::Deny
                && pattern.is_address()
                && pattern.matches(address, Verdict::Allow) == PatternMatch::Yes
        })
    }
}

impl RuleMatches<'_> {
    /// Returns the opinion of one level about the host of a connection.
    pub(crate) fn host_opinion(&self, voice: TrustLevel) -> HostOpinion {
        let covering = |verdict: Verdict| {
            let mut ours = self.found.iter().filter(|(whose, rule, covered)| {
                *whose == voice
                    && rule.source_rule.verdict == verdict
                    && *covered == PatternMatch::Yes
            });
            let (_, rule, _) = ours.next()?;
            let reason = VerdictReason::Rule(rule.source_rule.clone());
            Some(ReasonedVerdict { verdict, reason })
        };
        covering(Verdict::Ask)
            .or_else(|| covering(Verdict::Allow))
            .or_else(|| self.unlisted_opinion(voice))
    }

    /// Returns the opinion of one level about a host that its lists do not contain.
    fn unlisted_opinion(&self, voice: TrustLevel) -> HostOpinion {
        let layers = || self.policy.layers.iter().filter(|(whose, _)| *whose == voice);
        let values = layers().filter_map(|(_, layer)| {
            let (verdict, place) = layer.settings.unlisted_hosts.as_ref()?;
            Some((*verdict, place, layer.source))
        });
        // The first of the strictest.
        let strictest = values.reduce(|a, b| if b.0 > a.0 { b } else { a });
        if let Some((verdict, place, source)) = strictest {
            let reason = VerdictReason::UnlistedHost(place.clone(), source);
            return Some(ReasonedVerdict { verdict, reason });
        }
        let kind = ActionKind::Connect;
        layers().find_map(|(_, layer)| {
            let place = layer.allow_lists.get(&kind)?.clone();
            let reason = VerdictReason::NotListed(kind, place, layer.source);
            Some(ReasonedVerdict { verdict: Verdict::Deny, reason })
        })
    }

    /// Returns the denial of a host that a level excludes, or that no level opens.
    pub(crate) fn host_bounds(&self) -> HostOpinion {
        if let Some(place) = self.policy.network_denied_by() {
            let reason = VerdictReason::NoNetwork(Some(place.clone()));
            return Some(ReasonedVerdict { verdict: Verdict::Deny, reason });
        }
        let levels = [TrustLevel::System, TrustLevel::User, TrustLevel::Stranger];
        let opinions = levels.map(|voice| (voice, self.host_opinion(voice)));
        let is_open = opinions.iter().any(|(voice, opinion)| {
            *voice != TrustLevel::Stranger
                && opinion.as_ref().is_some_and(|opinion| opinion.verdict != Verdict::Deny)
        });
        let mut denied = opinions.into_iter().filter_map(|(_, opinion)| opinion);
        let closed = || {
            let reason = VerdictReason::NoNetwork(None);
            (!is_open).then_some(ReasonedVerdict { verdict: Verdict::Deny, reason })
        };
        denied.find(|opinion| opinion.verdict == Verdict::Deny).or_else(closed)
    }

    /// Returns the reason why a host needs approval because a level does not list it.
    pub(crate) fn unlisted_host(&self, voice: TrustLevel) -> HostOpinion {
        self.host_opinion(voice).filter(|opinion| {
            opinion.verdict == Verdict::Ask
                && matches!(opinion.reason, VerdictReason::UnlistedHost(..))
        })
    }

    /// Returns the reason why a level allows a host.
    pub(crate) fn allowed_host(&self, voice: TrustLevel) -> HostOpinion {
        self.host_opinion(voice).filter(|opinion| opinion.verdict == Verdict::Allow)
    }
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
