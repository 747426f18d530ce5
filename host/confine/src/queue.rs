//! A queue that allows one command at a time in a workspace, across all processes.
//!
//! Forbidden changes stay in the workspace until a command ends. The next command would treat them
//! as the user's files.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::own_file;

/// The maximum waiting time, after which the wait fails with an explanation.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The reason why a command cannot have its turn.
#[derive(Debug, thiserror::Error)]
pub(super) enum QueueError {
    #[error(transparent)]
    Lock(#[from] io::Error),
    #[error(
        "another command is running in this workspace, possibly from another session\nhint: try \
            again after it ends"
    )]
    Busy,
}

/// A guard that keeps other commands out of the workspace and of the directories above and below
/// it.
pub(super) struct CommandTurn(
    #[expect(dead_code, reason = "files are unlocked when they are closed")] Vec<File>,
);

/// Waits until no other command runs in the workspace, or returns `None` if `goes_on` returns
/// false.
///
/// Each directory from the root to the workspace has two locks: a file in `folder`, and the
/// directory itself, which also excludes other users and processes with another `folder`. The locks
/// of the workspace are exclusive. Those of the directories above are shared with commands in
/// sibling directories.
///
/// # Errors
/// A lock cannot be created, or the wait takes longer than 10 seconds.
pub(super) fn wait_for_turn(
    workspace: &Path,
    folder: &Path,
    mut goes_on: impl FnMut() -> bool,
) -> Result<Option<CommandTurn>, QueueError> {
    let locks = folder.join("locks");
    own_file::create_dir_io(folder)?;
    own_file::create_dir_io(&locks)?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    let owner = fs::metadata(workspace)?.uid();
    let mut held = Vec::new();
    // The order from the root down prevents deadlocks.
    for above in workspace.ancestors().collect::<Vec<_>>().into_iter().rev() {
        let metadata = fs::metadata(above)?;
        let path = locks.join(format!("{:x}-{:x}", metadata.dev(), metadata.ino()));
        let lock = own_file::open_lock(&path)?;
        let is_own = above == workspace;
        // A directory that this user cannot list has no lock, nor does one on a file system without
        // directory locks. Directories of other owners, such as `/tmp`, are skipped, because any
        // user could hold their locks.
        let directory = (metadata.uid() == owner).then(|| File::open(above).ok()).flatten();
        for (lock, is_needed) in [(Some(lock), true), (directory, false)] {
            let Some(lock) = lock else { continue };
            loop {
                match if is_own { lock.try_lock() } else { lock.try_lock_shared() } {
                    Ok(()) => break,
                    Err(TryLockError::Error(error)) if is_needed => return Err(error.into()),
                    Err(TryLockError::Error(_)) => break,
                    Err(TryLockError::WouldBlock) if !goes_on() => return Ok(None),
                    Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                        return Err(QueueError::Busy);
                    }
                    Err(TryLockError::WouldBlock) => std::thread::sleep(POLL_INTERVAL),
                }
            }
            held.push(lock);
        }
    }
    Ok(Some(CommandTurn(held)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_one_workspace_wait_for_each_other_and_those_beside_do_not() {
        let (state, root) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let [outer, inner, beside] = ["a", "a/b", "c"].map(|name| root.path().join(name));
        fs::create_dir_all(&inner).expect("it is made");
        fs::create_dir_all(&beside).expect("it is made");
        // A caller that would have to wait gives up at once.
        let turn = |workspace: &Path| {
            wait_for_turn(workspace, state.path(), || false).expect("it can be locked")
        };
        let one = turn(&outer);
        assert!(one.is_some());
        for waits in [&outer, &inner] {
            assert!(turn(waits).is_none(), "{}", waits.display());
        }
        assert!(turn(&beside).is_some());
        drop(one);
        let one = turn(&inner);
        assert!(one.is_some() && turn(&outer).is_none());
        // Another user has locks in another place.
        let others = tempfile::tempdir().expect("a folder");
        let other_turn = |workspace: &Path| {
            wait_for_turn(workspace, others.path(), || false).expect("it can be locked")
        };
        assert!(other_turn(&outer).is_none() && other_turn(&inner).is_none());
        assert!(other_turn(&beside).is_some());
        drop(one);
        assert!(other_turn(&outer).is_some());
    }
}
