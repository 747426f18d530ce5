//! What was decided on, and what decided.

use serde::{Deserialize, Serialize};

use crate::policy::{ApprovalMode, Verdict};

/// An effect, by everything that tells it from another, and without the contents of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EffectRecord {
    /// A command line.
    Command {
        /// As it is run.
        line: String,
        /// Where.
        directory: String,
    },
    /// Changes to the workspace.
    Write {
        /// The first ones.
        changes: Vec<PathChangeRecord>,
        /// How many there are besides.
        more: usize,
        /// Whether the tool, or a rule about it, wants each of its calls confirmed.
        confirm: bool,
    },
    /// A request.
    Fetch {
        /// Such as `GET`.
        method: String,
        /// The host, with its port.
        host: String,
        /// The whole address.
        url: String,
    },
    /// Running a tool that wants to be confirmed each time.
    Confirmed,
    /// Ending plan mode.
    Plan {
        /// The plan.
        text: String,
        /// The mode afterwards.
        then: ApprovalMode,
    },
}

/// A change of one path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathChangeRecord {
    /// What happens to it.
    pub act: ChangeAct,
    /// The path.
    pub path: String,
    /// Where it was, of one that is moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where it leads, of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Bytes that it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Bytes that it gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The SHA-256 of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// The kinds of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeAct {
    /// A new file.
    Create,
    /// Another content.
    Modify,
    /// A file goes.
    Delete,
    /// A file comes from elsewhere.
    Move,
    /// A new directory.
    CreateDirectory,
    /// A directory goes.
    RemoveDirectory,
    /// A symbolic link.
    Link,
    /// A symbolic link goes.
    Unlink,
}

/// What decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DecisionAuthority {
    /// A denial.
    Denial {
        /// Its code.
        code: String,
        /// The place of the rule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
        /// In words.
        reason: String,
    },
    /// The user, who approved it or its like. `once`, for a `scope`, or `earlier`.
    User {
        /// Which of these.
        user: String,
        /// What they approved for the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<ApprovedScope>,
        /// What had it asked, of what was approved earlier.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<Box<DecisionAuthority>>,
    },
    /// A rule.
    Rule {
        /// As it is written.
        rule: String,
        /// Where.
        place: String,
    },
    /// A list that it is not on.
    NotListed {
        /// Of which section.
        not_listed: String,
        /// Where.
        place: String,
    },
    /// The mode.
    Mode {
        /// Which.
        mode: ApprovalMode,
    },
    /// That reading is allowed.
    Reading {
        /// That word.
        reading: Verdict,
    },
}

/// What was approved for a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ApprovedScope {
    /// Command lines.
    Command {
        /// Of this tool.
        tool: String,
        /// In this folder.
        directory: String,
        /// Of these words.
        words: Vec<String>,
        /// And any more.
        open: bool,
    },
    /// Writes.
    Write {
        /// Of this tool.
        tool: String,
        /// To this path and below it.
        path: String,
    },
    /// Requests.
    Fetch {
        /// Of this tool.
        tool: String,
        /// By this method.
        method: String,
        /// To this host.
        host: String,
    },
}

impl ChangeAct {
    /// As what somebody does.
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
        }
    }
}
