//! The effects of a tool call, in exactly the form in which they will happen.

use std::fmt;

use serde::Serialize;

use super::{
    ApprovalMode, ChangeKind, ChangeSet, CommandScope, FileChange, HostAddress, SimpleCommand,
    WorkspacePath,
};

/// An effect of a tool call, which needs a permit.
///
/// This enum is closed: code that matches it has to treat each kind of effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Effect {
    /// Runs exactly this command line.
    Command {
        /// The line that `sh -c` receives.
        line: String,
        /// The working directory of the command.
        directory: WorkspacePath,
        /// Whether the command continues after the call, until the session ends.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        background: bool,
    },
    /// Writes exactly this text to the standard input of a background command.
    Input {
        /// The line of the background command.
        line: String,
        /// The text, which a shell or an interpreter could run as code.
        text: String,
        /// The unfinished line that was sent before, followed by the text and without its last line
        /// break. Rules apply to this.
        #[serde(skip)]
        ruled: String,
    },
    /// Applies exactly these changes to the workspace. The changes are staged; the workspace is
    /// still unchanged.
    Write {
        /// The staged changes, never empty: a call without changes needs no permit.
        changes: ChangeSet,
        /// Whether the tool, or a rule about it, requires confirmation of each call.
        confirm: bool,
    },
    /// Sends one HTTP request.
    Fetch {
        /// The HTTP method, such as `GET`.
        method: String,
        /// The host and port that receive the request.
        host: HostAddress,
        /// The complete URL of the request.
        url: String,
    },
    /// Connects to a host while a command runs.
    Connect {
        /// The host and port that the command asked for.
        host: HostAddress,
        /// The line of the command.
        line: String,
    },
    /// Runs a tool that requires confirmation of each call, regardless of its permissions.
    Confirmed,
    /// Accepts this plan, and so ends plan mode.
    Plan {
        /// The plan text, in Markdown.
        text: String,
        /// The mode after the plan is accepted. The authorizer sets it; the value that the tool
        /// proposes is ignored.
        then: ApprovalMode,
    },
}

/// An effect that needs a decision of the user, with all the data for that decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApprovalQuestion {
    /// The name of the tool that proposes the effect.
    pub tool: String,
    /// The arguments of the call, as the model wrote them.
    pub arguments: String,
    /// The effect that the user decides about.
    pub effect: Effect,
    /// The scope that "don't ask again" would allow; `None` if that is not offered.
    pub scope: Option<Scope>,
    /// The rule that "always" would write; `None` if that is not offered.
    pub lasting: Option<LastingRule>,
}

/// A rule that the user can add to their policy file with an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LastingRule {
    /// The host that the rule allows commands to connect to.
    pub host: HostAddress,
    /// The policy file of the user.
    pub file: String,
}

impl fmt::Display for LastingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, file } = self;
        write!(f, "`allow = [\"{host}\"]` under [commands.network] in {file}")
    }
}

/// The effects that a user can approve for the rest of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", content = "of", rename_all = "kebab-case")]
pub enum Scope {
    /// Command lines of this tool in this directory.
    Command {
        /// The name of the tool.
        tool: String,
        /// The working directory. In another directory, the same line can run another program.
        directory: WorkspacePath,
        /// Whether the commands run in the background. Such a command outlives its call and takes
        /// input, so an approval of the one kind does not cover the other.
        background: bool,
        /// The command lines that the scope covers.
        lines: CommandScope,
    },
    /// Writes of this tool at or below this path that neither delete nor move anything.
    Write {
        /// The name of the tool.
        tool: String,
        /// The path of a file or a directory.
        path: WorkspacePath,
    },
    /// HTTP requests of this tool to exactly this host, with this method.
    Fetch {
        /// The name of the tool.
        tool: String,
        /// The HTTP method, such as `GET`.
        method: String,
        /// The host, with its port.
        host: HostAddress,
    },
    /// Connections of all commands to exactly this host and port.
    Connect {
        /// The host, with its port.
        host: HostAddress,
    },
}

impl Effect {
    /// Returns the widest scope that may be remembered for this effect, if any.
    pub fn scope(&self, tool: &str) -> Option<Scope> {
        match self {
            Self::Command { line, directory, background } => {
                let lines = SimpleCommand::parse(line)?.scope();
                Some(Scope::Command {
                    tool: tool.to_owned(),
                    directory: directory.clone(),
                    background: *background,
                    lines,
                })
            }
            // Changes that no diff shows need approval each time.
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
            Self::Connect { host, .. } => Some(Scope::Connect { host: host.clone() }),
            // The same text can mean something else to a program in another state.
            Self::Input { .. } | Self::Confirmed | Self::Plan { .. } => None,
        }
    }
}

impl Scope {
    /// Returns whether this scope, once approved, covers an effect of a tool.
    pub fn covers(&self, tool: &str, effect: &Effect) -> bool {
        match (self, effect) {
            (
                Self::Command { tool: approved, directory: place, background: is_approved, lines },
                Effect::Command { line, directory, background },
            ) => {
                approved == tool
                    && place == directory
                    && is_approved == background
                    && lines.covers(line)
            }
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
            (Self::Connect { host }, Effect::Connect { host: at, .. }) => host == at,
            (
                Self::Command { .. },
                Effect::Input { .. }
                | Effect::Write { .. }
                | Effect::Fetch { .. }
                | Effect::Connect { .. }
                | Effect::Confirmed
                | Effect::Plan { .. },
            )
            | (
                Self::Write { .. },
                Effect::Command { .. }
                | Effect::Input { .. }
                | Effect::Fetch { .. }
                | Effect::Connect { .. }
                | Effect::Confirmed
                | Effect::Plan { .. },
            )
            | (
                Self::Fetch { .. },
                Effect::Command { .. }
                | Effect::Input { .. }
                | Effect::Write { .. }
                | Effect::Connect { .. }
                | Effect::Confirmed
                | Effect::Plan { .. },
            )
            | (
                Self::Connect { .. },
                Effect::Command { .. }
                | Effect::Input { .. }
                | Effect::Write { .. }
                | Effect::Fetch { .. }
                | Effect::Confirmed
                | Effect::Plan { .. },
            ) => false,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { directory, background, lines, .. } => {
                lines.fmt(f)?;
                if !directory.as_str().is_empty() {
                    write!(f, " in {directory}")?;
                }
                if *background { f.write_str(" in the background") } else { Ok(()) }
            }
            Self::Write { tool, path } => write!(f, "{tool} writing {path}"),
            Self::Fetch { tool, method, host } => {
                write!(f, "{method} requests of {tool} to {host}")
            }
            Self::Connect { host } => write!(f, "connections of commands to {host}"),
        }
    }
}

#[cfg(test)]
#[path = "effect_tests.rs"]
mod tests;
