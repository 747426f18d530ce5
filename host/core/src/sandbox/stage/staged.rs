//! The staged changes at the end of a call, compared with the workspace.

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
use crate::policy::hex;
use crate::policy::{ChangeSet, Effect, Permit};
use crate::sandbox::file_version::FileVersion;
use crate::sandbox::rooted_fs;
use crate::sandbox::workspace::Workspace;

/// Changes that are ready to commit and have not been made yet.
#[derive(Debug)]
pub struct Staged {
    workspace: Arc<Workspace>,
    changes: ChangeSet,
    steps: Vec<StagedStep>,
    /// The directory with the new contents, removed when this is dropped.
    _directory: Option<StageDirectory>,
}

/// A path that was changed, with its new version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppliedChange {
    /// The path in the workspace.
    pub path: String,
    /// The new version, if the path is a file now.
    pub version: Option<FileVersion>,
}

/// One changed path, before and after.
#[derive(Debug)]
pub(super) struct StagedStep {
    pub(super) path: String,
    pub(super) original: FileState,
    pub(super) target: TargetState,
}

/// The state of a path after the commit.
#[derive(Debug)]
pub(super) enum TargetState {
    Absent,
    Directory {
        /// The permissions; `None` for the default of new directories.
        rights: Option<FileRights>,
    },
    Link(String),
    File {
        /// The file with the new content.
        data: PathBuf,
        digest: String,
        /// The permissions; `None` for the default of new files.
        rights: Option<FileRights>,
    },
}

/// Why the staged changes cannot be compared with the workspace.
#[derive(Debug, thiserror::Error)]
pub(in crate::sandbox) enum StageError {
    #[error("the call wrote more than {} MiB; nothing was changed", MAX_STAGED_BYTES >> 20)]
    TooMuch,
    #[error("`{path}` would be larger than {} MiB; nothing was changed", MAX_FILE_SIZE >> 20)]
    TooLarge { path: String },
    #[error("the link `{0}` points outside the workspace; nothing was changed")]
    LinkOutsideWorkspace(String),
    #[error(
        "the call would overwrite or delete more than {} MiB, more than undo can back up; nothing \
            was changed. Use several calls, or ask the user to do it",
        MAX_STAGED_BYTES >> 20
    )]
    TooMuchRemoved,
    #[error("the call was stopped while its changes were compared; nothing was changed")]
    Stopped,
    #[error("cannot read the changes of the call; nothing was changed: {0}")]
    Io(#[from] io::Error),
}

impl Staged {
    /// Returns the changes. Empty if the call changed nothing.
    pub fn changes(&self) -> &ChangeSet {
        &self.changes
    }

    pub(super) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(super) fn steps(&self) -> &[StagedStep] {
        &self.steps
    }

    /// Returns the files that would be changed, replaced or removed, in the versions that the call
    /// has seen.
    pub fn replaced_files(&self) -> impl Iterator<Item = (&str, &FileVersion)> {
        self.steps.iter().filter_map(|step| match &step.original {
            FileState::File(stamp) => Some((step.path.as_str(), &stamp.version)),
            FileState::Absent
            | FileState::Directory(..)
            | FileState::Link(_)
            | FileState::Special => None,
        })
    }

    /// Makes all changes or none, and returns the new version of each path. The old contents are
    /// kept in the history, under the name of the tool.
    ///
    /// # Errors
    ///
    /// Returns an error if `permit` is for other changes, if the workspace has changed since the
    /// call looked at it, or if the system reports an error.
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
            | Effect::Input { .. }
            | Effect::Fetch { .. }
            | Effect::Connect { .. }
            | Effect::Confirmed
            | Effect::Plan { .. } => {
                return Err(CommitError::NotPermitted);
            }
        }
        commit::commit(&self.workspace, &self.steps, tool, history)
    }
}

impl Overlay {
    /// Compares the staged changes with the workspace, unless the call is stopped.
    pub(in crate::sandbox) fn finish(
        self,
        workspace: &Arc<Workspace>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Staged, StageError> {
        let Self { directory, changes: staged, mut originals, .. } = self;
        let root = workspace.dir();
        let mut steps = Vec::with_capacity(staged.len());
        let mut moved = Vec::new();
        let mut total = 0u64;
        for (path, state) in staged {
            if is_over() {
                return Err(StageError::Stopped);
            }
            let original = match originals.remove(&path) {
                Some(original) => original,
                None => FileState::read(root, &path)?,
            };
            let target = match state {
                StagedState::Removed => TargetState::Absent,
                StagedState::Directory { rights, .. } => TargetState::Directory { rights },
                StagedState::Link(target) => TargetState::Link(target),
                StagedState::File(file) => {
                    let size = file.data.metadata()?.len();
                    total = total.saturating_add(size);
                    if size > MAX_FILE_SIZE {
                        return Err(StageError::TooLarge { path });
                    }
                    if total > MAX_STAGED_BYTES {
                        return Err(StageError::TooMuch);
                    }
                    let digest = file_digest(&mut File::open(&file.data)?)?;
                    if let Some(from) = file.moved_from.filter(|from| *from != path) {
                        moved.push((path.clone(), from));
                    }
                    // WASI cannot express a change of permissions, so a replaced file keeps them.
                    let rights = match &original {
                        FileState::File(stamp) => Some(stamp.rights),
                        FileState::Absent
                        | FileState::Directory(..)
                        | FileState::Link(_)
                        | FileState::Special => file.rights,
                    };
                    TargetState::File { data: file.data, digest, rights }
                }
            };
            steps.push(StagedStep { path, original, target });
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
        let removed_sizes = steps
            .iter()
            .map(|step| if let FileState::File(stamp) = &step.original { stamp.size } else { 0 });
        if removed_sizes.fold(0u64, u64::saturating_add) > MAX_STAGED_BYTES {
            return Err(StageError::TooMuchRemoved);
        }
        let changes = ChangeDescriber::new(root, &steps, &moved).changes(is_over)?;
        Ok(Staged { workspace: Arc::clone(workspace), changes, steps, _directory: directory })
    }
}

impl StagedStep {
    /// Returns whether the path already has its new state.
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

/// Returns the SHA-256 digest of a whole file, read in pieces.
pub(super) fn file_digest(file: &mut impl io::Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&hasher.finalize())),
            read => hasher.update(&piece[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::test_environment::open_workspace;

    #[test]
    fn r101_a_stopped_call_is_not_compared() {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        let workspace = Arc::new(open_workspace(directory.path()));
        let written = || {
            let mut stage = Overlay::new(workspace.temp_dir());
            stage.create(workspace.dir(), "a").expect("there is room");
            stage
        };
        let checks = std::cell::Cell::new(0);
        for steps in 0..3 {
            checks.set(0);
            let is_over = || checks.replace(checks.get() + 1) == steps;
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
    fn new_content_without_a_diff_is_available_to_the_approver() {
        let folder = tempfile::tempdir().expect("create a temporary directory");
        std::fs::write(folder.path().join("old"), b"\0 moved").expect("write the file");
        let workspace = Arc::new(open_workspace(folder.path()));
        let mut stage = Overlay::new(workspace.temp_dir());
        let long = "x\n".repeat(600_000);
        let contents = [("nul", &b"Run this.\n\0\n"[..]), ("large", long.as_bytes())];
        for (place, content) in contents.into_iter().chain([("text", &b"a\n"[..])]) {
            stage.create(workspace.dir(), place).expect("there is room");
            let Some(StagedState::File(file)) = stage.get(place) else { panic!("no file") };
            std::fs::write(&file.data, content).expect("write the file");
        }
        stage.rename(workspace.dir(), "old", "new").expect("there is room");
        let staged = stage.finish(&workspace, &|| false).expect("it is compared");
        let mut undiffed: Vec<_> = staged
            .changes()
            .undiffed()
            .map(|(path, file)| {
                (path.as_str().to_owned(), std::fs::read(file).expect("read the file"))
            })
            .collect();
        undiffed.reverse();
        assert_eq!(undiffed, contents.map(|(path, content)| (path.to_owned(), content.to_vec())));
    }
}
