//! The end of a call: what it has written aside, compared with what is there.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;
use sha2::{Digest as _, Sha256};

use super::commit::{self, CommitError};
use super::compare::{self, MOST_COMPARED};
use super::was::{Stamp, Was};
use super::{Aside, History, LARGEST_FILE, MOST_BYTES, Stage};
use crate::policy::{Act, Change, Changes, Content, Effect, Permit, WorkspacePath};
use crate::sandbox::below;
use crate::sandbox::digest::hex;
use crate::sandbox::version::Version;
use crate::sandbox::workspace::Workspace;

/// Of all diffs of one call together; what comes after is told by its size.
const MOST_DIFF: usize = 1 << 20;

/// Changes that are ready to be made, and have not been.
#[derive(Debug)]
pub struct Staged {
    workspace: Arc<Workspace>,
    changes: Changes,
    steps: Vec<Step>,
    /// Holds the new contents; removed with this.
    _folder: Option<tempfile::TempDir>,
}

/// A place that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// In the workspace.
    pub place: String,
    /// Which version of a file is there now, if it is a file.
    pub version: Option<Version>,
}

/// One place, before and after.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) place: String,
    pub(super) was: Was,
    pub(super) becomes: Becomes,
}

/// What a place is to hold.
#[derive(Debug)]
pub(super) enum Becomes {
    Nothing,
    Directory,
    Link(String),
    File {
        /// Where the content is.
        data: PathBuf,
        digest: String,
        /// `None`: as the system makes new files.
        mode: Option<u32>,
    },
}

/// What a call wrote cannot be compared.
#[derive(Debug, thiserror::Error)]
pub(in crate::sandbox) enum StageError {
    #[error("it wrote more than {} MiB; nothing was changed", MOST_BYTES >> 20)]
    TooMuch,
    #[error("what it wrote cannot be read again, and nothing was changed: {0}")]
    Io(#[from] io::Error),
}

impl Staged {
    /// What would change. Empty if the call left everything as it was.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The files that would be changed, replaced or removed, each as the call has met it.
    pub fn replaced(&self) -> impl Iterator<Item = (&str, &Version)> {
        self.steps.iter().filter_map(|step| match &step.was {
            Was::File(stamp) => Some((step.place.as_str(), &stamp.version)),
            Was::Nothing | Was::Directory(..) | Was::Link(_) | Was::Special => None,
        })
    }

    /// Makes the changes, all or none, and tells what each place holds then. What was there is kept in the history, under the
    /// name of the tool.
    pub fn commit(self, permit: Permit, tool: &str, history: Option<&History>) -> Result<Vec<Made>, CommitError> {
        match permit.effect() {
            Effect::Write { changes, .. } if *changes == self.changes => {}
            Effect::Write { .. } | Effect::Command { .. } | Effect::Fetch { .. } | Effect::Confirmed | Effect::Plan { .. } => {
                return Err(CommitError::NotPermitted);
            }
        }
        commit::commit(&self.workspace, &self.steps, tool, history)
    }
}

impl Stage {
    /// Compares what was written with what is there.
    pub(in crate::sandbox) fn finish(self, workspace: &Arc<Workspace>) -> Result<Staged, StageError> {
        let Self { folder, aside, mut met, .. } = self;
        let root = workspace.dir();
        let mut steps = Vec::with_capacity(aside.len());
        let mut moved = Vec::new();
        let mut total = 0u64;
        for (place, aside) in aside {
            let was = match met.remove(&place) {
                Some(was) => was,
                None => Was::look(root, &place)?,
            };
            let becomes = match aside {
                Aside::Gone => Becomes::Nothing,
                Aside::Directory(_) => Becomes::Directory,
                Aside::Link(target) => Becomes::Link(target),
                Aside::File(file) => {
                    let size = file.data.metadata()?.len();
                    total = total.saturating_add(size);
                    if size > LARGEST_FILE || total > MOST_BYTES {
                        return Err(StageError::TooMuch);
                    }
                    let digest = digest(&mut File::open(&file.data)?)?;
                    if let Some(from) = file.from.filter(|from| *from != place) {
                        moved.push((place.clone(), from));
                    }
                    // A guest cannot mean a change of permissions: whoever takes a file's place gets its.
                    let mode = match &was {
                        Was::File(stamp) => Some(stamp.mode),
                        Was::Nothing | Was::Directory(..) | Was::Link(_) | Was::Special => file.mode,
                    };
                    Becomes::File { data: file.data, digest, mode }
                }
            };
            steps.push(Step { place, was, becomes });
        }
        let mut unchanged = Vec::new();
        for step in &steps {
            unchanged.push(step.is_nothing(root)?);
        }
        let mut unchanged = unchanged.into_iter();
        steps.retain(|_| !unchanged.next().unwrap_or_default());
        let changes = Changes::new(describe(root, &steps, &moved)?);
        Ok(Staged { workspace: Arc::clone(workspace), changes, steps, _folder: folder })
    }
}

impl Step {
    /// Whether the place holds already what it is to hold.
    fn is_nothing(&self, root: &Dir) -> io::Result<bool> {
        Ok(match (&self.was, &self.becomes) {
            (Was::Nothing, Becomes::Nothing) | (Was::Directory(..), Becomes::Directory) => true,
            (Was::Link(old), Becomes::Link(new)) => old == new,
            (Was::File(stamp), Becomes::File { data, digest: new, .. }) => {
                stamp.size == data.metadata()?.len()
                    && below::open(root, &self.place).is_ok_and(|(mut file, _)| digest(&mut file).is_ok_and(|old| old == *new))
            }
            (Was::Nothing | Was::File(_) | Was::Directory(..) | Was::Link(_) | Was::Special, _) => false,
        })
    }
}

/// The steps in words and diffs.
fn describe(root: &Dir, steps: &[Step], moved: &[(String, String)]) -> io::Result<Vec<Change>> {
    let path = |place: &str| WorkspacePath::parse(place, None).map_err(|problem| io::Error::new(io::ErrorKind::InvalidFilename, problem));
    let goes = |place: &str| steps.iter().any(|step| step.place == place && matches!(step.becomes, Becomes::Nothing));
    let origin = |place: &str| moved.iter().find(|(to, from)| to == place && goes(from)).map(|(_, from)| from.as_str());
    let has_moved = |place: &str| moved.iter().any(|(to, from)| from == place && goes(from) && steps.iter().any(|step| step.place == *to));
    let mut room = MOST_DIFF;
    let mut changes = Vec::new();
    for Step { place, was, becomes } in steps {
        let before = match was {
            Was::File(stamp) => Some(stamp),
            Was::Nothing | Was::Directory(..) | Was::Link(_) | Was::Special => None,
        };
        let mut push = |act, diff: Option<String>| {
            let diff = diff.filter(|diff| diff.len() <= room);
            room -= diff.as_ref().map_or(0, String::len);
            changes.push(Change { path: path(place)?, act, diff });
            io::Result::Ok(())
        };
        // What goes first, where something else takes the place.
        match (was, becomes) {
            (Was::Directory(..), Becomes::Nothing | Becomes::Link(_) | Becomes::File { .. }) => push(Act::RemoveDirectory, None)?,
            (Was::Link(_), Becomes::Nothing | Becomes::Directory | Becomes::File { .. }) => push(Act::Unlink, None)?,
            (Was::File(_), Becomes::Nothing) if has_moved(place) => {}
            (Was::File(stamp), Becomes::Nothing | Becomes::Directory | Becomes::Link(_)) => {
                let diff = read(root, place, stamp).and_then(|old| compare::diff(Some((place, &old)), None));
                push(Act::Delete { before: stamp.size }, diff)?;
            }
            (Was::Nothing | Was::Special, _) | (Was::Link(_), Becomes::Link(_)) => {}
            (Was::File(_), Becomes::File { .. }) | (Was::Directory(..), Becomes::Directory) => {}
        }
        match becomes {
            Becomes::Nothing => {}
            Becomes::Directory => push(Act::CreateDirectory, None)?,
            Becomes::Link(to) => push(Act::Link { to: to.clone() }, None)?,
            Becomes::File { data, digest, .. } => {
                let after = Content { size: data.metadata()?.len(), digest: digest.clone() };
                let new = read_whole(data)?;
                let from = origin(place).filter(|_| before.is_none());
                let (old_place, old) = match (before, from) {
                    (Some(stamp), _) => (place.as_str(), Some(read(root, place, stamp))),
                    (None, Some(from)) => (from, Some(below::open(root, from).ok().and_then(|(file, _)| read_some(file)))),
                    (None, None) => (place.as_str(), None),
                };
                let diff = match (&old, &new) {
                    (None, Some(new)) => compare::diff(None, Some((place, new))),
                    (Some(Some(old)), Some(new)) => compare::diff(Some((old_place, old)), Some((place, new))),
                    (_, None) | (Some(None), _) => None,
                };
                let act = match (before, from) {
                    (Some(stamp), _) => Act::Modify { before: stamp.size, after },
                    (None, Some(from)) => Act::Move { from: path(from)?, after },
                    (None, None) => Act::Create { after },
                };
                push(act, diff)?;
            }
        }
    }
    Ok(changes)
}

/// The content of a file of the workspace, if it is small, and still the one that was met.
fn read(root: &Dir, place: &str, stamp: &Stamp) -> Option<Vec<u8>> {
    let (file, metadata) = below::open(root, place).ok()?;
    if Stamp::of(&metadata) == *stamp { read_some(file) } else { None }
}

fn read_whole(data: &Path) -> io::Result<Option<Vec<u8>>> {
    Ok(read_some(File::open(data)?))
}

fn read_some(file: File) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MOST_COMPARED + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MOST_COMPARED).then_some(bytes)
}

/// Of a whole file, a piece at a time.
pub(super) fn digest(file: &mut impl io::Read) -> io::Result<String> {
    let mut sum = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&sum.finalize())),
            read => sum.update(&piece[..read]),
        }
    }
}
