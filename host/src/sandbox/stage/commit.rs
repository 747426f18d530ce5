//! Making changes: all of them or none.
//!
//! 1. What is there has to be what the call has seen; nobody else who holds to the lock of the history changes it meanwhile.
//! 2. What will be replaced or removed is copied into a [`Record`], which is on the disk before anything else happens.
//! 3. Removals from the leaves up, directories from the root down, then each file: its new content is written beside its place, made
//!    durable, and takes the place by one rename.
//! 4. Right before something is removed or replaced it is looked at once more, and nothing new takes the place of anything.
//!
//! An error on the way undoes what was done, from the record; after a crash, the next start does.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Write as _};

use cap_std::fs::{Dir, Metadata};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::history::{History, HistoryError};
use super::put_back::Which;
use super::record::{Record, State};
use super::rights::Rights;
use super::staged::{Becomes, Made, Step};
use super::was::Was;
use crate::sandbox::below;
use crate::sandbox::digest::hex;
use crate::sandbox::version::Version;
use crate::sandbox::workspace::Workspace;

/// Why the changes were not made.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another act was permitted.
    #[error("the permit is for other changes; nothing was changed")]
    NotPermitted,
    /// Somebody else changed something in the meantime.
    #[error(
        "'{0}' was changed by somebody else since this call looked at it, so nothing was changed. Look at it again and repeat the call."
    )]
    Changed(String),
    /// What the call has seen were changes that had been made by halves, by a process that ended over them.
    #[error("{0}. So nothing was changed by this call; look at the files again, and repeat it.")]
    Interrupted(String),
    /// The content is not the one that was approved.
    #[error("the new content of '{0}' changed after it was shown, so nothing was changed")]
    NotWhatWasShown(String),
    /// The system refused.
    #[error("'{place}' cannot be written ({source}), and nothing was changed")]
    Io {
        /// Where.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// What was there cannot be kept, so that it could not be had back.
    #[error("{0}; nothing was changed")]
    History(#[from] HistoryError),
    /// It went wrong, and so did undoing it.
    #[error(
        "'{place}' cannot be written ({source}), and what was changed before that cannot be undone ({undo}); what was there is kept in {kept}"
    )]
    HalfDone {
        /// Where it went wrong.
        place: String,
        /// Why.
        source: io::Error,
        /// Why it could not be undone.
        undo: io::Error,
        /// Where the old contents are.
        kept: String,
    },
}

/// Makes the changes, and leaves a record of what was there.
pub(super) fn commit(workspace: &Workspace, steps: &[Step], tool: &str, history: Option<&History>) -> Result<Vec<Made>, CommitError> {
    match history {
        Some(history) => commit_with(workspace.dir(), steps, tool, history),
        // What was there is kept for as long as this takes, and longer if it is needed.
        None => {
            let mut history = History::temporary()?;
            let done = commit_with(workspace.dir(), steps, tool, &history);
            if matches!(done, Err(CommitError::HalfDone { .. })) {
                history.keep();
            }
            done
        }
    }
}

fn commit_with(root: &Dir, steps: &[Step], tool: &str, history: &History) -> Result<Vec<Made>, CommitError> {
    let (locked, interrupted) = history.open(root)?;
    if !interrupted.is_empty() {
        return Err(CommitError::Interrupted(interrupted.join("; ")));
    }
    check(root, steps)?;
    let mut record = locked.begin(tool, root, steps)?;
    let mut reached = BTreeSet::new();
    let done = carry_out(root, steps, &record, &mut reached).and_then(|made| {
        // Closest to the end: only a record that is complete can be undone.
        record.becomes(State::Made).map_err(|source| (String::from("the record of this change"), source.into()))?;
        Ok(made)
    });
    let (place, fault) = match done {
        Ok(made) => {
            locked.trim();
            return Ok(made);
        }
        Err(problem) => problem,
    };
    let undo = match record.put_back(root, Which::Reached(&reached)) {
        Ok(back) if back.failed.is_empty() => {
            return Err(match fault {
                Fault::Changed | Fault::NotEmpty => CommitError::Changed(place),
                Fault::Differs => CommitError::NotWhatWasShown(place),
                Fault::Io(source) => CommitError::Io { place, source },
            });
        }
        Ok(back) => io::Error::other(back.failures()),
        Err(error) => error,
    };
    // One that stays pending would be tried again; the user is told of it either way.
    let _ = record.becomes(State::Abandoned);
    let source = match fault {
        Fault::Io(source) => source,
        Fault::Changed | Fault::NotEmpty | Fault::Differs => io::Error::other(fault),
    };
    Err(CommitError::HalfDone { place, source, undo, kept: record.folder().display().to_string() })
}

/// Step 1.
fn check(root: &Dir, steps: &[Step]) -> Result<(), CommitError> {
    let changed = |step: &&Step| Was::look(root, &step.place).map_or(true, |now| now != step.was);
    match steps.iter().find(changed) {
        Some(step) => Err(CommitError::Changed(step.place.clone())),
        None => Ok(()),
    }
}

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("was changed by somebody else")]
    Changed,
    #[error("is not empty")]
    NotEmpty,
    /// The content is not the one it should be.
    #[error("has another content than it should")]
    Differs,
    #[error("cannot be written ({0})")]
    Io(#[from] io::Error),
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::EXIST => Self::Changed,
            errno => Self::Io(errno.into()),
        }
    }
}

type Done = Result<(), Fault>;

/// Steps 3 and 4. The numbers of the steps that have had an effect are noted.
fn carry_out(root: &Dir, steps: &[Step], record: &Record, reached: &mut BTreeSet<usize>) -> Result<Vec<Made>, (String, Fault)> {
    let at = |place: &str| {
        let place = place.to_owned();
        move |fault: Fault| (place, fault)
    };
    for (number, step) in steps.iter().enumerate().rev() {
        if step.goes_first() {
            remove(root, &step.place, &step.was).map_err(at(&step.place))?;
            reached.insert(number);
        }
    }
    let mut all = Vec::with_capacity(steps.len());
    for (number, step) in steps.iter().enumerate() {
        let there = if step.goes_first() { &Was::Nothing } else { &step.was };
        let made = match &step.becomes {
            Becomes::Nothing => Ok(None),
            Becomes::Directory { rights } => match step.was {
                Was::Directory(..) => Ok(None),
                Was::Nothing | Was::File(_) | Was::Link(_) | Was::Special => {
                    make_directory(root, &step.place, rights.is_some()).map(|()| None)
                }
            },
            Becomes::Link(target) => link(root, &step.place, target, &record.temporary_name(number), there).map(|()| None),
            Becomes::File { data, digest, rights } => {
                let file = New { data, digest, rights: *rights };
                write(root, &step.place, &file, &record.temporary_name(number), there).map(Some)
            }
        };
        all.push(Made { place: step.place.clone(), version: made.map_err(at(&step.place))? });
        if !matches!((&step.was, &step.becomes), (_, Becomes::Nothing) | (Was::Directory(..), Becomes::Directory { .. })) {
            reached.insert(number);
        }
    }
    // Only now, for a directory may be one that nobody may write to.
    for step in steps.iter().rev() {
        if let Becomes::Directory { rights: Some(rights) } = step.becomes {
            set_rights(root, &step.place, rights).map_err(|error| at(&step.place)(error.into()))?;
        }
    }
    sync_all(root, steps.iter().map(|step| step.place.as_str())).map_err(|(place, error)| (place, error.into()))?;
    Ok(all)
}

impl Step {
    /// Whether what is there is taken away before anything else is put there.
    fn goes_first(&self) -> bool {
        !matches!(
            (&self.was, &self.becomes),
            (Was::Nothing, _)
                | (Was::File(_) | Was::Link(_), Becomes::File { .. } | Becomes::Link(_))
                | (Was::Directory(..), Becomes::Directory { .. })
        )
    }
}

/// Takes away what was met at a place.
pub(super) fn remove(root: &Dir, place: &str, was: &Was) -> Done {
    let flags = match was {
        Was::Nothing => return Ok(()),
        Was::Directory(..) => AtFlags::REMOVEDIR,
        Was::File(_) | Was::Link(_) | Was::Special => AtFlags::empty(),
    };
    is_still(root, place, was)?;
    let (parent, name) = below::split(place);
    match rustix::fs::unlinkat(below::directory(root, parent)?, name, flags) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(Fault::NotEmpty),
        removed => Ok(removed?),
    }
}

fn is_still(root: &Dir, place: &str, was: &Was) -> Done {
    if Was::look(root, place)? == *was { Ok(()) } else { Err(Fault::Changed) }
}

/// Makes a directory. One that gets rights of its own when it is full is only its owner's until then.
pub(super) fn make_directory(root: &Dir, place: &str, is_private: bool) -> Done {
    let (parent, name) = below::split(place);
    let mode = Mode::from_raw_mode(if is_private { 0o700 } else { 0o777 });
    Ok(rustix::fs::mkdirat(below::directory(root, parent)?, name, mode)?)
}

/// Sets the rights of a directory.
pub(super) fn set_rights(root: &Dir, place: &str, rights: Rights) -> io::Result<()> {
    let directory = below::directory(root, place)?;
    let opened = rustix::fs::openat(directory, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    rights.give_to(&File::from(opened))
}

/// In place of whatever file or link is there, if it is still that.
pub(super) fn link(root: &Dir, place: &str, target: &str, temporary: &str, there: &Was) -> Done {
    let (parent, _) = below::split(place);
    let parent = below::directory(root, parent)?;
    rustix::fs::symlinkat(target, &parent, temporary)?;
    take_place(root, &parent, temporary, place, there)
}

/// A file as it is to be.
pub(super) struct New<'a> {
    pub(super) data: &'a std::path::Path,
    pub(super) digest: &'a str,
    /// `None`: as the system makes new files.
    pub(super) rights: Option<Rights>,
}

/// Writes a file beside its place, makes it durable, and lets it take the place of whatever file or link is there, if it is still
/// that.
pub(super) fn write(root: &Dir, place: &str, new: &New<'_>, temporary: &str, there: &Was) -> Result<Version, Fault> {
    let (parent, _) = below::split(place);
    let parent = below::directory(root, parent)?;
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A file that has rights of its own is nobody else's until it has them.
    let mode = Mode::from_raw_mode(if new.rights.is_some() { 0o600 } else { 0o666 });
    let mut file = File::from(rustix::fs::openat(&parent, temporary, how, mode)?);
    let written = fill(&mut file, new).and_then(|()| {
        file.sync_all()?;
        // Before anybody else can write to it.
        let version = Version::of(&Metadata::from_file(&file)?);
        take_place(root, &parent, temporary, place, there).map(|()| version)
    });
    if written.is_err() {
        // The first error is the one to tell.
        let _ = rustix::fs::unlinkat(&parent, temporary, AtFlags::empty());
    }
    written
}

fn fill(file: &mut File, new: &New<'_>) -> Done {
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
        return Err(Fault::Differs);
    }
    Ok(new.rights.map_or(Ok(()), |rights| rights.give_to(file))?)
}

fn take_place(root: &Dir, parent: &Dir, temporary: &str, place: &str, there: &Was) -> Done {
    let name = below::split(place).1;
    let taken = match there {
        Was::Nothing => take_free_place(parent, temporary, name),
        was => is_still(root, place, was).and_then(|()| Ok(rustix::fs::renameat(parent, temporary, parent, name)?)),
    };
    if taken.is_err() {
        // The first error is the one to tell.
        let _ = rustix::fs::unlinkat(parent, temporary, AtFlags::empty());
    }
    taken
}

/// Nobody's file is lost, even if it has come to be in this very moment.
fn take_free_place(parent: &Dir, temporary: &str, name: &str) -> Done {
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
        Err(errno) if NO_LINKS.contains(&errno) => take_place_that_looks_free(parent, temporary, name),
        Err(errno) => Err(errno.into()),
    }
}

/// What a file system without hard links says.
const NO_LINKS: [Errno; 5] = [Errno::PERM, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::INVAL];

/// With an instant between the look and the rename, as there is for what is replaced.
fn take_place_that_looks_free(parent: &Dir, temporary: &str, name: &str) -> Done {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Fault::Changed),
        Err(Errno::NOENT) => Ok(rustix::fs::renameat(parent, temporary, parent, name)?),
        Err(errno) => Err(errno.into()),
    }
}

/// Makes the names in the directories of these places durable.
pub(super) fn sync_all<'a>(root: &Dir, places: impl Iterator<Item = &'a str>) -> Result<(), (String, io::Error)> {
    let directories: BTreeSet<&str> = places.map(|place| below::split(place).0).collect();
    for place in directories {
        // One that went needs no name in it to be durable.
        if let Ok(directory) = below::directory(root, place) {
            sync(&directory).map_err(|error| (place.to_owned(), error))?;
        }
    }
    Ok(())
}

fn sync(directory: &Dir) -> io::Result<()> {
    // The directory was opened for what is in it, which on Linux is no right to sync it.
    let file = rustix::fs::openat(directory, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
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
        let root = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).expect("it opens");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("data"), "ours").expect("it is written");
        std::fs::write(path("old"), "old").expect("it is written");
        let old = Was::look(&root, "old").expect("it is there");
        for name in ["new", "old"] {
            std::fs::remove_file(path(name)).unwrap_or_default();
            std::fs::write(path(name), "theirs").expect("it is written");
        }
        let digest = hex(&Sha256::digest("ours"));
        let file = New { data: &path("data"), digest: &digest, rights: None };
        for (name, there) in [("new", &Was::Nothing), ("old", &old)] {
            assert!(matches!(write(&root, name, &file, "temporary", there), Err(Fault::Changed)), "{name}");
            assert!(matches!(link(&root, name, "data", "temporary", there), Err(Fault::Changed)), "{name}");
            assert_eq!(std::fs::read_to_string(path(name)).ok().as_deref(), Some("theirs"));
        }
        assert!(matches!(remove(&root, "old", &old), Err(Fault::Changed)));
        assert!(matches!(make_directory(&root, "new", false), Err(Fault::Changed)));
        assert!(!path("temporary").exists());
        std::fs::write(path("temporary"), "ours").expect("it is written");
        assert!(matches!(take_place_that_looks_free(&root, "temporary", "new"), Err(Fault::Changed)));
        take_place_that_looks_free(&root, "temporary", "free").expect("there is nothing");
        assert_eq!(std::fs::read_to_string(path("free")).ok().as_deref(), Some("ours"));
        write(&root, "fresh", &file, "temporary", &Was::Nothing).expect("there is nothing");
        assert_eq!(std::fs::read_to_string(path("fresh")).ok().as_deref(), Some("ours"));
    }
}
