//! What a tool may ask for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that a tool says it needs. Nothing follows from asking alone: see
/// [`Grants`](super::Grants).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Read the files of the workspace.
    ReadFiles,
    /// Create, change and delete files of the workspace.
    WriteFiles,
    /// Run commands, each approved by itself.
    RunCommands,
    /// Send HTTP requests to hosts that match these patterns.
    Fetch(Vec<String>),
    /// Read these environment variables.
    ReadEnvironment(Vec<String>),
    /// Hand a task to a sub-agent, which can change nothing.
    Delegate,
    /// Keep state between the calls of a session.
    KeepState,
    /// Show the user a plan, whose approval ends plan mode.
    PresentPlan,
}

/// A capability without what it is narrowed to, as policy files name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapabilityKind {
    /// Read the files of the workspace.
    ReadFiles,
    /// Create, change and delete files of the workspace.
    WriteFiles,
    /// Run commands.
    RunCommands,
    /// Send HTTP requests.
    Fetch,
    /// Read environment variables.
    ReadEnvironment,
    /// Hand tasks to a sub-agent.
    Delegate,
    /// Keep state between calls.
    KeepState,
    /// Show plans.
    PresentPlan,
}

impl Capability {
    /// Its kind.
    pub fn kind(&self) -> CapabilityKind {
        match self {
            Self::ReadFiles => CapabilityKind::ReadFiles,
            Self::WriteFiles => CapabilityKind::WriteFiles,
            Self::RunCommands => CapabilityKind::RunCommands,
            Self::Fetch(_) => CapabilityKind::Fetch,
            Self::ReadEnvironment(_) => CapabilityKind::ReadEnvironment,
            Self::Delegate => CapabilityKind::Delegate,
            Self::KeepState => CapabilityKind::KeepState,
            Self::PresentPlan => CapabilityKind::PresentPlan,
        }
    }
}

impl CapabilityKind {
    /// Its word in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadFiles => "read-files",
            Self::WriteFiles => "write-files",
            Self::RunCommands => "run-commands",
            Self::Fetch => "fetch",
            Self::ReadEnvironment => "read-environment",
            Self::Delegate => "delegate",
            Self::KeepState => "keep-state",
            Self::PresentPlan => "present-plan",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadFiles => f.write_str("read files of the workspace"),
            Self::WriteFiles => f.write_str("write files of the workspace"),
            Self::RunCommands => f.write_str("run commands"),
            Self::Fetch(hosts) => write!(f, "send HTTP requests to {}", hosts.join(", ")),
            Self::ReadEnvironment(names) => {
                write!(f, "read the environment variables {}", names.join(", "))
            }
            Self::Delegate => f.write_str("hand tasks to a sub-agent"),
            Self::KeepState => f.write_str("keep state between calls"),
            Self::PresentPlan => f.write_str("present a plan"),
        }
    }
}
