//! Paths from tools and models, relative to the workspace.
//!
//! This module makes the first check, which results in a helpful error. The sandbox makes the
//! second one: it resolves each component below an open directory, so links and races cannot bypass
//! the check.

use std::fmt;
use std::path::Path;

use serde::Serialize;

/// A path below the workspace, with `/` between its components and no `..`. The workspace itself is
/// the empty path.
///
/// ```
/// use cofferdam_policy::WorkspacePath;
///
/// let path = WorkspacePath::parse("./src//main.rs", None)?;
/// assert_eq!(path.as_str(), "src/main.rs");
/// assert!(WorkspacePath::parse("../secrets", None).is_err());
/// # Ok::<(), cofferdam_policy::PathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct WorkspacePath(String);

/// The reason why a text is not a workspace path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path is absolute. The second field is the relative path to use instead, if there is one.
    #[error(
        "`{0}` is an absolute path; tools take paths relative to the workspace{hint}",
        hint = self.hint()
    )]
    Absolute(String, Option<String>),
    /// The path contains `..` components that leave the workspace.
    #[error("`{0}` is outside the workspace; tools can access only the workspace")]
    EscapesWorkspace(String),
    /// The path contains a NUL byte.
    #[error("the path contains a NUL byte")]
    Nul,
    /// The path is longer than 4096 bytes.
    #[error("the path is longer than 4096 bytes")]
    TooLong,
}

impl PathError {
    fn hint(&self) -> String {
        match self {
            Self::Absolute(_, Some(relative)) => format!(": use `{relative}`"),
            Self::Absolute(_, None) => ", such as `src/main.rs`".to_owned(),
            Self::EscapesWorkspace(_) | Self::Nul | Self::TooLong => String::new(),
        }
    }
}

impl WorkspacePath {
    /// The maximum length in bytes, `PATH_MAX` of Linux.
    const MAX_LEN: usize = 4096;

    /// Returns the root directory of the workspace.
    pub fn root() -> Self {
        Self(String::new())
    }

    /// Parses a path and normalizes its `.`, `..` and empty components. With the absolute path of
    /// the workspace in `workspace`, the error for an absolute path below it suggests the relative
    /// path.
    ///
    /// # Errors
    ///
    /// Returns an error if the path is absolute, leaves the workspace, contains a NUL byte or is
    /// too long.
    pub fn parse(text: &str, workspace: Option<&Path>) -> Result<Self, PathError> {
        if text.contains('\0') {
            return Err(PathError::Nul);
        }
        if text.len() > Self::MAX_LEN {
            return Err(PathError::TooLong);
        }
        if text.starts_with('/') {
            let inside = workspace.and_then(|root| Path::new(text).strip_prefix(root).ok());
            let relative =
                inside.map(|path| path.to_string_lossy()).filter(|path| !path.is_empty());
            return Err(PathError::Absolute(text.to_owned(), relative.map(Into::into)));
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or_else(|| PathError::EscapesWorkspace(text.to_owned()))?;
                }
                name => parts.push(name),
            }
        }
        Ok(Self(parts.join("/")))
    }

    /// Returns the path relative to the workspace, empty for the workspace itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path to open below the workspace directory: `.` for the workspace itself.
    pub fn as_fs_path(&self) -> &str {
        if self.0.is_empty() { "." } else { &self.0 }
    }

    /// Returns whether this path is `outer` or lies below it.
    pub fn is_within(&self, outer: &Self) -> bool {
        outer.0.is_empty()
            || self.0 == outer.0
            || self.0.strip_prefix(&outer.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns the longest path that contains both; `None` if that is the workspace itself.
    pub fn common_ancestor(&self, other: &Self) -> Option<Self> {
        let parts: Vec<&str> = self
            .0
            .split('/')
            .zip(other.0.split('/'))
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a)
            .collect();
        let common = parts.join("/");
        (!common.is_empty()).then_some(Self(common))
    }

    /// Returns whether one path contains the other, so that a change to one can affect the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.is_within(other) || other.is_within(self)
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_fs_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r123_paths_that_leave_the_workspace_are_refused() {
        for text in ["..", "../x", "a/../../x", "../../etc/passwd", "a/b/../../../c"] {
            assert_eq!(
                WorkspacePath::parse(text, None),
                Err(PathError::EscapesWorkspace(text.into())),
                "{text}"
            );
        }
        assert_eq!(WorkspacePath::parse("a\0b", None), Err(PathError::Nul));
        assert_eq!(WorkspacePath::parse(&"x".repeat(5000), None), Err(PathError::TooLong));
    }

    #[test]
    fn r123_an_absolute_path_is_refused_with_the_relative_one_where_there_is_one() {
        let error =
            |text| WorkspacePath::parse(text, Some(Path::new("/home/w"))).unwrap_err().to_string();
        assert!(error("/home/w/src/a.rs").contains("use `src/a.rs`"));
        assert!(error("/etc/passwd").contains("relative to the workspace, such as"));
        assert!(!error("/home/w2/a.rs").contains("use `"));
    }

    #[test]
    fn paths_are_read_once_into_one_form() {
        for (text, read) in
            [("a/b", "a/b"), ("./a//b/", "a/b"), ("a/../b", "b"), ("", ""), (".", ""), ("a/..", "")]
        {
            assert_eq!(WorkspacePath::parse(text, None).unwrap().as_str(), read, "{text}");
        }
    }

    #[test]
    fn r015b_overlap_is_by_parts_not_by_letters() {
        let path = |text| WorkspacePath::parse(text, None).unwrap();
        assert!(path("a").overlaps(&path("a/b")));
        assert!(path("").overlaps(&path("a")));
        assert!(!path("a").overlaps(&path("ab")));
    }

    #[test]
    fn a_path_has_at_most_4096_bytes() {
        assert!(WorkspacePath::parse(&"x".repeat(4096), None).is_ok());
        assert_eq!(WorkspacePath::parse(&"x".repeat(4097), None), Err(PathError::TooLong));
    }
}
