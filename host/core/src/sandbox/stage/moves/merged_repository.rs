//! Repositories that come about because the changes of two commands come together.
//!
//! The parts of a repository from which git runs code are restored in the view of each command. Two
//! commands at the same time, or a command and a tool, can each create a harmless part of one, so
//! the directory has to be looked at once more where the parts come together.

use cap_std::fs::Dir;
use rustix::fs::fstat;

use super::entry::EntryStatus;
use super::{MoveAction, MovePlan};
use crate::sandbox::rooted_fs;
use crate::sandbox::stage::commit::CommitError;
use crate::sandbox::stage::repository_parts::{find_parts, has_repository_shape};

/// Checks that no directory that somebody else has changed since the command began is a repository
/// together with the new entries of a plan in it.
///
/// # Errors
/// There is such a directory, or it cannot be read.
pub(super) fn check_merged_repositories(root: &Dir, plan: &MovePlan) -> Result<(), CommitError> {
    let new = plan.moves.iter().filter(|planned| match planned.action {
        MoveAction::Create { .. } | MoveAction::Replace { .. } => true,
        MoveAction::Remove | MoveAction::SetMode { .. } => false,
    });
    let parts = find_parts(new.map(|planned| planned.path.as_str()));
    for (directory, names) in parts {
        let at = |source| CommitError::Io { path: directory.to_owned(), source };
        let opened = rooted_fs::open_dir(root, directory).map_err(at)?;
        let status = fstat(&opened).map_err(|error| at(error.into()))?;
        if EntryStatus::from_stat(&status).ctime <= plan.since {
            continue;
        }
        if has_repository_shape(&opened, &names).map_err(at)? {
            let name = names.first().copied().unwrap_or_default();
            let separator = if directory.is_empty() { "" } else { "/" };
            return Err(CommitError::Changed(format!("{directory}{separator}{name}")));
        }
    }
    Ok(())
}
