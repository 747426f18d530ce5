//! The user's settings for the sandbox in which approved commands run.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{CommandNetwork, DirectDirectory, NetworkRules, Policy, SourceLocation, Verdict};

/// The strength of the command sandbox, the weakest level first.
///
/// This enum is closed: code that starts commands has to treat each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxLevel {
    /// No sandbox: the command runs with the rights of the user.
    None,
    /// The kernel denies access to files, network and processes outside the sandbox.
    Kernel,
    /// Everything outside the sandbox is invisible: the command has its own namespaces, and the
    /// kernel denies access inside them too.
    Full,
}

impl SandboxLevel {
    /// Returns the name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Kernel => "kernel",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for SandboxLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The user's settings for all commands of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRules {
    /// The minimum sandbox. If the machine supports only a weaker one, commands are refused.
    pub minimum: SandboxLevel,
    /// The location of the policy rule that requires the minimum; `None` if the user chose it.
    pub required_by: Option<SourceLocation>,
    /// The maximum sandbox, even if the machine supports a stronger one.
    pub maximum: SandboxLevel,
    /// The hosts that commands can reach.
    pub network: CommandNetwork,
    /// Absolute paths that commands may read in addition to the default ones.
    pub read: Vec<PathBuf>,
    /// Absolute paths outside the workspace that commands may write.
    pub write: Vec<PathBuf>,
    /// Directories of the workspace that commands write directly where they have a private view.
    pub direct: Vec<DirectDirectory>,
    /// Whether the user reviews all changes of a command before they are committed, except in mode
    /// `auto`.
    pub review_changes: bool,
    /// Resource limits of each command.
    pub limits: CommandLimits,
}

impl Default for CommandRules {
    fn default() -> Self {
        Self {
            minimum: SandboxLevel::Kernel,
            required_by: None,
            maximum: SandboxLevel::Full,
            network: CommandNetwork::None,
            read: Vec::new(),
            write: Vec::new(),
            direct: Vec::new(),
            review_changes: false,
            limits: CommandLimits::default(),
        }
    }
}

impl CommandRules {
    /// Applies the requirements of a policy. A policy can strengthen the sandbox, block the network
    /// and list hosts, and restrict the directories that commands write directly. It cannot weaken
    /// the sandbox.
    #[must_use]
    pub fn with_policy(self, policy: &Policy) -> Self {
        let network = match (policy.network_denied_by(), self.network) {
            (Some(_), _) => CommandNetwork::None,
            (None, CommandNetwork::None) if policy.opens_hosts() => {
                CommandNetwork::Listed(NetworkRules::default())
            }
            // The rules of the policy need the proxy.
            (None, CommandNetwork::All) if policy.hosts_ruled_by().is_some() => {
                CommandNetwork::Listed(NetworkRules::default().with_unlisted(Verdict::Allow))
            }
            (None, chosen) => chosen,
        };
        let mut rules = Self { network, ..self };
        rules.direct.retain(|directory| policy.direct_denied_by(directory).is_none());
        match policy.minimum_sandbox() {
            Some((minimum, place)) if minimum > rules.minimum => {
                Self { minimum, required_by: Some(place.clone()), ..rules }
            }
            Some(_) | None => rules,
        }
    }
}

/// Resource limits of a command and all its child processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// The number of processes and threads at the same time.
    pub processes: u64,
    /// The number of open files of each process.
    pub descriptors: u64,
    /// The size in bytes of each file that the command writes.
    pub file_size: u64,
    /// Bytes of writable memory of each process; `None` for no limit.
    pub memory: Option<u64>,
    /// The running time in seconds; `None` for the time limit that the caller set.
    pub seconds: Option<u64>,
}

impl Default for CommandLimits {
    fn default() -> Self {
        // Enough processes for a build with one job for each of 64 cores, and few enough that a
        // fork bomb stays harmless. Memory has no limit, because sanitizers and language runtimes
        // reserve terabytes that they do not use.
        Self {
            processes: 2048,
            descriptors: 16_384,
            file_size: 8 << 30,
            memory: None,
            seconds: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicyLayer, PolicyLevel};

    fn policy(text: &str) -> Policy {
        let mut policy = Policy::default();
        policy.add_layer(PolicyLayer::parse(PolicyLevel::System, "p.toml", text).expect(text));
        policy
    }

    #[test]
    fn a_policy_closes_the_network_or_lists_hosts() {
        use CommandNetwork::{All, Closed, Listed, None};
        let listed = || Listed(NetworkRules::default());
        let all_listed = || Listed(NetworkRules::default().with_unlisted(Verdict::Allow));
        // the user's setting, the policy, the result
        let table = [
            (All, "", All),
            (All, "[commands]\nnetwork = true", All),
            (All, "[commands]\nnetwork = false", None),
            (listed(), "[commands]\nnetwork = true", listed()),
            (listed(), "[commands]\nnetwork = false", None),
            (None, "", None),
            (None, "[commands]\nnetwork = true", None),
            (None, "[commands]\nnetwork = false", None),
            (None, "[commands.network]\nallow = [\"a.org\"]", listed()),
            (None, "[commands.network]\nunlisted = \"ask\"", listed()),
            (None, "[commands.network]\ndeny = [\"a.org\"]", None),
            (None, "[commands.network]\nallow = []", None),
            (Closed, "[commands.network]\nallow = [\"a.org\"]", Closed),
            (All, "[commands.network]\ndeny = [\"a.org\"]", all_listed()),
            (All, "[commands.network]\nallow = []", all_listed()),
        ];
        for (network, text, expected) in table {
            let rules = CommandRules { network, ..CommandRules::default() };
            assert_eq!(rules.with_policy(&policy(text)).network, expected, "{text}");
        }
    }

    #[test]
    fn a_minimum_that_the_user_chose_anyway_is_not_the_policys() {
        let required = policy("[commands]\nminimum = \"kernel\"");
        let rules = CommandRules::default().with_policy(&required);
        assert_eq!((rules.minimum, rules.required_by), (SandboxLevel::Kernel, None));
    }
}
