//! Making changes: all of them or none.
//!
//! 1. What is there has to be what the call has seen; nobody else who holds to the lock of the
//!    history changes it meanwhile.
//! 2. What will be replaced or removed is copied into a [`ChangeRecordFile`], which is on the disk
//!    before anything else happens.
//! 3. Removals from the leaves up, directories from the root down, then each file: its new content
//!    is written beside its place, made durable, and takes the place by one rename.
//! 4. Right before something is removed or replaced it is looked at once more, and nothing new
//!    takes the place of anything.
//!
//! An error on the way undoes what was done, from the record; after a crash, the next start does.

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
use crate::sandbox::digest::hex;
use crate::sandbox::file_version::FileVersion;
use crate::sandbox::rooted_fs;
use crate::sandbox::workspace::Workspace;

/// Why the changes were not made.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another act was permitted.
    #[error("the permit is for other changes; nothing was changed")]
    NotPermitted,
    /// Somebody else changed something in the meantime.
    #[error(
        "'{0}' was changed by somebody else since this call looked at it, so nothing was changed. \
            Look at it again and repeat the call."
    )]
    Changed(String),
    /// What the call has seen were changes that had been made by halves, by a process that ended
    /// over them.
    #[error("{0}. So nothing was changed by this call; look at the files again, and repeat it.")]
    Interrupted(String),
    /// The content is not the one that was approved.
    #[error("the new content of '{0}' changed after it was shown, so nothing was changed")]
    ContentMismatch(String),
    /// The system refused.
    #[error("'{path}' cannot be written ({source}), and nothing was changed")]
    Io {
        /// Where.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// What was there cannot be kept, so that it could not be had back.
    #[error("{0}; nothing was changed")]
    History(#[from] HistoryError),
    /// It went wrong, and so did undoing it.
    #[error(
        "'{path}' cannot be written ({source}), and what was changed before that cannot be undone \
            ({undo_error}); what was there is kept in {backup}"
    )]
    Partial {
        /// Where it went wrong.
        path: String,
        /// Why.
        source: io::Error,
        /// Why it could not be undone.
        undo_error: io::Error,
        /// Where the old contents are.
        backup: String,
    },
}

/// Makes the changes, and leaves a record of what was there.
pub(super) fn commit(
    workspace: &Workspace,
    steps: &[StagedStep],
    tool: &str,
    history: Option<&UndoHistory>,
) -> Result<Vec<AppliedChange>, CommitError> {
    match history {
        Some(history) => commit_with_history(workspace.dir(), steps, tool, history),
        // What was there is kept for as long as this takes, and longer if it is needed.
        None => {
            let mut history = UndoHistory::temporary()?;
            let done = commit_with_history(workspace.dir(), steps, tool, &history);
            if matches!(done, Err(CommitError::Partial { .. })) {
                history.keep();
            }
            done
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
    let done = apply(root, steps, &record, &mut reached).and_then(|made| {
        // Closest to the end: only a record that is complete can be undone.
        record
            .set_state(ChangeState::Made)
            .map_err(|source| (String::from("the record of this change"), source.into()))?;
        Ok(made)
    });
    let (place, fault) = match done {
        Ok(made) => {
            locked.trim();
            return Ok(made);
        }
        Err(problem) => problem,
    };
    let undo = match record.roll_back(root, UndoScope::Applied(&reached)) {
        Ok(back) if back.failed.is_empty() => {
            return Err(match fault {
                CommitStepFault::Changed | CommitStepFault::NotEmpty => CommitError::Changed(place),
                CommitStepFault::ContentMismatch => CommitError::ContentMismatch(place),
                CommitStepFault::Io(source) => CommitError::Io { path: place, source },
            });
        }
        Ok(back) => io::Error::other(back.describe_failures()),
        Err(error) => error,
    };
    // One that stays pending would be tried again; the user is told of it either way.
    let _ = record.set_state(ChangeState::Abandoned);
    let source = match fault {
        CommitStepFault::Io(source) => source,
        CommitStepFault::Changed | CommitStepFault::NotEmpty | CommitStepFault::ContentMismatch => {
            io::Error::other(fault)
        }
    };
    Err(CommitError::Partial {
        path: place,
        source,
        undo_error: undo,
        backup: record.directory().display().to_string(),
    })
}

/// Step 1.
fn check_originals(root: &Dir, steps: &[StagedStep]) -> Result<(), CommitError> {
    let changed = |step: &&StagedStep| {
        FileState::read(root, &step.path).map_or(true, |now| now != step.original)
    };
    match steps.iter().find(changed) {
        Some(step) => Err(CommitError::Changed(step.path.clone())),
        None => Ok(()),
    }
}

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommitStepFault {
    #[error("was changed by somebody else")]
    Changed,
    #[error("is not empty")]
    NotEmpty,
    /// The content is not the one it should be.
    #[error("has another content than it should")]
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

/// Steps 3 and 4. The numbers of the steps that have had an effect are noted.
fn apply(
    root: &Dir,
    steps: &[StagedStep],
    record: &ChangeRecordFile,
    reached: &mut BTreeSet<usize>,
) -> Result<Vec<AppliedChange>, (String, CommitStepFault)> {
    let at = |place: &str| {
        let place = place.to_owned();
        move |fault: CommitStepFault| (place, fault)
    };
    for (number, step) in steps.iter().enumerate().rev() {
        if step.removes_first() {
            remove(root, &step.path, &step.original).map_err(at(&step.path))?;
            reached.insert(number);
        }
    }
    let mut all = Vec::with_capacity(steps.len());
    for (number, step) in steps.iter().enumerate() {
        let there = if step.removes_first() { &FileState::Absent } else { &step.original };
        let made = match &step.target {
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
                create_link(root, &step.path, target, &record.temporary_name(number), there)
                    .map(|()| None)
            }
            TargetState::File { data, digest, rights } => {
                let file = CommittedNewFile { data, digest, rights: *rights };
                write(root, &step.path, &file, &record.temporary_name(number), there).map(Some)
            }
        };
        all.push(AppliedChange { path: step.path.clone(), version: made.map_err(at(&step.path))? });
        if !matches!(
            (&step.original, &step.target),
            (_, TargetState::Absent) | (FileState::Directory(..), TargetState::Directory { .. })
        ) {
            reached.insert(number);
        }
    }
    // Only now, for a directory may be one that nobody may write to.
    for step in steps.iter().rev() {
        if let TargetState::Directory { rights: Some(rights) } = step.target {
            set_rights(root, &step.path, rights).map_err(|error| at(&step.path)(error.into()))?;
        }
    }
    sync_parents(root, steps.iter().map(|step| step.path.as_str()))
        .map_err(|(place, error)| (place, error.into()))?;
    Ok(all)
}

impl StagedStep {
    /// Whether what is there is taken away before anything else is put there.
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

/// Takes away what was met at a place.
pub(super) fn remove(root: &Dir, place: &str, was: &FileState) -> CommitStepResult {
    let flags = match was {
        FileState::Absent => return Ok(()),
        FileState::Directory(..) => AtFlags::REMOVEDIR,
        FileState::File(_) | FileState::Link(_) | FileState::Special => AtFlags::empty(),
    };
    check_unchanged(root, place, was)?;
    let (parent, name) = rooted_fs::split(place);
    match rustix::fs::unlinkat(rooted_fs::open_dir(root, parent)?, name, flags) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(CommitStepFault::NotEmpty),
        removed => Ok(removed?),
    }
}

fn check_unchanged(root: &Dir, place: &str, was: &FileState) -> CommitStepResult {
    if FileState::read(root, place)? == *was { Ok(()) } else { Err(CommitStepFault::Changed) }
}

/// Makes a directory. One that gets rights of its own when it is full is only its owner's until
/// then.
pub(super) fn create_directory(root: &Dir, place: &str, is_private: bool) -> CommitStepResult {
    let (parent, name) = rooted_fs::split(place);
    let mode = Mode::from_raw_mode(if is_private { 0o700 } else { 0o777 });
    Ok(rustix::fs::mkdirat(rooted_fs::open_dir(root, parent)?, name, mode)?)
}

/// Sets the rights of a directory.
pub(super) fn set_rights(root: &Dir, place: &str, rights: FileRights) -> io::Result<()> {
    let directory = rooted_fs::open_dir(root, place)?;
    let opened = rustix::fs::openat(
        directory,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    rights.apply_to(&File::from(opened))
}

/// In place of whatever file or link is there, if it is still that.
pub(super) fn create_link(
    root: &Dir,
    place: &str,
    target: &str,
    temporary: &str,
    there: &FileState,
) -> CommitStepResult {
    let (parent, _) = rooted_fs::split(place);
    let parent = rooted_fs::open_dir(root, parent)?;
    rustix::fs::symlinkat(target, &parent, temporary)?;
    replace(root, &parent, temporary, place, there)
}

/// A file as it is to be.
pub(super) struct CommittedNewFile<'a> {
    pub(super) data: &'a std::path::Path,
    pub(super) digest: &'a str,
    /// `None`: as the system makes new files.
    pub(super) rights: Option<FileRights>,
}

/// Writes a file beside its place, makes it durable, and lets it take the place of whatever file or
/// link is there, if it is still that.
pub(super) fn write(
    root: &Dir,
    place: &str,
    new: &CommittedNewFile<'_>,
    temporary: &str,
    there: &FileState,
) -> Result<FileVersion, CommitStepFault> {
    let (parent, _) = rooted_fs::split(place);
    let parent = rooted_fs::open_dir(root, parent)?;
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A file that has rights of its own is nobody else's until it has them.
    let mode = Mode::from_raw_mode(if new.rights.is_some() { 0o600 } else { 0o666 });
    let mut file = File::from(rustix::fs::openat(&parent, temporary, how, mode)?);
    let written = copy_content(&mut file, new).and_then(|()| {
        file.sync_all()?;
        // Before anybody else can write to it.
        let version = FileVersion::from_metadata(&Metadata::from_file(&file)?);
        replace(root, &parent, temporary, place, there).map(|()| version)
    });
    if written.is_err() {
        // The first error is the one to tell.
        let _ = rustix::fs::unlinkat(&parent, temporary, AtFlags::empty());
    }
    written
}

fn copy_content(file: &mut File, new: &CommittedNewFile<'_>) -> CommitStepResult {
    let mut data = File::open(new.data)?;
    let mut sum = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = data.read(&mut piece)?;
        if read == 0 {
            break;
        }
        sum.update(&piece[..read]);
        file.write_all(&piece[..read])?;
    }
    if hex(&sum.finalize()) != new.digest {
        return Err(CommitStepFault::ContentMismatch);
    }
    Ok(new.rights.map_or(Ok(()), |rights| rights.apply_to(file))?)
}

fn replace(
    root: &Dir,
    parent: &Dir,
    temporary: &str,
    place: &str,
    there: &FileState,
) -> CommitStepResult {
    let name = rooted_fs::split(place).1;
    let taken = match there {
        FileState::Absent => rename_no_replace(parent, temporary, name),
        was => check_unchanged(root, place, was)
            .and_then(|()| Ok(rustix::fs::renameat(parent, temporary, parent, name)?)),
    };
    if taken.is_err() {
        // The first error is the one to tell.
        let _ = rustix::fs::unlinkat(parent, temporary, AtFlags::empty());
    }
    taken
}

/// Nobody's file is lost, even if it has come to be in this very moment.
fn rename_no_replace(parent: &Dir, temporary: &str, name: &str) -> CommitStepResult {
    match rustix::fs::renameat_with(parent, temporary, parent, name, RenameFlags::NOREPLACE) {
        // Some file systems do not know it.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        renamed => return Ok(renamed?),
    }
    match rustix::fs::linkat(parent, temporary, parent, name, AtFlags::empty()) {
        Ok(()) => {
            // The file is there, though by two names if this fails.
            let _ = rustix::fs::unlinkat(parent, temporary, AtFlags::empty());
            Ok(())
        }
        // And some of these no hard links either.
        Err(errno) if NO_HARD_LINK_ERRORS.contains(&errno) => {
            rename_if_absent(parent, temporary, name)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// What a file system without hard links says.
const NO_HARD_LINK_ERRORS: [Errno; 5] =
    [Errno::PERM, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::INVAL];

/// With an instant between the look and the rename, as there is for what is replaced.
fn rename_if_absent(parent: &Dir, temporary: &str, name: &str) -> CommitStepResult {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(CommitStepFault::Changed),
        Err(Errno::NOENT) => Ok(rustix::fs::renameat(parent, temporary, parent, name)?),
        Err(errno) => Err(errno.into()),
    }
}

/// Makes the names in the directories of these places durable.
pub(super) fn sync_parents<'a>(
    root: &Dir,
    places: impl Iterator<Item = &'a str>,
) -> Result<(), (String, io::Error)> {
    let directories: BTreeSet<&str> = places.map(|place| rooted_fs::split(place).0).collect();
    for place in directories {
        // One that went needs no name in it to be durable.
        if let Ok(directory) = rooted_fs::open_dir(root, place) {
            sync_directory(&directory).map_err(|error| (place.to_owned(), error))?;
        }
    }
    Ok(())
}

fn sync_directory(directory: &Dir) -> io::Result<()> {
    // The directory was opened for what is in it, which on Linux is no right to sync it.
    let file = rustix::fs::openat(
        directory,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    match rustix::fs::fsync(file) {
        // Some file systems have nothing to sync there.
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        synced => Ok(synced?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_came_to_be_in_the_last_moment_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let root =
            Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).expect("it opens");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("data"), "ours").expect("it is written");
        std::fs::write(path("old"), "old").expect("it is written");
        let old = FileState::read(&root, "old").expect("it is there");
        for name in ["new", "old"] {
            std::fs::remove_file(path(name)).unwrap_or_default();
            std::fs::write(path(name), "theirs").expect("it is written");
        }
        let digest = hex(&Sha256::digest("ours"));
        let file = CommittedNewFile { data: &path("data"), digest: &digest, rights: None };
        for (name, there) in [("new", &FileState::Absent), ("old", &old)] {
            assert!(
                matches!(
                    write(&root, name, &file, "temporary", there),
                    Err(CommitStepFault::Changed)
                ),
                "{name}"
            );
            assert!(
                matches!(
                    create_link(&root, name, "data", "temporary", there),
                    Err(CommitStepFault::Changed)
                ),
                "{name}"
            );
            assert_eq!(std::fs::read_to_string(path(name)).ok().as_deref(), Some("theirs"));
        }
        assert!(matches!(remove(&root, "old", &old), Err(CommitStepFault::Changed)));
        assert!(matches!(create_directory(&root, "new", false), Err(CommitStepFault::Changed)));
        assert!(!path("temporary").exists());
        std::fs::write(path("temporary"), "ours").expect("it is written");
        assert!(matches!(
            rename_if_absent(&root, "temporary", "new"),
            Err(CommitStepFault::Changed)
        ));
        rename_if_absent(&root, "temporary", "free").expect("there is nothing");
        assert_eq!(std::fs::read_to_string(path("free")).ok().as_deref(), Some("ours"));
        write(&root, "fresh", &file, "temporary", &FileState::Absent).expect("there is nothing");
        assert_eq!(std::fs::read_to_string(path("fresh")).ok().as_deref(), Some("ours"));
    }
}
