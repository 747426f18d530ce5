//! The `jobs` interface: background commands of a plugin.

use std::sync::Arc;
use std::time::Duration;

use super::job::{JobContext, JobDescription, JobReading};
use super::task::deny_all;
use super::{Job, JobId, JobRecorder, JobStatus, JobTable, JobTableError};
use crate::policy::{ApprovalMode, ComponentDigest, Denial, DenialCode, Effect};
use crate::sandbox::call_state::not_granted;
use crate::sandbox::clock::CallClock;
use crate::sandbox::commands::{CommandAccess, CommandProblem};
use crate::sandbox::contract::v0_2::jobs as wit;
use crate::sandbox::gate::GateRuling;
use cofferdam_confine::process::{
    BackgroundStreams, CommandTimeLimit, CommandWorkspace, ProxyFactory, check_background,
    start_in_background,
};

/// The largest input, 64 KiB by the WIT contract.
const MAX_INPUT_LEN: usize = 64 << 10;
/// The longest wait, 600 seconds by the WIT contract.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// The host's state of the `jobs` interface for one call.
pub(in crate::sandbox) struct JobsHost {
    /// `None` without the permission to run commands.
    access: Option<JobAccess>,
    clock: Arc<CallClock>,
}

/// What running jobs takes.
pub(in crate::sandbox) struct JobAccess {
    pub(in crate::sandbox) commands: CommandAccess,
    /// `None` if the call belongs to no session.
    pub(in crate::sandbox) table: Option<Arc<JobTable>>,
    pub(in crate::sandbox) recorder: JobRecorder,
    /// The component of the call.
    pub(in crate::sandbox) owner: ComponentDigest,
}

impl JobsHost {
    pub(in crate::sandbox) fn new(access: Option<JobAccess>, clock: &Arc<CallClock>) -> Self {
        Self { access, clock: Arc::clone(clock) }
    }

    fn access(&self) -> Result<(&JobAccess, &Arc<JobTable>), wit::JobError> {
        let Some(access) = &self.access else {
            return Err(denied(not_granted("run commands", "run-commands")));
        };
        let table = access.table.as_ref().ok_or_else(|| {
            denied(Denial::new(
                DenialCode::NobodyToAsk,
                "background commands end with their session, and this call belongs to none.",
                "Run the command in the foreground.",
            ))
        })?;
        Ok((access, table))
    }

    fn find(&self, id: u32) -> Result<Arc<Job>, wit::JobError> {
        let (access, table) = self.access()?;
        table.find_own(JobId::new(id), &access.owner).ok_or(wit::JobError::UnknownJob(id))
    }

    /// Waits for `waiting`, unless the call is cancelled first.
    async fn wait<T>(&self, waiting: impl Future<Output = T>) -> Result<T, wit::JobError> {
        let _paused = self.clock.pause();
        let cancellation = self.clock.cancellation();
        cancellation.run_until_cancelled(waiting).await.ok_or_else(|| {
            denied(Denial::without_remedy(DenialCode::Cancelled, "the user cancelled the request."))
        })
    }
}

impl wit::Host for JobsHost {
    async fn start(&mut self, start: wit::JobStart) -> Result<u32, wit::JobError> {
        let (access, table) = self.access()?;
        let commands = &access.commands;
        let workspace = &commands.changes.workspace;
        let directory = commands.check_line(&start.line, &start.directory)?;
        // Nobody is asked about what will not run.
        commands.commands.allowed_level().map_err(denied)?;
        check_background(&commands.commands, workspace.root()).map_err(|problem| {
            denied(Denial::new(
                DenialCode::NoSandbox,
                format!("{problem}."),
                "Run the command in the foreground. The user can see with `cofferdam doctor` what \
                    a private view needs.",
            ))
        })?;
        table.check_room().map_err(too_many)?;
        let paused = self.clock.pause();
        let effect = Effect::Command { line: start.line, directory, background: true };
        let permit = match (commands.changes.gate)(effect).await {
            GateRuling::Permitted(permit) => permit,
            GateRuling::Denied(denial) => return Err(denied(denial)),
        };
        let Effect::Command { line, directory, .. } = permit.effect() else {
            return Err(wit::JobError::Failed("the approval is not for a command".to_owned()));
        };
        let description = JobDescription {
            line: line.clone(),
            directory: directory.as_str().to_owned(),
            terminal: start.terminal,
            owner: access.owner.clone(),
        };
        let place = CommandWorkspace {
            root: workspace.root(),
            protected: workspace.guard().paths(),
            // They would need the turn of the workspace until the command ends.
            direct: &[],
            writes_directly: false,
        };
        let streams = match start.terminal {
            true => BackgroundStreams::Terminal,
            false => BackgroundStreams::Pipes,
        };
        // Nobody may be there to ask about a host.
        let no_limit = CommandTimeLimit::new(Duration::MAX);
        let proxy = commands.new_proxy(&description.line, &deny_all(), &no_limit);
        let starter = proxy.as_ref().map(|proxy| || proxy.starter());
        let starter = starter.as_ref().map(|starter| starter as ProxyFactory<'_>);
        let started =
            start_in_background(permit, place, &commands.commands, streams, starter).await;
        let started = started.map_err(|failure| wit::JobError::Failed(failure.to_string()))?;
        let context = JobContext {
            changes: commands.changes.clone(),
            proxy,
            recorder: Arc::clone(&access.recorder),
            max_time: commands.max_time(),
        };
        let job = table.add(|id| Job::start(id, description, started, context));
        drop(paused);
        job.map(|job| job.id().number()).map_err(too_many)
    }

    async fn list_jobs(&mut self) -> Result<Vec<wit::Job>, wit::JobError> {
        let (access, table) = self.access()?;
        let jobs = table.jobs();
        let own = jobs.iter().filter(|job| job.owner() == &access.owner);
        Ok(own.map(|job| describe_job(job)).collect())
    }

    async fn read(
        &mut self,
        id: u32,
        until: wit::WaitCondition,
        timeout: u64,
    ) -> Result<wit::JobOutput, wit::JobError> {
        let timeout = Duration::from_nanos(timeout);
        if timeout > MAX_WAIT {
            return Err(wit::JobError::Invalid(format!(
                "the timeout {} is not valid: use 0 to 600 seconds",
                timeout.as_secs_f64()
            )));
        }
        let job = self.find(id)?;
        let waiting = async {
            match until {
                wit::WaitCondition::Output => job.wait_for_output().await,
                wit::WaitCondition::End => job.wait_for_end().await,
            }
        };
        // Without news, the reader gets the state as it is.
        let _ = self.wait(tokio::time::timeout(timeout, waiting)).await?;
        Ok(job.take_news().into())
    }

    async fn write(&mut self, id: u32, text: String, close: bool) -> Result<(), wit::JobError> {
        if text.len() > MAX_INPUT_LEN {
            return Err(wit::JobError::Invalid("an input must be at most 64 KiB".to_owned()));
        }
        let job = self.find(id)?;
        if job.status() != JobStatus::Running {
            return Err(wit::JobError::Failed("the command has ended".to_owned()));
        }
        let (access, _) = self.access()?;
        let paused = self.clock.pause();
        let ruled = job.ruled_input(&text);
        let effect = Effect::Input { line: job.line().to_owned(), text, ruled };
        let permit = match (access.commands.changes.gate)(effect).await {
            GateRuling::Permitted(permit) => permit,
            GateRuling::Denied(denial) => return Err(denied(denial)),
        };
        drop(paused);
        let Effect::Input { text, .. } = permit.into_effect() else {
            return Err(wit::JobError::Failed("the approval is not for an input".to_owned()));
        };
        let written = self.wait(job.write(&text, close)).await?;
        written.map_err(|problem| {
            wit::JobError::Failed(format!("cannot write to the command: {problem}"))
        })
    }

    async fn commit(&mut self, id: u32) -> Result<wit::JobOutput, wit::JobError> {
        let job = self.find(id)?;
        let (access, _) = self.access()?;
        if (access.commands.changes.mode)() == ApprovalMode::Plan {
            let reason = format!("mode `{}` denies changes.", ApprovalMode::Plan);
            return Err(denied(Denial::without_remedy(DenialCode::Mode, reason)));
        }
        // The approval of the command covers its changes, and each of them is judged, as at its
        // end.
        let committed = self.wait(job.commit()).await?;
        committed
            .map_err(|reason| wit::JobError::Failed(format!("nothing was committed: {reason}")))?;
        Ok(job.take_news().into())
    }

    async fn stop(&mut self, id: u32) -> Result<wit::JobOutput, wit::JobError> {
        let job = self.find(id)?;
        job.request_stop();
        self.wait(job.wait_for_end()).await?;
        Ok(job.take_news().into())
    }
}

fn describe_job(job: &Job) -> wit::Job {
    wit::Job {
        id: job.id().number(),
        line: job.line().to_owned(),
        directory: job.directory().to_owned(),
        terminal: job.has_terminal(),
        status: job.status().into(),
        elapsed: u64::try_from(job.elapsed().as_nanos()).unwrap_or(u64::MAX),
        unread: job.unread(),
    }
}

impl From<JobStatus> for wit::JobStatus {
    fn from(status: JobStatus) -> Self {
        match status {
            JobStatus::Running => Self::Running,
            JobStatus::Exited(code) => Self::Exited(code),
            JobStatus::Stopped(reason) => Self::Stopped(reason),
            JobStatus::Failed(reason) => Self::Failed(reason),
        }
    }
}

impl From<JobReading> for wit::JobOutput {
    fn from(reading: JobReading) -> Self {
        let JobReading { status, output, notices } = reading;
        Self { status: status.into(), text: output.text, dropped: output.dropped, notices }
    }
}

impl From<CommandProblem> for wit::JobError {
    fn from(problem: CommandProblem) -> Self {
        match problem {
            CommandProblem::Denied(denial) => denied(denial),
            CommandProblem::Invalid(problem) => Self::Invalid(problem),
        }
    }
}

fn denied(denial: Denial) -> wit::JobError {
    wit::JobError::Denied(denial.into())
}

fn too_many(error: JobTableError) -> wit::JobError {
    denied(Denial::without_remedy(DenialCode::TooMany, format!("{error}.")))
}
