//! Looking at the paths of calls before they run: away from the request's own task, since a dead
//! network mount answers nobody, and least of all somebody who wants the request to stop.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::policy::{Denial, FileGrant, WorkspacePath};
use crate::sandbox::Workspace;

/// Why each of these calls is refused its paths, if it is; `None` if the request was cancelled
/// meanwhile.
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
    // Should this panic, nothing is let through by it: the sandbox refuses as well.
    let looked = run_unless_cancelled(cancel, move || calls.iter().map(refusal).collect()).await?;
    Some(looked.unwrap_or(unrefused))
}

/// What work comes to that may block; `None` if it is cancelled before its end: its thread is left
/// behind then.
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

    #[tokio::test]
    async fn r100_a_look_that_never_ends_does_not_hold_a_stop_back() {
        let (cancel, (never, blocked)) =
            (CancellationToken::new(), std::sync::mpsc::channel::<()>());
        let stop = cancel.clone();
        let looking = run_unless_cancelled(&cancel, move || {
            stop.cancel();
            blocked.recv()
        });
        assert!(looking.await.is_none());
        drop(never);
    }

    #[tokio::test]
    async fn each_call_hears_of_its_own_paths() {
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink("/etc", folder.path().join("out")).expect("it is made");
        let workspace = Arc::new(Workspace::open(folder.path()).expect("it opens"));
        let call = |paths: &[&str]| {
            (
                paths.iter().map(|path| workspace.parse(path).expect("a path")).collect(),
                FileGrant::Read,
            )
        };
        let calls = vec![call(&["a"]), call(&["a", "out/passwd"]), call(&[])];
        let refused = find_path_denials(&workspace, calls, &CancellationToken::new())
            .await
            .expect("nobody stopped it");
        assert_eq!(refused.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
    }
}
