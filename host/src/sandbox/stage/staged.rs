//! The end of a call: what it has written aside, compared with what is there.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cap_std::fs::Dir;
use sha2::{Digest as _, Sha256};

use super::commit::{self, CommitError};
use super::describe::ChangeDescriber;
use super::file_state::FileState;
use super::rights::FileRights;
use super::stage_dir::StageDirectory;
use super::{MAX_FILE_SIZE, MAX_STAGED_BYTES, Overlay, StagedState, UndoHistory};
use crate::policy::{ChangeSet, Effect, Permit};
use crate::sandbox::digest::hex;
use crate::sandbox::file_version::FileVersion;
use crate::sandbox::rooted_fs;
use crate::sandbox::workspace::Workspace;

/// Changes that are ready to be made, and have not been.
#[derive(Debug)]
pub struct Staged {
    workspace: Arc<Workspace>,
    changes: ChangeSet,
    steps: Vec<StagedStep>,
    /// Holds the new contents; removed with this.
    _directory: Option<StageDirectory>,
}

/// A place that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedChange {
    /// In the workspace.
    pub path: String,
    /// Which version of a file is there now, if it is a file.
    pub version: Option<FileVersion>,
}

/// One place, before and after.
#[derive(Debug)]
pub(super) struct StagedStep {
    pub(super) path: String,
    pub(super) original: FileState,
    pub(super) target: TargetState,
}

/// What a place is to hold.
#[derive(Debug)]
pub(super) enum TargetState {
    Absent,
    Directory {
        /// `None`: as the system makes new directories.
        rights: Option<FileRights>,
    },
    Link(String),
    File {
        /// Where the content is.
        data: PathBuf,
        digest: String,
        /// `None`: as the system makes new files.
        rights: Option<FileRights>,
    },
}

/// What a call wrote cannot be compared.
#[derive(Debug, thiserror::Error)]
pub(in crate::sandbox) enum StageError {
    #[error("it wrote more than {} MiB; nothing was changed", MAX_STAGED_BYTES >> 20)]
    TooMuch,
    #[error("'{path}' would hold more than {} MiB; nothing was changed", MAX_FILE_SIZE >> 20)]
    TooLarge { path: String },
    #[error("its link '{0}' leads out of the workspace; nothing was changed")]
    LinkOutsideWorkspace(String),
    #[error(
        "it replaced or removed more than {} MiB, which could not be kept to be had back; nothing \
            was changed. Do it in several calls, or have the user do it",
        MAX_STAGED_BYTES >> 20
    )]
    TooMuchRemoved,
    #[error("it was stopped while what it wrote was compared; nothing was changed")]
    Stopped,
    #[error("what it wrote cannot be read again, and nothing was changed: {0}")]
    Io(#[from] io::Error),
}

impl Staged {
    /// What would change. Empty if the call left everything as it was.
    pub fn changes(&self) -> &ChangeSet {
        &self.changes
    }

    /// The files that would be changed, replaced or removed, each as the call has met it.
    pub fn replaced_files(&self) -> impl Iterator<Item = (&str, &FileVersion)> {
        self.steps.iter().filter_map(|step| match &step.original {
            FileState::File(stamp) => Some((step.path.as_str(), &stamp.version)),
            FileState::Absent
            | FileState::Directory(..)
            | FileState::Link(_)
            | FileState::Special => None,
        })
    }

    /// Makes the changes, all or none, and tells what each place holds then. What was there is kept
    /// in the history, under the name of the tool.
    pub fn commit(
        self,
        permit: Permit,
        tool: &str,
        history: Option<&UndoHistory>,
    ) -> Result<Vec<AppliedChange>, CommitError> {
        match permit.into_effect() {
            Effect::Write { changes, .. } if changes == self.changes => {}
            Effect::Write { .. }
            | Effect::Command { .. }
            | Effect::Fetch { .. }
            | Effect::Confirmed
            | Effect::Plan { .. } => {
                return Err(CommitError::NotPermitted);
            }
        }
        commit::commit(&self.workspace, &self.steps, tool, history)
    }
}

impl Overlay {
    /// Compares what was written with what is there, unless nobody waits for that any more.
    pub(in crate::sandbox) fn finish(
        self,
        workspace: &Arc<Workspace>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Staged, StageError> {
        let Self { directory: folder, changes: aside, originals: mut met, .. } = self;
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
                None => FileState::read(root, &place)?,
            };
            let becomes = match aside {
                StagedState::Removed => TargetState::Absent,
                StagedState::Directory { rights, .. } => TargetState::Directory { rights },
                StagedState::Link(target) => TargetState::Link(target),
                StagedState::File(file) => {
                    let size = file.data.metadata()?.len();
                    total = total.saturating_add(size);
                    if size > MAX_FILE_SIZE {
                        return Err(StageError::TooLarge { path: place });
                    }
                    if total > MAX_STAGED_BYTES {
                        return Err(StageError::TooMuch);
                    }
                    let digest = file_digest(&mut File::open(&file.data)?)?;
                    if let Some(from) = file.moved_from.filter(|from| *from != place) {
                        moved.push((place.clone(), from));
                    }
                    // A guest cannot mean a change of permissions: whoever takes a file's place
                    // gets its.
                    let rights = match &was {
                        FileState::File(stamp) => Some(stamp.rights),
                        FileState::Absent
                        | FileState::Directory(..)
                        | FileState::Link(_)
                        | FileState::Special => file.rights,
                    };
                    TargetState::File { data: file.data, digest, rights }
                }
            };
            steps.push(StagedStep { path: place, original: was, target: becomes });
        }
        let mut unchanged = Vec::new();
        for step in &steps {
            if is_over() {
                return Err(StageError::Stopped);
            }
            unchanged.push(step.is_noop(root)?);
        }
        let mut unchanged = unchanged.into_iter();
        steps.retain(|_| !unchanged.next().unwrap_or_default());
        let gone = steps
            .iter()
            .map(|step| if let FileState::File(stamp) = &step.original { stamp.size } else { 0 });
        if gone.fold(0u64, u64::saturating_add) > MAX_STAGED_BYTES {
            return Err(StageError::TooMuchRemoved);
        }
        let changes = ChangeDescriber::new(root, &steps, &moved).changes(is_over)?;
        Ok(Staged { workspace: Arc::clone(workspace), changes, steps, _directory: folder })
    }
}

impl StagedStep {
    /// Whether the place holds already what it is to hold.
    fn is_noop(&self, root: &Dir) -> io::Result<bool> {
        Ok(match (&self.original, &self.target) {
            (FileState::Absent, TargetState::Absent)
            | (FileState::Directory(..), TargetState::Directory { .. }) => true,
            (FileState::Link(old), TargetState::Link(new)) => old == new,
            (FileState::File(stamp), TargetState::File { data, digest: new, .. }) => {
                stamp.size == data.metadata()?.len()
                    && rooted_fs::open(root, &self.path).is_ok_and(|(mut file, _)| {
                        file_digest(&mut file).is_ok_and(|old| old == *new)
                    })
            }
            (
                FileState::Absent
                | FileState::File(_)
                | FileState::Directory(..)
                | FileState::Link(_)
                | FileState::Special,
                _,
            ) => false,
        })
    }
}

/// Of a whole file, a piece at a time.
pub(super) fn file_digest(file: &mut impl io::Read) -> io::Result<String> {
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
            let mut stage = Overlay::default();
            stage.create(workspace.dir(), "a").expect("there is room");
            stage
        };
        let asked = std::cell::Cell::new(0);
        for steps in 0..3 {
            asked.set(0);
            let is_over = || asked.replace(asked.get() + 1) == steps;
            assert!(
                matches!(written().finish(&workspace, &is_over), Err(StageError::Stopped)),
                "{steps}"
            );
        }
        assert_eq!(
            written().finish(&workspace, &|| false).expect("it is compared").changes().len(),
            1
        );
    }

    #[test]
    fn a_new_content_that_no_diff_shows_is_at_hand_for_whoever_decides() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("old"), b"\0 moved").expect("it is written");
        let workspace = Arc::new(Workspace::open(folder.path()).expect("it opens"));
        let mut stage = Overlay::default();
        let long = "x\n".repeat(600_000);
        let contents = [("nul", &b"Run this.\n\0\n"[..]), ("large", long.as_bytes())];
        for (place, content) in contents.into_iter().chain([("text", &b"a\n"[..])]) {
            stage.create(workspace.dir(), place).expect("there is room");
            let Some(StagedState::File(file)) = stage.get(place) else { panic!("no file") };
            std::fs::write(&file.data, content).expect("it is written");
        }
        stage.rename(workspace.dir(), "old", "new").expect("there is room");
        let staged = stage.finish(&workspace, &|| false).expect("it is compared");
        let mut undiffed: Vec<_> = staged
            .changes()
            .undiffed()
            .map(|(path, file)| (path.as_str().to_owned(), std::fs::read(file).expect("there")))
            .collect();
        undiffed.reverse();
        assert_eq!(undiffed, contents.map(|(path, content)| (path.to_owned(), content.to_vec())));
    }
}
