//! What rules are about: the acts of a tool, one by one.

use std::fmt;

use serde::Serialize;

use super::pattern::HostAddress;
use super::{Effect, WorkspacePath};

/// The kinds of acts. Each has its section in a policy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActionKind {
    /// `[commands]`
    Commands,
    /// `[read]`
    Read,
    /// `[write]`
    Write,
    /// `[fetch]`
    Fetch,
    /// `[tools]`: running a tool at all.
    Use,
}

/// One act, to be held against the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Running this line.
    Command(&'a str),
    /// Reading this file or folder.
    Read(&'a WorkspacePath),
    /// Changing this file or folder; `None` where it is not known which.
    Write(Option<&'a WorkspacePath>),
    /// A request to this host.
    Fetch {
        /// Where to.
        host: &'a HostAddress,
        /// Such as `GET`.
        method: &'a str,
    },
    /// Running the tool at all.
    Use,
}

impl ActionKind {
    /// Its section.
    pub fn section(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Read => "read",
            Self::Write => "write",
            Self::Fetch => "fetch",
            Self::Use => "tools",
        }
    }
}

impl Action<'_> {
    /// Its kind.
    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Command(_) => ActionKind::Commands,
            Self::Read(_) => ActionKind::Read,
            Self::Write(_) => ActionKind::Write,
            Self::Fetch { .. } => ActionKind::Fetch,
            Self::Use => ActionKind::Use,
        }
    }
}

impl fmt::Display for Action<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(line) => write!(f, "run `{line}`"),
            Self::Read(path) => write!(f, "read {path}"),
            Self::Write(Some(path)) => write!(f, "write {path}"),
            Self::Write(None) => f.write_str("write to the workspace"),
            Self::Fetch { host, method } => write!(f, "send a {method} request to {host}"),
            Self::Use => f.write_str("run"),
        }
    }
}

impl Effect {
    /// The acts that an effect consists of. All of them have to be allowed.
    pub fn actions(&self) -> Vec<Action<'_>> {
        match self {
            Self::Command { line, .. } => vec![Action::Command(line)],
            Self::Write { changes, confirm } => {
                let known = changes.paths().map(|path| Action::Write(Some(path)));
                // Nothing changes without a path; should it ever, it is judged as if it were any.
                let unknown = changes.is_empty().then_some(Action::Write(None));
                known.chain(unknown).chain(confirm.then_some(Action::Use)).collect()
            }
            Self::Fetch { host, method, .. } => vec![Action::Fetch { host, method }],
            Self::Confirmed => vec![Action::Use],
            // Whether a plan is accepted is nobody's to say but the user's: no rule is about it.
            Self::Plan { .. } => Vec::new(),
        }
    }
}
