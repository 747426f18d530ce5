//! Checks the paths of calls before they run.
//!
//! The checks run on another thread than the request, because a dead network mount blocks forever
//! and would also block a cancellation.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::policy::{Denial, FileGrant, WorkspacePath};
use crate::sandbox::Workspace;

/// Returns for each call why one of its paths is refused, if it is. Returns `None` if the request
/// was cancelled meanwhile.
pub(super) async fn find_path_denials(
    workspace: &Arc<Workspace>,
    calls: Vec<(Vec<WorkspacePath>, FileGrant)>,
    cancel: &CancellationToken,
) -> Option<Vec<Option<Denial>>> {
    let unrefused = vec![None; calls.len()];
    if calls.iter().all(|(paths, _)| paths.is_empty()) {
        return Some(unrefused);
    }
    let workspace = Arc::clone(workspace);
    let refusal = move |(paths, grant): &(Vec<WorkspacePath>, FileGrant)| {
        paths.iter().find_map(|path| workspace.find_denial(path, *grant))
    };
    // If a check panics, no path gets through because of it: the sandbox checks again.
    let looked = run_unless_cancelled(cancel, move || calls.iter().map(refusal).collect()).await?;
    Some(looked.unwrap_or(unrefused))
}

/// Runs work that may block on another thread. Returns `None` if the request is cancelled first;
/// the thread is then left behind.
async fn run_unless_cancelled<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<Result<T, tokio::task::JoinError>> {
    tokio::select! {
        biased;
        done = tokio::task::spawn_blocking(work) => Some(done),
        () = cancel.cancelled() => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::test_environment::open_workspace;

    #[tokio::test]
    async fn r100_a_blocked_check_does_not_delay_a_cancellation() {
        let (cancel, (never, blocked)) =
            (CancellationToken::new(), std::sync::mpsc::channel::<()>());
        let stop = cancel.clone();
        let check = run_unless_cancelled(&cancel, move || {
            stop.cancel();
            blocked.recv()
        });
        assert!(check.await.is_none());
        drop(never);
    }

    #[tokio::test]
    async fn each_call_is_refused_for_its_own_paths() {
        let directory = tempfile::tempdir().expect("temporary directory");
        std::os::unix::fs::symlink("/etc", directory.path().join("out")).expect("link created");
        let workspace = Arc::new(open_workspace(directory.path()));
        let call = |paths: &[&str]| {
            (
                paths.iter().map(|path| workspace.parse(path).expect("a path")).collect(),
                FileGrant::Read,
            )
        };
        let calls = vec![call(&["a"]), call(&["a", "out/passwd"]), call(&[])];
        let refused = find_path_denials(&workspace, calls, &CancellationToken::new())
            .await
            .expect("not cancelled");
        assert_eq!(refused.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
    }
}
