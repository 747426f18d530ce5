//! Verdicts about actions, with their reasons.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    Action, ActionKind, ApprovalMode, ApprovalPath, PolicyLevel, RuleOrigin, SimpleCommand,
    SourceLocation,
};

/// The decision about an action, the loosest first.
///
/// This enum is closed: code that matches it has to treat each verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The action may happen without approval.
    Allow,
    /// The action needs approval.
    Ask,
    /// The action is denied.
    Deny,
}

/// A rule as written, for explanations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RuleReference {
    /// The verdict that the rule gives.
    pub verdict: Verdict,
    /// The kind of actions that the rule covers.
    pub kind: ActionKind,
    /// The pattern as written, or the tool that the rule is about.
    pub text: String,
    /// The location of the rule.
    pub place: SourceLocation,
    /// The file or profile that contains the rule, with its level.
    pub source: RuleOrigin,
}

/// The reason for a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "because", content = "of", rename_all = "kebab-case")]
pub enum VerdictReason {
    /// A rule covers the action.
    Rule(RuleReference),
    /// A rule might cover the action, which cannot be determined without running it.
    Perhaps(RuleReference),
    /// The section has an `allow` list that does not contain the action.
    NotListed(ActionKind, SourceLocation, RuleOrigin),
    /// No list under `[commands.network]` contains the host, and `unlisted` decides.
    UnlistedHost(SourceLocation, RuleOrigin),
    /// Commands have no network, because of the rule at this location or because no rule opens it.
    NoNetwork(Option<SourceLocation>),
    /// A built-in list requires approval for every change of the path.
    Listed(ApprovalPath),
    /// No rule covers the action, so the mode decides.
    Mode(ApprovalMode),
    /// Reading is allowed, because no rule denies it.
    Reading,
}

/// A verdict with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReasonedVerdict {
    /// The decision about the action.
    pub verdict: Verdict,
    /// The reason for the decision.
    #[serde(flatten)]
    pub reason: VerdictReason,
}

impl Verdict {
    /// Returns the name in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for RuleReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}` of [{}] at {}", self.verdict, self.text, self.kind.section(), self.place)
    }
}

impl ReasonedVerdict {
    /// Returns whether "don't ask again" can answer this verdict. An `ask` rule, a possible rule
    /// and a built-in list require approval each time.
    pub fn is_rememberable(&self) -> bool {
        match (&self.verdict, &self.reason) {
            (
                Verdict::Ask,
                VerdictReason::Mode(_)
                | VerdictReason::NotListed(..)
                | VerdictReason::UnlistedHost(..),
            ) => true,
            (
                Verdict::Ask,
                VerdictReason::Rule(_)
                | VerdictReason::Perhaps(_)
                | VerdictReason::Listed(_)
                | VerdictReason::NoNetwork(_)
                | VerdictReason::Reading,
            )
            | (Verdict::Allow | Verdict::Deny, _) => false,
        }
    }

    /// Returns the location that decided, if the reason has one.
    pub fn location(&self) -> Option<&SourceLocation> {
        match &self.reason {
            VerdictReason::Rule(rule) | VerdictReason::Perhaps(rule) => Some(&rule.place),
            VerdictReason::NotListed(_, place, _) | VerdictReason::UnlistedHost(place, _) => {
                Some(place)
            }
            VerdictReason::NoNetwork(place) => place.as_ref(),
            VerdictReason::Mode(_) | VerdictReason::Listed(_) | VerdictReason::Reading => None,
        }
    }

    /// Returns the reason, as the end of a sentence that begins with the verdict.
    pub fn describe_reason(&self) -> String {
        match &self.reason {
            VerdictReason::Rule(rule) => format!("the rule {rule} covers it"),
            VerdictReason::Perhaps(rule) => {
                format!("the rule {rule} might cover it")
            }
            VerdictReason::NotListed(kind, place, _) => {
                format!("the `allow` list of [{}] at {place} does not contain it", kind.section())
            }
            VerdictReason::UnlistedHost(place, _) => format!(
                "no list of [commands.network] contains it, and `unlisted` at {place} decides"
            ),
            VerdictReason::NoNetwork(Some(place)) => {
                format!("the rule at {place} denies the network to commands")
            }
            VerdictReason::NoNetwork(None) => "no rule lets commands connect to it".to_owned(),
            VerdictReason::Listed(listed) => {
                format!("{}, so each change needs approval in every mode", listed.describe())
            }
            VerdictReason::Mode(mode) => format!("no rule covers it, and the mode is `{mode}`"),
            VerdictReason::Reading => "no rule denies reading it".to_owned(),
        }
    }

    /// Returns the reason, with more detail for this action. If a line is more than one simple
    /// command, every rule might cover it.
    pub fn describe_reason_for(&self, act: &Action<'_>) -> String {
        match (&self.reason, act) {
            (VerdictReason::Perhaps(rule), Action::Command(line))
                if SimpleCommand::parse(line).is_none() =>
            {
                format!(
                    "the line is more than one simple command, so the rule {rule} might cover it"
                )
            }
            _ => self.describe_reason(),
        }
    }

    /// Returns advice on how to change the verdict about this action. It ignores the modes that the
    /// policy allows; [`Policy::remedy`](super::Policy::remedy) respects them.
    pub fn remedy(&self, act: &Action<'_>) -> String {
        match (&self.verdict, &self.reason) {
            (Verdict::Allow, VerdictReason::Rule(rule)) => match rule.source {
                RuleOrigin::File(_) => format!(
                    "Remove the rule from {} to let the mode decide, or add a `deny` rule to any \
                        policy file.",
                    rule.place.file
                ),
                RuleOrigin::Profile(_) => "A `deny` rule in a policy file overrides it.".to_owned(),
            },
            (Verdict::Allow, VerdictReason::Mode(_)) => "Use a stricter mode, or add an `ask` or \
                `deny` rule to a policy file."
                .to_owned(),
            (Verdict::Allow, VerdictReason::Reading) => {
                "Add a `deny` rule to [read] of a policy file.".to_owned()
            }
            (_, VerdictReason::Rule(rule) | VerdictReason::Perhaps(rule)) => {
                format!(
                    "{}; no other rule overrides it.",
                    change_hint("that rule", &rule.place.file, rule.source)
                )
            }
            (verdict, VerdictReason::NotListed(..) | VerdictReason::UnlistedHost(..))
                if matches!(act, Action::Connect(_)) && self.is_from_user() =>
            {
                host_remedy(*verdict, act)
            }
            (verdict, VerdictReason::NoNetwork(None)) => host_remedy(*verdict, act),
            (_, VerdictReason::NoNetwork(Some(place))) => {
                format!("To allow it, change the rule in {}.", place.file)
            }
            (_, VerdictReason::UnlistedHost(place, source)) => {
                format!("{}.", change_hint("that value", &place.file, *source))
            }
            // The user's list and the list of the user's profile count as one.
            (_, VerdictReason::NotListed(_, _, RuleOrigin::Profile(PolicyLevel::User))) => {
                "The user can add the action to the `allow` list in their own policy file."
                    .to_owned()
            }
            (_, VerdictReason::NotListed(_, place, source)) => {
                format!("{}.", change_hint("that list", &place.file, *source))
            }
            (_, VerdictReason::Listed(listed)) => format!(
                "The user can approve it in a terminal, edit the file by hand, or add `{}` to \
                    `writable` under [protected] in their policy file.",
                listed.pattern
            ),
            (Verdict::Deny, VerdictReason::Mode(_)) => {
                "The user can choose another mode.".to_owned()
            }
            (_, VerdictReason::Mode(_) | VerdictReason::Reading) => match act {
                // No mode allows HTTP requests.
                Action::Fetch { host, method } => format!(
                    "The user can run cofferdam in a terminal, or allow the request in a policy \
                        file: `allow = [{{ pattern = \"{host}\", methods = [\"{method}\"] }}]` \
                        under [fetch]."
                ),
                Action::Connect(_) => host_remedy(self.verdict, act),
                Action::Command(_)
                | Action::Input(_)
                | Action::Read(_)
                | Action::Write(_)
                | Action::Use => {
                    "The user can restart with `--mode auto`, run cofferdam in a terminal, or \
                        allow the action in a policy file."
                        .to_owned()
                }
            },
        }
    }
}

impl ReasonedVerdict {
    /// Returns whether the user can change the list or the value that decided.
    fn is_from_user(&self) -> bool {
        match &self.reason {
            VerdictReason::NotListed(_, _, source) | VerdictReason::UnlistedHost(_, source) => {
                source.level() == PolicyLevel::User
            }
            VerdictReason::Rule(_)
            | VerdictReason::Perhaps(_)
            | VerdictReason::NoNetwork(_)
            | VerdictReason::Listed(_)
            | VerdictReason::Mode(_)
            | VerdictReason::Reading => false,
        }
    }
}

/// Says how the user can allow the host of a connection.
fn host_remedy(verdict: Verdict, act: &Action<'_>) -> String {
    let Action::Connect(host) = act else { return String::new() };
    let start = match verdict {
        Verdict::Allow => {
            return "Add a `deny` rule under [commands.network] of a policy file.".to_owned();
        }
        Verdict::Ask => "The user can run cofferdam in a terminal, or allow it",
        Verdict::Deny => "The user can allow it",
    };
    format!("{start} in their policy file: `allow = [\"{host}\"]` under [commands.network].")
}

/// Says who can change a rule or a list, and where. A profile is part of the program, so a user can
/// only choose another one. Only the administrator can change the policy of the system.
fn change_hint(what: &str, file: &str, source: RuleOrigin) -> String {
    match source {
        RuleOrigin::File(PolicyLevel::User | PolicyLevel::Project) => {
            format!("The user can change {what} in {file}")
        }
        RuleOrigin::File(PolicyLevel::System) => {
            format!("Only the administrator of this machine can change {what} in {file}")
        }
        RuleOrigin::Profile(PolicyLevel::User | PolicyLevel::Project) => {
            format!("The user can choose a profile without {what}")
        }
        RuleOrigin::Profile(PolicyLevel::System) => {
            format!("Only the administrator of this machine can choose a profile without {what}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Policy, PolicyLayer, PolicyProfile};
    use super::*;

    fn advice(policy: &[PolicyLayer], line: &str) -> String {
        let mut all = Policy::default();
        policy.iter().for_each(|layer| all.add_layer(layer.clone()));
        all.verdict(ApprovalMode::Auto, "bash".into(), &Action::Command(line))
            .remedy(&Action::Command(line))
    }

    #[test]
    fn r036_a_remedy_names_who_can_change_the_rule() {
        let file =
            |level, text: &str| PolicyLayer::parse(level, "/etc/p.toml", text).expect("it parses");
        let deny = "[commands]\ndeny = [\"x\"]";
        let none = "[commands]\nallow = []";
        let profile = |level| PolicyProfile::LockedDown.to_layer(level).expect("it parses");
        let table = [
            (
                file(PolicyLevel::User, deny),
                "The user can change that rule in /etc/p.toml; no other rule overrides it.",
            ),
            (
                file(PolicyLevel::System, deny),
                "Only the administrator of this machine can change that rule in /etc/p.toml; no \
                    other rule overrides it.",
            ),
            (
                file(PolicyLevel::System, none),
                "Only the administrator of this machine can change that list in /etc/p.toml.",
            ),
            (
                profile(PolicyLevel::User),
                "The user can add the action to the `allow` list in their own policy file.",
            ),
            (
                profile(PolicyLevel::System),
                "Only the administrator of this machine can choose a profile without that list.",
            ),
        ];
        for (layer, expected) in table {
            assert_eq!(advice(&[layer], "x"), expected);
        }
        // The advice helps against a profile that the user chose. It would not help against a
        // profile of the system.
        let own = file(PolicyLevel::User, "[commands]\nallow = [\"x\"]");
        for (level, verdict) in
            [(PolicyLevel::User, Verdict::Allow), (PolicyLevel::System, Verdict::Ask)]
        {
            let mut all = Policy::default();
            all.add_layer(profile(level));
            all.add_layer(own.clone());
            assert_eq!(
                all.verdict(ApprovalMode::Auto, "bash".into(), &Action::Command("x")).verdict,
                verdict
            );
        }
    }

    #[test]
    fn a_possible_rule_says_whether_the_line_is_one_command() {
        let text = "[commands]\ndeny = [\"git push *\"]";
        let mut policy = Policy::default();
        policy.add_layer(PolicyLayer::parse(PolicyLevel::User, "p.toml", text).expect(text));
        let reason = |line: &str| {
            let act = Action::Command(line);
            policy.verdict(ApprovalMode::Auto, "bash".into(), &act).describe_reason_for(&act)
        };
        let rule = "the rule deny `git push *` of [commands] at p.toml:2:9 might cover it";
        assert_eq!(reason("env git push"), rule);
        assert_eq!(
            reason("$(x) push"),
            format!("the line is more than one simple command, so {rule}")
        );
    }
}
