//! Self-tests of a sandbox level on this machine. They measure which accesses fail, instead of
//! trusting what the system claims.

use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout};
use std::sync::mpsc;
use std::time::Duration;

use super::level::{CommandLocation, CommandSandbox, SandboxSetup, SpawnPlan};
use super::link::SupervisorLink;
use super::probe::{PROBE_FILE, ProbeFindings, ProbeTargets};
use super::protocol::{
    CommandExitKind, CommandJob, NetworkAccess, SupervisedView, SupervisorMessage, SupervisorReport,
};
use super::unavailable::SelfTestError;
use crate::process::ready_supervisor::StartedSupervisor;
use crate::view::CommandLayer;
use cofferdam_policy::{CommandRules, ProtectedPaths};

/// The time for the report. A sandbox that needs longer for a handful of system calls counts as
/// unusable.
const REPORT_TIMEOUT: Duration = Duration::from_secs(20);
/// The time to wait for the end of output, which comes with the last process.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

impl CommandSandbox {
    /// Tries to read, write and connect outside, to plant a hook, and to leave a process behind.
    ///
    /// # Errors
    /// Some attempt succeeded, or the test could not run. The error states which.
    ///
    /// With a directory for the changes of commands, the test has a private view of a workspace
    /// in that directory.
    pub(super) fn self_test(
        &self,
        setup: &SandboxSetup,
        layers: Option<&Path>,
    ) -> Result<(), SelfTestError> {
        let failed = SelfTestError::TemporaryDirectory;
        if let Some(layers) = layers {
            crate::own_file::create_dir_io(layers).map_err(failed)?;
            let folder = tempfile::tempdir_in(layers).map_err(failed)?;
            let rules =
                CommandRules { read: Vec::new(), write: Vec::new(), ..self.rules().clone() };
            let set_aside = folder.path().join("set-aside");
            return self.with_rules(rules, set_aside).self_test_in(
                folder.path(),
                setup,
                TestedView::Private,
            );
        }
        // Paths that the user opened to commands do not count as gaps.
        let folder = tempfile::tempdir_in(&self.environment().temp_dir).map_err(failed)?;
        let rules = CommandRules { read: Vec::new(), write: Vec::new(), ..self.rules().clone() };
        let tested = |folder: &Path| {
            let sandbox = self.with_rules(rules.clone(), folder.join("set-aside"));
            sandbox.self_test_in(folder, setup, TestedView::Direct)
        };
        if !self.is_visible(folder.path(), &rules) {
            return tested(folder.path());
        }
        // The temporary directory may be in a place that commands can read anyway, such as `/opt`.
        std::fs::create_dir_all(self.set_aside()).map_err(failed)?;
        tested(tempfile::tempdir_in(self.set_aside()).map_err(failed)?.path())
    }

    fn self_test_in(
        &self,
        folder: &Path,
        setup: &SandboxSetup,
        view: TestedView,
    ) -> Result<(), SelfTestError> {
        let failed = SelfTestError::Start;
        let folder = folder.canonicalize().map_err(failed)?;
        let workspace = folder.join("workspace");
        let hook = workspace.join(".git/hooks/pre-commit");
        fs::create_dir_all(workspace.join(".git/hooks")).map_err(failed)?;
        let probes = ProbeTargets {
            readable: folder.join("readable"),
            writable: folder.join("writable"),
            port: 0,
        };
        fs::write(&probes.readable, "outside").map_err(failed)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let task = CommandJob::SelfTest(ProbeTargets { port, ..probes.clone() });
        let place = CommandLocation {
            workspace: &workspace,
            directory: &workspace,
            protected: &ProtectedPaths::default(),
            direct: &[],
        };
        let layer = match view {
            TestedView::Direct => None,
            TestedView::Private => {
                Some(CommandLayer::create(&folder.join("layers"), &workspace).map_err(failed)?)
            }
        };
        let tested = layer
            .as_ref()
            .map_or(SupervisedView::Direct, |layer| SupervisedView::Layer(layer.path().to_owned()));
        let setup = SandboxSetup { view: tested, ..setup.clone() };
        let commission =
            self.plan_spawn(task, setup, place, NetworkAccess::None).map_err(failed)?;
        let (supervisor, _) = self.take_supervisor(&commission).map_err(failed)?;
        let (report, stdout, stderr) = run_plan(commission, supervisor)?;
        let stderr = first_line(&stderr).to_owned();
        match report.ending {
            CommandExitKind::NotRun(problem) => {
                return Err(SelfTestError::Sandbox { source: problem.decode(), stderr });
            }
            CommandExitKind::Exited(0) => {}
            CommandExitKind::Exited(code) => return Err(SelfTestError::ExitCode { code, stderr }),
            CommandExitKind::TooManyProcesses | CommandExitKind::Stopped => {
                return Err(SelfTestError::Killed { stderr });
            }
        }
        let stdout = stdout.ok_or(SelfTestError::SurvivingProcess)?;
        let found: ProbeFindings = match serde_json::from_str(&stdout) {
            Ok(found) => found,
            Err(source) => return Err(SelfTestError::Output { output: stdout, source }),
        };
        let done = [
            (found.read_outside, "a file outside could be read"),
            // Inside the sandbox, a write may go to a private directory of the command, so the
            // check happens outside.
            (probes.writable.exists(), "a file outside could be written"),
            (found.reached_tcp, "a TCP connection could be made"),
            (hook.exists(), "a hook stayed in .git/hooks"),
            (
                view == TestedView::Private && workspace.join(PROBE_FILE).exists(),
                "a private view changed the workspace",
            ),
            (
                view == TestedView::Private && !has_probe_file(&report),
                "a private view lost a change",
            ),
        ];
        let open: Vec<&'static str> =
            done.iter().filter(|(done, _)| *done).map(|(_, what)| *what).collect();
        if open.is_empty() { Ok(()) } else { Err(SelfTestError::Gaps(open)) }
    }
}

/// How a tested command sees its workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestedView {
    Direct,
    Private,
}

/// Returns whether the report has the file that the test creates in the workspace, and only that.
fn has_probe_file(report: &SupervisorReport) -> bool {
    let changes = report.changes.iter().flat_map(|collected| &collected.changes);
    changes.map(|change| change.path.as_str()).eq([PROBE_FILE])
}

/// Runs a plan. Returns the report, standard output if it ended in time, and standard error.
fn run_plan(
    commission: SpawnPlan,
    supervisor: StartedSupervisor,
) -> Result<(SupervisorReport, Option<String>, String), SelfTestError> {
    let failed = SelfTestError::Start;
    let SpawnPlan { request: order, digest: _, preparation: _ } = commission;
    let StartedSupervisor { mut child, link } = supervisor;
    link.set_read_timeout(Some(REPORT_TIMEOUT)).map_err(failed)?;
    let output =
        [child.stdout.take().map(TestStream::Out), child.stderr.take().map(TestStream::Err)]
            .map(|stream| stream.map(read_in_background));
    let answer = exchange(link, &order);
    if !matches!(answer, Ok(Some(_))) {
        child.kill().map_err(failed)?;
    }
    wait(&mut child).map_err(failed)?;
    let [stdout, stderr] = output
        .map(|receiver| receiver.and_then(|receiver| receiver.recv_timeout(DRAIN_TIMEOUT).ok()));
    let stderr = stderr.unwrap_or_default();
    match answer.map_err(failed)? {
        Some(report) => Ok((report, stdout, stderr)),
        None => Err(SelfTestError::MissingReport { stderr: first_line(&stderr).to_owned() }),
    }
}

fn exchange(
    mut link: std::os::unix::net::UnixStream,
    order: &[u8],
) -> std::io::Result<Option<SupervisorReport>> {
    std::io::Write::write_all(&mut link, order)?;
    Ok(match SupervisorLink::new(link).receive()? {
        Some(SupervisorMessage::Ended(report)) => Some(report),
        Some(
            SupervisorMessage::Listening
            | SupervisorMessage::Checkpoint(_)
            | SupervisorMessage::Settled,
        )
        | None => None,
    })
}

fn wait(child: &mut Child) -> std::io::Result<()> {
    child.wait().map(drop)
}

enum TestStream {
    Out(ChildStdout),
    Err(ChildStderr),
}

/// Reads a stream on a separate thread, which stays behind if the stream does not end.
fn read_in_background(stream: TestStream) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = match stream {
            TestStream::Out(stream) => stream.take(64 << 10).read_to_string(&mut text),
            TestStream::Err(stream) => stream.take(64 << 10).read_to_string(&mut text),
        };
        let _ = sender.send(text);
    });
    receiver
}

pub(super) fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}
