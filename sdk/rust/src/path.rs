//! A path of the workspace, as an argument of a tool.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A path below the root of the workspace, such as `src/main.rs`.
///
/// Its schema is marked, so that the host refuses paths that leave the workspace, can show them and
/// can order calls by them. Use it for every argument that is a path; it opens as any path does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(transparent)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    /// As the model wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As the lent interfaces want it: the workspace itself, which a model may call `.` or `./`, is
    /// the empty string.
    pub fn below_root(&self) -> &str {
        match self.0.trim_end_matches('/') {
            "" | "." => "",
            _ => &self.0,
        }
    }
}

impl AsRef<Path> for WorkspacePath {
    fn as_ref(&self) -> &Path {
        // To open nothing at all is an error; to open the workspace is what an empty path means.
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
