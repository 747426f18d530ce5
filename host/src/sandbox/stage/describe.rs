//! The steps of a change in words and diffs, for whoever decides on them.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read as _};
use std::time::{Duration, Instant};

use cap_std::fs::Dir;

use super::compare::{self, MOST_COMPARED};
use super::staged::{Becomes, StageError, Step};
use super::was::{Stamp, Was};
use crate::policy::{Act, Change, Changes, Content, WorkspacePath};
use crate::sandbox::below;

/// Of all diffs of one call together; what comes after is told by its size.
const MOST_DIFF: usize = 1 << 20;
/// Bytes that are compared for one call, of both sides together.
const MOST_EFFORT: usize = 16 << 20;
/// How long all comparing of one call may take. It is the call's time, and a diff is not to fail what it shows.
const PATIENCE: Duration = Duration::from_secs(2);

/// An act, with its diff if there is one.
type Described = (Act, Option<String>);

/// Tells what steps do.
pub(super) struct Describer<'a> {
    root: &'a Dir,
    steps: &'a [Step],
    /// Files that have come from elsewhere, and from where.
    moved: &'a [(String, String)],
    room: Cell<usize>,
    effort: Cell<usize>,
    until: Instant,
}

impl<'a> Describer<'a> {
    pub(super) fn new(root: &'a Dir, steps: &'a [Step], moved: &'a [(String, String)]) -> Self {
        let until = Instant::now() + PATIENCE;
        Self { root, steps, moved, room: Cell::new(MOST_DIFF), effort: Cell::new(MOST_EFFORT), until }
    }

    /// All of them, unless nobody waits for that any more.
    pub(super) fn changes(&self, is_over: &dyn Fn() -> bool) -> Result<Changes, StageError> {
        let mut changes = Vec::new();
        for step in self.steps {
            if is_over() {
                return Err(StageError::Stopped);
            }
            // What goes first, where something else takes the place.
            for (act, diff) in self.removal_of(step).into_iter().chain(self.content_of(step)?) {
                changes.push(Change { path: path(&step.place)?, act, diff });
            }
        }
        Ok(Changes::new(changes))
    }

    /// What was at the place, if it goes.
    fn removal_of(&self, Step { place, was, becomes }: &Step) -> Option<Described> {
        match (was, becomes) {
            (Was::Directory(..), Becomes::Nothing | Becomes::Link(_) | Becomes::File { .. }) => Some((Act::RemoveDirectory, None)),
            (Was::Link(_), Becomes::Nothing | Becomes::Directory { .. } | Becomes::File { .. }) => Some((Act::Unlink, None)),
            (Was::File(_), Becomes::Nothing) if self.has_moved(place) => None,
            (Was::File(stamp), Becomes::Nothing | Becomes::Directory { .. } | Becomes::Link(_)) => {
                let diff = self.diff(|| Some((Some((place, read(self.root, place, stamp)?)), None)));
                Some((Act::Delete { before: stamp.size }, diff))
            }
            (Was::Nothing | Was::Special, _) | (Was::Link(_), Becomes::Link(_)) => None,
            (Was::File(_), Becomes::File { .. }) | (Was::Directory(..), Becomes::Directory { .. }) => None,
        }
    }

    /// What is to be at the place, if anything is.
    fn content_of(&self, Step { place, was, becomes }: &Step) -> io::Result<Option<Described>> {
        let (data, digest) = match becomes {
            Becomes::Nothing => return Ok(None),
            Becomes::Directory { .. } => return Ok(Some((Act::CreateDirectory, None))),
            Becomes::Link(to) => return Ok(Some((Act::Link { to: to.clone() }, None))),
            Becomes::File { data, digest, .. } => (data, digest),
        };
        let after = Content { size: data.metadata()?.len(), digest: digest.clone() };
        let new = read_some(File::open(data)?);
        Ok(Some(match (was, self.origin(place)) {
            (Was::File(stamp), _) => {
                let diff = self.diff(|| Some((Some((place, read(self.root, place, stamp)?)), Some((place, new?)))));
                (Act::Modify { before: stamp.size, after }, diff)
            }
            (_, Some(from)) => {
                let old = || below::open(self.root, from).ok().and_then(|(file, _)| read_some(file));
                let diff = self.diff(|| Some((Some((from, old()?)), Some((place, new?)))));
                (Act::Move { from: path(from)?, after }, diff)
            }
            (_, None) => (Act::Create { after }, self.diff(|| Some((None, Some((place, new?)))))),
        }))
    }

    /// Compares two sides, if both can be had and there is room to show it.
    fn diff<'s>(&self, sides: impl FnOnce() -> Option<Sides<'s>>) -> Option<String> {
        if self.room.get() == 0 {
            return None;
        }
        let (old, new) = sides()?;
        let bytes = [&old, &new].into_iter().flatten().map(|(_, bytes)| bytes.len()).sum();
        self.effort.set(self.effort.get().checked_sub(bytes)?);
        let diff = compare::diff(lent(old.as_ref()), lent(new.as_ref()), self.until)?;
        self.room.set(self.room.get().checked_sub(diff.len())?);
        Some(diff)
    }

    fn goes(&self, place: &str) -> bool {
        self.steps.iter().any(|step| step.place == place && matches!(step.becomes, Becomes::Nothing))
    }

    /// Where a file was before it moved here.
    fn origin(&self, place: &str) -> Option<&str> {
        self.moved.iter().find(|(to, from)| to == place && self.goes(from)).map(|(_, from)| from.as_str())
    }

    /// Whether the file of this place is at another one now.
    fn has_moved(&self, place: &str) -> bool {
        let is_there = |to: &str| self.steps.iter().any(|step| step.place == to);
        self.moved.iter().any(|(to, from)| from == place && self.goes(from) && is_there(to))
    }
}

/// A content and where it is.
type Side<'s> = (&'s str, Vec<u8>);
/// Before and after.
type Sides<'s> = (Option<Side<'s>>, Option<Side<'s>>);

fn lent<'s>(side: Option<&'s Side<'_>>) -> Option<(&'s str, &'s [u8])> {
    side.map(|(place, bytes)| (*place, bytes.as_slice()))
}

fn path(place: &str) -> io::Result<WorkspacePath> {
    WorkspacePath::parse(place, None).map_err(|problem| io::Error::new(io::ErrorKind::InvalidFilename, problem))
}

/// The content of a file of the workspace, if it is small, and still the one that was met.
fn read(root: &Dir, place: &str, stamp: &Stamp) -> Option<Vec<u8>> {
    let (file, metadata) = below::open(root, place).ok()?;
    if Stamp::of(&metadata) == *stamp { read_some(file) } else { None }
}

fn read_some(file: File) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MOST_COMPARED + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MOST_COMPARED).then_some(bytes)
}
