//! Supervisors that are started before there is a command for them.
//!
//! The start of a process of this size takes two to three milliseconds. While a command runs, a
//! host starts the supervisor of the next one, which waits for its request. It ends with the host.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What starts a supervisor.
#[derive(Clone, Debug)]
pub(crate) struct SupervisorProgram {
    /// The path of this program.
    pub(crate) program: PathBuf,
    /// The environment of the command, except for the variables that its request sets.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// A supervisor that waits for its request.
#[derive(Debug)]
pub(crate) struct StartedSupervisor {
    /// The process, with pipes for standard output and standard error.
    pub(crate) child: Child,
    /// The host's end of the socket from which the supervisor reads its request.
    pub(crate) link: UnixStream,
}

impl SupervisorProgram {
    /// Starts a supervisor in a process group of its own.
    pub(crate) fn start(&self) -> std::io::Result<StartedSupervisor> {
        let (link, theirs) = UnixStream::pair()?;
        let child = Command::new(&self.program)
            .arg0("cofferdam")
            .arg("supervise-command")
            .env_clear()
            .envs(self.environment.iter().cloned())
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        Ok(StartedSupervisor { child, link })
    }
}

/// The supervisor for the next command, if it is started already.
#[derive(Debug, Default)]
pub(crate) struct ReadySupervisor(Arc<ReadySlot>);

#[derive(Debug, Default)]
struct ReadySlot(Mutex<Option<StartedSupervisor>>);

impl ReadySupervisor {
    /// Takes the ready supervisor, or starts one.
    pub(crate) fn take_or_start(
        &self,
        program: &SupervisorProgram,
    ) -> std::io::Result<StartedSupervisor> {
        let ready = self.0.take();
        // Somebody may have killed it.
        let living = ready.and_then(|mut ready| match ready.child.try_wait() {
            Ok(None) => Some(ready),
            Ok(Some(_)) | Err(_) => None,
        });
        living.map_or_else(|| program.start(), Ok)
    }

    /// Returns what starts the next supervisor after this one.
    pub(crate) fn successor(&self, program: SupervisorProgram) -> SupervisorSuccessor {
        SupervisorSuccessor { slot: Arc::downgrade(&self.0), program }
    }
}

impl ReadySlot {
    fn take(&self) -> Option<StartedSupervisor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for ReadySlot {
    fn drop(&mut self) {
        if let Some(StartedSupervisor { mut child, link: _link }) = self.take() {
            // It has no request, so there is nothing to lose.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts the next supervisor beside a command.
#[derive(Debug)]
pub(crate) struct SupervisorSuccessor {
    slot: Weak<ReadySlot>,
    program: SupervisorProgram,
}

impl SupervisorSuccessor {
    /// Returns a successor that starts nothing.
    pub(crate) fn none(program: SupervisorProgram) -> Self {
        Self { slot: Weak::new(), program }
    }

    /// Starts the next supervisor and waits for the end of this one, on a thread of its own.
    pub(crate) fn start_beside(self, mut running: Child) {
        let work = move || {
            self.fill();
            let _ = running.wait();
        };
        // Without a thread, the next command starts its supervisor itself.
        let _ = std::thread::Builder::new().name("next supervisor".to_owned()).spawn(work);
    }

    fn fill(&self) {
        // The host may be gone, or another command may have filled the slot.
        let Some(slot) = self.slot.upgrade() else { return };
        let mut ready = slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ready.is_none() {
            *ready = self.program.start().ok();
        }
    }
}
