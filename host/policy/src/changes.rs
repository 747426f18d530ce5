//! The changes of a tool call to the workspace, computed by the host from the files that the call
//! staged. The tool's own description of its changes is never used.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::WorkspacePath;

/// All changes of one call, sorted by path.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct ChangeSet {
    changes: Vec<FileChange>,
    /// The staged files with the new contents that no diff shows.
    #[serde(skip)]
    undiffed: BTreeMap<WorkspacePath, PathBuf>,
}

/// One change to one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// The path that changes.
    pub path: WorkspacePath,
    /// The kind of change, with its details.
    #[serde(flatten)]
    pub kind: ChangeKind,
    /// The unified diff of a text file; `None` if the file is not text or too large to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// The kind of a change to a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Creates a file at a new path.
    Create {
        /// The size and digest of the new content.
        after: ContentDigest,
    },
    /// Replaces the content of a file.
    Modify {
        /// The current size in bytes.
        before: u64,
        /// The size and digest of the new content.
        after: ContentDigest,
    },
    /// Deletes an existing file.
    Delete {
        /// The current size in bytes.
        before: u64,
    },
    /// Moves a file here from another path. Nothing is left at the old path.
    Move {
        /// The path before the move.
        from: WorkspacePath,
        /// The size and digest of the new content.
        after: ContentDigest,
    },
    /// Creates a new directory.
    CreateDirectory,
    /// Removes an empty directory.
    RemoveDirectory,
    /// Creates a symbolic link, or changes the target of an existing one.
    Link {
        /// The target of the link.
        to: String,
    },
    /// Removes a symbolic link.
    Unlink,
    /// Sets the permissions of a file or a directory.
    SetMode {
        /// The permissions before; `None` for a new entry.
        before: Option<u32>,
        /// The permissions after.
        after: u32,
    },
}

/// The size and digest of a file content. A permit covers exactly this content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContentDigest {
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 of the content, in hexadecimal.
    pub digest: String,
}

impl ChangeSet {
    /// Creates a change set and sorts the changes by path.
    pub fn new(mut changes: Vec<FileChange>) -> Self {
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Self { changes, undiffed: BTreeMap::new() }
    }

    /// Adds further changes.
    #[must_use]
    pub fn with_changes(self, more: impl IntoIterator<Item = FileChange>) -> Self {
        let mut changes = self.changes;
        changes.extend(more);
        Self { undiffed: self.undiffed, ..Self::new(changes) }
    }

    /// Adds the staged files with the new contents that no diff shows. These files exist until the
    /// changes are applied or discarded.
    #[must_use]
    pub fn with_undiffed(self, undiffed: BTreeMap<WorkspacePath, PathBuf>) -> Self {
        Self { undiffed, ..self }
    }

    /// Returns the new contents that no diff shows, each with its staged file.
    pub fn undiffed(&self) -> impl Iterator<Item = (&WorkspacePath, &Path)> {
        self.undiffed.iter().map(|(path, file)| (path, file.as_path()))
    }

    /// Returns whether any new content has no diff.
    pub fn has_undiffed(&self) -> bool {
        !self.undiffed.is_empty()
    }

    /// Iterates over the changes in the order of their paths.
    pub fn iter(&self) -> std::slice::Iter<'_, FileChange> {
        self.changes.iter()
    }

    /// Returns the number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns every path that changes, including the old paths of moved files.
    pub fn paths(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.changes.iter().flat_map(|change| {
            let from = match &change.kind {
                ChangeKind::Move { from, .. } => Some(from),
                ChangeKind::Create { .. }
                | ChangeKind::Modify { .. }
                | ChangeKind::Delete { .. }
                | ChangeKind::CreateDirectory
                | ChangeKind::RemoveDirectory => None,
                ChangeKind::Link { .. } | ChangeKind::Unlink | ChangeKind::SetMode { .. } => None,
            };
            std::iter::once(&change.path).chain(from)
        })
    }

    /// Returns whether the changes only write files and create directories. Deletions, moves and
    /// links make it `false`.
    pub fn has_only_writes(&self) -> bool {
        self.changes.iter().all(|change| match change.kind {
            ChangeKind::Create { .. }
            | ChangeKind::Modify { .. }
            | ChangeKind::CreateDirectory
            | ChangeKind::SetMode { .. } => true,
            ChangeKind::Delete { .. }
            | ChangeKind::Move { .. }
            | ChangeKind::RemoveDirectory
            | ChangeKind::Link { .. }
            | ChangeKind::Unlink => false,
        })
    }

    /// Returns the longest path that contains everything written. Directories created as parents of
    /// a file do not count. Returns `None` if that path is the workspace itself, or if nothing
    /// changes.
    pub fn common_path(&self) -> Option<WorkspacePath> {
        let files =
            || self.changes.iter().filter(|change| change.kind != ChangeKind::CreateDirectory);
        let mut paths = if files().next().is_some() {
            files().map(|change| &change.path).collect()
        } else {
            self.paths().collect::<Vec<_>>()
        };
        let first = paths.pop()?.clone();
        paths.into_iter().try_fold(first, |common, path| common.common_ancestor(path))
    }

    /// Returns all text diffs in order, and one line for each change without a diff.
    pub fn diff(&self) -> String {
        self.changes.iter().fold(String::new(), |mut all, change| {
            match &change.diff {
                Some(diff) => all.push_str(diff),
                None => all.push_str(&format!("{change}\n")),
            }
            if !all.ends_with('\n') {
                all.push('\n');
            }
            all
        })
    }
}

impl<'a> IntoIterator for &'a ChangeSet {
    type Item = &'a FileChange;
    type IntoIter = std::slice::Iter<'a, FileChange>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.kind {
            ChangeKind::Create { after } => write!(f, "create {path} ({} bytes)", after.size),
            ChangeKind::Modify { before, after } => {
                write!(f, "change {path} ({before} → {} bytes)", after.size)
            }
            ChangeKind::SetMode { before: Some(before), after } => {
                write!(f, "set permissions of {path} ({before:04o} → {after:04o})")
            }
            ChangeKind::SetMode { before: None, after } => {
                write!(f, "set permissions of {path} ({after:04o})")
            }
            ChangeKind::Delete { before } => write!(f, "delete {path} ({before} bytes)"),
            ChangeKind::Move { from, after } => {
                write!(f, "move {from} to {path} ({} bytes)", after.size)
            }
            ChangeKind::CreateDirectory => write!(f, "create the directory {path}"),
            ChangeKind::RemoveDirectory => write!(f, "remove the directory {path}"),
            ChangeKind::Link { to } => write!(f, "make {path} a symbolic link to {to}"),
            ChangeKind::Unlink => write!(f, "remove the symbolic link {path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, act: ChangeKind) -> FileChange {
        FileChange { path: WorkspacePath::parse(path, None).unwrap(), kind: act, diff: None }
    }

    fn content(size: u64) -> ContentDigest {
        ContentDigest { size, digest: String::new() }
    }

    #[test]
    fn the_common_path_leaves_out_directories_made_on_the_way() {
        let create = |path| change(path, ChangeKind::Create { after: content(1) });
        let common = |changes: Vec<FileChange>| {
            ChangeSet::new(changes).common_path().map(|path| path.as_str().to_owned())
        };
        assert_eq!(
            common(vec![change("a", ChangeKind::CreateDirectory), create("a/b")]),
            Some("a/b".into())
        );
        assert_eq!(common(vec![create("a/b"), create("a/c/d")]), Some("a".into()));
        assert_eq!(common(vec![create("a"), create("b")]), None);
        assert_eq!(common(vec![change("a", ChangeKind::CreateDirectory)]), Some("a".into()));
        assert_eq!(common(vec![]), None);
    }

    #[test]
    fn each_change_has_a_description() {
        let from = WorkspacePath::parse("old", None).unwrap();
        let changes = ChangeSet::new(vec![
            change("a", ChangeKind::Create { after: content(1) }),
            change("b", ChangeKind::Modify { before: 1, after: content(2) }),
            change("c", ChangeKind::Delete { before: 3 }),
            change("d", ChangeKind::Move { from, after: content(4) }),
            change("e", ChangeKind::Link { to: "a".into() }),
        ]);
        insta::assert_snapshot!(changes.diff(), @r"
        create a (1 bytes)
        change b (1 → 2 bytes)
        delete c (3 bytes)
        move old to d (4 bytes)
        make e a symbolic link to a
        ");
        assert!(!changes.has_only_writes());
        assert!(changes.paths().any(|path| path.as_str() == "old"));
    }

    #[test]
    fn contents_without_a_diff_are_listed_with_their_staged_files() {
        let create = change("a", ChangeKind::Create { after: content(1) });
        let (path, file) = (create.path.clone(), PathBuf::from("/staged/1"));
        let changes = ChangeSet::new(vec![create]);
        assert!(!changes.has_undiffed());
        let changes = changes.with_undiffed(BTreeMap::from([(path.clone(), file.clone())]));
        assert!(changes.has_undiffed());
        assert_eq!(changes.undiffed().collect::<Vec<_>>(), [(&path, file.as_path())]);
        assert_eq!(changes.len(), 1, "the changes stay the same");
    }

    #[test]
    fn changes_are_counted() {
        let unlink = |path| change(path, ChangeKind::Unlink);
        let of = |changes: Vec<FileChange>| {
            let changes = ChangeSet::new(changes);
            (changes.len(), changes.is_empty())
        };
        assert_eq!(of(vec![]), (0, true));
        assert_eq!(of(vec![unlink("a")]), (1, false));
        assert_eq!(of(vec![unlink("a"), unlink("b"), unlink("c")]), (3, false));
    }
}
