//! The task that drives a job: it reads the output, makes checkpoints, and decides on the changes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::checkpoint::{
    CheckpointResult, CommitRequest, SettledCheckpoint, check_mode, settle_checkpoint,
};
use super::job::{JobContext, JobStage, JobStatus, SharedJob};
use crate::policy::{ComponentDigest, Denial, DenialCode, Effect, SandboxLevel};
use crate::sandbox::CommandEnding;
use crate::sandbox::command_changes::{CommandChangeContext, SettledCommand};
use crate::sandbox::commands::{RanCommand, describe_refused_connections};
use crate::sandbox::egress::EgressProxy;
use crate::sandbox::gate::{DenialRecorder, Gate, GateRuling};
use cofferdam_confine::process::{
    BackgroundCommand, BackgroundEnding, BackgroundEvent, CommandFailure,
};

/// The reason of a stop that the model, the user or the end of the session caused.
const ON_REQUEST: &str = "on request";

/// The task that drives a job to its end.
pub(super) struct JobTask {
    pub(super) shared: Arc<SharedJob>,
    pub(super) stop: CancellationToken,
    pub(super) line_sha256: ComponentDigest,
}

impl JobTask {
    pub(super) async fn run(
        self,
        mut command: BackgroundCommand,
        mut requests: mpsc::Receiver<CommitRequest>,
        context: JobContext,
    ) {
        // Without a limit, this waits for longer than any session.
        let limit = context.max_time.unwrap_or(Duration::from_secs(u64::from(u32::MAX)));
        let deadline = tokio::time::sleep(limit);
        tokio::pin!(deadline);
        let mut stopped = None;
        let mut waiting: Option<CommitRequest> = None;
        // The result of the checkpoint, until the supervisor knows what was committed.
        let mut unsettled: Option<CheckpointResult> = None;
        let ended = loop {
            tokio::select! {
                Some(request) = requests.recv(), if waiting.is_none() => {
                    match Self::begin_checkpoint(&mut command, &context).await {
                        Ok(()) => waiting = Some(request),
                        // The caller may be gone.
                        Err(reason) => drop(request.send(Err(reason))),
                    }
                }
                event = command.next() => match event {
                    Some(BackgroundEvent::Checkpoint(checkpoint)) => {
                        let settled = settle_checkpoint(&context, checkpoint).await;
                        command.settle_checkpoint().await;
                        unsettled = Some(self.finish_checkpoint(settled, &context));
                    }
                    Some(BackgroundEvent::Settled) => {
                        reply(waiting.take(), unsettled.take());
                    }
                    Some(BackgroundEvent::Output(bytes)) => {
                        self.shared.update(|state| state.output.push(&bytes));
                    }
                    Some(BackgroundEvent::Ended(ending)) => break Some(ending),
                    Some(_) => {}
                    None => break None,
                },
                () = self.stop.cancelled() => {
                    stopped = Some(ON_REQUEST.to_owned());
                    break command.stop().await;
                }
                () = &mut deadline => {
                    stopped = Some(format!(
                        "at its time limit of {} s (`max_seconds` under [commands] in the \
                            configuration)",
                        limit.as_secs()
                    ));
                    break command.stop().await;
                }
            }
        };
        reply(waiting.take(), unsettled.take());
        if let Some(ending) = ended {
            self.finish(ending, stopped, context).await;
        }
    }

    async fn begin_checkpoint(
        command: &mut BackgroundCommand,
        context: &JobContext,
    ) -> Result<(), String> {
        check_mode(context)?;
        command.request_checkpoint().await.map_err(|error| match error.kind() {
            std::io::ErrorKind::Unsupported => "the command cannot change files".to_owned(),
            _ => error.to_string(),
        })
    }

    /// Records a checkpoint, and returns its result.
    fn finish_checkpoint(
        &self,
        checkpoint: SettledCheckpoint,
        context: &JobContext,
    ) -> CheckpointResult {
        let SettledCheckpoint { result, settled } = checkpoint;
        let remarks = match &result {
            Ok(notices) => notices.clone(),
            Err(reason) => vec![format!("nothing was committed: {reason}")],
        };
        let record = RanCommand {
            line_sha256: self.line_sha256.clone(),
            level: SandboxLevel::Full,
            ending: None,
            remarks: remarks.clone(),
            changes: settled.committed,
            more_changes: settled.more_committed,
            connections: Vec::new(),
            changed_files: settled.listed,
        };
        (context.recorder)(JobStage::Checkpoint, &record);
        if result.is_ok() {
            self.shared.add_notices(remarks);
        }
        result
    }

    /// Decides on the changes of the command, and records its end.
    async fn finish(self, ended: BackgroundEnding, stopped: Option<String>, context: JobContext) {
        let BackgroundEnding { ending, output, duration, mut notices, changes, .. } = ended;
        self.shared.update(|state| state.output.push(&output));
        let connections = context.proxy.as_ref().map(EgressProxy::finish).unwrap_or_default();
        notices.extend(describe_refused_connections(&connections));
        let settled = match changes {
            Some(changes) => {
                let gate = deny_changes(&context.changes.denials);
                let context = CommandChangeContext { gate, ..context.changes.clone() };
                context.workspace.links_may_change();
                context.settle(changes).await.unwrap_or_else(|error| {
                    notices.push(format!("all changes of the command were discarded: {error}"));
                    SettledCommand::default()
                })
            }
            None => SettledCommand::default(),
        };
        notices.extend(settled.notices);
        let record = RanCommand {
            line_sha256: self.line_sha256.clone(),
            level: SandboxLevel::Full,
            ending: ending.as_ref().ok().copied().filter(|_| stopped.is_none()),
            remarks: notices.clone(),
            changes: settled.committed,
            more_changes: settled.more_committed,
            connections,
            changed_files: settled.listed,
        };
        (context.recorder)(JobStage::End, &record);
        let status = describe_ending(&ending, stopped);
        self.shared.add_notices(notices);
        self.shared.update(|state| {
            state.status = status;
            state.duration = Some(duration);
        });
    }
}

impl Drop for JobTask {
    /// Ends the waiting of others if the task ended without a result, for example by a panic.
    fn drop(&mut self) {
        if self.shared.lock().status == JobStatus::Running {
            self.shared.update(|state| {
                state.status = JobStatus::Failed("its end was lost".to_owned());
            });
        }
    }
}

fn describe_ending(
    ending: &Result<CommandEnding, CommandFailure>,
    stopped: Option<String>,
) -> JobStatus {
    match (ending, stopped) {
        (Err(failure), _) => JobStatus::Failed(failure.to_string()),
        (Ok(_), Some(reason)) => JobStatus::Stopped(reason),
        (Ok(CommandEnding::Exited(code)), None) => JobStatus::Exited(*code),
        (Ok(CommandEnding::Killed(_)), None) => {
            JobStatus::Stopped("with too many processes".to_owned())
        }
        (Ok(CommandEnding::TimedOut), None) => JobStatus::Stopped(ON_REQUEST.to_owned()),
    }
}

/// Sends the result of a checkpoint to its caller, who may be gone.
fn reply(request: Option<CommitRequest>, result: Option<CheckpointResult>) {
    if let Some((request, result)) = request.zip(result) {
        drop(request.send(result));
    }
}

/// Returns a gate for what a job does while its calls have ended, when nobody expects a question:
/// changes that need an approval of their own, and connections to hosts that no rule allows.
pub(in crate::sandbox) fn deny_all() -> Gate {
    Arc::new(|_| Box::pin(std::future::ready(GateRuling::Denied(nobody_asked()))))
}

/// Returns such a gate that records the denied changes.
pub(in crate::sandbox) fn deny_changes(denials: &DenialRecorder) -> Gate {
    let denials = Arc::clone(denials);
    Arc::new(move |effect| {
        if let Effect::Write { changes, .. } = effect {
            denials(changes, nobody_asked());
        }
        Box::pin(std::future::ready(GateRuling::Denied(nobody_asked())))
    })
}

fn nobody_asked() -> Denial {
    Denial::new(
        DenialCode::NobodyToAsk,
        "it needs an approval of its own, and nobody is asked about what a background command or \
            a server does.",
        "Run the command in the foreground, or allow it with a rule.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_lets_nobody_wait_for_ever() {
        let shared = Arc::new(SharedJob::new());
        let task = JobTask {
            shared: Arc::clone(&shared),
            stop: CancellationToken::new(),
            line_sha256: ComponentDigest::compute(b"x"),
        };
        let mut version = shared.version.subscribe();
        let panicking = tokio::spawn(async move {
            let _task = task;
            panic!("simulated panic");
        });
        version.changed().await.expect("the state changes");
        assert_eq!(shared.lock().status, JobStatus::Failed("its end was lost".to_owned()));
        assert!(panicking.await.is_err());
    }
}
