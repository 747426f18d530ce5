//! The task that drives the process of a server.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::access::settled_record;
use super::{ServerCommit, SharedProcess};
use crate::sandbox::command_changes::{CommitTime, SettledCommand};
use crate::sandbox::jobs::JobStage;
use cofferdam_confine::CommandEnding;
use cofferdam_confine::process::{
    BackgroundCommand, BackgroundEnding, BackgroundEvent, CommandCheckpoint,
};
use cofferdam_confine::view::CommandChanges;

/// The task that drives the process of a server to its end.
pub(super) struct ServerTask {
    pub(super) shared: Arc<SharedProcess>,
    pub(super) stop: CancellationToken,
}

/// The outcome of a request for a commit.
type CommitOutcome = Result<SettledCommand, String>;

impl ServerTask {
    pub(super) async fn run(
        self,
        mut command: BackgroundCommand,
        mut requests: mpsc::Receiver<ServerCommit>,
    ) {
        let mut waiting: Option<ServerCommit> = None;
        // The outcome, until the supervisor knows what was committed.
        let mut unsettled: Option<CommitOutcome> = None;
        let ended = loop {
            tokio::select! {
                Some(request) = requests.recv(), if waiting.is_none() => {
                    match command.request_checkpoint().await {
                        Ok(()) => waiting = Some(request),
                        // The caller may be gone.
                        Err(error) => drop(request.reply.send(Err(error.to_string()))),
                    }
                }
                event = command.next() => match event {
                    Some(BackgroundEvent::Checkpoint(checkpoint)) => {
                        unsettled = Some(match &waiting {
                            Some(request) => settle(request, checkpoint).await,
                            None => Err("nobody asked for the changes".to_owned()),
                        });
                        command.settle_checkpoint().await;
                    }
                    Some(BackgroundEvent::Settled) => {
                        if let Some((request, outcome)) = waiting.take().zip(unsettled.take()) {
                            reply(request, outcome);
                        }
                    }
                    Some(BackgroundEvent::Output(bytes)) => self.shared.push_errors(&bytes),
                    Some(BackgroundEvent::Ended(ending)) => break Some(ending),
                    Some(_) => {}
                    None => break None,
                },
                () = self.stop.cancelled() => break command.stop().await,
            }
        };
        drop(command);
        let mut left = ended.and_then(|ended| self.finish(ended));
        let pending = waiting.take().map(|request| (request, unsettled.take()));
        if let Some((request, outcome)) = pending {
            let outcome = match outcome {
                Some(outcome) => outcome,
                None => settle_rest(&request, left.take()).await,
            };
            reply(request, outcome);
        }
        if self.stop.is_cancelled() {
            return;
        }
        // The call during which the server ended still decides on its changes.
        while let Some(request) = requests.recv().await {
            let outcome = settle_rest(&request, left.take()).await;
            reply(request, outcome);
        }
    }

    /// Publishes the end, and returns the changes that no call has decided on.
    fn finish(&self, ended: BackgroundEnding) -> Option<CommandChanges> {
        let BackgroundEnding { ending, output, changes, .. } = ended;
        self.shared.push_errors(&output);
        let reason = match ending {
            _ if self.stop.is_cancelled() => "the host ended it".to_owned(),
            Ok(CommandEnding::Exited(code)) => format!("it exited with code {code}"),
            Ok(CommandEnding::Killed(_)) => "it had too many processes".to_owned(),
            Ok(CommandEnding::TimedOut) => "the host ended it".to_owned(),
            Err(failure) => failure.to_string(),
        };
        let reason = self.shared.describe_end(&reason);
        self.shared.end.send_replace(Some(reason));
        changes
    }
}

impl Drop for ServerTask {
    /// Ends the waiting of others, also if the task panicked.
    fn drop(&mut self) {
        if let Some(proxy) = &self.shared.proxy {
            proxy.finish();
        }
        self.shared.end.send_if_modified(|end| {
            let is_open = end.is_none();
            if is_open {
                *end = Some("its end was lost".to_owned());
            }
            is_open
        });
    }
}

/// Sends the outcome to the call, or records it if the call has ended meanwhile.
fn reply(request: ServerCommit, outcome: CommitOutcome) {
    let ServerCommit { reply, late_recorder, line_sha256, .. } = request;
    if let Err(Ok(settled)) = reply.send(outcome)
        && !settled.committed.is_empty()
    {
        let remarks = settled.notices.clone();
        let record = settled_record(&line_sha256, remarks, settled, Vec::new());
        late_recorder(JobStage::Checkpoint, &record);
    }
}

/// Decides on the changes of a checkpoint, and commits the accepted ones.
async fn settle(
    request: &ServerCommit,
    checkpoint: Result<CommandCheckpoint, String>,
) -> CommitOutcome {
    let CommandCheckpoint { changes, notices, .. } = checkpoint?;
    settle_changes(request, CommitTime::Checkpoint, changes, notices).await
}

/// Decides on the changes of a server that has ended.
async fn settle_rest(request: &ServerCommit, changes: Option<CommandChanges>) -> CommitOutcome {
    match changes {
        Some(changes) => settle_changes(request, CommitTime::End, changes, Vec::new()).await,
        None => Ok(SettledCommand::default()),
    }
}

async fn settle_changes(
    request: &ServerCommit,
    time: CommitTime,
    changes: CommandChanges,
    notices: Vec<String>,
) -> CommitOutcome {
    let context = &request.context;
    context.workspace.links_may_change();
    match context.settle_at(time, changes).await {
        Ok(mut settled) => {
            settled.notices.splice(0..0, notices);
            Ok(settled)
        }
        Err(error) => Err(error.to_string()),
    }
}
