//! Commits staged changes: all of them or none.
//!
//! 1. The workspace must be in the state that the call has seen. No other process that takes the
//!    lock of the history changes it meanwhile.
//! 2. Everything that will be replaced or removed is copied into a [`ChangeRecordFile`], which is
//!    on disk before anything else happens.
//! 3. Removals run from the leaves up, and directories are created from the root down. Then each
//!    file is written next to its path under a temporary name, synced, and renamed into place.
//! 4. Right before a path is removed or replaced it is checked once more. A new path never replaces
//!    anything.
//!
//! After an error the record is used to undo the steps so far; after a crash, the next start does
//! that.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Write as _};

use cap_std::fs::{Dir, Metadata};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::file_state::FileState;
use super::history::{HistoryError, UndoHistory};
use super::record::{ChangeRecordFile, ChangeState};
use super::restore::UndoScope;
use super::rights::FileRights;
use super::staged::{AppliedChange, StagedStep, TargetState};
use crate::policy::hex;
use crate::sandbox::file_version::FileVersion;
use crate::sandbox::rooted_fs;
use crate::sandbox::workspace::Workspace;

/// Why a commit failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The permit is for other changes.
    #[error("internal error: the approval does not match the changes; nothing was changed")]
    NotPermitted,
    /// Another process changed a path meanwhile.
    #[error(
        "`{0}` was changed by another process during this call; nothing was changed. Read it \
            again, then repeat the call."
    )]
    Changed(String),
    /// The call has seen partial changes of a process that crashed. They have been undone now.
    #[error("{0}. This call changed nothing; read the files again, then repeat the call.")]
    Interrupted(String),
    /// The content differs from the approved one.
    #[error("the new content of `{0}` changed after it was shown; nothing was changed")]
    ContentMismatch(String),
    /// The operating system reported an error, and all changes were undone.
    #[error("cannot write `{path}` ({source}); nothing was changed")]
    Io {
        /// The path of the error.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The old contents cannot be backed up for undo.
    #[error("{0}; nothing was changed")]
    History(#[from] HistoryError),
    /// The commit failed, and undoing its steps failed too.
    #[error(
        "cannot write `{path}` ({source}), and earlier changes of this call cannot be undone \
            ({undo_error}); the old files are in {backup}"
    )]
    Partial {
        /// The path where the commit failed.
        path: String,
        /// The error of the commit.
        source: io::Error,
        /// The error of the undo.
        undo_error: io::Error,
        /// The directory with the old contents.
        backup: String,
    },
}

/// Commits the changes and leaves a record of the old contents in the history.
pub(super) fn commit(
    workspace: &Workspace,
    steps: &[StagedStep],
    tool: &str,
    history: Option<&UndoHistory>,
) -> Result<Vec<AppliedChange>, CommitError> {
    match history {
        Some(history) => commit_with_history(workspace.dir(), steps, tool, history),
        // Without a history, the old contents are kept during the commit, and longer if it failed
        // partially.
        None => {
            let mut history = UndoHistory::temporary(workspace.temp_dir())?;
            let committed = commit_with_history(workspace.dir(), steps, tool, &history);
            if matches!(committed, Err(CommitError::Partial { .. })) {
                history.keep();
            }
            committed
        }
    }
}

fn commit_with_history(
    root: &Dir,
    steps: &[StagedStep],
    tool: &str,
    history: &UndoHistory,
) -> Result<Vec<AppliedChange>, CommitError> {
    let (locked, interrupted) = history.lock_for_change(root)?;
    if !interrupted.is_empty() {
        return Err(CommitError::Interrupted(interrupted.join("; ")));
    }
    check_originals(root, steps)?;
    let mut record = locked.begin_record(tool, root, steps)?;
    let mut reached = BTreeSet::new();
    let committed = apply(root, steps, &record, &mut reached).and_then(|applied| {
        // Set as late as possible: only a complete change can be undone.
        record
            .set_state(ChangeState::Made)
            .map_err(|source| (String::from("the record of this change"), source.into()))?;
        Ok(applied)
    });
    let (path, fault) = match committed {
        Ok(applied) => {
            locked.trim();
            return Ok(applied);
        }
        Err(problem) => problem,
    };
    let undo = match record.roll_back(root, UndoScope::Applied(&reached)) {
        Ok(report) if report.failed.is_empty() => {
            return Err(match fault {
                CommitStepFault::Changed | CommitStepFault::NotEmpty => CommitError::Changed(path),
                CommitStepFault::ContentMismatch => CommitError::ContentMismatch(path),
                CommitStepFault::Io(source) => CommitError::Io { path, source },
            });
        }
        Ok(report) => io::Error::other(report.describe_failures()),
        Err(error) => error,
    };
    // A pending record would be rolled back again at the next start. The user is told about it
    // either way.
    let _ = record.set_state(ChangeState::Abandoned);
    let source = match fault {
        CommitStepFault::Io(source) => source,
        CommitStepFault::Changed | CommitStepFault::NotEmpty | CommitStepFault::ContentMismatch => {
            io::Error::other(fault)
        }
    };
    Err(CommitError::Partial {
        path,
        source,
        undo_error: undo,
        backup: record.directory().display().to_string(),
    })
}

/// Performs step 1: checks that the workspace is in the state that the call has seen.
fn check_originals(root: &Dir, steps: &[StagedStep]) -> Result<(), CommitError> {
    let changed = |step: &&StagedStep| {
        FileState::read(root, &step.path).map_or(true, |now| now != step.original)
    };
    match steps.iter().find(changed) {
        Some(step) => Err(CommitError::Changed(step.path.clone())),
        None => Ok(()),
    }
}

/// Why a single step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommitStepFault {
    #[error("was changed by another process")]
    Changed,
    #[error("is not empty")]
    NotEmpty,
    /// The content differs from the expected one.
    #[error("does not have the expected content")]
    ContentMismatch,
    #[error("cannot be written ({0})")]
    Io(#[from] io::Error),
}

impl From<Errno> for CommitStepFault {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::EXIST => Self::Changed,
            errno => Self::Io(errno.into()),
        }
    }
}

type CommitStepResult = Result<(), CommitStepFault>;

/// Performs steps 3 and 4. `reached` collects the numbers of the steps that had an effect.
fn apply(
    root: &Dir,
    steps: &[StagedStep],
    record: &ChangeRecordFile,
    reached: &mut BTreeSet<usize>,
) -> Result<Vec<AppliedChange>, (String, CommitStepFault)> {
    let at = |path: &str| {
        let path = path.to_owned();
        move |fault: CommitStepFault| (path, fault)
    };
    for (number, step) in steps.iter().enumerate().rev() {
        if step.removes_first() {
            remove(root, &step.path, &step.original).map_err(at(&step.path))?;
            reached.insert(number);
        }
    }
    let mut all = Vec::with_capacity(steps.len());
    for (number, step) in steps.iter().enumerate() {
        let current = if step.removes_first() { &FileState::Absent } else { &step.original };
        let applied = match &step.target {
            TargetState::Absent => Ok(None),
            TargetState::Directory { rights } => match step.original {
                FileState::Directory(..) => Ok(None),
                FileState::Absent
                | FileState::File(_)
                | FileState::Link(_)
                | FileState::Special => {
                    create_directory(root, &step.path, rights.is_some()).map(|()| None)
                }
            },
            TargetState::Link(target) => {
                create_link(root, &step.path, target, &record.temporary_name(number), current)
                    .map(|()| None)
            }
            TargetState::File { data, digest, rights } => {
                let file = CommittedNewFile { data, digest, rights: *rights };
                write(root, &step.path, &file, &record.temporary_name(number), current).map(Some)
            }
        };
        all.push(AppliedChange {
            path: step.path.clone(),
            version: applied.map_err(at(&step.path))?,
        });
        if !matches!(
            (&step.original, &step.target),
            (_, TargetState::Absent) | (FileState::Directory(..), TargetState::Directory { .. })
        ) {
            reached.insert(number);
        }
    }
    // Set last, because the final mode of a directory may forbid writing to it.
    for step in steps.iter().rev() {
        if let TargetState::Directory { rights: Some(rights) } = step.target {
            set_rights(root, &step.path, rights).map_err(|error| at(&step.path)(error.into()))?;
        }
    }
    sync_parents(root, steps.iter().map(|step| step.path.as_str()))
        .map_err(|(path, error)| (path, error.into()))?;
    Ok(all)
}

impl StagedStep {
    /// Returns whether the old file or directory must be removed before the new one is created.
    fn removes_first(&self) -> bool {
        !matches!(
            (&self.original, &self.target),
            (FileState::Absent, _)
                | (
                    FileState::File(_) | FileState::Link(_),
                    TargetState::File { .. } | TargetState::Link(_)
                )
                | (FileState::Directory(..), TargetState::Directory { .. })
        )
    }
}

/// Removes a path if it is still in the expected state.
pub(super) fn remove(root: &Dir, path: &str, expected: &FileState) -> CommitStepResult {
    let flags = match expected {
        FileState::Absent => return Ok(()),
        FileState::Directory(..) => AtFlags::REMOVEDIR,
        FileState::File(_) | FileState::Link(_) | FileState::Special => AtFlags::empty(),
    };
    check_unchanged(root, path, expected)?;
    let (parent, name) = rooted_fs::split(path);
    match rustix::fs::unlinkat(rooted_fs::open_dir(root, parent)?, name, flags) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(CommitStepFault::NotEmpty),
        removed => Ok(removed?),
    }
}

fn check_unchanged(root: &Dir, path: &str, expected: &FileState) -> CommitStepResult {
    if FileState::read(root, path)? == *expected { Ok(()) } else { Err(CommitStepFault::Changed) }
}

/// Creates a directory. If it gets permissions of its own later, only its owner can access it until
/// then.
pub(super) fn create_directory(root: &Dir, path: &str, is_private: bool) -> CommitStepResult {
    let (parent, name) = rooted_fs::split(path);
    let mode = Mode::from_raw_mode(if is_private { 0o700 } else { 0o777 });
    Ok(rustix::fs::mkdirat(rooted_fs::open_dir(root, parent)?, name, mode)?)
}

/// Sets the permissions of a directory.
pub(super) fn set_rights(root: &Dir, path: &str, rights: FileRights) -> io::Result<()> {
    let directory = rooted_fs::open_dir(root, path)?;
    let opened = rustix::fs::openat(
        directory,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    rights.apply_to(&File::from(opened))
}

/// Creates a link, or replaces a file or link that is still in the expected state.
pub(super) fn create_link(
    root: &Dir,
    path: &str,
    target: &str,
    temporary: &str,
    expected: &FileState,
) -> CommitStepResult {
    let (parent, _) = rooted_fs::split(path);
    let parent = rooted_fs::open_dir(root, parent)?;
    rustix::fs::symlinkat(target, &parent, temporary)?;
    replace(root, &parent, temporary, path, expected)
}

/// The content and permissions of a file to write.
pub(super) struct CommittedNewFile<'a> {
    pub(super) data: &'a std::path::Path,
    pub(super) digest: &'a str,
    /// The permissions; `None` for the default of new files.
    pub(super) rights: Option<FileRights>,
}

/// Writes a file under a temporary name, syncs it, and renames it into place. Replaces a file or
/// link only if it is still in the expected state.
pub(super) fn write(
    root: &Dir,
    path: &str,
    new: &CommittedNewFile<'_>,
    temporary: &str,
    expected: &FileState,
) -> Result<FileVersion, CommitStepFault> {
    let (parent, _) = rooted_fs::split(path);
    let parent = rooted_fs::open_dir(root, parent)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Only the owner can access a file until its own permissions are set.
    let mode = Mode::from_raw_mode(if new.rights.is_some() { 0o600 } else { 0o666 });
    let mut file = File::from(rustix::fs::openat(&parent, temporary, flags, mode)?);
    let written = copy_content(&mut file, new).and_then(|()| {
        file.sync_all()?;
        // Taken before other processes can write to the file.
        let version = FileVersion::from_metadata(&Metadata::from_file(&file)?);
        replace(root, &parent, temporary, path, expected).map(|()| version)
    });
    if written.is_err() {
        // The first error is the one to report.
        let _ = rustix::fs::unlinkat(&parent, temporary, AtFlags::empty());
    }
    written
}

fn copy_content(file: &mut File, new: &CommittedNewFile<'_>) -> CommitStepResult {
    let mut data = File::open(new.data)?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = data.read(&mut piece)?;
        if read == 0 {
            break;
        }
        hasher.update(&piece[..read]);
        file.write_all(&piece[..read])?;
    }
    if hex(&hasher.finalize()) != new.digest {
        return Err(CommitStepFault::ContentMismatch);
    }
    Ok(new.rights.map_or(Ok(()), |rights| rights.apply_to(file))?)
}

fn replace(
    root: &Dir,
    parent: &Dir,
    temporary: &str,
    path: &str,
    expected: &FileState,
) -> CommitStepResult {
    let name = rooted_fs::split(path).1;
    let taken = match expected {
        FileState::Absent => rename_no_replace(parent, temporary, name),
        expected => check_unchanged(root, path, expected)
            .and_then(|()| Ok(rustix::fs::renameat(parent, temporary, parent, name)?)),
    };
    if taken.is_err() {
        // The first error is the one to report.
        let _ = rustix::fs::unlinkat(parent, temporary, AtFlags::empty());
    }
    taken
}

/// Renames a file, but never over another one, even if that was created at this moment.
fn rename_no_replace(parent: &Dir, temporary: &str, name: &str) -> CommitStepResult {
    match rustix::fs::renameat_with(parent, temporary, parent, name, RenameFlags::NOREPLACE) {
        // Some file systems do not support this flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        renamed => return Ok(renamed?),
    }
    match rustix::fs::linkat(parent, temporary, parent, name, AtFlags::empty()) {
        Ok(()) => {
            // If this fails, the file exists under two names.
            let _ = rustix::fs::unlinkat(parent, temporary, AtFlags::empty());
            Ok(())
        }
        // Some of these file systems have no hard links either.
        Err(errno) if NO_HARD_LINK_ERRORS.contains(&errno) => {
            rename_if_absent(parent, temporary, name)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// The errors of a file system without hard links.
const NO_HARD_LINK_ERRORS: [Errno; 5] =
    [Errno::PERM, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::INVAL];

/// Renames a file if the target does not exist. Another process could create it between the check
/// and the rename, as when a path is replaced.
fn rename_if_absent(parent: &Dir, temporary: &str, name: &str) -> CommitStepResult {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(CommitStepFault::Changed),
        Err(Errno::NOENT) => Ok(rustix::fs::renameat(parent, temporary, parent, name)?),
        Err(errno) => Err(errno.into()),
    }
}

/// Syncs the parent directories of these paths, so that their names are durable.
pub(super) fn sync_parents<'a>(
    root: &Dir,
    paths: impl Iterator<Item = &'a str>,
) -> Result<(), (String, io::Error)> {
    let directories: BTreeSet<&str> = paths.map(|path| rooted_fs::split(path).0).collect();
    for path in directories {
        // In a removed directory no name needs to be durable.
        if let Ok(directory) = rooted_fs::open_dir(root, path) {
            sync_directory(&directory).map_err(|error| (path.to_owned(), error))?;
        }
    }
    Ok(())
}

fn sync_directory(directory: &Dir) -> io::Result<()> {
    // The directory was opened for access to its entries only, which on Linux does not allow
    // syncing it.
    let file = rustix::fs::openat(
        directory,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    match rustix::fs::fsync(file) {
        // Some file systems have nothing to sync for a directory.
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        synced => Ok(synced?),
    }
}

#[cfg(test)]
mod tests;
