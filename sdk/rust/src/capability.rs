//! The permissions that a tool requests, and its hints.

use crate::bindings::exports::cofferdam::plugin::tools as wit;

/// A permission that a tool requests. The user's policy decides whether the tool gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capability {
    /// Read the files of the workspace, through `std::fs` and [`workspace`](crate::workspace).
    ReadFiles,
    /// Create, change and delete files of the workspace, through `std::fs`. Includes `ReadFiles`.
    WriteFiles,
    /// Run commands through [`commands`](crate::commands).
    RunCommands,
    /// Send HTTP requests through [`http`](crate::http) that match one of these patterns, such as
    /// `api.example.com` or `GET,POST *.example.com:8443`.
    Fetch(Vec<String>),
    /// Give tasks to sub-agents through [`agents`](crate::agents).
    Delegate,
    /// Keep values between the calls of a session through [`state`](crate::state).
    KeepState,
    /// Present a plan to the user through [`plans`](crate::plans).
    PresentPlan,
}

/// A request to treat a tool more strictly than its permissions require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Never run this tool in parallel with another one.
    Exclusive,
    /// Ask the user before every call.
    Confirm,
}

impl Capability {
    /// Returns the name in the contract.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ReadFiles => "read-files",
            Self::WriteFiles => "write-files",
            Self::RunCommands => "run-commands",
            Self::Fetch(_) => "fetch",
            Self::Delegate => "delegate",
            Self::KeepState => "keep-state",
            Self::PresentPlan => "present-plan",
        }
    }
}

impl From<Capability> for wit::Capability {
    fn from(capability: Capability) -> Self {
        let name = capability.name().to_owned();
        let parameters = match capability {
            Capability::Fetch(patterns) => patterns,
            _ => Vec::new(),
        };
        Self { name, parameters }
    }
}

impl From<Hint> for wit::Hint {
    fn from(hint: Hint) -> Self {
        let name = match hint {
            Hint::Exclusive => "exclusive",
            Hint::Confirm => "confirm",
        };
        Self { name: name.to_owned(), parameters: Vec::new() }
    }
}
