//! Self-tests of a sandbox level on this machine. They measure which accesses fail, instead of
//! trusting what the system claims.

use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout};
use std::sync::mpsc;
use std::time::Duration;

use super::level::{CommandLocation, CommandSandbox, SpawnPlan};
use super::link::SupervisorLink;
use super::probe::{ProbeFindings, ProbeTargets};
use super::protocol::{CommandExitKind, CommandJob, SupervisorReport};
use cofferdam_policy::{CommandRules, ProtectedPaths, SandboxLevel};

/// The time for the report. A sandbox that needs longer for a handful of system calls counts as
/// unusable.
const REPORT_TIMEOUT: Duration = Duration::from_secs(20);
/// The time to wait for the end of output, which comes with the last process.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

impl CommandSandbox {
    /// Tries to read, write and connect outside, to plant a hook, and to leave a process behind.
    ///
    /// # Errors
    /// Some attempt succeeded, or the test could not run. The text states which.
    pub(super) fn self_test(&self, level: SandboxLevel) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("cannot make a temporary folder: {error}");
        // Paths that the user opened to commands do not count as gaps.
        let folder = tempfile::tempdir().map_err(failed)?;
        let rules = CommandRules { read: Vec::new(), write: Vec::new(), ..self.rules().clone() };
        let tested = |folder: &Path| {
            self.with_rules(rules.clone(), folder.join("set-aside")).self_test_in(folder, level)
        };
        if !self.is_visible(folder.path(), &rules) {
            return tested(folder.path());
        }
        // The temporary directory may be in a place that commands can read anyway, such as `/opt`.
        std::fs::create_dir_all(self.set_aside()).map_err(failed)?;
        tested(tempfile::tempdir_in(self.set_aside()).map_err(failed)?.path())
    }

    fn self_test_in(&self, folder: &Path, level: SandboxLevel) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("the self-test cannot be made: {error}");
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
        };
        let commission = self.plan_spawn(task, level, place, false).map_err(failed)?;
        let (report, stdout, stderr) = run_plan(commission).map_err(failed)?;
        let stderr = first_line(&stderr);
        match report.ending {
            CommandExitKind::NotRun(problem) if stderr.is_empty() => return Err(problem),
            CommandExitKind::NotRun(problem) => return Err(format!("{problem} ({stderr})")),
            CommandExitKind::Exited(0) => {}
            other @ (CommandExitKind::Exited(_)
            | CommandExitKind::TooManyProcesses
            | CommandExitKind::Stopped) => {
                return Err(format!("the self-test ended with {other:?} ({stderr})"));
            }
        }
        let Some(stdout) = stdout else { return Err("a process survived its command".to_owned()) };
        let found: ProbeFindings = serde_json::from_str(&stdout)
            .map_err(|error| format!("the self-test said {stdout:?}: {error}"))?;
        let done = [
            (found.read_outside, "a file outside could be read"),
            // Inside the sandbox, a write may go to a private directory of the command, so the
            // check happens outside.
            (probes.writable.exists(), "a file outside could be written"),
            (found.reached_tcp, "a TCP connection could be made"),
            (hook.exists(), "a hook stayed in .git/hooks"),
        ];
        let open: Vec<&str> =
            done.iter().filter(|(done, _)| *done).map(|(_, what)| *what).collect();
        if open.is_empty() {
            Ok(())
        } else {
            Err(format!("the self-test found it open: {}", open.join(", ")))
        }
    }
}

/// Runs a plan. Returns the report, standard output if it ended in time, and standard error.
fn run_plan(commission: SpawnPlan) -> std::io::Result<(SupervisorReport, Option<String>, String)> {
    let SpawnPlan { mut supervisor, link, request: order, digest: _ } = commission;
    let mut child = supervisor.process_group(0).spawn()?;
    // The command object holds the supervisor's end of the link.
    drop(supervisor);
    link.set_read_timeout(Some(REPORT_TIMEOUT))?;
    let output =
        [child.stdout.take().map(TestStream::Out), child.stderr.take().map(TestStream::Err)]
            .map(|stream| stream.map(read_in_background));
    let answer = exchange(link, &order);
    if !matches!(answer, Ok(Some(_))) {
        child.kill()?;
    }
    wait(&mut child)?;
    let [stdout, stderr] = output
        .map(|receiver| receiver.and_then(|receiver| receiver.recv_timeout(DRAIN_TIMEOUT).ok()));
    let stderr = stderr.unwrap_or_default();
    match answer? {
        Some(report) => Ok((report, stdout, stderr)),
        None => Err(std::io::Error::other(format!(
            "the supervisor ended without a report ({})",
            first_line(&stderr)
        ))),
    }
}

fn exchange(
    mut link: std::os::unix::net::UnixStream,
    order: &[u8],
) -> std::io::Result<Option<SupervisorReport>> {
    std::io::Write::write_all(&mut link, order)?;
    SupervisorLink::new(link).receive()
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
