//! The outermost process of a sandbox, which the supervisor starts and waits for.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::Pid;

use super::confined_command::{PREPARATION_FAILED, execute_command};
use super::error::{ConfineError, ConfineStep, StepProblem};
use super::link::SupervisorLink;
use super::protocol::ChildReadiness;
use crate::os;

/// A sandbox that is ready to be started.
#[allow(dead_code, reason = "each operating system has its own way to start a sandbox")]
pub(crate) enum SandboxStart {
    /// A program that becomes the command, or creates the sandbox around it.
    Program(Command),
    /// A child of this process in this directory, which becomes the command.
    InDirectory(PathBuf),
    /// A child of this process, in namespaces of its own.
    InNamespaces(os::NamespaceStart),
}

/// The outermost process of a running sandbox.
pub(crate) enum SandboxProcess {
    Spawned(Child),
    Forked(os::ForkedProcess),
}

impl SandboxStart {
    /// Starts the sandbox with these additional variables. The process that becomes the command
    /// gets this end of the link.
    ///
    /// # Errors
    /// The process cannot be started.
    pub(super) fn start(
        self,
        link: UnixStream,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<SandboxProcess, ConfineError> {
        match self {
            Self::InNamespaces(start) => {
                start.start(SupervisorLink::new(link), environment).map(SandboxProcess::Forked)
            }
            Self::InDirectory(directory) => {
                let mut link = SupervisorLink::new(link);
                let child = os::ForkedProcess::start(move || {
                    if let Err(error) = rustix::process::chdir(&directory) {
                        let error = ConfineError::new(ConfineStep::StartSandbox, error);
                        // If this fails too, the supervisor is gone.
                        let _ = link.send(&ChildReadiness::Failed(error.encode()));
                        return PREPARATION_FAILED;
                    }
                    execute_command(&mut link, environment)
                });
                child
                    .map(SandboxProcess::Forked)
                    .map_err(ConfineError::at(ConfineStep::StartSandbox))
            }
            Self::Program(mut command) => {
                let spawned = command
                    .arg("confined-command")
                    .envs(environment)
                    .stdin(Stdio::from(OwnedFd::from(link)))
                    .spawn();
                spawned.map(SandboxProcess::Spawned).map_err(|source| {
                    let program = command.get_program().into();
                    let problem = StepProblem::Spawn { program, source };
                    ConfineError::new(ConfineStep::StartSandbox, problem)
                })
            }
        }
    }
}

impl SandboxProcess {
    pub(super) fn pid(&self) -> Pid {
        match self {
            Self::Spawned(child) => Pid::from_child(child),
            Self::Forked(child) => child.pid(),
        }
    }

    /// Returns the status of the process if it has ended.
    pub(super) fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        match self {
            Self::Spawned(child) => child.try_wait(),
            Self::Forked(child) => child.try_wait(),
        }
    }

    /// Waits for the end of the process.
    pub(super) fn wait(&mut self) -> std::io::Result<ExitStatus> {
        match self {
            Self::Spawned(child) => child.wait(),
            Self::Forked(child) => child.wait(),
        }
    }
}
