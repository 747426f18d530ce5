//! What a tool is about to do to the outside world, in the very form in which it will be done.

use std::fmt;

use serde::Serialize;

use super::{
    ApprovalMode, ChangeKind, ChangeSet, CommandScope, FileChange, HostAddress, SimpleCommand,
    WorkspacePath,
};

/// An act that needs a permit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Effect {
    /// Run exactly this command line.
    Command {
        /// For `sh -c`.
        line: String,
        /// Where.
        directory: WorkspacePath,
    },
    /// Make exactly these changes to the workspace. They were written aside; nothing has happened
    /// yet.
    Write {
        /// Never empty: what changes nothing needs no permit.
        changes: ChangeSet,
        /// The tool, or a rule about it, wants each of its calls confirmed.
        confirm: bool,
    },
    /// Send a request.
    Fetch {
        /// Such as `GET`.
        method: String,
        /// Where to.
        host: HostAddress,
        /// The whole address.
        url: String,
    },
    /// Run a tool that wants to be confirmed each time, whatever it can do.
    Confirmed,
    /// Accept this plan, and so leave plan mode.
    Plan {
        /// The plan, in Markdown.
        text: String,
        /// The mode that is in force afterwards. Whoever proposes the plan has no say in it: the
        /// judge puts it in.
        then: ApprovalMode,
    },
}

/// An effect that somebody has to decide on, with everything to decide by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApprovalQuestion {
    /// The tool that is about to act.
    pub tool: String,
    /// The arguments of the call, as the model wrote them.
    pub arguments: String,
    /// What will happen.
    pub effect: Effect,
    /// What "don't ask again" would allow; `None` where it is not offered.
    pub scope: Option<Scope>,
}

/// What a user can approve for the rest of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", content = "of", rename_all = "kebab-case")]
pub enum Scope {
    /// Command lines of this tool, in this folder.
    Command {
        /// The tool.
        tool: String,
        /// Where it runs them: the same words are another command elsewhere.
        directory: WorkspacePath,
        /// Which.
        lines: CommandScope,
    },
    /// Writes of this tool to this path, or below it, that neither delete nor move anything.
    Write {
        /// The tool.
        tool: String,
        /// A file or a directory.
        path: WorkspacePath,
    },
    /// Requests of this tool to exactly this host, by this method.
    Fetch {
        /// The tool.
        tool: String,
        /// Such as `GET`.
        method: String,
        /// The host, with its port.
        host: HostAddress,
    },
}

impl Effect {
    /// The widest scope that may be remembered for this effect, if any.
    pub fn scope(&self, tool: &str) -> Option<Scope> {
        match self {
            Self::Command { line, directory } => {
                let lines = SimpleCommand::parse(line)?.scope();
                Some(Scope::Command { tool: tool.to_owned(), directory: directory.clone(), lines })
            }
            // What a diff cannot show is approved each time.
            Self::Write { changes, confirm: false }
                if changes.has_only_writes() && !changes.has_undiffed() =>
            {
                changes.common_path().map(|path| Scope::Write { tool: tool.to_owned(), path })
            }
            Self::Write { .. } => None,
            Self::Fetch { method, host, .. } => Some(Scope::Fetch {
                tool: tool.to_owned(),
                method: method.clone(),
                host: host.clone(),
            }),
            Self::Confirmed | Self::Plan { .. } => None,
        }
    }
}

impl Scope {
    /// Whether this scope, approved before, covers an effect.
    pub fn covers(&self, tool: &str, effect: &Effect) -> bool {
        match (self, effect) {
            (
                Self::Command { tool: approved, directory: place, lines },
                Effect::Command { line, directory },
            ) => approved == tool && place == directory && lines.covers(line),
            (Self::Write { tool: approved, path }, Effect::Write { changes, confirm }) => {
                let covers = |change: &FileChange| {
                    change.kind == ChangeKind::CreateDirectory && path.is_within(&change.path)
                        || change.path.is_within(path)
                };
                !confirm
                    && approved == tool
                    && changes.has_only_writes()
                    && changes.iter().all(covers)
            }
            (
                Self::Fetch { tool: approved, method, host },
                Effect::Fetch { method: asked, host: at, .. },
            ) => approved == tool && method == asked && host == at,
            (
                Self::Command { .. },
                Effect::Write { .. }
                | Effect::Fetch { .. }
                | Effect::Confirmed
                | Effect::Plan { .. },
            )
            | (
                Self::Write { .. },
                Effect::Command { .. }
                | Effect::Fetch { .. }
                | Effect::Confirmed
                | Effect::Plan { .. },
            )
            | (
                Self::Fetch { .. },
                Effect::Command { .. }
                | Effect::Write { .. }
                | Effect::Confirmed
                | Effect::Plan { .. },
            ) => false,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { directory, lines, .. } if directory.as_str().is_empty() => lines.fmt(f),
            Self::Command { directory, lines, .. } => write!(f, "{lines} in {directory}"),
            Self::Write { tool, path } => write!(f, "{tool} writing {path}"),
            Self::Fetch { tool, method, host } => {
                write!(f, "{method} requests of {tool} to {host}")
            }
        }
    }
}
