//! The actions of a tool that policy rules cover.

use std::fmt;

use serde::Serialize;

use super::pattern::HostAddress;
use super::{Effect, WorkspacePath};

/// The kind of an action. Each kind has a section in a policy file.
///
/// This enum is closed: code that explains decisions has to treat each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActionKind {
    /// Command lines, in section `[commands]`.
    Commands,
    /// Reads of workspace files, in section `[read]`.
    Read,
    /// Writes to workspace files, in section `[write]`.
    Write,
    /// HTTP requests, in section `[fetch]`.
    Fetch,
    /// Connections of commands, in section `[commands.network]`.
    #[serde(rename = "commands.network")]
    Connect,
    /// Runs of a tool, regardless of its actions, in section `[tools]`.
    Use,
}

/// One action of a tool, to be matched against the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Runs this command line.
    Command(&'a str),
    /// Writes this text to the standard input of a background command, which might run it.
    Input(&'a str),
    /// Reads this file or directory.
    Read(&'a WorkspacePath),
    /// Changes this file or directory; `None` if the path is unknown.
    Write(Option<&'a WorkspacePath>),
    /// Sends an HTTP request to this host.
    Fetch {
        /// The host and port that receive the request.
        host: &'a HostAddress,
        /// The HTTP method, such as `GET`.
        method: &'a str,
    },
    /// Connects to this host while a command runs.
    Connect(&'a HostAddress),
    /// Runs the tool, regardless of its actions.
    Use,
}

impl ActionKind {
    /// Returns the name of the policy section for this kind.
    pub fn section(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Read => "read",
            Self::Write => "write",
            Self::Fetch => "fetch",
            Self::Connect => "commands.network",
            Self::Use => "tools",
        }
    }
}

impl Action<'_> {
    /// Returns the kind of this action.
    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Command(_) | Self::Input(_) => ActionKind::Commands,
            Self::Read(_) => ActionKind::Read,
            Self::Write(_) => ActionKind::Write,
            Self::Fetch { .. } => ActionKind::Fetch,
            Self::Connect(_) => ActionKind::Connect,
            Self::Use => ActionKind::Use,
        }
    }
}

impl fmt::Display for Action<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(line) => write!(f, "run `{line}`"),
            Self::Input(text) => write!(f, "send the input `{text}` to a background command"),
            Self::Read(path) => write!(f, "read {path}"),
            Self::Write(Some(path)) => write!(f, "write {path}"),
            Self::Write(None) => f.write_str("write to the workspace"),
            Self::Fetch { host, method } => write!(f, "send a {method} request to {host}"),
            Self::Connect(host) => write!(f, "connect to {host}"),
            Self::Use => f.write_str("run"),
        }
    }
}

impl Effect {
    /// Returns the actions that this effect consists of. All of them have to be allowed.
    pub fn actions(&self) -> Vec<Action<'_>> {
        match self {
            Self::Command { line, .. } => vec![Action::Command(line)],
            Self::Input { ruled, .. } => vec![Action::Input(ruled)],
            Self::Write { changes, confirm } => {
                let known = changes.paths().map(|path| Action::Write(Some(path)));
                // A change always has a path. If one ever had none, it would count as a write to
                // any path.
                let unknown = changes.is_empty().then_some(Action::Write(None));
                known.chain(unknown).chain(confirm.then_some(Action::Use)).collect()
            }
            Self::Fetch { host, method, .. } => vec![Action::Fetch { host, method }],
            Self::Connect { host, .. } => vec![Action::Connect(host)],
            Self::Confirmed => vec![Action::Use],
            // Only the user can accept a plan, so no rule covers it.
            Self::Plan { .. } => Vec::new(),
        }
    }
}
