//! Whether the workspace is still as a command has seen it.

use std::io;

use cap_std::fs::Dir;
use rustix::io::Errno;

use super::entry::{EntryLocation, EntryStatus};
use super::tree::visit_tree;
use super::{MoveAction, MovePlan, PlannedMove};
use crate::sandbox::stage::commit::CommitError;
use cofferdam_confine::view::SeenEntry;

/// Checks that no path of a plan was changed by somebody else, and returns the size of the old
/// contents in bytes.
///
/// # Errors
/// A path was changed, or cannot be read.
pub(super) fn check_plan(root: &Dir, plan: &MovePlan) -> Result<u64, CommitError> {
    let mut bytes = 0_u64;
    for planned in &plan.moves {
        let at = |source| CommitError::Io { path: planned.path.clone(), source };
        let changed = |below: &str| {
            let separator = if below.is_empty() { "" } else { "/" };
            CommitError::Changed(format!("{}{separator}{below}", planned.path))
        };
        let location = match EntryLocation::open(root, &planned.path) {
            Ok(location) => location,
            // The directory above is gone, or is none any more.
            Err(error) if is_missing(&error) => return Err(changed("")),
            Err(error) => return Err(at(error)),
        };
        let found = location.status().map_err(at)?;
        let since = planned.unchanged_since(plan.since).ok_or_else(|| changed(""))?;
        if !planned.action.fits(found.as_ref(), since) {
            return Err(changed(""));
        }
        let old = match &planned.action {
            MoveAction::Replace { .. } | MoveAction::Remove => found,
            MoveAction::Create { .. } | MoveAction::SetMode { .. } => None,
        };
        let Some(old) = old else { continue };
        bytes = bytes.saturating_add(old.size);
        let changed_below = find_changed_below(&location, &old, since, &mut bytes).map_err(at)?;
        if let Some(below) = changed_below {
            return Err(changed(&below));
        }
    }
    Ok(bytes)
}

impl PlannedMove {
    /// Returns the time since which nobody else may have changed the path, or `None` if somebody
    /// has. `started` is the time at which the command got its view.
    pub(super) fn unchanged_since(&self, started: (i64, i64)) -> Option<(i64, i64)> {
        match self.seen {
            SeenEntry::AtStart => Some(started),
            SeenEntry::AtCheckpoint(time) => Some(time),
            SeenEntry::Lost => None,
        }
    }
}

impl MoveAction {
    /// Returns whether the entry at the path is as the command has seen it.
    pub(super) fn fits(&self, found: Option<&EntryStatus>, since: (i64, i64)) -> bool {
        match (self, found) {
            (Self::Create { .. }, found) => found.is_none(),
            // The time of a directory also changes with the entries in it.
            (Self::SetMode { .. }, Some(found)) => {
                found.has_mode() && (found.is_directory() || found.ctime <= since)
            }
            (Self::Replace { .. } | Self::Remove, Some(found)) => found.ctime <= since,
            (Self::SetMode { .. } | Self::Replace { .. } | Self::Remove, None) => false,
        }
    }
}

/// Returns an entry below a directory that was changed after this time. Adds the sizes of all.
fn find_changed_below(
    location: &EntryLocation,
    found: &EntryStatus,
    since: (i64, i64),
    bytes: &mut u64,
) -> io::Result<Option<String>> {
    if !found.is_directory() {
        return Ok(None);
    }
    let directory = match location.list() {
        Ok(directory) => directory,
        // Nobody without this permission has changed anything in it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut changed = None;
    visit_tree(directory, |entry| {
        *bytes = bytes.saturating_add(entry.status.size);
        if entry.status.ctime > since && changed.is_none() {
            changed = Some(entry.path.to_owned());
        }
        Ok(())
    })?;
    Ok(changed)
}

/// Returns whether a path cannot be opened because a directory in it does not exist.
pub(super) fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::NOTDIR.raw_os_error())
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}
