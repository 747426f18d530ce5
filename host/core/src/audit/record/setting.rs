//! Records of changes that the user made outside of tool calls.

use serde::{Deserialize, Serialize};

use super::ApprovedScope;
use crate::policy::ApprovalMode;

/// A setting that the user changed, or a change that the user undid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SettingChange {
    /// The user changed the approval mode.
    Mode {
        /// The new approval mode.
        mode: ApprovalMode,
    },
    /// The user approved a scope for the session.
    Approved {
        /// The approved scope.
        scope: ApprovedScope,
    },
    /// The user trusted a policy file.
    Trusted {
        /// The path of the file.
        path: String,
        /// The SHA-256 of the file's content.
        sha256: String,
    },
    /// The user withdrew the trust in a policy file.
    NoLongerTrusted {
        /// The path of the file.
        path: String,
    },
    /// The user accepted a plugin in its current form.
    PluginAccepted {
        /// The path that the plugin is loaded from.
        path: String,
        /// The SHA-256 of the plugin's component.
        sha256: String,
        /// The permissions beyond those accepted before, as text.
        wider: Vec<String>,
    },
    /// The user removed a plugin.
    PluginRemoved {
        /// The name of the plugin.
        name: String,
        /// The path that the plugin was loaded from.
        path: String,
    },
    /// The user began to undo the last change of a tool. If that failed, a record with
    /// [`Self::UndoFailed`] follows.
    Undo {
        /// The id of the change. `None` if the undo only cleaned up an interrupted change.
        id: Option<String>,
        /// The tool that made the change.
        tool: Option<String>,
        /// The first changed paths.
        paths: Vec<String>,
        /// The number of paths that are not listed.
        more: usize,
    },
    /// The undo that was recorded before this has failed, or was not complete.
    UndoFailed {
        /// The id of the change. `None` if the history has none.
        id: Option<String>,
        /// Why it failed.
        problem: String,
    },
}
