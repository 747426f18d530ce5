//! Restoring the protected paths of a workspace after a command, in rounds of searching.

use std::path::Path;
use std::time::{Duration, Instant};

use super::restore::{RestorePhase, SnapshotRestore};
use super::set_aside::{HeldEntry, UnmovedEntries};
use super::snapshot::{
    LayerScope, MAX_ENTRIES, OpenedDirectories, ProtectedSnapshot, ProtectionError,
};
use cofferdam_policy::ProtectedPaths;

/// The time limit for checking the paths that were protected before a command, which comes first.
const KNOWN_PATHS_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit for searching the workspace. New directories that are not searched by then are
/// moved away.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of search rounds. Entries behind a crowd are found only after it is removed.
const MAX_ROUNDS: usize = 20;
/// The minimum time for removing crowds. Four times the duration of the command is added.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);

/// What restoring the protected paths left.
#[derive(Debug, Default)]
pub(super) struct RestoredPaths {
    pub(super) notices: Vec<String>,
    /// The entries to be moved to the quarantine directory when the private view is unmounted.
    pub(super) held: Vec<HeldEntry>,
    /// Whether a file that was there before could not be restored.
    pub(super) has_unrestored: bool,
}

/// Restores all protected paths: first those known before, then those that a search finds.
///
/// With a scope, the command had a private view, and the search leaves out what the command cannot
/// have changed.
///
/// # Errors
/// The workspace cannot be searched. In a private view, also if a path cannot be restored: the
/// changes of the command must not be committed then.
pub(super) fn restore_protected_paths(
    (root, set_aside): (&Path, &Path),
    protected: &ProtectedPaths,
    keeping: bool,
    before: &ProtectedSnapshot,
    scope: Option<&LayerScope>,
    took: Duration,
) -> Result<RestoredPaths, ProtectionError> {
    // Directories are opened before the search, because it finds nothing below a closed one.
    let mut opened =
        OpenedDirectories::open_after(root, before, scope, Instant::now() + SEARCH_TIMEOUT)?;
    let unmoved = if scope.is_some() { UnmovedEntries::Hold } else { UnmovedEntries::Rename };
    let mut restoration = SnapshotRestore::new(root, before, set_aside, unmoved)
        .map_err(ProtectionError::OpenWorkspace)?;
    for notice in opened.notices() {
        restoration.add_notice(|| notice);
    }
    let known = ProtectedSnapshot::capture_known(
        root,
        protected,
        keeping,
        before,
        (&opened, scope),
        Instant::now() + KNOWN_PATHS_TIMEOUT,
    )?;
    restoration.restore(&known, RestorePhase::Known);
    known.restore_modes(root, before);
    opened.reopen(root);
    let until = Instant::now() + REMOVAL_TIMEOUT + 4 * took;
    let mut is_moved_back = false;
    for round in 0..MAX_ROUNDS {
        if round > 0 {
            opened.close(root, before);
            opened = OpenedDirectories::open_after(
                root,
                before,
                scope,
                Instant::now() + SEARCH_TIMEOUT,
            )?;
            for notice in opened.notices() {
                restoration.add_notice(|| notice);
            }
        }
        let capture = || {
            let until = Instant::now() + SEARCH_TIMEOUT;
            let seen = (&opened, scope);
            ProtectedSnapshot::capture_after(root, protected, keeping, before, seen, until)
        };
        let mut after = capture()?;
        // Entries that the command removed are counted only by a search of everything.
        if let Some(scope) = scope
            && after.growth.exceeds_limit(MAX_ENTRIES)
        {
            after.restore_modes(root, before);
            scope.cover_all();
            after = capture()?;
        }
        after.growth.is_truncated |= opened.is_truncated();
        if !after.moved.is_empty() && !is_moved_back {
            is_moved_back = true;
            opened.close(root, before);
            restoration.move_back(&after);
            after.restore_modes(root, before);
            continue;
        }
        restoration.restore(&after, RestorePhase::All);
        restoration.take_away_too_deep(&after);
        let is_too_much = after.growth.exceeds_limit(MAX_ENTRIES);
        if is_too_much {
            restoration.reduce_growth(&after.growth, &before.inventory, until);
        }
        after.restore_modes(root, before);
        if let Some(scope) = scope {
            restoration.held().iter().for_each(|held| scope.leave_out(&held.from));
        }
        if !is_too_much && !restoration.take_left_in_workspace() {
            opened.close(root, before);
            return match restoration.failure().filter(|_| scope.is_some()) {
                Some(failure) => Err(ProtectionError::NotRestored(failure.to_owned())),
                None => {
                    let held = restoration.take_held();
                    let has_unrestored = restoration.has_unrestored();
                    Ok(RestoredPaths { notices: restoration.into_notices(), held, has_unrestored })
                }
            };
        }
        if Instant::now() > until {
            break;
        }
    }
    opened.close(root, before);
    let problem = "the workspace has too many files to restore the protected paths in all of its \
        directories";
    if scope.is_some() {
        return Err(ProtectionError::NotRestored(problem.to_owned()));
    }
    restoration.add_notice(|| format!("{problem}; remove some"));
    let has_unrestored = restoration.has_unrestored();
    Ok(RestoredPaths { notices: restoration.into_notices(), held: Vec::new(), has_unrestored })
}

/// Restores the files of an earlier snapshot that do not exist any more. Returns whether all of
/// them exist now, and the notices.
///
/// # Errors
/// The workspace cannot be opened.
pub(super) fn restore_missing_files(
    (root, set_aside): (&Path, &Path),
    before: &ProtectedSnapshot,
) -> std::io::Result<(bool, Vec<String>)> {
    let mut restoration = SnapshotRestore::new(root, before, set_aside, UnmovedEntries::Rename)?;
    restoration.restore_missing();
    Ok((!restoration.has_unrestored(), restoration.into_notices()))
}
