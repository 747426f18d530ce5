//! Commits what a job has changed so far, while it runs.

use tokio::sync::oneshot;

use super::job::JobContext;
use super::task::deny_changes;
use crate::policy::ApprovalMode;
use crate::sandbox::command_changes::{CommandChangeContext, CommitTime, SettledCommand};
use cofferdam_confine::process::CommandCheckpoint;

/// The result of a checkpoint: what the host did about the changes, or why it committed nothing.
pub(super) type CheckpointResult = Result<Vec<String>, String>;

/// A request to commit what a job has changed so far, with the receiver of the result.
pub(super) type CommitRequest = oneshot::Sender<CheckpointResult>;

/// A checkpoint on which the host has decided.
pub(super) struct SettledCheckpoint {
    pub(super) result: CheckpointResult,
    /// The committed changes.
    pub(super) settled: SettledCommand,
}

/// Checks whether the mode allows a checkpoint.
///
/// # Errors
/// The reason why nothing is committed.
pub(super) fn check_mode(context: &JobContext) -> Result<(), String> {
    match (context.changes.mode)() {
        // Whoever asks: the workspace stays as it is in this mode.
        ApprovalMode::Plan => Err("the mode `plan` does not allow changes of files".to_owned()),
        ApprovalMode::Ask | ApprovalMode::AutoEdit | ApprovalMode::Auto => Ok(()),
    }
}

/// Decides on the changes of a checkpoint, and commits the accepted ones. Nobody is asked.
pub(super) async fn settle_checkpoint(
    context: &JobContext,
    checkpoint: Result<CommandCheckpoint, String>,
) -> SettledCheckpoint {
    let failed = |reason: String| SettledCheckpoint {
        result: Err(reason),
        settled: SettledCommand::default(),
    };
    let CommandCheckpoint { changes, mut notices, .. } = match checkpoint {
        Ok(checkpoint) => checkpoint,
        Err(reason) => return failed(reason),
    };
    // It can have changed while the changes were collected.
    if let Err(reason) = check_mode(context) {
        return failed(reason);
    }
    let gate = deny_changes(&context.changes.denials);
    let denying = CommandChangeContext { gate, ..context.changes.clone() };
    denying.workspace.links_may_change();
    match denying.settle_at(CommitTime::Checkpoint, changes).await {
        Ok(settled) => {
            notices.insert(0, describe_count(&settled));
            notices.extend(settled.notices.iter().cloned());
            SettledCheckpoint { result: Ok(notices), settled }
        }
        Err(error) => failed(error.to_string()),
    }
}

fn describe_count(settled: &SettledCommand) -> String {
    let listed = u64::try_from(settled.committed.len()).unwrap_or(u64::MAX);
    match listed.saturating_add(settled.more_committed) {
        0 => "there was nothing to commit".to_owned(),
        1 => "1 change was committed; the command continues".to_owned(),
        count => format!("{count} changes were committed; the command continues"),
    }
}
