//! Making changes: all of them or none.
//!
//! 1. What is there has to be what the call has seen.
//! 2. What will be replaced or removed is copied into a [`Record`], which is on the disk before anything else happens.
//! 3. New contents are written beside their places and made durable, under names of their own.
//! 4. Removals from the leaves up, directories from the root down, then each file by one rename.
//!
//! An error on the way undoes what was done, from the record; after a crash, the next start does.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use cap_std::fs::{Dir, Metadata};
use rustix::fs::{AtFlags, Mode, OFlags};
use sha2::{Digest as _, Sha256};

use super::history::{History, HistoryError};
use super::record::Record;
use super::staged::{Becomes, Made, Step};
use super::was::Was;
use crate::sandbox::below;
use crate::sandbox::digest::hex;
use crate::sandbox::version::Version;
use crate::sandbox::workspace::Workspace;

/// Why nothing was changed.
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
    let root = workspace.dir();
    check(root, steps)?;
    // Without a history what was there is kept for as long as this takes.
    let own = if history.is_none() { Some(History::temporary()?) } else { None };
    let Some(history) = history.or(own.as_ref()) else { return Ok(Vec::new()) };
    let mut record = history.begin(tool, root, steps)?;
    let done = carry_out(root, steps, &mut record).and_then(|made| {
        // Closest to the end: only a record that is complete can be undone.
        record.finish().map_err(|source| (String::from("the record of this change"), source))?;
        Ok(made)
    });
    let (place, source) = match done {
        Ok(made) => {
            history.trim();
            return Ok(made);
        }
        Err(problem) => problem,
    };
    let changed = source.get_ref().is_some_and(|error| error.is::<Differs>());
    match record.roll_back(root) {
        Ok(()) if changed => Err(CommitError::NotWhatWasShown(place)),
        Ok(()) => Err(CommitError::Io { place, source }),
        Err(undo) => Err(CommitError::HalfDone { place, source, undo, kept: record.folder().display().to_string() }),
    }
}

/// Step 1.
pub(super) fn check(root: &Dir, steps: &[Step]) -> Result<(), CommitError> {
    let changed = |step: &&Step| Was::look(root, &step.place).map_or(true, |now| now != step.was);
    match steps.iter().find(changed) {
        Some(step) => Err(CommitError::Changed(step.place.clone())),
        None => Ok(()),
    }
}

/// The content is not the one it should be.
#[derive(Debug, thiserror::Error)]
#[error("the content is another one")]
struct Differs;

type At<T> = Result<T, (String, io::Error)>;

/// Steps 3 and 4.
fn carry_out(root: &Dir, steps: &[Step], record: &mut Record) -> At<Vec<Made>> {
    let at = |place: &str| {
        let place = place.to_owned();
        move |source: io::Error| (place, source)
    };
    for step in steps.iter().rev() {
        let goes = !matches!(
            (&step.was, &step.becomes),
            (Was::File(_) | Was::Link(_), Becomes::File { .. } | Becomes::Link(_)) | (Was::Directory(..), Becomes::Directory)
        );
        if goes {
            remove(root, &step.place, &step.was).map_err(at(&step.place))?;
        }
    }
    let mut directories = vec![String::new()];
    let mut all = Vec::with_capacity(steps.len());
    for (number, step) in steps.iter().enumerate() {
        let made = match &step.becomes {
            Becomes::Nothing => Ok(None),
            Becomes::Directory => match step.was {
                Was::Directory(..) => Ok(None),
                Was::Nothing | Was::File(_) | Was::Link(_) | Was::Special => make_directory(root, &step.place).map(|()| None),
            },
            Becomes::Link(target) => link(root, &step.place, target, &record.temporary_name(number)).map(|()| None),
            Becomes::File { data, digest, mode } => {
                let file = New { data, digest, mode: *mode, owner: owner(&step.was) };
                write(root, &step.place, &file, &record.temporary_name(number)).map(Some)
            }
        };
        all.push(Made { place: step.place.clone(), version: made.map_err(at(&step.place))? });
        directories.push(below::split(&step.place).0.to_owned());
    }
    directories.sort_unstable();
    directories.dedup();
    for place in directories {
        // One that went needs no name in it to be durable.
        if let Ok(directory) = below::directory(root, &place) {
            sync(&directory).map_err(at(&place))?;
        }
    }
    Ok(all)
}

fn owner(was: &Was) -> Option<(u32, u32)> {
    match was {
        Was::File(stamp) => Some(stamp.owner),
        Was::Nothing | Was::Directory(..) | Was::Link(_) | Was::Special => None,
    }
}

/// Takes away what was met at a place.
pub(super) fn remove(root: &Dir, place: &str, was: &Was) -> io::Result<()> {
    let flags = match was {
        Was::Nothing => return Ok(()),
        Was::Directory(..) => AtFlags::REMOVEDIR,
        Was::File(_) | Was::Link(_) | Was::Special => AtFlags::empty(),
    };
    let (parent, name) = below::split(place);
    Ok(rustix::fs::unlinkat(below::directory(root, parent)?, name, flags)?)
}

pub(super) fn make_directory(root: &Dir, place: &str) -> io::Result<()> {
    let (parent, name) = below::split(place);
    Ok(rustix::fs::mkdirat(below::directory(root, parent)?, name, Mode::from_raw_mode(0o777))?)
}

/// In place of whatever file or link is there.
pub(super) fn link(root: &Dir, place: &str, target: &str, temporary: &str) -> io::Result<()> {
    let (parent, name) = below::split(place);
    let parent = below::directory(root, parent)?;
    rustix::fs::symlinkat(target, &parent, temporary)?;
    take_place(&parent, temporary, name)
}

/// A file as it is to be.
pub(super) struct New<'a> {
    pub(super) data: &'a std::path::Path,
    pub(super) digest: &'a str,
    pub(super) mode: Option<u32>,
    pub(super) owner: Option<(u32, u32)>,
}

/// Writes a file beside its place, makes it durable, and lets it take the place of whatever file or link is there.
pub(super) fn write(root: &Dir, place: &str, new: &New<'_>, temporary: &str) -> io::Result<Version> {
    let (parent, name) = below::split(place);
    let parent = below::directory(root, parent)?;
    let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A file that has permissions of its own is nobody else's until it has them.
    let mode = Mode::from_raw_mode(if new.mode.is_some() { 0o600 } else { 0o666 });
    let mut file = File::from(rustix::fs::openat(&parent, temporary, how, mode)?);
    let written = fill(&mut file, new).and_then(|()| file.sync_all()).and_then(|()| {
        // Before anybody else can write to it.
        let version = Version::of(&Metadata::from_file(&file)?);
        take_place(&parent, temporary, name).map(|()| version)
    });
    if written.is_err() {
        // The first error is the one to tell.
        let _ = rustix::fs::unlinkat(&parent, temporary, AtFlags::empty());
    }
    written
}

fn fill(file: &mut File, new: &New<'_>) -> io::Result<()> {
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
        return Err(io::Error::other(Differs));
    }
    if let Some((user, group)) = new.owner {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = file.metadata()?;
        if (metadata.uid(), metadata.gid()) != (user, group) {
            // Only root may give files away; for anyone else a file that is replaced becomes their own, as in an editor.
            let _ = std::os::unix::fs::fchown(&*file, Some(user), Some(group));
        }
    }
    match new.mode {
        // Set-id bits are never among them.
        Some(mode) => file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode & 0o777)),
        None => Ok(()),
    }
}

fn take_place(parent: &Dir, temporary: &str, name: &str) -> io::Result<()> {
    let renamed = rustix::fs::renameat(parent, temporary, parent, name);
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(parent, temporary, AtFlags::empty());
    }
    Ok(renamed?)
}

fn sync(directory: &Dir) -> io::Result<()> {
    // The directory was opened for what is in it, which on Linux is no right to sync it.
    let file = rustix::fs::openat(directory, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(rustix::fs::fsync(file)?)
}
