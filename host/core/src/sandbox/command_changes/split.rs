//! Keeps the restricted paths of a directory that a command removed or replaced, and accepts the
//! other changes in it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use super::judge::{Judge, JudgedChanges, RestrictedPath};
use crate::policy::{Denial, DenialCode};
use cofferdam_confine::view::{CommandChanges, UnchangedEntry};

/// What happens to changes that need an approval of their own, and to directories with paths that
/// must not change.
pub(super) struct JudgmentScope<'a> {
    /// Why nobody approves such changes; `None` if they can be asked about.
    pub(super) refusal: Option<&'a Denial>,
    /// Whether changes of directories are split, so that only the restricted paths are discarded.
    pub(super) splits: bool,
}

impl JudgedChanges {
    /// Judges all changes. A change of a directory in which an old path must stay becomes changes
    /// of its entries. Blocks the thread.
    ///
    /// # Errors
    /// A directory cannot be read, or an entry cannot be moved.
    pub(super) fn judge_parts(
        changes: &mut CommandChanges,
        workspace: &Path,
        judge: Judge<'_>,
        scope: &JudgmentScope<'_>,
    ) -> io::Result<Self> {
        let mut kept = Vec::new();
        // The directories that cannot be split.
        let mut whole = BTreeSet::new();
        loop {
            let mut judged = Self::judge(changes, workspace, judge)?;
            if let Some(denial) = scope.refusal {
                judged.refuse_asked(denial);
            }
            if !scope.splits || !judged.split(changes, workspace, &mut whole, &mut kept)? {
                judged.name_whole_changes(&changes.changes);
                judged.kept = kept;
                return Ok(judged);
            }
        }
    }

    /// Splits the changes of directories. Returns whether there was one.
    fn split(
        &self,
        changes: &mut CommandChanges,
        workspace: &Path,
        whole: &mut BTreeSet<String>,
        kept: &mut Vec<RestrictedPath>,
    ) -> io::Result<bool> {
        let mut inner: BTreeMap<String, Vec<&RestrictedPath>> = BTreeMap::new();
        for path in &self.discarded {
            let Some(change) = changes.changes.get(path.change) else { continue };
            if path.below.is_none() {
                inner.entry(change.path.clone()).or_default().push(path);
            }
        }
        let mut has_split = false;
        for (directory, paths) in inner {
            let is_refused = paths.iter().any(|path| path.path == directory);
            if is_refused || whole.contains(&directory) {
                continue;
            }
            let found = changes.changes.binary_search_by(|one| one.path.cmp(&directory));
            let Ok(number) = found else { continue };
            let names: BTreeSet<String> = paths.iter().map(|path| path.path.clone()).collect();
            let Some(unchanged) = changes.split(number, workspace, &names)? else {
                // All of it is discarded and named.
                whole.insert(directory);
                continue;
            };
            has_split = true;
            let keep =
                |path: &RestrictedPath| RestrictedPath { change: usize::MAX, ..path.clone() };
            kept.extend(paths.into_iter().map(keep));
            kept.extend(unchanged.into_iter().map(describe_unchanged));
        }
        Ok(has_split)
    }
}

fn describe_unchanged(entry: UnchangedEntry) -> RestrictedPath {
    let UnchangedEntry { path, reason, .. } = entry;
    RestrictedPath {
        change: usize::MAX,
        path,
        below: None,
        kind: None,
        reason: Some(Denial::without_remedy(DenialCode::Protected, format!("{reason}."))),
    }
}
