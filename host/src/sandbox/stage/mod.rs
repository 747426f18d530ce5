//! Writing aside: what a call changes is kept out of the workspace until somebody has seen it and said yes.
//!
//! ```text
//! the guest writes ─▶ Stage ─ when the call is over ─▶ Staged, with its Changes ─ a permit for just these ─▶ commit
//!                                                             └ a no, or an error: dropped, and nothing was changed
//! ```
//!
//! A [`Stage`] needs nothing from a guest. A file is copied aside when it is opened for writing; everything else is a note
//! that a place holds something else now, or nothing. [`Staged::commit`] makes all changes or none: it refuses if the
//! workspace is not what the call has seen, and keeps what was there until it is through, so that not even a crash
//! leaves half of it. What was there stays in the [`History`] for a while, to be had back.

mod commit;
mod compare;
mod describe;
mod folder;
mod history;
mod put_back;
mod record;
mod rights;
mod staged;
mod was;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, Metadata};

use super::below::{self, Kind};
use crate::policy::{Code, Denial};

pub use commit::CommitError;
use folder::Folder;
pub use history::{Entry, History, HistoryError, Undone};
use rights::Rights;
pub(super) use staged::StageError;
pub use staged::{Made, Staged};
use was::{Stamp, Was};

/// Paths that one call may change: more than a person can look through.
const MOST_PATHS: usize = 1000;
/// Paths that one call may look at before it changes some: what each held is remembered.
const MOST_MET: usize = 20_000;
/// Of one file. Larger ones are not text that somebody edits.
pub(super) const LARGEST_FILE: u64 = 64 << 20;
/// Bytes that one call may write aside, all together.
const MOST_BYTES: u64 = 256 << 20;

/// What one call has written so far.
pub(super) struct Stage {
    /// Made when something is written.
    folder: Option<Folder>,
    /// What is changed, by place.
    aside: BTreeMap<String, Aside>,
    /// What was there when this call first met it.
    met: BTreeMap<String, Was>,
    budget: Budget,
    next: u64,
}

/// What a place holds now.
#[derive(Debug)]
pub(super) enum Aside {
    /// Nothing.
    Gone,
    /// A new and empty directory; what else is in it stands aside too. Its inode is that of a directory of the stage.
    Directory {
        data: PathBuf,
        /// Those of the directory that was moved here; `None` for a new one.
        rights: Option<Rights>,
    },
    File(StagedFile),
    Link(String),
}

/// A file that was written aside.
#[derive(Debug)]
pub(super) struct StagedFile {
    pub(super) data: PathBuf,
    /// Where the file came from that was moved here.
    from: Option<String>,
    /// Those that go with it; `None` for a new file.
    rights: Option<Rights>,
}

/// Why something is not written aside.
#[derive(Debug)]
pub(super) enum Refused {
    /// The file is larger than one may be.
    TooLarge,
    /// It is not what it was taken for.
    OtherKind,
    /// The call has done as much as it may.
    Quota(Denial),
    Io(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Bytes that may still be written.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<AtomicU64>);

impl Budget {
    /// Whether so many bytes can be taken.
    fn has(&self, bytes: u64) -> io::Result<()> {
        if bytes <= self.0.load(Ordering::Relaxed) { Ok(()) } else { Err(rustix::io::Errno::NOSPC.into()) }
    }

    /// Takes so many bytes, if there are as many.
    pub(super) fn take(&self, bytes: u64) -> io::Result<()> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()))
    }
}

fn too_many_paths() -> Refused {
    let reason = format!("a call may change {MOST_PATHS} files and directories, and this one has changed as many.");
    Refused::Quota(Denial::new(Code::TooMuch, reason, "Do it in several calls."))
}

impl Default for Stage {
    fn default() -> Self {
        let budget = Budget(Arc::new(AtomicU64::new(MOST_BYTES)));
        Self { folder: None, aside: BTreeMap::new(), met: BTreeMap::new(), budget, next: 0 }
    }
}

impl Stage {
    pub(super) fn is_empty(&self) -> bool {
        self.aside.is_empty()
    }

    pub(super) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// What was changed at this very place.
    pub(super) fn at(&self, place: &str) -> Option<&Aside> {
        self.aside.get(place)
    }

    /// Whether something above this place is not what it was, so that nothing of the workspace shows here.
    pub(super) fn is_cut_off(&self, place: &str) -> bool {
        let mut above = place;
        while !above.is_empty() {
            above = below::split(above).0;
            if self.aside.contains_key(above) {
                return true;
            }
        }
        false
    }

    /// What was changed right in a directory, by name.
    pub(super) fn children<'a>(&'a self, place: &'a str) -> impl Iterator<Item = (&'a str, &'a Aside)> {
        self.below(place).filter_map(move |(at, aside)| {
            let name = at.get(if place.is_empty() { 0 } else { place.len() + 1 }..)?;
            (!name.contains('/')).then_some((name, aside))
        })
    }

    fn below<'a>(&'a self, place: &str) -> impl Iterator<Item = (&'a String, &'a Aside)> {
        let from = if place.is_empty() { String::new() } else { format!("{place}/") };
        let prefix = from.clone();
        self.aside.range(from..).take_while(move |(at, _)| at.starts_with(&prefix)).filter(|(at, _)| !at.is_empty())
    }

    /// The links that were made or moved, with where they lead.
    pub(super) fn links(&self) -> impl Iterator<Item = (&str, &str)> {
        self.aside.iter().filter_map(|(place, aside)| match aside {
            Aside::Link(target) => Some((place.as_str(), target.as_str())),
            Aside::Gone | Aside::Directory { .. } | Aside::File(_) => None,
        })
    }

    /// The metadata of something written aside.
    pub(super) fn look(&self, data: &Path) -> io::Result<Metadata> {
        Metadata::from_file(&File::open(data)?)
    }

    /// Remembers what is at a place of the workspace before it is read or changed, the first time.
    pub(super) fn meet(&mut self, root: &Dir, place: &str) -> Result<(), Refused> {
        if !self.met.contains_key(place) {
            if self.met.len() == MOST_MET {
                let reason = format!("a call that changes files may look at {MOST_MET} of them, and this one has looked at as many.");
                return Err(Refused::Quota(Denial::new(Code::TooMuch, reason, "Do it in several calls.")));
            }
            self.met.insert(place.to_owned(), Was::look(root, place)?);
        }
        Ok(())
    }

    /// A new file.
    pub(super) fn create(&mut self, root: &Dir, place: &str) -> Result<(), Refused> {
        self.room_for(place)?;
        self.meet(root, place)?;
        let data = self.fresh()?;
        File::create_new(&data)?;
        self.put(place, Aside::File(StagedFile { data, from: None, rights: None }));
        Ok(())
    }

    /// Copies a file of the workspace aside, or only its name if its content is not wanted.
    pub(super) fn copy(&mut self, root: &Dir, place: &str, with_content: bool) -> Result<(), Refused> {
        self.room_for(place)?;
        self.meet(root, place)?;
        let (data, rights) = self.copied(root, place, with_content)?;
        self.put(place, Aside::File(StagedFile { data, from: None, rights: Some(rights) }));
        Ok(())
    }

    fn copied(&mut self, root: &Dir, place: &str, with_content: bool) -> Result<(PathBuf, Rights), Refused> {
        let (file, metadata) = below::open(root, place)?;
        let size = if with_content { metadata.len() } else { 0 };
        if size > LARGEST_FILE {
            return Err(Refused::TooLarge);
        }
        self.budget.take(size)?;
        let data = self.fresh()?;
        // A file that grows meanwhile is not copied further.
        let copied = File::create_new(&data).and_then(|mut copy| io::copy(&mut file.take(size), &mut copy));
        if let Err(error) = copied {
            drop(std::fs::remove_file(&data));
            return Err(error.into());
        }
        Ok((data, Stamp::of(&metadata).rights))
    }

    pub(super) fn make_directory(&mut self, root: &Dir, place: &str) -> Result<(), Refused> {
        self.make_directory_with(root, place, None)
    }

    fn make_directory_with(&mut self, root: &Dir, place: &str, rights: Option<Rights>) -> Result<(), Refused> {
        self.room_for(place)?;
        self.meet(root, place)?;
        let data = self.fresh()?;
        std::fs::create_dir(&data)?;
        self.put(place, Aside::Directory { data, rights });
        Ok(())
    }

    /// Makes a directory like another one, for what is in that.
    pub(super) fn move_directory(&mut self, root: &Dir, old: &str, new: &str) -> Result<(), Refused> {
        self.meet(root, old)?;
        let rights = match (self.aside.get(old), self.met.get(old)) {
            (Some(Aside::Directory { rights, .. }), _) => *rights,
            (None, Some(Was::Directory(stamp))) => Some(stamp.rights),
            (Some(_) | None, _) => None,
        };
        self.make_directory_with(root, new, rights)
    }

    pub(super) fn link(&mut self, root: &Dir, place: &str, target: String) -> Result<(), Refused> {
        self.room_for(place)?;
        self.meet(root, place)?;
        self.put(place, Aside::Link(target));
        Ok(())
    }

    /// Takes away whatever is at a place; a directory has to be empty.
    pub(super) fn remove(&mut self, root: &Dir, place: &str) -> Result<(), Refused> {
        self.room_for(place)?;
        self.meet(root, place)?;
        self.clear(place);
        self.leave_gone(place);
        Ok(())
    }

    /// Whether all of these can be moved, so that none of them is moved without the others.
    pub(super) fn has_room_for<'a>(&mut self, root: &Dir, moves: impl Iterator<Item = (&'a str, &'a str, Kind)>) -> Result<(), Refused> {
        let (mut bytes, mut places) = (0u64, self.aside.len());
        for (old, new, kind) in moves {
            self.meet(root, old)?;
            self.meet(root, new)?;
            places += [old, new].into_iter().filter(|place| !self.aside.contains_key(*place)).count();
            if kind == Kind::File && !self.aside.contains_key(old) {
                let (_, metadata) = below::open(root, old)?;
                if metadata.len() > LARGEST_FILE {
                    return Err(Refused::TooLarge);
                }
                bytes = bytes.saturating_add(metadata.len());
            }
        }
        if places > MOST_PATHS {
            return Err(too_many_paths());
        }
        Ok(self.budget.has(bytes)?)
    }

    /// Moves a file or a link. What was at the new place is replaced.
    pub(super) fn rename(&mut self, root: &Dir, old: &str, new: &str) -> Result<(), Refused> {
        self.room_for(new)?;
        self.meet(root, old)?;
        self.meet(root, new)?;
        let moved = match self.aside.remove(old) {
            Some(Aside::File(file)) => Aside::File(file),
            Some(Aside::Link(target)) => Aside::Link(target),
            Some(other @ (Aside::Directory { .. } | Aside::Gone)) => {
                self.aside.insert(old.to_owned(), other);
                return Err(Refused::OtherKind);
            }
            None => match self.met.get(old) {
                Some(Was::Link(target)) => Aside::Link(target.clone()),
                _ => {
                    let (data, rights) = self.copied(root, old, true)?;
                    Aside::File(StagedFile { data, from: Some(old.to_owned()), rights: Some(rights) })
                }
            },
        };
        self.leave_gone(old);
        self.put(new, moved);
        Ok(())
    }

    /// Only what was there can be gone.
    fn leave_gone(&mut self, place: &str) {
        if self.met.get(place).is_some_and(|was| *was != Was::Nothing) {
            self.aside.insert(place.to_owned(), Aside::Gone);
        }
    }

    fn put(&mut self, place: &str, aside: Aside) {
        self.clear(place);
        self.aside.insert(place.to_owned(), aside);
    }

    /// Forgets what stands aside at a place, and its data.
    fn clear(&mut self, place: &str) {
        match self.aside.remove(place) {
            // Whoever has it open keeps it; a stage that cannot be tidied up is removed as a whole at the end.
            Some(Aside::File(file)) => drop(std::fs::remove_file(file.data)),
            Some(Aside::Directory { data, .. }) => drop(std::fs::remove_dir(data)),
            Some(Aside::Link(_) | Aside::Gone) | None => {}
        }
    }

    fn room_for(&self, place: &str) -> Result<(), Refused> {
        if self.aside.len() < MOST_PATHS || self.aside.contains_key(place) {
            return Ok(());
        }
        Err(too_many_paths())
    }

    fn fresh(&mut self) -> io::Result<PathBuf> {
        let folder = match &mut self.folder {
            Some(folder) => folder,
            none => none.insert(Folder::new()?),
        };
        self.next += 1;
        Ok(folder.path().join(self.next.to_string()))
    }
}
