//! One background command: its state, and the task that drives it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::JobId;
use super::checkpoint::{
    CheckpointRequest, CheckpointResult, SettledCheckpoint, check_mode, settle_checkpoint,
};
use super::output::{JobOutput, NewOutput};
use crate::policy::{ComponentDigest, Denial, DenialCode, Effect, SandboxLevel};
use crate::sandbox::CommandEnding;
use crate::sandbox::command_changes::{CommandChangeContext, SettledCommand};
use crate::sandbox::commands::{RanCommand, describe_refused_connections};
use crate::sandbox::egress::EgressProxy;
use crate::sandbox::gate::{DenialRecorder, Gate, GateRuling};
use cofferdam_confine::process::{
    BackgroundCommand, BackgroundEnding, BackgroundEvent, BackgroundInput, CommandFailure,
};

/// The time for a program to read its input.
const INPUT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time without output after which a reader that waits for output gets it.
const QUIET_TIME: Duration = Duration::from_millis(200);
/// The longest that a reader waits for more output after the first.
const MAX_COLLECT_TIME: Duration = Duration::from_secs(2);
/// The bytes of an unfinished line of input that are remembered, as many as in a command line.
const MAX_UNFINISHED_LEN: usize = 128 << 10;
/// The number of notices of one checkpoint, or of the end, that are kept.
const MAX_NOTICES: usize = 100;
/// The number of notices that are kept in total.
const MAX_KEPT_NOTICES: usize = 1000;
/// The number of requests for a checkpoint that wait. Others wait before they are sent.
const MAX_WAITING_REQUESTS: usize = 4;

/// The reason of a stop that the model, the user or the end of the session caused.
const ON_REQUEST: &str = "on request";

/// Receives the record of a job, for the audit log: its changes at a checkpoint, or at its end.
pub type JobRecorder = Arc<dyn Fn(JobStage, &RanCommand) + Send + Sync>;

/// When a job has its changes recorded.
///
/// This enum is closed: each stage has a record of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStage {
    /// At a checkpoint. The job continues.
    Checkpoint,
    /// At its end.
    End,
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobStatus {
    /// The command runs, or its changes are being committed.
    Running,
    /// The command exited with this code, which is 128 plus the signal if a signal ended it.
    Exited(i32),
    /// The host ended the command: `on request`, or another end of a sentence.
    Stopped(String),
    /// The command did not run, for this reason.
    Failed(String),
}

/// A background command of a session.
pub struct Job {
    id: JobId,
    description: JobDescription,
    started: Instant,
    shared: Arc<SharedJob>,
    /// Ends the command. Also cancelled when the job is dropped.
    stop: CancellationToken,
    input: tokio::sync::Mutex<Option<BackgroundInput>>,
    /// The input since the last line break, which the next input continues.
    unfinished: Mutex<String>,
    /// Receives requests to commit what the command has changed so far.
    checkpoints: mpsc::Sender<CheckpointRequest>,
}

/// What a job runs.
#[derive(Clone, Debug)]
pub(super) struct JobDescription {
    pub(super) line: String,
    pub(super) directory: String,
    pub(super) terminal: bool,
    /// The component that started it.
    pub(super) owner: ComponentDigest,
}

/// What the task of a job needs.
pub(super) struct JobContext {
    pub(super) changes: CommandChangeContext,
    pub(super) proxy: Option<EgressProxy>,
    pub(super) recorder: JobRecorder,
    /// The time limit that the user set for commands.
    pub(super) max_time: Option<Duration>,
}

/// The part of a job that its task changes.
struct SharedJob {
    state: Mutex<JobState>,
    /// Incremented by each change of the state.
    version: watch::Sender<u64>,
}

struct JobState {
    output: JobOutput,
    status: JobStatus,
    notices: Vec<String>,
    /// The number of notices that were read.
    read_notices: usize,
    duration: Option<Duration>,
}

/// What a reader gets.
#[derive(Debug)]
pub(super) struct JobReading {
    pub(super) status: JobStatus,
    pub(super) output: NewOutput,
    pub(super) notices: Vec<String>,
}

impl Job {
    /// Starts the task of a running command.
    pub(super) fn start(
        id: JobId,
        description: JobDescription,
        (command, input): (BackgroundCommand, BackgroundInput),
        context: JobContext,
    ) -> Self {
        let shared = Arc::new(SharedJob::new());
        let stop = CancellationToken::new();
        let line_sha256 = ComponentDigest::compute(description.line.as_bytes());
        let task = JobTask { shared: Arc::clone(&shared), stop: stop.clone(), line_sha256 };
        let (checkpoints, requests) = mpsc::channel(MAX_WAITING_REQUESTS);
        tokio::spawn(task.run(command, requests, context));
        let input = tokio::sync::Mutex::new(Some(input));
        let (started, unfinished) = (Instant::now(), Mutex::default());
        Self { id, description, started, shared, stop, input, unfinished, checkpoints }
    }

    /// Returns the ID.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Returns the command line.
    pub fn line(&self) -> &str {
        &self.description.line
    }

    /// Returns the working directory, relative to the workspace.
    pub fn directory(&self) -> &str {
        &self.description.directory
    }

    /// Returns whether the command has a pseudo-terminal.
    pub fn has_terminal(&self) -> bool {
        self.description.terminal
    }

    /// Returns the state.
    pub fn status(&self) -> JobStatus {
        self.shared.lock().status.clone()
    }

    /// Returns the time since the start, or from start to end.
    pub fn elapsed(&self) -> Duration {
        self.shared.lock().duration.unwrap_or_else(|| self.started.elapsed())
    }

    /// Returns the number of bytes of output that the model has not read.
    pub fn unread(&self) -> u64 {
        self.shared.lock().output.unread()
    }

    /// Returns the last `most` bytes of output. They stay unread for the model.
    pub fn output_tail(&self, most: usize) -> String {
        self.shared.lock().output.tail(most)
    }

    /// Returns all notices about the changes of the command. They stay unread for the model.
    pub fn notices(&self) -> Vec<String> {
        self.shared.lock().notices.clone()
    }

    /// Ends the command with all of its processes. [`Self::wait_for_end`] waits for that.
    pub fn request_stop(&self) {
        self.stop.cancel();
    }

    /// Commits what the command has changed so far. All of its processes pause for a moment, and
    /// continue. Returns the notices about the changes, which stay unread for the model.
    ///
    /// # Errors
    /// The reason why nothing was committed. The changes stay in the private view of the command.
    pub async fn commit(&self) -> Result<Vec<String>, String> {
        let has_ended = || "the command has ended".to_owned();
        let (request, result) = oneshot::channel();
        self.checkpoints.send(request).await.map_err(|_| has_ended())?;
        result.await.map_err(|_| has_ended())?
    }

    /// Waits until the command has ended and its changes are committed or discarded.
    pub async fn wait_for_end(&self) {
        let mut version = self.shared.version.subscribe();
        while self.status() == JobStatus::Running && version.changed().await.is_ok() {}
    }

    /// Waits until there is unread output that has paused for a moment, or the command has ended.
    pub(super) async fn wait_for_output(&self) {
        let mut version = self.shared.version.subscribe();
        while self.status() == JobStatus::Running && self.unread() == 0 {
            if version.changed().await.is_err() {
                return;
            }
        }
        let _ = tokio::time::timeout(MAX_COLLECT_TIME, async {
            while self.status() == JobStatus::Running
                && tokio::time::timeout(QUIET_TIME, version.changed()).await.is_ok()
            {}
        })
        .await;
    }

    /// Takes the unread output and notices.
    pub(super) fn take_news(&self) -> JobReading {
        let mut state = self.shared.lock();
        let status = state.status.clone();
        let output = state.output.take(status != JobStatus::Running);
        let notices = state.notices[state.read_notices..].to_vec();
        state.read_notices = state.notices.len();
        JobReading { status, output, notices }
    }

    /// Returns the text to which rules apply if this input is written next: with the unfinished
    /// line before it, because the program sees both as one.
    pub(super) fn ruled_input(&self, text: &str) -> String {
        let joined = format!("{}{text}", self.lock_unfinished());
        joined.trim_end_matches(['\n', '\r']).to_owned()
    }

    fn lock_unfinished(&self) -> std::sync::MutexGuard<'_, String> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what was written since the last line break, in bounded memory.
    fn remember_unfinished(&self, text: &str) {
        let mut unfinished = self.lock_unfinished();
        unfinished.push_str(text);
        let start = unfinished.rfind(['\n', '\r']).map_or(0, |end| end + 1);
        let surplus = unfinished.len().saturating_sub(MAX_UNFINISHED_LEN);
        let start = unfinished.ceil_char_boundary(start.max(surplus));
        unfinished.drain(..start);
    }

    /// Writes to the standard input of the command.
    ///
    /// # Errors
    /// The input is closed, or the program does not read it.
    pub(super) async fn write(&self, text: &str, close: bool) -> Result<(), String> {
        let mut input = self.input.lock().await;
        let Some(open) = input.as_mut() else { return Err("its input is closed".to_owned()) };
        // A part may be written even if the rest fails.
        self.remember_unfinished(text);
        let mut written = 0;
        let writing = async {
            while let Some(rest @ [_, ..]) = text.as_bytes().get(written..) {
                written += open.write(rest).await?;
            }
            Ok::<_, std::io::Error>(())
        };
        let result = match tokio::time::timeout(INPUT_TIMEOUT, writing).await {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err(format!(
                "the program read {written} of {} bytes in {} s",
                text.len(),
                INPUT_TIMEOUT.as_secs()
            )),
        };
        if close {
            *input = None;
        }
        result
    }

    pub(super) fn owner(&self) -> &ComponentDigest {
        &self.description.owner
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("id", &self.id)
            .field("description", &self.description)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

impl SharedJob {
    fn new() -> Self {
        let state = JobState {
            output: JobOutput::default(),
            status: JobStatus::Running,
            notices: Vec::new(),
            read_notices: 0,
            duration: None,
        };
        Self { state: Mutex::new(state), version: watch::Sender::new(0) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds notices, and forgets the oldest ones if there are too many.
    fn add_notices(&self, mut notices: Vec<String>) {
        notices.truncate(MAX_NOTICES);
        self.update(|state| {
            state.notices.extend(notices);
            let surplus = state.notices.len().saturating_sub(MAX_KEPT_NOTICES);
            state.notices.drain(..surplus);
            state.read_notices = state.read_notices.saturating_sub(surplus);
        });
    }

    fn update(&self, change: impl FnOnce(&mut JobState)) {
        change(&mut self.lock());
        self.version.send_modify(|version| *version += 1);
    }
}

/// The task that drives a job to its end.
struct JobTask {
    shared: Arc<SharedJob>,
    stop: CancellationToken,
    line_sha256: ComponentDigest,
}

impl JobTask {
    async fn run(
        self,
        mut command: BackgroundCommand,
        mut requests: mpsc::Receiver<CheckpointRequest>,
        context: JobContext,
    ) {
        // Without a limit, this waits for longer than any session.
        let limit = context.max_time.unwrap_or(Duration::from_secs(u64::from(u32::MAX)));
        let deadline = tokio::time::sleep(limit);
        tokio::pin!(deadline);
        let mut stopped = None;
        let mut waiting: Option<CheckpointRequest> = None;
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
                        let result = self.finish_checkpoint(settled, &context);
                        if let Some(request) = waiting.take() {
                            drop(request.send(result));
                        }
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

/// Returns a gate for what a job does while its calls have ended, when nobody expects a question:
/// changes that need an approval of their own, and connections to hosts that no rule allows.
pub(super) fn deny_all() -> Gate {
    Arc::new(|_| Box::pin(std::future::ready(GateRuling::Denied(nobody_asked()))))
}

/// Returns such a gate that records the denied changes.
pub(super) fn deny_changes(denials: &DenialRecorder) -> Gate {
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
        "it needs an approval of its own, and nobody is asked about what a background command \
            does.",
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
