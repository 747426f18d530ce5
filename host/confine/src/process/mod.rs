//! Execution of an approved command, with the guarantee that none of its processes stay behind.
//!
//! A command runs as `sh -c LINE` outside WebAssembly, in a sandbox of the operating system
//! ([`crate`]). If the user disabled the sandbox, the command has all permissions of the user, and
//! the approval of its line is the only protection. A command has no input and an environment built
//! from a list. All its processes end with it.

mod background;
pub(crate) mod environment;
mod group;
mod head_and_tail;
pub(crate) mod ready_supervisor;
mod streams;
mod supervisor_handle;
mod time_limit;

use std::path::Path;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio_util::sync::CancellationToken;

use super::exit_code::exit_code;
use crate::view::{CommandChanges, PlannedView, ViewUnavailable};
use crate::{CommandLocation, CommandSandbox, ConfineError, ConfineStep, HostEnvironment};
pub use background::{
    BackgroundCommand, BackgroundEnding, BackgroundEvent, BackgroundStreams, CommandCheckpoint,
    check_background, start_in_background, start_server,
};
use cofferdam_policy::{
    DirectDirectory, Effect, Permit, ProtectedPaths, SandboxLevel, WorkspaceAccess,
};
use group::ProcessGroup;
use head_and_tail::HeadAndTail;
pub use head_and_tail::shorten;
pub use streams::BackgroundInput;
use streams::StreamPlan;
use supervisor_handle::{ExitReport, StopWait, SupervisorHandle};
pub use time_limit::{CommandTimeLimit, TimeLimitPause};

/// The time between TERM and KILL for a group. An abort has to return within a second.
const GRACE_PERIOD: Duration = Duration::from_millis(300);
/// The time to wait for remaining output after a command has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// The maximum length of the output of a program that failed to create the sandbox, in characters.
const MAX_DETAIL_LEN: usize = 500;

/// The workspace in which a command runs.
#[derive(Clone, Copy, Debug)]
pub struct CommandWorkspace<'a> {
    /// The root directory, absolute and without links.
    pub root: &'a Path,
    /// The paths below the root that commands cannot change.
    pub protected: &'a ProtectedPaths,
    /// The directories that the command writes directly although it has a private view.
    pub direct: &'a [DirectDirectory],
    /// Whether the command writes the workspace itself, even if it could have a private view.
    pub writes_directly: bool,
}

impl CommandWorkspace<'_> {
    /// Resolves the links in a path below the workspace.
    ///
    /// # Errors
    /// The path cannot be resolved, or it is outside the workspace.
    fn resolve(&self, directory: &Path) -> std::io::Result<PathBuf> {
        let resolved = self.root.join(directory).canonicalize()?;
        if resolved.starts_with(self.root) {
            return Ok(resolved);
        }
        Err(std::io::Error::new(
            std::io::ErrorKind::PermissionDenied,
            "it is outside the workspace",
        ))
    }
}

/// The result of a command that ran to an end.
#[derive(Debug)]
#[non_exhaustive]
pub struct FinishedCommand {
    /// How the command ended.
    pub ending: CommandEnding,
    /// Standard output: the whole text, or its head and tail.
    pub stdout: String,
    /// Standard error: the whole text, or its head and tail.
    pub stderr: String,
    /// The time from the start of the command to its end.
    pub duration: Duration,
    /// Notices about changes to protected paths that were undone.
    pub notices: Vec<String>,
    /// The changes of the command in its private view of the workspace, none of which is in the
    /// workspace yet; `None` if the command wrote the workspace directly.
    pub changes: Option<CommandChanges>,
}

/// The way in which a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandEnding {
    /// The command exited with this code, which is 128 plus the signal if a signal ended it.
    Exited(i32),
    /// The host killed the command with this signal, for example because of too many processes.
    Killed(i32),
    /// The command exceeded its time limit.
    TimedOut,
}

/// The reason why a command did not run to an end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandFailure {
    /// The caller cancelled the command; all its processes have ended.
    #[error("cancelled")]
    Cancelled,
    /// The directory cannot be used.
    #[error("cannot run in {directory}: {source}")]
    Directory {
        /// The directory, relative to the workspace.
        directory: String,
        /// The error of resolving it.
        source: std::io::Error,
    },
    /// The operating system could not start a process.
    #[error("cannot start the command: {0}")]
    Start(#[source] std::io::Error),
    /// The private view could not be mounted, and nothing ran. Some directories cannot be part of
    /// an overlay, such as those that ignore case.
    #[error("{}: {source}", describe_effect(.source))]
    ViewNotMounted {
        /// The permit, for another attempt with `writes_directly`.
        permit: Box<Permit>,
        /// The step that failed, and why.
        source: ConfineError,
    },
    /// A step of running the command in its sandbox failed.
    #[error("{}: {source}{}", describe_effect(.source), lines(.details))]
    Sandbox {
        /// The step that failed, and why.
        source: ConfineError,
        /// Notices of the supervisor, and the output of the program that creates the sandbox.
        details: Vec<String>,
    },
    /// The command cannot run in the background.
    #[error("the command cannot run in the background: {0}")]
    NoBackground(#[from] ViewUnavailable),
    /// The supervisor ended without a report.
    #[error(
        "the supervisor of the command ended without a report\nhint: check `.git/hooks` and other \
            files that programs run for changes"
    )]
    MissingReport,
    /// The permit allows another action than a command.
    #[error("internal error: the approval is not for a command")]
    NotACommand,
}

/// Returns what a failed step means for the command.
fn describe_effect(error: &ConfineError) -> &'static str {
    match error.step {
        ConfineStep::CheckChanges | ConfineStep::CollectChanges => {
            "the command ran, and its changes were discarded"
        }
        _ => "the command did not run",
    }
}

/// Returns the texts that are not empty, each after a line break.
fn lines(texts: &[String]) -> String {
    texts.iter().filter(|text| !text.is_empty()).map(|text| format!("\n{text}")).collect()
}

/// The owner of a running command, which can end all of its processes.
enum ProcessGuard {
    /// The process group of a command without a sandbox.
    Group(Child, ProcessGroup),
    /// The supervisor of a sandboxed command.
    Supervisor(SupervisorHandle),
}

/// Starts the proxy of a command at this socket, which receives the connections of the command.
pub type StartProxy = Box<dyn FnOnce(std::net::TcpListener) + Send>;

/// Returns what starts the proxy of a command.
pub type ProxyFactory<'a> = &'a (dyn Fn() -> StartProxy + Send + Sync);

/// Runs the command of the permit once, in a sandbox of this level.
///
/// If the rules list hosts, `proxy` returns what starts the proxy for them; without it, the command
/// has no network access.
///
/// # Errors
/// The command could not be started, was cancelled, or ended without a report.
pub async fn run(
    permit: Permit,
    workspace: CommandWorkspace<'_>,
    timeout: impl Into<CommandTimeLimit>,
    cancel: &CancellationToken,
    commands: &CommandSandbox,
    level: SandboxLevel,
    proxy: Option<ProxyFactory<'_>>,
) -> Result<FinishedCommand, CommandFailure> {
    let view = match permit.workspace_access() {
        WorkspaceAccess::ReadOnly(_) => RequestedView::ReadOnly,
        WorkspaceAccess::ReadWrite if workspace.writes_directly => RequestedView::Direct,
        WorkspaceAccess::ReadWrite => RequestedView::BestAvailable,
    };
    let Effect::Command { line, directory, background: false } = permit.effect() else {
        return Err(CommandFailure::NotACommand);
    };
    let resolved = workspace
        .resolve(Path::new(directory.as_fs_path()))
        .map_err(|source| CommandFailure::Directory { directory: directory.to_string(), source })?;
    let command = PlannedCommand {
        line,
        directory: &resolved,
        workspace,
        timeout: timeout.into(),
        cancel,
        commands,
        level,
        proxy,
    };
    let ran = command.run(view).await;
    match ran {
        Err(CommandFailure::Sandbox { source, .. }) if source.step == ConfineStep::MountView => {
            Err(CommandFailure::ViewNotMounted { permit: Box::new(permit), source })
        }
        ran => ran,
    }
}

/// The view of the workspace that a command gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestedView {
    /// A private view where the system allows it.
    BestAvailable,
    /// The workspace itself.
    Direct,
    /// A workspace that the command cannot change.
    ReadOnly,
}

/// A permitted command with all that it needs to run.
struct PlannedCommand<'a> {
    line: &'a str,
    directory: &'a Path,
    workspace: CommandWorkspace<'a>,
    timeout: CommandTimeLimit,
    cancel: &'a CancellationToken,
    commands: &'a CommandSandbox,
    level: SandboxLevel,
    proxy: Option<ProxyFactory<'a>>,
}

impl PlannedCommand<'_> {
    async fn run(&self, view: RequestedView) -> Result<FinishedCommand, CommandFailure> {
        let Self { line, directory, workspace, cancel, commands, level, proxy, .. } = *self;
        let started = Instant::now();
        // From here on every exit ends the command, including a dropped future.
        let (mut hold, out, err) = match level {
            SandboxLevel::None => spawn_in_group(line, directory, commands.environment())?,
            SandboxLevel::Kernel | SandboxLevel::Full => {
                let place = CommandLocation {
                    workspace: workspace.root,
                    directory,
                    protected: workspace.protected,
                    direct: workspace.direct,
                };
                let view = match view {
                    RequestedView::ReadOnly => PlannedView::ReadOnly,
                    RequestedView::BestAvailable if level == SandboxLevel::Full => commands
                        .create_layer(workspace.root)
                        .map_err(CommandFailure::Start)?
                        .map_or(PlannedView::Direct, PlannedView::Layer),
                    RequestedView::BestAvailable | RequestedView::Direct => PlannedView::Direct,
                };
                let (leash, out, err) = SupervisorHandle::start(
                    commands,
                    line,
                    level,
                    place,
                    view,
                    StreamPlan::default(),
                    proxy.map(|new| new()),
                )
                .await?;
                (ProcessGuard::Supervisor(leash), out, err)
            }
        };
        let mut stdout = HeadAndTail::default();
        let mut stderr = HeadAndTail::default();
        let (mut out, mut err) = (out, err);
        let last = {
            let output = async {
                tokio::join!(read_output(&mut out, &mut stdout), read_output(&mut err, &mut stderr))
            };
            tokio::pin!(output);
            let mut open = true;
            let deadline = self.timeout.expire();
            tokio::pin!(deadline);
            let last = loop {
                tokio::select! {
                    _ = &mut output, if open => open = false,
                    last = hold.wait() => break last?,
                    () = &mut deadline => {
                        let stopped = tokio::select! {
                            stopped = hold.stop(StopWait::ForChanges) => stopped,
                            () = cancel.cancelled() => return Err(CommandFailure::Cancelled),
                        };
                        break stopped.unwrap_or_else(ExitReport::timed_out);
                    }
                    () = cancel.cancelled() => {
                        let _ = hold.stop(StopWait::Short).await;
                        return Err(CommandFailure::Cancelled);
                    }
                }
            };
            // Processes that the command left in its group end now, so that none of them holds the
            // pipes open.
            let _ = hold.stop(StopWait::Short).await;
            if open {
                let _ = tokio::time::timeout(DRAIN_TIMEOUT, &mut output).await;
            }
            last
        };
        let stderr = stderr.into_text();
        let ending = match last.ending {
            Ok(ending) => ending,
            Err(source) => {
                let mut details = last.notices;
                details.push(stderr.trim().chars().take(MAX_DETAIL_LEN).collect());
                return Err(CommandFailure::Sandbox { source, details });
            }
        };
        Ok(FinishedCommand {
            ending,
            stdout: stdout.into_text(),
            stderr,
            duration: started.elapsed(),
            notices: last.notices,
            changes: last.changes,
        })
    }
}

fn spawn_in_group(
    line: &str,
    directory: &Path,
    own: &HostEnvironment,
) -> Result<(ProcessGuard, Option<ChildStdout>, Option<ChildStderr>), CommandFailure> {
    // With the full path, the standard library can use `posix_spawn`. A lookup in a changed `PATH`
    // would fork the whole process, which takes milliseconds.
    let mut child = tokio::process::Command::new("/bin/sh")
        .arg("-c")
        .arg(line)
        .current_dir(directory)
        .env_clear()
        .envs(environment::command_environment(&own.variables, &[]))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(CommandFailure::Start)?;
    let group = ProcessGroup::from_leader(child.id());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    Ok((ProcessGuard::Group(child, group), out, err))
}

impl ProcessGuard {
    /// Waits for the end of the command. This is cancel-safe.
    async fn wait(&mut self) -> Result<ExitReport, CommandFailure> {
        match self {
            Self::Group(child, _) => {
                let status = child.wait().await.map_err(CommandFailure::Start)?;
                Ok(ExitReport {
                    ending: Ok(CommandEnding::Exited(exit_code(status))),
                    notices: Vec::new(),
                    changes: None,
                })
            }
            Self::Supervisor(leash) => leash.wait_for_report().await,
        }
    }

    /// Ends the command, and returns the report of its supervisor. Returns quickly if it has ended
    /// already.
    async fn stop(&mut self, wait: StopWait) -> Option<ExitReport> {
        match self {
            Self::Group(child, group) => {
                group.terminate(child, GRACE_PERIOD).await;
                None
            }
            Self::Supervisor(leash) => leash.stop(wait).await,
        }
    }
}

async fn read_output(stream: &mut Option<impl AsyncRead + Unpin>, into: &mut HeadAndTail) {
    let Some(stream) = stream else { return };
    let mut buffer = vec![0; 64 << 10];
    // An error on the pipe ends the output, as its end does.
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        into.push(&buffer[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_policy::{ApprovalMode, Authorization, Authorizer, ToolId, WorkspacePath};

    async fn run_line(
        line: &str,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<FinishedCommand, CommandFailure> {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it exists");
        let protected = ProtectedPaths::default();
        let workspace = CommandWorkspace {
            root: &root,
            protected: &protected,
            direct: &[],
            writes_directly: false,
        };
        let effect = Effect::Command {
            line: line.into(),
            directory: WorkspacePath::parse("", None).expect("a path"),
            background: false,
        };
        let Authorization::Allow(permit, _) = Authorizer::new(ApprovalMode::Auto, false).authorize(
            ToolId::new("bash", ""),
            "{}",
            effect,
        ) else {
            panic!("auto allows")
        };
        let commands = CommandSandbox::new(
            "no-program".into(),
            cofferdam_policy::CommandRules::default(),
            folder.path().join("aside"),
            HostEnvironment {
                home: std::env::home_dir(),
                temp_dir: std::env::temp_dir(),
                variables: std::env::vars_os().collect(),
            },
        );
        run(permit, workspace, timeout, cancel, &commands, SandboxLevel::None, None).await
    }

    async fn finished(line: &str) -> FinishedCommand {
        run_line(line, Duration::from_secs(20), &CancellationToken::new()).await.expect("it runs")
    }

    #[tokio::test]
    async fn r120_exit_code_and_both_streams_come_back() {
        let done = finished("echo out; echo err >&2; exit 3").await;
        assert_eq!(
            (done.ending, done.stdout.as_str(), done.stderr.as_str()),
            (CommandEnding::Exited(3), "out\n", "err\n")
        );
        assert_eq!(
            finished("kill -9 $$").await.ending,
            CommandEnding::Exited(128 + 9),
            "as shells say it"
        );
        assert_eq!(finished("cat; echo no input").await.stdout, "no input\n");
    }

    #[tokio::test]
    async fn r120_a_command_past_its_timeout_is_killed_with_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = folder.path().join("late");
        let line = format!("(sleep 1; touch {}) & sleep 100", mark.display());
        let done = run_line(&line, Duration::from_millis(100), &CancellationToken::new())
            .await
            .expect("it runs");
        assert_eq!(done.ending, CommandEnding::TimedOut);
        tokio::time::sleep(Duration::from_millis(1200)).await;
        assert!(!mark.exists(), "a child went on after the timeout");
    }

    #[tokio::test]
    async fn r101_abort_is_back_within_a_second_even_if_term_is_ignored() {
        let cancel = CancellationToken::new();
        let stopper = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            stopper.cancel();
        });
        let started = Instant::now();
        let result =
            run_line("trap '' TERM; sleep 100 & wait; sleep 100", Duration::from_secs(20), &cancel)
                .await;
        assert!(matches!(result, Err(CommandFailure::Cancelled)), "{result:?}");
        assert!(started.elapsed() < Duration::from_millis(1200), "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn a_child_left_in_the_background_does_not_hold_the_result_back() {
        let started = Instant::now();
        let done = finished("sleep 100 & echo started").await;
        assert_eq!(done.stdout, "started\n");
        assert!(started.elapsed() < Duration::from_secs(2));
    }

    #[tokio::test]
    async fn r095_a_flood_of_output_keeps_its_head_and_tail() {
        let done = finished("echo first; yes | head -c 5000000; echo last").await;
        assert!(done.stdout.starts_with("first\n") && done.stdout.ends_with("last\n"));
        assert!(done.stdout.len() < 600_000);
        assert!(done.stdout.contains("bytes omitted"));
    }
}
