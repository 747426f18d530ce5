//! The verdict of the policy about each changed path.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::MAX_SHOWN_PATH_LEN;
use super::record::file_digest;
use crate::policy::{
    ApprovalPaths, BuiltInList, ChangeKind, CommandChangeVerdict, ContentDigest, Denial,
    DenialCode, FileChange, WorkspacePath,
};
use crate::sandbox::listed_files::{PACKAGE_DIRECTORIES, UNFINISHED};
use crate::terminal_escape::escape_name;
use cofferdam_confine::remove_directory;
use cofferdam_confine::view::{
    CommandChanges, CommandLayer, LayerAction, LayerChange, LayerEntry, LayerEntryKind,
};

/// The number of paths below new directories that one command may have judged.
const MAX_INNER_PATHS: usize = 1_000_000;
/// The number of changes that one dialog shows. More than a person can review.
const MAX_ASKED: usize = 200;
/// The size of the largest files that are compared, in bytes.
const MAX_COMPARED_BYTES: u64 = 1 << 20;

/// A function that judges one change.
pub(super) type Judge<'a> = &'a dyn Fn(&FileChange) -> CommandChangeVerdict;

/// The changes of a command that the approval of the command does not cover.
#[derive(Debug, Default)]
pub(super) struct JudgedChanges {
    /// Those that need an approval of their own.
    pub(super) asked: Vec<RestrictedPath>,
    /// Those that are denied.
    pub(super) discarded: Vec<RestrictedPath>,
    /// Paths that stay as they are, because no change is about them any more; see
    /// [`split`](super::split). The index of their change has no meaning.
    pub(super) kept: Vec<RestrictedPath>,
    /// Notices about accepted changes that deserve a review.
    pub(super) notices: Vec<String>,
}

/// A changed path that is asked about or denied.
#[derive(Clone, Debug)]
pub(super) struct RestrictedPath {
    /// The index of the change to which the path belongs.
    pub(super) change: usize,
    /// The path in the workspace, readable.
    pub(super) path: String,
    /// The path below the new directory of the change; `None` for the change as a whole.
    pub(super) below: Option<PathBuf>,
    /// The kind of the new entry; `None` if the path is removed.
    pub(super) kind: Option<LayerEntryKind>,
    /// Why the change is denied; `None` while it is asked about.
    pub(super) reason: Option<Denial>,
}

impl RestrictedPath {
    /// Returns whether this is an old path below the directory that its change removes.
    pub(super) fn is_old_below(&self, change: &LayerChange) -> bool {
        self.below.is_none() && self.path != change.path
    }

    /// Returns whether two paths are denied for the same reason: by the same rule, or with the same
    /// text. The text about a rule has the path in it.
    pub(super) fn has_same_reason(&self, other: &Self) -> bool {
        match (&self.reason, &other.reason) {
            (Some(Denial { code, place: Some(place), .. }), Some(other)) => {
                *code == other.code && Some(place) == other.place.as_ref()
            }
            (one, other) => one == other,
        }
    }

    /// Removes a path below a new directory from the layer.
    pub(super) fn remove_from(&self, layer: &CommandLayer, change: &LayerChange) -> io::Result<()> {
        let (Some(below), Some(entry)) = (&self.below, change.action.entry()) else {
            return Ok(());
        };
        let path = layer.entry(entry.number).join(below);
        let removed = match self.kind {
            Some(LayerEntryKind::Directory) => remove_directory(&path),
            _ => fs::remove_file(path),
        };
        match removed {
            // A directory above it may be discarded, too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

impl JudgedChanges {
    /// Judges all changes. Blocks the thread.
    ///
    /// # Errors
    /// A new directory cannot be read.
    pub(super) fn judge(
        changes: &CommandChanges,
        workspace: &Path,
        judge: Judge<'_>,
    ) -> io::Result<Self> {
        let mut judged = Self::default();
        let mut left = MAX_INNER_PATHS;
        for (number, change) in changes.changes.iter().enumerate() {
            if !judged.judge_whole(number, change, judge) {
                continue;
            }
            let old = change.action.removes_directory().then(|| workspace.join(&change.path));
            let new = change.action.entry();
            let new = new.filter(|entry| entry.kind == LayerEntryKind::Directory);
            let new = new.map(|entry| changes.layer.entry(entry.number));
            let (path, other) = (&*change.path, (old.as_deref(), new.as_deref()));
            if let Some(top) = &old {
                let tree = ChangedTree { change: number, path, top };
                if let Err(error) = judged.judge_removed(&tree, other.1, &mut left, judge) {
                    judged.discard_unreadable(&tree, &error);
                    continue;
                }
            }
            if let Some(top) = &new {
                let tree = ChangedTree { change: number, path, top };
                if let Err(error) = judged.judge_below(&tree, other.0, &mut left, judge) {
                    judged.discard_unreadable(&tree, &error);
                }
            }
        }
        judged.asked.sort_by_cached_key(|path| weight(&path.path));
        if let Some(rest) = judged.asked.get(MAX_ASKED..) {
            let reason = Denial::without_remedy(
                DenialCode::TooMany,
                format!("one command can change at most {MAX_ASKED} files that need approval."),
            );
            let discard = |path: &RestrictedPath| RestrictedPath {
                reason: Some(reason.clone()),
                ..path.clone()
            };
            judged.discarded.extend(rest.iter().map(discard));
            judged.asked.truncate(MAX_ASKED);
        }
        Ok(judged)
    }

    /// Judges a change as a whole. Returns whether paths below it may be accepted.
    fn judge_whole(&mut self, number: usize, change: &LayerChange, judge: Judge<'_>) -> bool {
        let kind = change.action.entry().map(|entry| entry.kind);
        let restricted = RestrictedPath {
            change: number,
            path: change.path.clone(),
            below: None,
            kind,
            reason: None,
        };
        let Ok(path) = WorkspacePath::parse(&change.path, None) else {
            self.discarded.push(RestrictedPath { reason: Some(invalid_path()), ..restricted });
            return false;
        };
        let file = FileChange { path, kind: change_kind(&change.action), diff: None };
        let is_same = matches!(change.action, LayerAction::Replace { is_same: true, .. });
        let verdict = accept_same(judge(&file), || is_same);
        self.take(restricted, verdict, SpecialDirectory::of(&change.path))
    }

    /// Refuses everything that would be asked about.
    pub(super) fn refuse_asked(&mut self, denial: &Denial) {
        let refuse = |path| RestrictedPath { reason: Some(denial.clone()), ..path };
        self.discarded.extend(std::mem::take(&mut self.asked).into_iter().map(refuse));
    }

    /// Names the changes that are discarded as a whole because of an old path below them.
    pub(super) fn name_whole_changes(&mut self, changes: &[LayerChange]) {
        let mut whole: BTreeMap<usize, RestrictedPath> = BTreeMap::new();
        for path in &self.discarded {
            let Some(change) = changes.get(path.change) else { continue };
            if path.is_old_below(change) && !whole.contains_key(&path.change) {
                let named = RestrictedPath { path: change.path.clone(), ..path.clone() };
                whole.insert(path.change, named);
            }
        }
        for path in &self.discarded {
            let is_named = changes.get(path.change).is_some_and(|change| change.path == path.path);
            if is_named {
                whole.remove(&path.change);
            }
        }
        self.discarded.extend(whole.into_values());
    }

    /// Judges the removal of all paths below an old directory, because removing the directory must
    /// not need less than removing each of them. `new` is the directory that replaces it.
    fn judge_removed(
        &mut self,
        tree: &ChangedTree<'_>,
        new: Option<&Path>,
        left: &mut usize,
        judge: Judge<'_>,
    ) -> io::Result<()> {
        tree.visit(left, |InnerEntry { below, path, kind }| {
            let special = SpecialDirectory::of(&path);
            let parsed = WorkspacePath::parse(&path, None);
            let parsed = parsed.map_err(|_| io::Error::other("a path in it is not valid"))?;
            let file = FileChange { path: parsed, kind: removed_kind(kind), diff: None };
            // Without a kind and a path below, it stands for the change as a whole.
            let change = tree.change;
            let restricted = RestrictedPath { change, path, below: None, kind: None, reason: None };
            let same = || is_same_file(&tree.top.join(&below), new.map(|new| new.join(&below)));
            let verdict = accept_same(judge(&file), same);
            // What is asked about are the files in a directory.
            if kind != LayerEntryKind::Directory
                || matches!(verdict, CommandChangeVerdict::Discard(_))
            {
                self.take(restricted, verdict, special);
            }
            Ok(true)
        })
    }

    /// Judges all paths below a new directory. `old` is the directory that it replaces.
    fn judge_below(
        &mut self,
        tree: &ChangedTree<'_>,
        old: Option<&Path>,
        left: &mut usize,
        judge: Judge<'_>,
    ) -> io::Result<()> {
        tree.visit(left, |InnerEntry { below, path, kind }| {
            let parsed = WorkspacePath::parse(&path, None);
            let special = SpecialDirectory::of(&path);
            let (new, old) = (tree.top.join(&below), old.map(|old| old.join(&below)));
            let restricted = RestrictedPath {
                change: tree.change,
                path,
                below: Some(below),
                kind: Some(kind),
                reason: None,
            };
            let Ok(parsed) = parsed else {
                let reason = Some(invalid_path());
                self.discarded.push(RestrictedPath { reason, ..restricted });
                return Ok(false);
            };
            let file = FileChange { path: parsed, kind: new_kind(kind), diff: None };
            let verdict = accept_same(judge(&file), || is_same_file(&new, old));
            Ok(self.take(restricted, verdict, special))
        })
    }

    /// Takes a verdict. Returns whether paths below this one may be accepted.
    fn take(
        &mut self,
        path: RestrictedPath,
        verdict: CommandChangeVerdict,
        special: Option<SpecialDirectory>,
    ) -> bool {
        match (verdict, special) {
            (CommandChangeVerdict::Accept, _)
            | (
                CommandChangeVerdict::Ask,
                Some(SpecialDirectory::Packages | SpecialDirectory::Repository),
            ) => true,
            // Without these files, git could not finish what it began.
            (CommandChangeVerdict::Ask, Some(SpecialDirectory::UnfinishedOperation)) => {
                self.notices.push(format!(
                    "the command changed {}, from which git runs commands; review it",
                    escape_name(&path.path, MAX_SHOWN_PATH_LEN)
                ));
                true
            }
            (CommandChangeVerdict::Ask, None) => {
                match path.kind {
                    // Of a new directory, the files in it are shown.
                    Some(LayerEntryKind::Directory) => {}
                    Some(LayerEntryKind::Special) => {
                        self.discarded.push(RestrictedPath { reason: Some(not_a_file()), ..path });
                    }
                    _ => self.asked.push(path),
                }
                true
            }
            (CommandChangeVerdict::Discard(reason), _) => {
                self.discarded.push(RestrictedPath { reason: Some(reason), ..path });
                false
            }
        }
    }

    /// Discards a new directory that cannot be judged completely.
    fn discard_unreadable(&mut self, tree: &ChangedTree<'_>, error: &io::Error) {
        self.asked.retain(|path| path.change != tree.change);
        self.discarded.retain(|path| path.change != tree.change);
        let reason = Denial::without_remedy(
            DenialCode::Protected,
            format!("the directory cannot be checked: {error}."),
        );
        self.discarded.push(RestrictedPath {
            change: tree.change,
            path: tree.path.to_owned(),
            below: None,
            kind: Some(LayerEntryKind::Directory),
            reason: Some(reason),
        });
    }
}

/// The order in which changes are shown: what agents obey, hooks, and the rest, outer paths first.
fn weight(path: &str) -> (u8, usize, String) {
    let listed = WorkspacePath::parse(path, None)
        .ok()
        .and_then(|path| ApprovalPaths::default().find_built_in(&path));
    let is_hook = path.split('/').any(|part| {
        part.to_ascii_lowercase().contains("hook") || part.eq_ignore_ascii_case(".husky")
    });
    let kind = match listed {
        Some(listed) if listed.list == BuiltInList::Instructions => 0,
        _ if is_hook => 1,
        _ => 2,
    };
    (kind, path.matches('/').count(), path.to_owned())
}

/// A directory that is new in the layer, or removed from the workspace.
pub(super) struct ChangedTree<'a> {
    pub(super) change: usize,
    /// The path in the workspace.
    pub(super) path: &'a str,
    /// The path at which the directory can be read.
    pub(super) top: &'a Path,
}

/// An entry below such a directory.
pub(super) struct InnerEntry {
    /// The path below the directory.
    pub(super) below: PathBuf,
    /// The path in the workspace, readable. A name that is not UTF-8 is judged by this form.
    pub(super) path: String,
    pub(super) kind: LayerEntryKind,
}

impl ChangedTree<'_> {
    /// Visits the entries below the directory, at most `left`. `visit` returns whether to visit the
    /// entries of a directory, too.
    ///
    /// # Errors
    /// A directory cannot be read, there are too many entries, or `visit` returns an error.
    pub(super) fn visit(
        &self,
        left: &mut usize,
        mut visit: impl FnMut(InnerEntry) -> io::Result<bool>,
    ) -> io::Result<()> {
        let mut pending = vec![PathBuf::new()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(self.top.join(&directory))? {
                let entry = entry?;
                *left = left
                    .checked_sub(1)
                    .ok_or_else(|| io::Error::other("it has too many entries"))?;
                let below = directory.join(entry.file_name());
                let path = format!("{}/{}", self.path, below.to_string_lossy());
                let kind = kind_of(entry.file_type()?);
                let goes_on = visit(InnerEntry { below: below.clone(), path, kind })?;
                if goes_on && kind == LayerEntryKind::Directory {
                    pending.push(below);
                }
            }
        }
        Ok(())
    }
}

/// A directory in which programs create files with listed names as a matter of course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpecialDirectory {
    /// Third-party packages.
    Packages,
    /// The data of a repository. Its settings and hooks are protected.
    Repository,
    /// The state of a git operation that the user has to finish.
    UnfinishedOperation,
}

impl SpecialDirectory {
    fn of(path: &str) -> Option<Self> {
        let mut parts = path.split('/');
        while let Some(part) = parts.next() {
            if PACKAGE_DIRECTORIES.contains(&part) {
                return Some(Self::Packages);
            }
            if part.eq_ignore_ascii_case(".git") {
                let is_unfinished = parts.next().is_some_and(|next| UNFINISHED.contains(&next));
                let found =
                    if is_unfinished { Self::UnfinishedOperation } else { Self::Repository };
                return Some(found);
            }
        }
        None
    }
}

/// Returns whether a path is in a directory in which key files and files with such names are no
/// secrets of the user.
pub(super) fn may_contain_keys(path: &str) -> bool {
    SpecialDirectory::of(path).is_some()
}

/// Returns the verdict about a change that may be none: somebody who is asked would see no
/// difference.
fn accept_same(
    verdict: CommandChangeVerdict,
    is_same: impl FnOnce() -> bool,
) -> CommandChangeVerdict {
    match verdict {
        CommandChangeVerdict::Ask if is_same() => CommandChangeVerdict::Accept,
        verdict => verdict,
    }
}

/// Returns whether two small files have the same content and permissions.
fn is_same_file(one: &Path, other: Option<PathBuf>) -> bool {
    let status = |path: &Path| {
        let found = fs::symlink_metadata(path).ok()?;
        let is_small = found.is_file() && found.len() <= MAX_COMPARED_BYTES;
        is_small.then(|| (found.len(), found.permissions().mode()))
    };
    let Some(other) = other else { return false };
    let digest = |path: &Path| file_digest(path, MAX_COMPARED_BYTES);
    status(one).is_some_and(|found| {
        status(&other) == Some(found) && digest(one).is_some_and(|one| Some(one) == digest(&other))
    })
}

fn not_a_file() -> Denial {
    Denial::without_remedy(DenialCode::Protected, "it is a FIFO, a socket or a device.")
}

fn invalid_path() -> Denial {
    Denial::without_remedy(DenialCode::Protected, "its path is not valid.")
}

pub(super) fn kind_of(kind: fs::FileType) -> LayerEntryKind {
    if kind.is_dir() {
        LayerEntryKind::Directory
    } else if kind.is_symlink() {
        LayerEntryKind::Link
    } else if kind.is_file() {
        LayerEntryKind::File
    } else {
        LayerEntryKind::Special
    }
}

/// Returns the change as the policy sees it. It decides by paths, not by sizes and contents.
fn change_kind(action: &LayerAction) -> ChangeKind {
    match action {
        LayerAction::Create(LayerEntry { kind, .. }) => new_kind(*kind),
        LayerAction::Replace { after: LayerEntry { kind, .. }, .. } => match new_kind(*kind) {
            ChangeKind::Create { after } => ChangeKind::Modify { before: 0, after },
            other => other,
        },
        LayerAction::Remove { before } => removed_kind(*before),
        LayerAction::SetMode { before, after, .. } => {
            ChangeKind::SetMode { before: Some(*before), after: *after }
        }
    }
}

pub(super) fn removed_kind(kind: LayerEntryKind) -> ChangeKind {
    match kind {
        LayerEntryKind::Directory => ChangeKind::RemoveDirectory,
        LayerEntryKind::Link => ChangeKind::Unlink,
        _ => ChangeKind::Delete { before: 0 },
    }
}

pub(super) fn new_kind(kind: LayerEntryKind) -> ChangeKind {
    match kind {
        LayerEntryKind::Directory => ChangeKind::CreateDirectory,
        LayerEntryKind::Link => ChangeKind::Link { to: String::new() },
        _ => ChangeKind::Create { after: ContentDigest { size: 0, digest: String::new() } },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_repositories_are_recognized() {
        for (path, expected) in [
            ("src/AGENTS.md", None),
            ("a/node_modules/b/AGENTS.md", Some(SpecialDirectory::Packages)),
            (".git/refs/heads/AGENTS.md", Some(SpecialDirectory::Repository)),
            ("sub/.GIT/index", Some(SpecialDirectory::Repository)),
            (".git/rebase-merge/git-rebase-todo", Some(SpecialDirectory::UnfinishedOperation)),
            (".gitattributes", None),
        ] {
            assert_eq!(SpecialDirectory::of(path), expected, "{path}");
        }
    }
}
