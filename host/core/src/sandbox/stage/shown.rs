//! Describes changes whose new entries lie outside the workspace, for the user's decision.

use std::fs::{self, File};
use std::path::PathBuf;

use cap_std::fs::Dir;

use super::describe::ChangeDescriber;
use super::file_state::FileState;
use super::staged::{StageError, StagedStep, TargetState, file_digest};
use crate::policy::ChangeSet;
use cofferdam_confine::view::LayerEntryKind;

/// A change to describe.
#[derive(Debug)]
pub(in crate::sandbox) struct ShownChange {
    /// The path in the workspace.
    pub(in crate::sandbox) path: String,
    /// The new entry with its kind; `None` if the path is removed.
    pub(in crate::sandbox) entry: Option<(PathBuf, LayerEntryKind)>,
}

/// Describes changes with diffs.
///
/// # Errors
/// A file cannot be read.
pub(in crate::sandbox) fn describe_shown(
    root: &Dir,
    shown: Vec<ShownChange>,
) -> std::io::Result<ChangeSet> {
    let mut steps = Vec::with_capacity(shown.len());
    for ShownChange { path, entry } in shown {
        let original = FileState::read(root, &path)?;
        let target = match entry {
            None => TargetState::Absent,
            Some((_, LayerEntryKind::Directory)) => TargetState::Directory { rights: None },
            Some((data, LayerEntryKind::Link)) => {
                TargetState::Link(fs::read_link(data)?.to_string_lossy().into_owned())
            }
            Some((data, _)) => {
                let digest = file_digest(&mut File::open(&data)?)?;
                TargetState::File { data, digest, rights: None }
            }
        };
        steps.push(StagedStep { path, original, target });
    }
    ChangeDescriber::new(root, &steps, &[]).changes(&|| false).map_err(|error| match error {
        StageError::Io(error) => error,
        other => std::io::Error::other(other.to_string()),
    })
}
