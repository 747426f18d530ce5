//! The tier of a tool, computed from its permissions.

use serde::Serialize;

use super::capability::Capability;

/// The scheduling tier of a call, which the host computes from the tool's permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Calls that may ask a model and change nothing.
    ///
    /// They run first, in parallel with each other.
    Research,
    /// Calls that may read and change nothing.
    ///
    /// They run second, in parallel with each other.
    ReadOnly,
    /// Calls that may change something.
    ///
    /// They run last, one at a time, in the model's order.
    Write,
}

impl Tier {
    /// Computes the tier of a tool from the capabilities that it was granted. `alone` is whether
    /// each of its calls must run alone.
    ///
    /// A tool gets no more than it requests and the policy allows. An interface that its component
    /// imports for another tool refuses its calls. So the granted capabilities determine the tier.
    /// The tool's own hints and the policy can only make it stricter: a tool that lies about itself
    /// runs alone and needs approval, never the opposite.
    pub fn from_capabilities(granted: &[Capability], alone: bool) -> Self {
        if alone || granted.iter().any(can_change_state) {
            Self::Write
        } else if granted.contains(&Capability::Delegate) {
            Self::Research
        } else {
            Self::ReadOnly
        }
    }

    /// Returns the name that users see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Research => "research",
            Self::ReadOnly => "read-only",
            Self::Write => "write",
        }
    }

    /// Explains the tier of a tool. `can_change` is whether the granted capabilities can change
    /// anything.
    pub fn explain(self, can_change: bool) -> &'static str {
        match (self, can_change) {
            (Self::Write, true) => {
                "it can change state; it runs alone, and each effect is decided by the policy, \
                    the mode or the user"
            }
            (Self::Write, false) => {
                "it runs alone: it requests permissions that were not granted, requires \
                    confirmation, or is marked `exclusive`"
            }
            (Self::ReadOnly, _) => {
                "its permissions cannot change anything; it runs in parallel with other read-only \
                    tools"
            }
            (Self::Research, _) => {
                "it can start a sub-agent and cannot change anything; it runs first, in parallel \
                    with others"
            }
        }
    }
}

fn can_change_state(capability: &Capability) -> bool {
    match capability {
        Capability::ReadFiles | Capability::KeepState | Capability::Delegate => false,
        // A request can change state on the server, which the host cannot know. An accepted plan
        // changes the mode, so the calls after it have to wait.
        Capability::WriteFiles
        | Capability::RunCommands
        | Capability::Fetch(_)
        | Capability::PresentPlan => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r014_the_tier_follows_from_permissions_and_can_only_be_raised() {
        let table = [
            (vec![], false, Tier::ReadOnly),
            (vec![Capability::ReadFiles], false, Tier::ReadOnly),
            (vec![Capability::ReadFiles], true, Tier::Write),
            (vec![Capability::Delegate], false, Tier::Research),
            (vec![Capability::Delegate, Capability::ReadFiles], false, Tier::Research),
            (vec![Capability::Delegate, Capability::RunCommands], false, Tier::Write),
            (vec![Capability::KeepState], false, Tier::ReadOnly),
            (vec![Capability::PresentPlan], false, Tier::Write),
            (vec![Capability::WriteFiles], false, Tier::Write),
            (vec![Capability::RunCommands], false, Tier::Write),
            (vec![Capability::Fetch(vec!["example.com".into()])], false, Tier::Write),
        ];
        for (given, alone, expected) in table {
            assert_eq!(Tier::from_capabilities(&given, alone), expected, "{given:?}");
        }
    }

    #[test]
    fn r016_only_capabilities_known_to_be_harmless_rank_below_a_write() {
        let all = [
            Capability::ReadFiles,
            Capability::KeepState,
            Capability::Delegate,
            Capability::WriteFiles,
            Capability::RunCommands,
            Capability::Fetch(vec!["example.com".into()]),
            Capability::PresentPlan,
        ];
        // A new capability must be added here too: otherwise this match does not compile.
        let is_known_to_be_harmless = |capability: &Capability| match capability {
            Capability::ReadFiles | Capability::KeepState | Capability::Delegate => true,
            Capability::WriteFiles
            | Capability::RunCommands
            | Capability::Fetch(_)
            | Capability::PresentPlan => false,
        };
        for chosen in 0_u32..1 << all.len() {
            let given: Vec<Capability> =
                (0..all.len()).filter(|n| chosen & (1 << n) != 0).map(|n| all[n].clone()).collect();
            let is_write = Tier::from_capabilities(&given, false) == Tier::Write;
            assert_eq!(is_write, !given.iter().all(is_known_to_be_harmless), "{given:?}");
            assert_eq!(Tier::from_capabilities(&given, true), Tier::Write, "{given:?}");
        }
    }
}
