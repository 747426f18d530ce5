//! Restores the old contents of a record. A failure at one path does not stop the others.

use std::collections::BTreeSet;
use std::io;

use cap_std::fs::{Dir, MetadataExt as _};

use super::commit::{self, CommitStepFault, CommittedNewFile};
use super::file_state::FileState;
use super::record::{ChangeRecordFile, RecordedState, StagedPathChange};
use crate::sandbox::rooted_fs;

/// The paths of a change to restore.
#[derive(Clone, Copy, Debug)]
pub(super) enum UndoScope<'a> {
    /// The paths that a failed commit has reached, by number.
    Applied(&'a BTreeSet<usize>),
    /// The paths that are absent or in the state that the change left. Other states are newer work.
    Unmodified,
    /// All paths, together with removed parent directories.
    All,
}

/// The outcome of a restore. All paths that are not listed have their old state again.
#[derive(Debug, Default)]
pub(super) struct RestoreReport {
    /// Directories of the change that remain, because others use them now.
    pub(super) remaining: Vec<String>,
    pub(super) failed: Vec<FailedRestore>,
}

/// A path that could not be restored.
#[derive(Debug)]
pub(super) struct FailedRestore {
    pub(super) path: String,
    reason: String,
}

impl RestoreReport {
    /// Describes all failures in one line.
    pub(super) fn describe_failures(&self) -> String {
        self.failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl std::fmt::Display for FailedRestore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` {}", self.path, self.reason)
    }
}

/// A path to restore, with its current state.
struct RestoreStep<'a> {
    number: usize,
    change: &'a StagedPathChange,
    current: FileState,
}

impl ChangeRecordFile {
    /// Restores the paths and deletes the record. If something fails, the record keeps the paths
    /// that were not restored.
    pub(super) fn roll_back(
        &mut self,
        root: &Dir,
        scope: UndoScope<'_>,
    ) -> io::Result<RestoreReport> {
        let mut report = RestoreReport::default();
        let mut steps = self.collect_steps(root, scope, &mut report);
        // The entries of a directory are removed before it and restored after it.
        steps.reverse();
        steps.retain(|step| step.clear_path(root, &mut report));
        for step in &sort_for_restore(steps) {
            if matches!(scope, UndoScope::All) && step.change.before != RecordedState::Nothing {
                create_parents(root, &step.change.place);
            }
            if let Err(fault) = self.restore_step(root, step, scope) {
                report.add_failure(&step.change.place, &fault.to_string());
            }
        }
        self.restore_rights(root, scope);
        // The files are visible to other programs already; only a crash of the machine could lose
        // them.
        let _ = commit::sync_parents(
            root,
            self.manifest.places.iter().map(|place| place.place.as_str()),
        );
        if report.failed.is_empty() {
            self.delete()?;
        } else {
            self.manifest
                .places
                .retain(|place| report.failed.iter().any(|failed| failed.path == place.place));
        }
        Ok(report)
    }

    /// Sets the permissions of restored directories after their entries. Includes directories that
    /// an interrupted restore has created.
    fn restore_rights(&self, root: &Dir, scope: UndoScope<'_>) {
        for (number, place) in self.manifest.places.iter().enumerate().rev() {
            let has_gone =
                !matches!(scope, UndoScope::Applied(reached) if !reached.contains(&number));
            if has_gone && let Some(mut rights) = place.before.directory_rights() {
                if !matches!(scope, UndoScope::Applied(_)) {
                    let Ok(Some(now)) = rooted_fs::find_metadata(root, &place.place) else {
                        continue;
                    };
                    let owner = (now.uid(), now.gid());
                    rights = rights.limited(workspace_owner(root), Some(owner));
                }
                // It is there or it has failed already; what it holds counts for more than who may
                // look into it.
                let _ = commit::set_rights(root, &place.place, rights);
            }
        }
    }

    /// Returns what prevents a restore, so that it is known before anything is touched.
    pub(super) fn obstacles(&self, root: &Dir, force: bool) -> Vec<String> {
        let mut report = RestoreReport::default();
        let steps = self.collect_steps(
            root,
            if force { UndoScope::All } else { UndoScope::Unmodified },
            &mut report,
        );
        let comes_back = |place: &str| {
            self.manifest
                .places
                .iter()
                .any(|other| other.place == place && other.before.is_directory())
        };
        for RestoreStep { change: place, current: now, .. } in &steps {
            let parent = rooted_fs::split(&place.place).0;
            match FileState::read(root, parent) {
                _ if comes_back(parent) => {}
                Ok(FileState::Directory(..)) => {
                    if let Err(error) = rooted_fs::check_writable(root, parent) {
                        report.add_failure(&place.place, &format!("cannot be restored ({error})"));
                    }
                }
                Ok(FileState::Absent) if force => {}
                Ok(
                    FileState::Absent
                    | FileState::File(_)
                    | FileState::Link(_)
                    | FileState::Special,
                )
                | Err(_) => {
                    report.add_failure(
                        &place.place,
                        &format!("cannot be restored, because `{parent}` is no longer a directory"),
                    );
                }
            }
            if let Err(error) = self.check_backup(&place.before) {
                report.add_failure(
                    &place.place,
                    &format!("cannot be restored, because its backup is lost ({error})"),
                );
            }
            let gives_way = place.before != RecordedState::Nothing
                && !place.before.is_directory()
                && matches!(now, FileState::Directory(..));
            if gives_way && let Some(name) = self.find_unknown_entry(root, &place.place) {
                report.add_failure(
                    &place.place,
                    &format!("cannot be restored, because a directory with `{name}` has its path"),
                );
            }
        }
        report.failed.iter().map(ToString::to_string).collect()
    }

    /// Returns a name in a directory that does not belong to this record.
    fn find_unknown_entry(&self, root: &Dir, place: &str) -> Option<String> {
        let names = rooted_fs::list(root, place).ok()?;
        let foreign = |name: &String| {
            self.manifest.places.iter().all(|ours| ours.place != rooted_fs::join(place, name))
        };
        names
            .into_iter()
            .map(|entry| {
                entry.map_or_else(|_| "a name that is not UTF-8".to_owned(), |(name, _)| name)
            })
            .find(foreign)
    }

    /// Returns the paths that are not in their old state.
    fn collect_steps(
        &self,
        root: &Dir,
        scope: UndoScope<'_>,
        report: &mut RestoreReport,
    ) -> Vec<RestoreStep<'_>> {
        let mut steps = Vec::new();
        for (number, place) in self.manifest.places.iter().enumerate() {
            self.remove_temporary(root, &place.place, number);
            if matches!(scope, UndoScope::Applied(reached) if !reached.contains(&number)) {
                continue;
            }
            let now = match FileState::read(root, &place.place) {
                Ok(now) => now,
                Err(error) => {
                    report.add_failure(&place.place, &format!("cannot be inspected ({error})"));
                    continue;
                }
            };
            match (RecordedState::from_file_state(root, &place.place, &now), scope) {
                (Ok(held), _) if held.has_same_content(&place.before) => continue,
                (Ok(held), UndoScope::Applied(_) | UndoScope::Unmodified)
                    if held != RecordedState::Nothing && !held.has_same_content(&place.after) =>
                {
                    report.add_failure(&place.place, "was changed by another process");
                    continue;
                }
                (Err(error), UndoScope::Applied(_) | UndoScope::Unmodified) => {
                    report.add_failure(&place.place, &format!("cannot be read ({error})"));
                    continue;
                }
                (Ok(_) | Err(_), _) => {}
            }
            steps.push(RestoreStep { number, change: place, current: now });
        }
        steps
    }

    fn restore_step(
        &self,
        root: &Dir,
        step: &RestoreStep<'_>,
        which: UndoScope<'_>,
    ) -> Result<(), CommitStepFault> {
        let (place, name) = (step.change.place.as_str(), self.temporary_name(step.number));
        let there = if step.change.is_replaced_in_place(&step.current) {
            &step.current
        } else {
            &FileState::Absent
        };
        match &step.change.before {
            RecordedState::Nothing | RecordedState::Special => Ok(()),
            RecordedState::Directory { mode, .. } => {
                commit::create_directory(root, place, mode.is_some())
            }
            RecordedState::Link { to } => commit::create_link(root, place, to, &name, there),
            RecordedState::File { digest, kept: Some(kept) } => {
                let data = self.directory().join(&kept.name);
                drop(self.open_backup(kept)?);
                // A change leaves them as they are, so that others are somebody else's doing.
                let rights = match (there, which) {
                    (FileState::File(stamp), _) => stamp.rights,
                    // This process has just seen them.
                    (_, UndoScope::Applied(_)) => kept.rights,
                    (_, UndoScope::Unmodified | UndoScope::All) => {
                        kept.rights.limited(workspace_owner(root), None)
                    }
                };
                let file = CommittedNewFile { data: &data, digest, rights: Some(rights) };
                commit::write(root, place, &file, &name, there).map(drop)
            }
            RecordedState::File { kept: None, .. } => {
                Err(io::Error::other("the record does not contain the old content").into())
            }
        }
    }

    /// Removes the temporary file that a crash left next to a path.
    fn remove_temporary(&self, root: &Dir, place: &str, number: usize) {
        if let Ok(parent) = rooted_fs::open_dir(root, rooted_fs::split(place).0) {
            // Usually there is none.
            let _ = rustix::fs::unlinkat(
                &parent,
                self.temporary_name(number),
                rustix::fs::AtFlags::empty(),
            );
        }
    }
}

impl RestoreStep<'_> {
    /// Removes the current state. Returns whether the old state is still to be restored.
    fn clear_path(&self, root: &Dir, report: &mut RestoreReport) -> bool {
        if self.current == FileState::Absent || self.change.is_replaced_in_place(&self.current) {
            return true;
        }
        match commit::remove(root, &self.change.place, &self.current) {
            Ok(()) => true,
            Err(CommitStepFault::NotEmpty) if self.change.before == RecordedState::Nothing => {
                report.remaining.push(self.change.place.clone());
                false
            }
            Err(fault) => {
                report.add_failure(&self.change.place, &fault.to_string());
                false
            }
        }
    }
}

impl StagedPathChange {
    /// Returns whether one rename replaces the current file or link with the old one.
    fn is_replaced_in_place(&self, now: &FileState) -> bool {
        let is_file = |held: &RecordedState| {
            matches!(held, RecordedState::File { .. } | RecordedState::Link { .. })
        };
        is_file(&self.before) && matches!(now, FileState::File(_) | FileState::Link(_))
    }
}

/// Sorts the steps of a restore. Replaced files are restored in reverse order: at no moment does
/// that take more disk space than the change did, and a full disk may be the reason for the
/// restore. Removed files follow in their original order.
fn sort_for_restore(backwards: Vec<RestoreStep<'_>>) -> Vec<RestoreStep<'_>> {
    let (mut steps, mut removed): (Vec<_>, Vec<_>) =
        backwards.into_iter().partition(|step| step.change.is_replaced_in_place(&step.current));
    removed.reverse();
    steps.append(&mut removed);
    steps
}

impl RestoreReport {
    pub(super) fn add_failure(&mut self, place: &str, reason: &str) {
        self.failed.push(FailedRestore { path: place.to_owned(), reason: reason.to_owned() });
    }
}

/// Creates the missing parent directories of a path. Errors are reported by the step that needs
/// them.
fn create_parents(root: &Dir, place: &str) {
    for (end, _) in place.match_indices('/') {
        let _ = commit::create_directory(root, &place[..end], false);
    }
}

/// Who owns the directory of the workspace.
fn workspace_owner(root: &Dir) -> Option<u32> {
    root.dir_metadata().ok().map(|metadata| metadata.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_files_are_restored_in_reverse_order() {
        let link = || RecordedState::Link { to: "old".into() };
        let directory = || RecordedState::Directory { mode: None, owner: None };
        let held = [("a", link()), ("b", link()), ("d", directory()), ("d/x", link())];
        let places = held.map(|(place, before)| StagedPathChange {
            place: place.into(),
            before,
            after: RecordedState::Nothing,
        });
        let is_there = |place: &StagedPathChange| matches!(place.place.as_str(), "a" | "b");
        let now = |place: &StagedPathChange| {
            if is_there(place) { FileState::Link("new".into()) } else { FileState::Absent }
        };
        let steps = places.iter().enumerate().rev().map(|(number, place)| RestoreStep {
            number,
            change: place,
            current: now(place),
        });
        let order: Vec<&str> = sort_for_restore(steps.collect())
            .iter()
            .map(|step| step.change.place.as_str())
            .collect();
        assert_eq!(order, ["b", "a", "d", "d/x"]);
    }
}
