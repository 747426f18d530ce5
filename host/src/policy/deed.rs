//! What rules are about: the acts of a tool, one by one.

use std::fmt;

use serde::Serialize;

use super::pattern::HostAddress;
use super::{Effect, WorkspacePath};

/// The kinds of acts. Each has its section in a policy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
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
pub enum Deed<'a> {
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

impl Kind {
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

impl Deed<'_> {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Command(_) => Kind::Commands,
            Self::Read(_) => Kind::Read,
            Self::Write(_) => Kind::Write,
            Self::Fetch { .. } => Kind::Fetch,
            Self::Use => Kind::Use,
        }
    }
}

impl fmt::Display for Deed<'_> {
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
    pub fn acts(&self) -> Vec<Deed<'_>> {
        match self {
            Self::Command { line, .. } => vec![Deed::Command(line)],
            Self::Write { changes, confirm } => {
                let known = changes.paths().map(|path| Deed::Write(Some(path)));
                // Nothing changes without a path; should it ever, it is judged as if it were any.
                let unknown = changes.is_empty().then_some(Deed::Write(None));
                known.chain(unknown).chain(confirm.then_some(Deed::Use)).collect()
            }
            Self::Fetch { host, method, .. } => vec![Deed::Fetch { host, method }],
            Self::Confirmed => vec![Deed::Use],
            // Whether a plan is accepted is nobody's to say but the user's: no rule is about it.
            Self::Plan { .. } => Vec::new(),
        }
    }
}
