//! Directories of the workspace that commands write directly.

use std::fmt;

use super::{ApprovalPaths, ProtectedPaths, WorkspacePath};
use crate::protected::fold_name;

/// A directory of the workspace that commands write directly, without a private view of it.
///
/// ```
/// use cofferdam_policy::DirectDirectory;
///
/// assert_eq!(DirectDirectory::parse("web/node_modules/").unwrap().as_str(), "web/node_modules");
/// for text in ["", "/target", "../target", "a/./b", "target/*", ".git/objects", ".vscode"] {
///     assert!(DirectDirectory::parse(text).is_err(), "{text}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectDirectory(WorkspacePath);

/// The reason why a text does not name a directory that commands may write directly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDirectDirectory {
    /// The text is not a plain relative path.
    #[error(
        "{0:?} is not a plain directory of the workspace, such as `target/` or `web/node_modules`"
    )]
    NotPlain(String),
    /// The directory is protected, or a part of a repository.
    #[error("{0:?} is protected")]
    Protected(String),
    /// Changes in the directory need approval.
    #[error("{0:?} contains instructions for agents, or files that programs run code from")]
    NeedsApproval(String),
}

impl DirectDirectory {
    /// Parses a relative path of plain names. A slash at the end is optional.
    ///
    /// # Errors
    /// The path has other components or patterns, is on a built-in list of protected paths or of
    /// files that run code, or is in a directory named `.git`.
    pub fn parse(text: &str) -> Result<Self, InvalidDirectDirectory> {
        let owned = || text.to_owned();
        let plain = text.strip_suffix('/').unwrap_or(text);
        let path = WorkspacePath::parse(plain, None)
            .map_err(|_| InvalidDirectDirectory::NotPlain(owned()))?;
        // A normalized path differs if it has empty components, `.` or `..`.
        let is_plain = !plain.is_empty()
            && path.as_str() == plain
            && !plain
                .contains(|c: char| matches!(c, '*' | '?' | '[' | ']' | '\\') || c.is_control());
        if !is_plain {
            return Err(InvalidDirectDirectory::NotPlain(owned()));
        }
        let is_repository = plain.split('/').any(|part| fold_name(part) == ".git");
        if is_repository || ProtectedPaths::default().protection(&path).is_some() {
            return Err(InvalidDirectDirectory::Protected(owned()));
        }
        if ApprovalPaths::default().find_built_in(&path).is_some() {
            return Err(InvalidDirectDirectory::NeedsApproval(owned()));
        }
        Ok(Self(path))
    }

    /// Returns the path relative to the workspace, without a slash at the end.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the path relative to the workspace.
    pub fn path(&self) -> &WorkspacePath {
        &self.0
    }

    /// Returns whether this is `outer` or a directory below it.
    pub fn is_within(&self, outer: &Self) -> bool {
        self.0.is_within(&outer.0)
    }
}

impl fmt::Display for DirectDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_unprotected_directories_are_accepted() {
        for (text, expected) in
            [("target", "target"), ("target/", "target"), ("a b/node_modules", "a b/node_modules")]
        {
            assert_eq!(
                DirectDirectory::parse(text).map(|path| path.to_string()),
                Ok(expected.into())
            );
        }
        for text in [
            "", "/", ".", "./target", "..", "a/..", "a/../b", "a//b", "target//", "/abs", "~/../x",
            "tar*", "t?", "[a]", "a\\b", "a\nb", "a\0b",
        ] {
            let parsed = DirectDirectory::parse(text);
            assert_eq!(parsed, Err(InvalidDirectDirectory::NotPlain(text.into())), "{text:?}");
        }
        for text in [".git", ".GIT", "sub/.git/objects", ".env", ".vscode", "a/.idea"] {
            let parsed = DirectDirectory::parse(text);
            assert_eq!(parsed, Err(InvalidDirectDirectory::Protected(text.into())), "{text:?}");
        }
        for text in [".github/workflows", "AGENTS.md"] {
            let parsed = DirectDirectory::parse(text);
            assert_eq!(parsed, Err(InvalidDirectDirectory::NeedsApproval(text.into())), "{text:?}");
        }
    }

    #[test]
    fn a_directory_is_within_itself_and_those_above() {
        let [outer, inner, beside] =
            ["a/b", "a/b/c", "a/bc"].map(|text| DirectDirectory::parse(text).expect(text));
        assert!(inner.is_within(&outer) && outer.is_within(&outer));
        assert!(!outer.is_within(&inner) && !beside.is_within(&outer));
    }
}
