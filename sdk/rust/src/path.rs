//! A path of the workspace as an argument of a tool.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A path relative to the root of the workspace, such as `src/main.rs`.
///
/// Use it for each argument that is a path. Its schema lets the host reject paths outside the
/// workspace before the call, and decide which calls can run in parallel. It implements
/// `AsRef<Path>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(transparent)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    /// Returns the path as the model wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path for the interfaces of the host, where the empty string is the root of the
    /// workspace. A model may also write `.` or `./` for it.
    pub fn relative_to_root(&self) -> &str {
        match self.0.trim_end_matches('/') {
            "" | "." => "",
            _ => &self.0,
        }
    }
}

impl AsRef<Path> for WorkspacePath {
    fn as_ref(&self) -> &Path {
        // An empty path means the workspace, but cannot be opened.
        Path::new(if self.0.is_empty() { "." } else { &self.0 })
    }
}

impl From<&str> for WorkspacePath {
    fn from(path: &str) -> Self {
        Self(path.to_owned())
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for WorkspacePath {
    fn schema_name() -> Cow<'static, str> {
        "WorkspacePath".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "workspace-path" })
    }
}
