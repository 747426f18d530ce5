//! What was found about an act, and because of what.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{AskedPath, Deed, Kind, Level, Mode, Place, Source};

/// The three answers, from the loosest to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It may happen.
    Allow,
    /// Somebody has to say so.
    Ask,
    /// It will not happen.
    Deny,
}

/// A rule as it was written, for those who ask why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleRef {
    /// What it says.
    pub verdict: Verdict,
    /// Its section.
    pub kind: Kind,
    /// Its pattern as written, or the tool it is about.
    pub text: String,
    /// Where it stands.
    pub place: Place,
    /// On whose word it is in force.
    pub source: Source,
}

/// What decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "because", content = "of", rename_all = "kebab-case")]
pub enum Because {
    /// A rule covers it.
    Rule(RuleRef),
    /// A rule might cover it, and nobody can tell.
    Perhaps(RuleRef),
    /// There is a list of what is allowed here, and it is not on it.
    NotListed(Kind, Place, Source),
    /// The built-in lists have every change of it approved.
    Listed(AskedPath),
    /// No rule covers it, and the mode says so.
    Mode(Mode),
    /// Reading is allowed unless a rule denies it.
    Reading,
}

/// An answer with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The answer.
    pub verdict: Verdict,
    /// The reason.
    #[serde(flatten)]
    pub because: Because,
}

impl Verdict {
    /// In a word.
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

impl fmt::Display for RuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}` of [{}] at {}", self.verdict, self.text, self.kind.section(), self.place)
    }
}

impl Finding {
    /// Whether "don't ask again" may answer it. What a rule wants asked is asked each time.
    pub fn may_be_remembered(&self) -> bool {
        match (&self.verdict, &self.because) {
            (Verdict::Ask, Because::Mode(_) | Because::NotListed(..)) => true,
            (Verdict::Ask, Because::Rule(_) | Because::Perhaps(_) | Because::Listed(_) | Because::Reading)
            | (Verdict::Allow | Verdict::Deny, _) => false,
        }
    }

    /// The place that decided, if it was one.
    pub fn place(&self) -> Option<&Place> {
        match &self.because {
            Because::Rule(rule) | Because::Perhaps(rule) => Some(&rule.place),
            Because::NotListed(_, place, _) => Some(place),
            Because::Mode(_) | Because::Listed(_) | Because::Reading => None,
        }
    }

    /// The reason, as the end of a sentence that begins with the verdict.
    pub fn why(&self) -> String {
        match &self.because {
            Because::Rule(rule) => format!("the rule {rule} covers it"),
            Because::Perhaps(rule) => format!("the rule {rule} might cover it, and nobody can tell"),
            Because::NotListed(kind, place, _) => format!("it is not on the list `allow` of [{}] at {place}", kind.section()),
            Because::Listed(listed) => format!("{}, so each change needs approval in every mode", listed.why()),
            Because::Mode(mode) => format!("no rule covers it, and this is mode `{mode}`"),
            Because::Reading => "reading needs no rule, and none denies it".to_owned(),
        }
    }

    /// What would make the answer about this act another one.
    pub fn what_would_change_it(&self, act: &Deed<'_>) -> String {
        match (&self.verdict, &self.because) {
            (Verdict::Allow, Because::Rule(rule)) => match rule.source {
                Source::File(_) => format!("Taking the rule out of {} leaves it to the mode; a `deny` anywhere wins.", rule.place.file),
                Source::Profile(_) => "A `deny` in a policy file wins over it.".to_owned(),
            },
            (Verdict::Allow, Because::Mode(_)) => "A stricter mode, or an `ask` or `deny` in a policy file.".to_owned(),
            (Verdict::Allow, Because::Reading) => "A `deny` in [read] of a policy file.".to_owned(),
            (_, Because::Rule(rule) | Because::Perhaps(rule)) => {
                format!("{}; no other rule overrides it.", who_can_change("that rule", &rule.place.file, rule.source))
            }
            // Their list and that of their profile are one.
            (_, Because::NotListed(_, _, Source::Profile(Level::User))) => {
                "The user can list it under `allow` in a policy file of their own.".to_owned()
            }
            (_, Because::NotListed(_, place, source)) => format!("{}.", who_can_change("that list", &place.file, *source)),
            (_, Because::Listed(listed)) => format!(
                "The user can approve it at a terminal, change the file by hand, or list `{}` under `writable` in [protected] of their policy.",
                listed.pattern
            ),
            (Verdict::Deny, Because::Mode(_)) => "The user can choose another mode.".to_owned(),
            (_, Because::Mode(_) | Because::Reading) => match act {
                // No mode allows it.
                Deed::Fetch { host, method } => format!(
                    "The user can start again at a terminal, or allow it in a policy file: `allow = [{{ pattern = \"{host}\", methods = [\"{method}\"] }}]` under [fetch]."
                ),
                Deed::Command(_) | Deed::Read(_) | Deed::Write(_) | Deed::Use => {
                    "The user can start again with `--mode auto`, or at a terminal, or allow it in a policy file.".to_owned()
                }
            },
        }
    }
}

/// A profile is part of the program: nobody changes it, and another can be chosen. What is the system's is the administrator's.
fn who_can_change(what: &str, file: &str, source: Source) -> String {
    match source {
        Source::File(Level::User | Level::Project) => format!("The user can change {what} in {file}"),
        Source::File(Level::System) => format!("Only the administrator of this machine can change {what} in {file}"),
        Source::Profile(Level::User | Level::Project) => format!("The user can choose another profile than that of {what}"),
        Source::Profile(Level::System) => {
            format!("Only the administrator of this machine can choose another profile than that of {what}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, Policy, Profile};
    use super::*;

    fn advice(policy: &[Layer], line: &str) -> String {
        let mut all = Policy::default();
        policy.iter().for_each(|layer| all.add(layer.clone()));
        all.find(Mode::Auto, "bash".into(), &Deed::Command(line)).what_would_change_it(&Deed::Command(line))
    }

    #[test]
    fn r036_what_would_allow_it_is_what_would() {
        let file = |level, text: &str| Layer::parse(level, "/etc/p.toml", text).expect("it parses");
        let deny = "[commands]\ndeny = [\"x\"]";
        let none = "[commands]\nallow = []";
        let profile = |level| Profile::LockedDown.layer(level).expect("it parses");
        let table = [
            (file(Level::User, deny), "The user can change that rule in /etc/p.toml; no other rule overrides it."),
            (
                file(Level::System, deny),
                "Only the administrator of this machine can change that rule in /etc/p.toml; no other rule overrides it.",
            ),
            (file(Level::System, none), "Only the administrator of this machine can change that list in /etc/p.toml."),
            (profile(Level::User), "The user can list it under `allow` in a policy file of their own."),
            (profile(Level::System), "Only the administrator of this machine can choose another profile than that of that list."),
        ];
        for (layer, expected) in table {
            assert_eq!(advice(&[layer], "x"), expected);
        }
        // What is advised for the profile that the user chose helps, and for that of the system it would not.
        let own = file(Level::User, "[commands]\nallow = [\"x\"]");
        for (level, verdict) in [(Level::User, Verdict::Allow), (Level::System, Verdict::Ask)] {
            let mut all = Policy::default();
            all.add(profile(level));
            all.add(own.clone());
            assert_eq!(all.find(Mode::Auto, "bash".into(), &Deed::Command("x")).verdict, verdict);
        }
    }
}
