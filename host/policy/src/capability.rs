//! The capabilities that a tool declares.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A capability that a tool declares it needs. A declaration alone grants nothing: see
/// [`Grants`](super::Grants).
///
/// This enum is closed: code that grants, compares or explains permissions has to treat each one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Reads the files of the workspace.
    ReadFiles,
    /// Creates, changes and deletes files of the workspace.
    WriteFiles,
    /// Runs commands. The policy decides about each command line.
    RunCommands,
    /// Sends HTTP requests to hosts that match these patterns.
    Fetch(Vec<String>),
    /// Delegates a task to a read-only sub-agent.
    Delegate,
    /// Stores state between the calls of a session.
    KeepState,
    /// Presents a plan to the user. Accepting it ends plan mode.
    PresentPlan,
}

/// A capability without its parameters, as policy files specify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CapabilityKind {
    /// Reads the files of the workspace.
    ReadFiles,
    /// Creates, changes and deletes files of the workspace.
    WriteFiles,
    /// Runs commands on this machine.
    RunCommands,
    /// Sends HTTP requests to hosts.
    Fetch,
    /// Delegates tasks to a read-only sub-agent.
    Delegate,
    /// Stores state between calls.
    KeepState,
    /// Presents plans to the user.
    PresentPlan,
}

impl Capability {
    /// Returns the kind of this capability.
    pub fn kind(&self) -> CapabilityKind {
        match self {
            Self::ReadFiles => CapabilityKind::ReadFiles,
            Self::WriteFiles => CapabilityKind::WriteFiles,
            Self::RunCommands => CapabilityKind::RunCommands,
            Self::Fetch(_) => CapabilityKind::Fetch,
            Self::Delegate => CapabilityKind::Delegate,
            Self::KeepState => CapabilityKind::KeepState,
            Self::PresentPlan => CapabilityKind::PresentPlan,
        }
    }
}

impl CapabilityKind {
    /// Returns the name in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadFiles => "read-files",
            Self::WriteFiles => "write-files",
            Self::RunCommands => "run-commands",
            Self::Fetch => "fetch",
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
            Self::Delegate => f.write_str("delegate tasks to a sub-agent"),
            Self::KeepState => f.write_str("keep state between calls"),
            Self::PresentPlan => f.write_str("present a plan"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_capability_has_a_name_in_policy_files_and_a_description() {
        let hosts = vec!["docs.rs".to_owned(), "*.example.com".to_owned()];
        let table = [
            (Capability::ReadFiles, "read-files", "read files of the workspace"),
            (Capability::WriteFiles, "write-files", "write files of the workspace"),
            (Capability::RunCommands, "run-commands", "run commands"),
            (Capability::Fetch(hosts), "fetch", "send HTTP requests to docs.rs, *.example.com"),
            (Capability::Delegate, "delegate", "delegate tasks to a sub-agent"),
            (Capability::KeepState, "keep-state", "keep state between calls"),
            (Capability::PresentPlan, "present-plan", "present a plan"),
        ];
        for (capability, name, description) in table {
            assert_eq!(capability.kind().name(), name);
            assert_eq!(capability.to_string(), description);
            // The name is the same as in the parser of policy files.
            let parsed: CapabilityKind = serde_json::from_value(name.into()).expect(name);
            assert_eq!(parsed, capability.kind());
        }
    }
}
