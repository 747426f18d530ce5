//! The end of a call: what it has written aside, compared with what is there.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cap_std::fs::Dir;
use sha2::{Digest as _, Sha256};

use super::commit::{self, CommitError};
use super::describe::Describer;
use super::folder::Folder;
use super::rights::Rights;
use super::was::Was;
use super::{Aside, History, LARGEST_FILE, MOST_BYTES, Stage};
use crate::policy::{Changes, Effect, Permit};
use crate::sandbox::below;
use crate::sandbox::digest::hex;
use crate::sandbox::version::Version;
use crate::sandbox::workspace::Workspace;

/// Changes that are ready to be made, and have not been.
#[derive(Debug)]
pub struct Staged {
    workspace: Arc<Workspace>,
    changes: Changes,
    steps: Vec<Step>,
    /// Holds the new contents; removed with this.
    _folder: Option<Folder>,
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
    Directory {
        /// `None`: as the system makes new directories.
        rights: Option<Rights>,
    },
    Link(String),
    File {
        /// Where the content is.
        data: PathBuf,
        digest: String,
        /// `None`: as the system makes new files.
        rights: Option<Rights>,
    },
}

/// What a call wrote cannot be compared.
#[derive(Debug, thiserror::Error)]
pub(in crate::sandbox) enum StageError {
    #[error("it wrote more than {} MiB; nothing was changed", MOST_BYTES >> 20)]
    TooMuch,
    #[error("'{place}' would hold more than {} MiB; nothing was changed", LARGEST_FILE >> 20)]
    TooLarge { place: String },
    #[error("its link '{0}' leads out of the workspace; nothing was changed")]
    LeadsOut(String),
    #[error(
        "it replaced or removed more than {} MiB, which could not be kept to be had back; nothing was changed. Do it in several calls, or have the user do it",
        MOST_BYTES >> 20
    )]
    TooMuchGone,
    #[error("it was stopped while what it wrote was compared; nothing was changed")]
    Stopped,
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
        match permit.into_effect() {
            Effect::Write { changes, .. } if changes == self.changes => {}
            Effect::Write { .. } | Effect::Command { .. } | Effect::Fetch { .. } | Effect::Confirmed | Effect::Plan { .. } => {
                return Err(CommitError::NotPermitted);
            }
        }
        commit::commit(&self.workspace, &self.steps, tool, history)
    }
}

impl Stage {
    /// Compares what was written with what is there, unless nobody waits for that any more.
    pub(in crate::sandbox) fn finish(self, workspace: &Arc<Workspace>, is_over: &dyn Fn() -> bool) -> Result<Staged, StageError> {
        let Self { folder, aside, mut met, .. } = self;
        let root = workspace.dir();
        let mut steps = Vec::with_capacity(aside.len());
        let mut moved = Vec::new();
        let mut total = 0u64;
        for (place, aside) in aside {
            if is_over() {
                return Err(StageError::Stopped);
            }
            let was = match met.remove(&place) {
                Some(was) => was,
                None => Was::look(root, &place)?,
            };
            let becomes = match aside {
                Aside::Gone => Becomes::Nothing,
                Aside::Directory { rights, .. } => Becomes::Directory { rights },
                Aside::Link(target) => Becomes::Link(target),
                Aside::File(file) => {
                    let size = file.data.metadata()?.len();
                    total = total.saturating_add(size);
                    if size > LARGEST_FILE {
                        return Err(StageError::TooLarge { place });
                    }
                    if total > MOST_BYTES {
                        return Err(StageError::TooMuch);
                    }
                    let digest = digest(&mut File::open(&file.data)?)?;
                    if let Some(from) = file.from.filter(|from| *from != place) {
                        moved.push((place.clone(), from));
                    }
                    // A guest cannot mean a change of permissions: whoever takes a file's place gets its.
                    let rights = match &was {
                        Was::File(stamp) => Some(stamp.rights),
                        Was::Nothing | Was::Directory(..) | Was::Link(_) | Was::Special => file.rights,
                    };
                    Becomes::File { data: file.data, digest, rights }
                }
            };
            steps.push(Step { place, was, becomes });
        }
        let mut unchanged = Vec::new();
        for step in &steps {
            if is_over() {
                return Err(StageError::Stopped);
            }
            unchanged.push(step.is_nothing(root)?);
        }
        let mut unchanged = unchanged.into_iter();
        steps.retain(|_| !unchanged.next().unwrap_or_default());
        let gone = steps.iter().map(|step| if let Was::File(stamp) = &step.was { stamp.size } else { 0 });
        if gone.fold(0u64, u64::saturating_add) > MOST_BYTES {
            return Err(StageError::TooMuchGone);
        }
        let changes = Describer::new(root, &steps, &moved).changes(is_over)?;
        Ok(Staged { workspace: Arc::clone(workspace), changes, steps, _folder: folder })
    }
}

impl Step {
    /// Whether the place holds already what it is to hold.
    fn is_nothing(&self, root: &Dir) -> io::Result<bool> {
        Ok(match (&self.was, &self.becomes) {
            (Was::Nothing, Becomes::Nothing) | (Was::Directory(..), Becomes::Directory { .. }) => true,
            (Was::Link(old), Becomes::Link(new)) => old == new,
            (Was::File(stamp), Becomes::File { data, digest: new, .. }) => {
                stamp.size == data.metadata()?.len()
                    && below::open(root, &self.place).is_ok_and(|(mut file, _)| digest(&mut file).is_ok_and(|old| old == *new))
            }
            (Was::Nothing | Was::File(_) | Was::Directory(..) | Was::Link(_) | Was::Special, _) => false,
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r101_nothing_is_compared_for_a_call_that_has_been_stopped() {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = Arc::new(Workspace::open(folder.path()).expect("it opens"));
        let written = || {
            let mut stage = Stage::default();
            stage.create(workspace.dir(), "a").expect("there is room");
            stage
        };
        let asked = std::cell::Cell::new(0);
        for steps in 0..3 {
            asked.set(0);
            let is_over = || asked.replace(asked.get() + 1) == steps;
            assert!(matches!(written().finish(&workspace, &is_over), Err(StageError::Stopped)), "{steps}");
        }
        assert_eq!(written().finish(&workspace, &|| false).expect("it is compared").changes().len(), 1);
    }
}
