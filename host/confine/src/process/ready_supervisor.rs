//! Supervisors that are started before there is a command for them.
//!
//! The start of a process of this size takes two to three milliseconds, and so does the common part
//! of a sandbox. While a command runs, a host starts the supervisor of the next one, which prepares
//! the sandbox of a command like this one and waits for its request. It ends with the host.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::os::MountWatch;
use crate::protocol::{SupervisorOrder, SupervisorPreparation};

/// What starts a supervisor.
#[derive(Clone, Debug)]
pub(crate) struct SupervisorProgram {
    /// The path of this program.
    pub(crate) program: PathBuf,
    /// The environment of the command, except for the variables that its request sets.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// A supervisor that was started in advance.
#[derive(Debug)]
struct WaitingSupervisor {
    started: StartedSupervisor,
    prepared: Option<PreparedFor>,
}

/// The commands for which a supervisor is prepared.
#[derive(Debug)]
struct PreparedFor {
    preparation: SupervisorPreparation,
    /// A prepared sandbox shows the mounts of the time when this began. A guard sees all mounts.
    mounts: Option<MountWatch>,
}

impl WaitingSupervisor {
    /// Returns whether it can run a command that needs this preparation.
    fn fits(&mut self, wanted: Option<&SupervisorPreparation>) -> bool {
        let is_prepared_for = |prepared: &PreparedFor| {
            Some(&prepared.preparation) == wanted
                && !prepared.mounts.as_ref().is_some_and(MountWatch::has_changed)
        };
        // Somebody may have killed it.
        matches!(self.started.child.try_wait(), Ok(None))
            && self.prepared.as_ref().is_none_or(is_prepared_for)
    }

    /// Ends it. It has no request, so there is nothing to lose.
    fn end(self) {
        let StartedSupervisor { mut child, link: _link } = self.started;
        let _ = child.kill();
        let _ = child.wait();
    }
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
struct ReadySlot(Mutex<Option<WaitingSupervisor>>);

impl ReadySupervisor {
    /// Takes the ready supervisor if it fits a command that needs this preparation, or starts one.
    pub(crate) fn take_or_start(
        &self,
        program: &SupervisorProgram,
        preparation: Option<&SupervisorPreparation>,
    ) -> std::io::Result<StartedSupervisor> {
        if let Some(mut ready) = self.0.take() {
            if ready.fits(preparation) {
                return Ok(ready.started);
            }
            ready.end();
        }
        program.start()
    }

    /// Returns what starts the next supervisor after this one.
    pub(crate) fn successor(
        &self,
        program: SupervisorProgram,
        preparation: Option<SupervisorPreparation>,
    ) -> SupervisorSuccessor {
        SupervisorSuccessor { slot: Arc::downgrade(&self.0), program, preparation }
    }
}

impl ReadySlot {
    fn take(&self) -> Option<WaitingSupervisor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for ReadySlot {
    fn drop(&mut self) {
        self.take().into_iter().for_each(WaitingSupervisor::end);
    }
}

/// Starts the next supervisor beside a command.
#[derive(Debug)]
pub(crate) struct SupervisorSuccessor {
    slot: Weak<ReadySlot>,
    program: SupervisorProgram,
    preparation: Option<SupervisorPreparation>,
}

impl SupervisorSuccessor {
    /// Returns a successor that starts nothing.
    pub(crate) fn none(program: SupervisorProgram) -> Self {
        Self { slot: Weak::new(), program, preparation: None }
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

    fn fill(self) {
        // The host may be gone, or another command may have filled the slot.
        let Some(slot) = self.slot.upgrade() else { return };
        let mut ready = slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ready.is_none() {
            *ready = start_waiting(&self.program, self.preparation).ok();
        }
    }
}

/// Starts a supervisor, and lets it prepare the sandbox of such a command.
fn start_waiting(
    program: &SupervisorProgram,
    preparation: Option<SupervisorPreparation>,
) -> std::io::Result<WaitingSupervisor> {
    let watched = match preparation {
        Some(SupervisorPreparation::Sandbox(_)) => {
            MountWatch::begin().ok().map(Some).zip(preparation)
        }
        Some(SupervisorPreparation::Guard(_)) => preparation.map(|guard| (None, guard)),
        None => None,
    };
    let mut started = program.start()?;
    let Some((mounts, preparation)) = watched else {
        return Ok(WaitingSupervisor { started, prepared: None });
    };
    let mut message = serde_json::to_vec(&SupervisorOrder::Prepare(preparation.clone()))?;
    message.push(b'\n');
    let sent = started.link.write_all(&message);
    let prepared = Some(PreparedFor { preparation, mounts });
    let waiting = WaitingSupervisor { started, prepared };
    match sent {
        Ok(()) => Ok(waiting),
        Err(error) => {
            waiting.end();
            Err(error)
        }
    }
}
