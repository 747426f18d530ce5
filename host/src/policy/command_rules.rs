//! What the user says of the sandbox in which approved commands run.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Policy, SourceLocation};

/// How much of the machine is closed to a command, the most last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxLevel {
    /// Nothing: it runs with the rights of the user.
    None,
    /// The kernel refuses what is outside: files, network, other processes.
    Kernel,
    /// What is outside is not there: namespaces of its own, and the kernel's refusals inside.
    Full,
}

impl SandboxLevel {
    /// As it is written in the configuration.
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

/// The user's choices for all commands of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRules {
    /// With less than this, commands are refused.
    pub minimum: SandboxLevel,
    /// The place of a policy file that demands it, if it was not the user's own choice.
    pub required_by: Option<SourceLocation>,
    /// No more than this is used, even where the machine has more.
    pub maximum: SandboxLevel,
    /// Whether commands reach the network.
    pub network: bool,
    /// Absolute paths that they may read besides the usual ones.
    pub read: Vec<PathBuf>,
    /// Absolute paths outside of the workspace that they may write.
    pub write: Vec<PathBuf>,
    /// What each may use.
    pub limits: CommandLimits,
}

impl Default for CommandRules {
    fn default() -> Self {
        Self {
            minimum: SandboxLevel::Kernel,
            required_by: None,
            maximum: SandboxLevel::Full,
            network: false,
            read: Vec::new(),
            write: Vec::new(),
            limits: CommandLimits::default(),
        }
    }
}

impl CommandRules {
    /// With what a policy demands: no less of a sandbox than the user chose, and no more of a
    /// network.
    #[must_use]
    pub fn with_policy(self, policy: &Policy) -> Self {
        let rules = Self { network: self.network && policy.network_denied_by().is_none(), ..self };
        match policy.minimum_sandbox() {
            Some((minimum, place)) if minimum > rules.minimum => {
                Self { minimum, required_by: Some(place.clone()), ..rules }
            }
            Some(_) | None => rules,
        }
    }
}

/// What a command and all that it starts may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Processes and threads at the same time.
    pub processes: u64,
    /// Open files of each process.
    pub descriptors: u64,
    /// Bytes of each file that is written.
    pub file_size: u64,
    /// Bytes of writable memory of each process; `None` for all that the machine gives.
    pub memory: Option<u64>,
    /// Seconds that it may run; `None` for those that it was started with.
    pub seconds: Option<u64>,
}

impl Default for CommandLimits {
    fn default() -> Self {
        // Enough for a build with a job for each of 64 cores, and little enough that a fork bomb is
        // a nuisance. Memory is not bounded: sanitizers and language runtimes reserve terabytes
        // that they do not use.
        Self {
            processes: 2048,
            descriptors: 16_384,
            file_size: 8 << 30,
            memory: None,
            seconds: None,
        }
    }
}
