//! One command at a time in a workspace, whoever runs it: what a command may not leave behind is
//! there until it is over, and the next one would take it for the user's.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Nobody waits for longer without hearing why.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// While this lives, no other command runs in the workspace, above it or below it.
pub(super) struct CommandTurn(
    #[expect(dead_code, reason = "files are unlocked when they are closed")] Vec<File>,
);

/// Waits for the others; `None` if nobody waits for this one any more. The locks are files in
/// `folder`, one for each folder from the root to the workspace; the workspace's own is held alone,
/// the others together with the commands beside it.
pub(super) fn wait_for_turn(
    workspace: &Path,
    folder: &Path,
    mut goes_on: impl FnMut() -> bool,
) -> Result<Option<CommandTurn>, String> {
    let failed =
        |error: io::Error| format!("cannot wait for other commands in this workspace: {error}");
    let locks = folder.join("locks");
    fs::create_dir_all(&locks).map_err(failed)?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    let mut held = Vec::new();
    // From the root on, so that no two of them wait for each other.
    for above in workspace.ancestors().collect::<Vec<_>>().into_iter().rev() {
        let metadata = fs::metadata(above).map_err(failed)?;
        let path = locks.join(format!("{:x}-{:x}", metadata.dev(), metadata.ino()));
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let try_lock = || if above == workspace { lock.try_lock() } else { lock.try_lock_shared() };
        loop {
            match try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) if !goes_on() => return Ok(None),
                Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                    return Err("another command is still running in this workspace, perhaps of \
                        another session. \
                        Try again when it is over"
                        .to_owned());
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(POLL_INTERVAL),
            }
        }
        held.push(lock);
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
        // Whoever has to wait is told to give up.
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
    }
}
