//! What a call would change in the workspace, as it was computed from what it wrote aside, and not
//! from what it says.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::WorkspacePath;

/// All changes of one call, in the order of their paths.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct ChangeSet {
    changes: Vec<FileChange>,
    /// Where the new contents are that no diff shows.
    #[serde(skip)]
    undiffed: BTreeMap<WorkspacePath, PathBuf>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// What is changed.
    pub path: WorkspacePath,
    /// How.
    #[serde(flatten)]
    pub kind: ChangeKind,
    /// The change of a text as a unified diff; `None` for what is no text, or too large to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// The kinds of change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
pub enum ChangeKind {
    /// A new file.
    Create {
        /// What it will hold.
        after: ContentDigest,
    },
    /// A file gets another content.
    Modify {
        /// Bytes that it has now.
        before: u64,
        /// What it will hold.
        after: ContentDigest,
    },
    /// A file goes.
    Delete {
        /// Bytes that it has now.
        before: u64,
    },
    /// A file comes from another path, which is then free.
    Move {
        /// Where it is now.
        from: WorkspacePath,
        /// What it will hold.
        after: ContentDigest,
    },
    /// A new directory.
    CreateDirectory,
    /// An empty directory goes.
    RemoveDirectory,
    /// A new symbolic link, or an old one with another target.
    Link {
        /// Where it leads.
        to: String,
    },
    /// A symbolic link goes.
    Unlink,
}

/// A content, by its size and its digest: what is permitted is this one and no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContentDigest {
    /// In bytes.
    pub size: u64,
    /// SHA-256, in hexadecimal.
    pub digest: String,
}

impl ChangeSet {
    /// These, put in order.
    pub fn new(mut changes: Vec<FileChange>) -> Self {
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Self { changes, undiffed: BTreeMap::new() }
    }

    /// The same with the files that hold the new contents that no diff shows. These files exist
    /// until the changes are made or dropped.
    #[must_use]
    pub fn with_undiffed(self, undiffed: BTreeMap<WorkspacePath, PathBuf>) -> Self {
        Self { undiffed, ..self }
    }

    /// The new contents that no diff shows, each with the file that holds it.
    pub fn undiffed(&self) -> impl Iterator<Item = (&WorkspacePath, &Path)> {
        self.undiffed.iter().map(|(path, file)| (path, file.as_path()))
    }

    /// Whether there are new contents that no diff shows.
    pub fn has_undiffed(&self) -> bool {
        !self.undiffed.is_empty()
    }

    /// In the order of their paths.
    pub fn iter(&self) -> std::slice::Iter<'_, FileChange> {
        self.changes.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Every path that is not what it was before, the old ones of moved files among them.
    pub fn paths(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.changes.iter().flat_map(|change| {
            let from = match &change.kind {
                ChangeKind::Move { from, .. } => Some(from),
                ChangeKind::Create { .. }
                | ChangeKind::Modify { .. }
                | ChangeKind::Delete { .. }
                | ChangeKind::CreateDirectory
                | ChangeKind::RemoveDirectory => None,
                ChangeKind::Link { .. } | ChangeKind::Unlink => None,
            };
            std::iter::once(&change.path).chain(from)
        })
    }

    /// Whether files are only written and directories made: nothing goes, moves or becomes a link.
    pub fn has_only_writes(&self) -> bool {
        self.changes.iter().all(|change| match change.kind {
            ChangeKind::Create { .. } | ChangeKind::Modify { .. } | ChangeKind::CreateDirectory => {
                true
            }
            ChangeKind::Delete { .. }
            | ChangeKind::Move { .. }
            | ChangeKind::RemoveDirectory
            | ChangeKind::Link { .. }
            | ChangeKind::Unlink => false,
        })
    }

    /// The smallest path that holds everything that is written, apart from directories made on the
    /// way.
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

    /// All text diffs one after the other, and a line for each change that has none.
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
    fn each_change_has_its_words() {
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
}
