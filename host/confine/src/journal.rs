//! The on-disk record of a running command and of the protected paths before it.
//!
//! If all processes around the command are killed, the next process to find the record kills the
//! remaining processes of the command and restores the paths.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::protection_rounds::{RestoredPaths, restore_missing_files, restore_protected_paths};
use super::protocol::{SupervisedView, SupervisorRequest};
use super::queue;
use super::snapshot::{ProtectedSnapshot, ProtectionError, SavedPath, SavedSnapshot};
use crate::os;
use crate::own_file;
use cofferdam_policy::{ProtectedPaths, SandboxLevel};

/// The maximum size of a record, in bytes: the encoded contents of protected files, and their
/// paths.
const LARGEST: u64 = 256 << 20;

/// The maximum size of a file with pending notices, in bytes.
const MAX_TOLD_SIZE: u64 = 4 << 20;

/// The extension of a file with pending notices.
const TOLD: &str = "told";

/// The extension of a record whose files could not be restored yet, with a number.
const UNRESTORED: &str = "unrestored";

/// The maximum number of records of one workspace whose files could not be restored yet.
const MAX_UNRESTORED: usize = 16;

/// The contents of the record of one command.
#[derive(Debug, Serialize, Deserialize)]
struct UnfinishedRun {
    workspace: SavedPath,
    /// The creation time of the workspace, which distinguishes it from a later directory with the
    /// same inode.
    born: Option<SystemTime>,
    /// The private directory of the command, which the environment of its processes names.
    temporary: SavedPath,
    supervisor: u32,
    keeping: bool,
    protected: ProtectedPaths,
    before: SavedSnapshot,
}

/// The place of the record of a workspace, known before an overlay covers the workspace.
#[derive(Debug)]
pub(super) struct JournalPlace {
    path: PathBuf,
    born: Option<SystemTime>,
}

impl JournalPlace {
    /// Returns the place for a workspace.
    ///
    /// # Errors
    /// The workspace cannot be read.
    pub(super) fn of(order: &SupervisorRequest) -> io::Result<Self> {
        let path = path_of(&order.set_aside, &order.workspace)?;
        Ok(Self { path, born: born(&order.workspace) })
    }
}

/// The record file of a running command.
#[derive(Debug)]
pub(super) struct RestoreJournal(PathBuf);

/// Returns the process whose end the guard notices. With a layer, this process is its child.
fn supervisor_id(order: &SupervisorRequest) -> u32 {
    match &order.view {
        SupervisedView::Layer(_) => std::os::unix::process::parent_id(),
        SupervisedView::Direct | SupervisedView::ReadOnly => std::process::id(),
    }
}

impl RestoreJournal {
    /// Writes the record before the command starts.
    pub(super) fn begin(
        place: &JournalPlace,
        order: &SupervisorRequest,
        temporary: &Path,
        protected: &ProtectedPaths,
        before: &ProtectedSnapshot,
    ) -> io::Result<Self> {
        let folder = folder_of(&order.set_aside);
        own_file::create_dir_io(&order.set_aside)?;
        own_file::create_dir_io(&folder)?;
        let unfinished = UnfinishedRun {
            workspace: SavedPath::of(&order.workspace),
            born: place.born,
            temporary: SavedPath::of(temporary),
            supervisor: supervisor_id(order),
            keeping: order.level != SandboxLevel::Full,
            protected: protected.clone(),
            before: SavedSnapshot::of(before),
        };
        // Only this user can read the file.
        let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(&folder)?;
        file.write_all(&serde_json::to_vec(&unfinished)?)?;
        file.persist(&place.path)?;
        Ok(Self(place.path.clone()))
    }

    /// Removes the record after everything is restored.
    pub(super) fn end(self) -> io::Result<()> {
        fs::remove_file(&self.0)
    }

    /// Keeps the record, because some files could not be restored. Returns the notice.
    pub(super) fn keep_unrestored(self) -> String {
        keep_unrestored(&self.0)
    }
}

/// Keeps a record for the next command, beside those of earlier commands. Returns the notice.
///
/// A new name needs no space on the disk, which is full in most of these cases.
fn keep_unrestored(record: &Path) -> String {
    let Some(kept) = unrestored_paths(record).find(|path| !path.exists()) else {
        return format!(
            "the original files are lost when the next command starts, because {MAX_UNRESTORED} \
                earlier commands also left files that cannot be restored\nhint: copy the record {}",
            record.display()
        );
    };
    match fs::rename(record, &kept) {
        Ok(()) => format!(
            "the original files are kept in {}, and the next command here tries again to restore \
                them",
            kept.display()
        ),
        Err(error) => {
            format!(
                "the original files are only in {}, which stays there: {error}",
                record.display()
            )
        }
    }
}

/// Returns the places of the records of a workspace whose files could not be restored yet.
fn unrestored_paths(record: &Path) -> impl Iterator<Item = PathBuf> {
    (0..MAX_UNRESTORED).map(|number| record.with_extension(format!("{UNRESTORED}-{number}")))
}

/// Restores the files of earlier commands that could not be restored when these ended, unless
/// somebody has created them since. Returns the notices.
fn retry_unrestored(record: &Path, set_aside: &Path, workspace: &Path) -> Vec<String> {
    let mut notices = Vec::new();
    for path in unrestored_paths(record) {
        let Ok(Some(unfinished)) = read(&path) else { continue };
        if unfinished.born != born(workspace) {
            // The workspace is gone, and another directory reuses its inode.
            let _ = fs::remove_file(&path);
            continue;
        }
        let Some(before) = unfinished.before.restore() else { continue };
        match restore_missing_files((workspace, set_aside), &before) {
            Ok((is_complete, restored)) => {
                notices.extend(restored);
                let removed = if is_complete { fs::remove_file(&path) } else { Ok(()) };
                notices.extend(
                    removed.err().map(|error| format!("cannot remove {}: {error}", path.display())),
                );
            }
            Err(error) => notices.push(format!("cannot restore the protected paths: {error}")),
        }
    }
    notices
}

/// Restores what an unfinished command changed in a workspace, and returns the notices.
///
/// The caller must hold the turn of the workspace.
pub(super) fn recover(set_aside: &Path, workspace: &Path) -> Vec<String> {
    match check_directories(set_aside) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(error) => return vec![describe_unusable_records(&error)],
    }
    let Ok(path) = path_of(set_aside, workspace) else { return Vec::new() };
    let mut saved = take_told(&path);
    saved.extend(retry_unrestored(&path, set_aside, workspace));
    let unfinished = match read(&path) {
        Ok(Some(unfinished)) if unfinished.born == born(workspace) => unfinished,
        Ok(Some(_)) => {
            // The workspace is gone, and another directory reuses its inode.
            let _ = fs::remove_file(&path);
            return saved;
        }
        Ok(None) => return saved,
        Err(problem) => {
            let kept = path.with_extension("unreadable");
            let moved = fs::rename(&path, &kept);
            let is = if moved.is_ok() {
                format!("the record was moved to {}", kept.display())
            } else {
                "the record stays there".to_owned()
            };
            return vec![format!(
                "a command in this workspace was interrupted, and its changes to protected paths \
                    cannot be undone: {}: {problem}; {is}\nhint: check `.git/hooks` and other \
                    files that programs run for changes",
                path.display()
            )];
        }
    };
    let done = finish(&unfinished, set_aside, workspace);
    let end = match &done {
        Ok(restored) if !restored.has_unrestored => "; its protected paths are now restored",
        Ok(_) | Err(_) => "",
    };
    let mut remarks = match done {
        Ok(RestoredPaths { notices, has_unrestored: true, .. }) => {
            notices.into_iter().chain([keep_unrestored(&path)]).collect()
        }
        Ok(RestoredPaths { notices, .. }) => {
            let removed = fs::remove_file(&path)
                .map_err(|error| format!("cannot remove {}: {error}", path.display()));
            notices.into_iter().chain(removed.err()).collect()
        }
        Err(problem) => {
            vec![format!("cannot restore the protected paths: {problem}")]
        }
    };
    if !remarks.is_empty() {
        remarks.insert(
            0,
            format!(
                "an earlier command in this workspace was interrupted because Cofferdam ended{end}"
            ),
        );
    }
    saved.into_iter().chain(remarks).collect()
}

fn finish(
    unfinished: &UnfinishedRun,
    set_aside: &Path,
    workspace: &Path,
) -> Result<RestoredPaths, ProtectionError> {
    let before = unfinished.before.restore().ok_or(ProtectionError::DamagedRecord)?;
    let temporary = unfinished.temporary.path().ok_or(ProtectionError::DamagedRecord)?;
    let ended = os::end_processes_of(&temporary);
    let mut restored = restore_protected_paths(
        (workspace, set_aside),
        &unfinished.protected,
        unfinished.keeping,
        &before,
        None,
        Duration::ZERO,
    )?;
    restored.notices.extend(ended.err().map(|remaining| remaining.to_string()));
    Ok(restored)
}

/// Recovers a workspace and those above and below it, except where a command is running. Does not
/// wait.
pub(super) fn recover_if_idle(set_aside: &Path, workspace: &Path) -> Vec<String> {
    match check_directories(set_aside) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(error) => return vec![describe_unusable_records(&error)],
    }
    let is_related = |other: &PathBuf| other.starts_with(workspace) || workspace.starts_with(other);
    let records = fs::read_dir(folder_of(set_aside))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| read(&entry.path()).ok()?);
    let mut workspaces: Vec<PathBuf> =
        records.filter_map(|unfinished| unfinished.workspace.path()).filter(is_related).collect();
    if path_of(set_aside, workspace).is_ok_and(|path| {
        path.exists()
            || path.with_extension(TOLD).exists()
            || unrestored_paths(&path).any(|path| path.exists())
    }) {
        workspaces.push(workspace.to_owned());
    }
    let recovered = workspaces.into_iter().flat_map(|workspace| {
        match queue::wait_for_turn(&workspace, set_aside, || false) {
            Ok(Some(_turn)) => recover(set_aside, &workspace),
            // The process that holds the turn recovers the workspace. A workspace that is gone
            // needs no recovery.
            Ok(None) | Err(_) => Vec::new(),
        }
    });
    recovered.collect()
}

/// Recovers the workspace of a killed supervisor, given its process ID. The notices are saved for
/// the next command there.
pub(super) fn recover_after(set_aside: &Path, supervisor: u32) {
    if !matches!(check_directories(set_aside), Ok(true)) {
        return;
    }
    let records = fs::read_dir(folder_of(set_aside))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| read(&entry.path()).ok()?);
    let ours = records.filter(|unfinished| unfinished.supervisor == supervisor);
    for workspace in ours.filter_map(|unfinished| unfinished.workspace.path()).collect::<Vec<_>>() {
        if let Ok(Some(_turn)) = queue::wait_for_turn(&workspace, set_aside, || true) {
            let remarks = recover(set_aside, &workspace);
            if let (false, Ok(path)) = (remarks.is_empty(), path_of(set_aside, &workspace)) {
                // The recovery succeeded even if the notices cannot be saved.
                let _ = fs::write(
                    path.with_extension(TOLD),
                    serde_json::to_vec(&remarks).unwrap_or_default(),
                );
            }
        }
    }
}

/// Reads and removes the saved notices of an earlier recovery.
fn take_told(path: &Path) -> Vec<String> {
    let path = path.with_extension(TOLD);
    let text = own_file::read(&path, MAX_TOLD_SIZE).ok();
    let notices = text.and_then(|text| serde_json::from_slice(&text).ok());
    if notices.is_some() {
        let _ = fs::remove_file(path);
    }
    notices.unwrap_or_default()
}

fn born(workspace: &Path) -> Option<SystemTime> {
    fs::metadata(workspace).ok()?.created().ok()
}

/// Checks that only this user can have created records. Returns whether the directory exists.
fn check_directories(set_aside: &Path) -> io::Result<bool> {
    Ok(own_file::find_dir_io(set_aside)? && own_file::find_dir_io(&folder_of(set_aside))?)
}

/// Describes why the records cannot be used.
fn describe_unusable_records(error: &io::Error) -> String {
    format!(
        "cannot use the records of interrupted commands: {error}\nhint: make the \
            directory yours (`chown`, `chmod go-w`), or remove it"
    )
}

fn folder_of(set_aside: &Path) -> PathBuf {
    set_aside.join("unfinished")
}

fn path_of(set_aside: &Path, workspace: &Path) -> io::Result<PathBuf> {
    let metadata = fs::metadata(workspace)?;
    Ok(folder_of(set_aside).join(format!("{:x}-{:x}.json", metadata.dev(), metadata.ino())))
}

fn read(path: &Path) -> io::Result<Option<UnfinishedRun>> {
    match own_file::read(path, LARGEST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => Ok(Some(serde_json::from_slice(&text?)?)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn records_that_others_can_have_written_are_not_used() {
        let (state, workspace) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let set_aside = state.path().join("set-aside");
        assert!(recover(&set_aside, workspace.path()).is_empty());
        own_file::create_dir_io(&folder_of(&set_aside)).expect("they are made");
        let record = path_of(&set_aside, workspace.path()).expect("it has a name");
        for directory in [set_aside.clone(), folder_of(&set_aside)] {
            set_mode(&directory, 0o777);
            fs::write(&record, "{}").expect("it is written");
            for remarks in [
                recover(&set_aside, workspace.path()),
                recover_if_idle(&set_aside, workspace.path()),
            ] {
                let remarks = remarks.join("");
                assert!(remarks.contains("is writable by other users"), "{remarks}");
                assert!(remarks.contains("\nhint: "), "{remarks}");
            }
            assert!(record.exists(), "it is not touched");
            set_mode(&directory, 0o700);
        }
        set_mode(&set_aside, 0o777);
        let turn = queue::wait_for_turn(workspace.path(), &set_aside, || false).map(|_| ());
        assert!(
            turn.is_err_and(|problem| problem.to_string().contains("is writable by other users"))
        );
        set_mode(&set_aside, 0o700);
        // Reading a FIFO or a link to `/dev/zero` must not block.
        for make in ["link", "fifo", "mode"] {
            let _ = fs::remove_file(&record);
            match make {
                "link" => std::os::unix::fs::symlink("/dev/zero", &record).expect("a link"),
                "fifo" => {
                    let kind = rustix::fs::FileType::Fifo;
                    let mode = rustix::fs::Mode::RWXU;
                    rustix::fs::mknodat(rustix::fs::CWD, &record, kind, mode, 0).expect("a FIFO");
                }
                _ => {
                    fs::write(&record, "{}").expect("it is written");
                    set_mode(&record, 0o666);
                }
            }
            let remarks = recover(&set_aside, workspace.path()).join("");
            assert!(remarks.contains("cannot be undone"), "{make}: {remarks}");
            assert!(remarks.contains("is writable") == (make == "mode"), "{make}: {remarks}");
        }
    }
}
