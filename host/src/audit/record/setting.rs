//! What the user has changed, other than by a call.

use serde::{Deserialize, Serialize};

use super::ApprovedScope;
use crate::policy::ApprovalMode;

/// What is another from now on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum SettingChange {
    /// The mode.
    Mode {
        /// The new one.
        mode: ApprovalMode,
    },
    /// The user approved a scope for the session.
    Approved {
        /// Which.
        scope: ApprovedScope,
    },
    /// The user trusted a policy file.
    Trusted {
        /// The file.
        path: String,
        /// The SHA-256 of its content.
        sha256: String,
    },
    /// The user took that back.
    NoLongerTrusted {
        /// The file.
        path: String,
    },
    /// The user accepted a plugin as it is.
    PluginAccepted {
        /// Where it is loaded from.
        path: String,
        /// The SHA-256 of its component.
        sha256: String,
        /// What it asks for beyond what was accepted before, in words.
        wider: Vec<String>,
    },
    /// The user removed a plugin.
    PluginRemoved {
        /// Its name.
        name: String,
        /// Where it was loaded from.
        path: String,
    },
    /// The user takes the last change of a tool back.
    Undo {
        /// The change, by its id; none if it was none but an interrupted one to see to.
        id: Option<String>,
        /// The tool that had made it.
        tool: Option<String>,
        /// The first of its paths.
        paths: Vec<String>,
        /// How many more.
        more: usize,
    },
}
