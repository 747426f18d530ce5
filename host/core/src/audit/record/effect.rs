//! Records of effects, of the decisions about them, and of the reasons for these decisions.

use serde::{Deserialize, Serialize};

use crate::policy::{ApprovalMode, Verdict};

/// An effect with everything that identifies it, except the contents of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EffectRecord {
    /// A tool wants to run a command line.
    Command {
        /// The command line as it is run.
        line: String,
        /// The working directory.
        directory: String,
        /// Whether the command continues after the call.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        background: bool,
    },
    /// A tool wants to write to the standard input of a background command.
    Input {
        /// The line of the background command.
        line: String,
        /// The text.
        text: String,
    },
    /// A tool wants to change files of the workspace.
    Write {
        /// The first changes.
        changes: Vec<PathChangeRecord>,
        /// The number of changes that are not listed.
        more: usize,
        /// Whether the tool, or a rule about it, requires approval of each call.
        confirm: bool,
    },
    /// A tool wants to send an HTTP request.
    Fetch {
        /// The HTTP method, such as `GET`.
        method: String,
        /// The host with its port.
        host: String,
        /// The complete URL.
        url: String,
    },
    /// A command wants to connect to a host.
    Connect {
        /// The host with its port.
        host: String,
        /// The line of the command.
        line: String,
    },
    /// A tool that requires approval of each call wants to run.
    Confirmed,
    /// A tool wants to end plan mode.
    Plan {
        /// The text of the plan.
        text: String,
        /// The approval mode after the plan is approved.
        then: ApprovalMode,
    },
}

/// A change of one path in the workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PathChangeRecord {
    /// The kind of the change.
    pub act: ChangeAct,
    /// The path that changes.
    pub path: String,
    /// The old path of a moved file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The target of a symbolic link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The size before the change, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// The size after the change, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The SHA-256 of the content after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The permissions before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_before: Option<u32>,
    /// The permissions after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// The kind of change to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ChangeAct {
    /// A file is created.
    Create,
    /// The content of a file is replaced.
    Modify,
    /// A file is deleted.
    Delete,
    /// A file is moved here from another path.
    Move,
    /// A directory is created.
    CreateDirectory,
    /// A directory is removed.
    RemoveDirectory,
    /// A symbolic link is created.
    Link,
    /// A symbolic link is removed.
    Unlink,
    /// A file or a directory gets other permissions.
    SetMode,
}

/// The rule, mode, list or person that a decision is based on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum DecisionAuthority {
    /// A denial with its reason.
    Denial {
        /// The code of the denial, such as `mode`.
        code: String,
        /// The location of the rule that denied the effect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
        /// The reason as text.
        reason: String,
    },
    /// The approval of the user.
    User {
        /// `once`, `scope` (for the session), `always` (with a rule), or `earlier` (an earlier
        /// approval covers the effect).
        user: String,
        /// The scope that the user approved for the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<ApprovedScope>,
        /// The reason why an approval was needed, if it was given earlier.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<Box<DecisionAuthority>>,
    },
    /// A rule of the policy or of a built-in list.
    Rule {
        /// The rule as it is written.
        rule: String,
        /// The location of the rule.
        place: String,
    },
    /// An `allow` list that does not contain the effect.
    NotListed {
        /// The section of the list.
        not_listed: String,
        /// The location of the list.
        place: String,
    },
    /// The approval mode alone decides.
    Mode {
        /// The approval mode in force.
        mode: ApprovalMode,
    },
    /// Reading is allowed by default.
    Reading {
        /// The verdict, which is always `allow`.
        reading: Verdict,
    },
}

/// A scope that the user approved for the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ApprovedScope {
    /// Command lines of a tool.
    Command {
        /// The name of the tool.
        tool: String,
        /// The working directory.
        directory: String,
        /// Whether the commands run in the background.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        background: bool,
        /// The words of the command line, or its first words.
        words: Vec<String>,
        /// Whether more words may follow.
        open: bool,
    },
    /// Writes of a tool below a path.
    Write {
        /// The name of the tool.
        tool: String,
        /// The path; the approval covers it and everything below it.
        path: String,
    },
    /// HTTP requests of a tool to a host.
    Fetch {
        /// The name of the tool.
        tool: String,
        /// The HTTP method.
        method: String,
        /// The host with its port.
        host: String,
    },
    /// Connections of commands to a host.
    Connect {
        /// The host with its port.
        host: String,
    },
}

impl ChangeAct {
    /// Returns the change as an English verb phrase, such as `make the directory`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Modify => "modify",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::CreateDirectory => "make the directory",
            Self::RemoveDirectory => "remove the directory",
            Self::Link => "link",
            Self::Unlink => "unlink",
            Self::SetMode => "set permissions of",
        }
    }
}
