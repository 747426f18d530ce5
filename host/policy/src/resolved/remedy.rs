//! Advice on how to change a decision, within the limits of the policy.

use super::{Policy, TrustLevel, mode_verdict};
use crate::layer::ToolId;
use crate::{
    Action, ActionKind, ApprovalMode, ReasonedVerdict, RulePattern, Verdict, VerdictReason,
};

impl Policy {
    /// Returns advice on how to change the verdict about this action. It suggests only modes that
    /// the policy allows.
    pub fn remedy(
        &self,
        tool: ToolId<'_>,
        mode: ApprovalMode,
        act: &Action<'_>,
        finding: &ReasonedVerdict,
    ) -> String {
        let mut text = match (&finding.verdict, &finding.reason) {
            (Verdict::Ask, VerdictReason::Mode(_))
                if !matches!(act.kind(), ActionKind::Fetch | ActionKind::Connect) =>
            {
                self.looser_mode_hint(act)
            }
            (Verdict::Deny, VerdictReason::Mode(mode)) => self.other_mode_hint(*mode),
            _ => finding.remedy(act),
        };
        if finding.verdict != Verdict::Allow && self.is_allowed_if_trusted(tool, mode, act) {
            text.push_str(
                " The `allow` list of the project's policy file covers the action and applies \
                    after `cofferdam trust`.",
            );
        }
        text
    }

    /// Returns whether any policy file has rules about writing files.
    pub fn has_write_rules(&self) -> bool {
        self.layers.iter().any(|(_, layer)| {
            layer.allow_lists.contains_key(&ActionKind::Write)
                || layer.rules.iter().any(|rule| matches!(rule.pattern, RulePattern::Write(_)))
        })
    }

    fn looser_mode_hint(&self, act: &Action<'_>) -> String {
        let allows = |mode: &ApprovalMode| {
            mode_verdict(*mode, act).verdict == Verdict::Allow
                && self.mode_denied_by(*mode).is_none()
        };
        match ApprovalMode::STRICTEST_FIRST.into_iter().rev().find(allows) {
            Some(mode) => format!(
                "The user can restart with `--mode {mode}`, run cofferdam in a terminal, or allow \
                    the action in a policy file."
            ),
            None => {
                "The user can run cofferdam in a terminal, or allow the action in a policy file."
                    .into()
            }
        }
    }

    fn other_mode_hint(&self, current: ApprovalMode) -> String {
        let others = || ApprovalMode::STRICTEST_FIRST.into_iter().filter(|mode| *mode != current);
        let denied = others().find_map(|mode| self.mode_denied_by(mode));
        let allowed: Vec<&str> = others()
            .filter(|mode| self.mode_denied_by(*mode).is_none())
            .map(ApprovalMode::name)
            .collect();
        match denied {
            None => "The user can choose another mode.".into(),
            Some(place) if allowed.is_empty() => format!(
                "The policy at {place} allows no other \
                mode."
            ),
            Some(_) => {
                format!("The user can choose another mode (allowed: {}).", allowed.join(", "))
            }
        }
    }

    /// Returns whether a rule of an untrusted project would allow the action once the project is
    /// trusted.
    fn is_allowed_if_trusted(
        &self,
        tool: ToolId<'_>,
        mode: ApprovalMode,
        act: &Action<'_>,
    ) -> bool {
        let has_rules = self.layers.iter().any(|(voice, layer)| {
            let allows =
                || layer.rules.iter().any(|rule| rule.source_rule.verdict == Verdict::Allow);
            *voice == TrustLevel::Stranger && allows()
        });
        if !has_rules {
            return false;
        }
        let mut trusted = Self::default();
        for (voice, layer) in &self.layers {
            let voice = if *voice == TrustLevel::Stranger { TrustLevel::User } else { *voice };
            trusted.add_layer_as(voice, layer.clone());
        }
        let found = trusted.verdict(mode, tool, act);
        // A host can also be allowed because the project's list then counts as part of the user's.
        let is_by_list =
            act.kind() != ActionKind::Connect || matches!(found.reason, VerdictReason::Rule(_));
        found.verdict == Verdict::Allow && is_by_list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicyLayer, PolicyLevel};

    fn policy(layers: &[(PolicyLevel, &str)]) -> Policy {
        let mut policy = Policy::default();
        for (level, text) in layers {
            policy.add_layer(PolicyLayer::parse(*level, "p.toml", text).expect("it parses"));
        }
        policy
    }

    fn advice(policy: &Policy, mode: ApprovalMode, act: &Action<'_>) -> String {
        let finding = policy.verdict(mode, "a_tool".into(), act);
        policy.remedy("a_tool".into(), mode, act, &finding)
    }

    #[test]
    fn advice_names_only_allowed_modes() {
        let (command, write) = (Action::Command("make"), Action::Write(None));
        let bounded = |modes: &str| policy(&[(PolicyLevel::System, modes)]);
        let table = [
            ("", "restart with `--mode auto`", "restart with `--mode auto`"),
            (
                "modes = [\"plan\", \"ask\"]",
                "can run cofferdam in a terminal",
                "can run cofferdam in a terminal",
            ),
            (
                "modes = [\"ask\", \"auto-edit\"]",
                "can run cofferdam in a terminal",
                "restart with `--mode auto-edit`",
            ),
        ];
        for (modes, for_command, for_write) in table {
            let policy = bounded(modes);
            for (act, expected) in [(&command, for_command), (&write, for_write)] {
                let advice = advice(&policy, ApprovalMode::Ask, act);
                assert!(advice.contains(expected), "{modes}: {advice}");
            }
        }
        let in_plan_mode =
            |modes: &str| advice(&bounded(modes), ApprovalMode::Plan, &Action::Command("make"));
        assert_eq!(in_plan_mode(""), "The user can choose another mode.");
        assert_eq!(
            in_plan_mode("modes = [\"plan\"]"),
            "The policy at p.toml:1:9 allows no other \
            mode."
        );
        assert_eq!(
            in_plan_mode("modes = [\"plan\", \"ask\"]"),
            "The user can choose another mode (allowed: ask)."
        );
    }

    #[test]
    fn trust_is_advised_where_it_helps() {
        let allow = (PolicyLevel::Project, "[commands]\nallow = [\"make *\"]");
        let trust = |policy: &Policy, line| {
            advice(policy, ApprovalMode::Ask, &Action::Command(line)).contains("cofferdam trust")
        };
        let untrusted = policy(&[allow]);
        assert!(trust(&untrusted, "make test") && !trust(&untrusted, "cargo test"));
        let denied = policy(&[allow, (PolicyLevel::User, "[commands]\ndeny = [\"make *\"]")]);
        assert!(!trust(&denied, "make test"));
    }

    #[test]
    fn only_allow_rules_of_an_untrusted_project_are_worth_trusting() {
        let allow = "[commands]\nallow = [\"make *\"]";
        let deny = "[commands]\ndeny = [\"rm *\"]";
        let trust = |layers: &[(PolicyLevel, &str)], mode| {
            advice(&policy(layers), mode, &Action::Command("make")).contains("cofferdam trust")
        };
        assert!(trust(&[(PolicyLevel::Project, allow)], ApprovalMode::Ask));
        assert!(!trust(&[(PolicyLevel::Project, deny)], ApprovalMode::Ask));
        assert!(!trust(&[(PolicyLevel::Project, allow)], ApprovalMode::Plan));
        let both = [(PolicyLevel::User, "[commands]\nask = [\"make *\"]")];
        assert!(!trust(&both, ApprovalMode::Ask));
    }

    #[test]
    fn write_rules_are_lists_and_rules_of_the_section_write() {
        for (text, expected) in [
            ("", false),
            ("[commands]\ndeny = [\"rm *\"]\nallow = []", false),
            ("[read]\ndeny = [\"a\"]", false),
            ("[write]\nallow = []", true),
            ("[write]\ndeny = [\"a\"]", true),
            ("[write]\nask = [\"a\"]", true),
        ] {
            assert_eq!(policy(&[(PolicyLevel::User, text)]).has_write_rules(), expected, "{text}");
        }
    }
}
