//! Advice on how to change a decision, within the limits of the policy.

use super::{Policy, TrustLevel, mode_verdict};
use crate::layer::ToolId;
use crate::{
    Action, ActionKind, ApprovalMode, Effect, PolicyLayer, PolicyLevel, ReasonedVerdict,
    RulePattern, Verdict, VerdictReason,
};

/// The largest number of entries in a proposed rule. A longer one is not read before it is copied.
const MAX_PROPOSED_ENTRIES: usize = 8;
/// The characters that have a meaning in a pattern. A rule with one of them would allow more than
/// the action.
const PATTERN_CHARACTERS: [char; 9] = ['*', '?', '[', ']', '{', '}', '!', '\\', '\n'];

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

    /// Returns the rule that allows an effect of a tool if the user adds it to their policy file,
    /// and nothing else. Returns `None` if no such rule exists, for example because a `deny` or
    /// `ask` rule covers the effect.
    pub fn find_allowing_rule(
        &self,
        tool: ToolId<'_>,
        mode: ApprovalMode,
        effect: &Effect,
    ) -> Option<String> {
        let actions = effect.actions();
        let section = actions.first()?.kind().section();
        let is_same_section = |act: &Action<'_>| act.kind().section() == section;
        if actions.len() > MAX_PROPOSED_ENTRIES || !actions.iter().all(is_same_section) {
            return None;
        }
        let entries: Option<Vec<String>> = actions.iter().map(propose_entry).collect();
        let list = format!("allow = [{}]", entries?.join(", "));
        let text = format!("[{section}]\n{list}\n");
        let layer = PolicyLayer::parse(PolicyLevel::User, "policy.toml", &text).ok()?;
        let mut changed = self.clone();
        changed.add_layer(layer);
        let is_allowed =
            |act: &Action<'_>| changed.verdict(mode, tool, act).verdict == Verdict::Allow;
        actions.iter().all(is_allowed).then(|| format!("`{list}` under [{section}]"))
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

/// Returns the entry of an `allow` list that covers exactly this action.
fn propose_entry(act: &Action<'_>) -> Option<String> {
    let exact = |text: &str| {
        let is_exact = !text.is_empty() && !text.contains(PATTERN_CHARACTERS);
        is_exact.then(|| toml::Value::from(text).to_string())
    };
    match act {
        Action::Command(line) => exact(line),
        Action::Write(Some(path)) => exact(path.as_str()),
        Action::Fetch { host, method } => {
            Some(format!("{{ pattern = \"{host}\", methods = [\"{method}\"] }}"))
        }
        Action::Connect(host) => Some(format!("\"{host}\"")),
        Action::Input(_) | Action::Read(_) | Action::Write(None) | Action::Use => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkspacePath;

    #[test]
    fn a_proposed_rule_allows_exactly_the_effect() {
        let tool = || ToolId::new("bash", "");
        let command = |line: &str| Effect::Command {
            line: line.to_owned(),
            directory: WorkspacePath::parse("", None).expect("a path"),
            background: false,
        };
        let rule = |policy: &Policy, line: &str| {
            policy.find_allowing_rule(tool(), ApprovalMode::Ask, &command(line))
        };
        let open = Policy::default();
        assert_eq!(
            rule(&open, "cargo build").as_deref(),
            Some("`allow = [\"cargo build\"]` under [commands]")
        );
        let mut changed = open.clone();
        changed.add_layer(
            PolicyLayer::parse(PolicyLevel::User, "p", "[commands]\nallow = [\"cargo build\"]")
                .expect("it parses"),
        );
        let verdict =
            |line: &str| changed.verdict(ApprovalMode::Ask, tool(), &Action::Command(line)).verdict;
        assert_eq!(
            [verdict("cargo build"), verdict("cargo build --release")],
            [Verdict::Allow, Verdict::Ask]
        );
        // A pattern would allow more, and no rule allows a line of several commands.
        for line in ["rm *", "cargo build; rm -r x", "a\nb", ""] {
            assert_eq!(rule(&open, line), None, "{line:?}");
        }
        let denied = policy(&[(PolicyLevel::System, "[commands]\ndeny = [\"cargo *\"]")]);
        let asked = policy(&[(PolicyLevel::User, "[commands]\nask = [\"cargo *\"]")]);
        assert_eq!([rule(&denied, "cargo build"), rule(&asked, "cargo build")], [None, None]);
    }

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
