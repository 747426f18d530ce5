//! A supervisor with namespaces of its own, in which it can mount, and what it prepares there
//! before it knows its command.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use nix::sched::CloneFlags;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{Signal, kill_process, set_parent_process_death_signal};
use rustix::system::sethostname;

use super::super::mount_plan::common_steps;
use super::first_process::take_ids;
use super::id_map::IdMap;
use super::loopback;
use super::prepared_root::PreparedRoot;
use crate::os::ForkedProcess;
use crate::protocol::{SandboxPreparation, SupervisorRequest};
use crate::{ConfineError, ConfineStep};

/// The name of the machine, as the command sees it.
const HOST_NAME: &[u8] = b"cofferdam";

/// What a supervisor has prepared for its command: namespaces for everything but users, mounts and
/// processes, and the common part of the root.
#[derive(Debug)]
pub(crate) struct PreparedSandbox {
    root: PreparedRoot,
}

impl PreparedSandbox {
    /// Runs `body` in a child process with namespaces of its own, which are prepared as described.
    ///
    /// `body` gets the error if the child cannot be prepared, and returns the exit code of the
    /// child, which ends with this process. This process must have one thread only.
    ///
    /// # Errors
    /// The child cannot be started.
    pub(crate) fn run(
        preparation: &SandboxPreparation,
        body: impl FnOnce(Result<Self, ConfineError>) -> i32,
    ) -> Result<ForkedProcess, ConfineError> {
        // Until there is a command, mounts outside appear here too, and above all their ends: a
        // process that waits must keep no disk busy.
        let mounts = MountPropagationFlags::DOWNSTREAM;
        start_child(other_namespaces(preparation.has_host_network), mounts, |entered| {
            body(entered.and_then(|()| Self::prepare(preparation)))
        })
    }

    fn prepare(preparation: &SandboxPreparation) -> Result<Self, ConfineError> {
        let SandboxPreparation { home, paths, has_host_network } = preparation;
        prepare_names_and_network(*has_host_network)
            .map_err(ConfineError::at(ConfineStep::EnterNamespaces))?;
        let root = PreparedRoot::mount(common_steps(home.as_deref(), paths))?;
        Ok(Self { root })
    }

    /// Ends the influence of later mounts outside, because there is a command now.
    ///
    /// # Errors
    /// The sandbox was prepared for another kind of commands, or the kernel refuses it.
    pub(crate) fn begin_command(
        self,
        preparation: &SandboxPreparation,
        order: &SupervisorRequest,
    ) -> Result<Self, ConfineError> {
        if SandboxPreparation::for_request(order).as_ref() != Some(preparation) {
            let other = std::io::Error::other("the sandbox was prepared for other commands");
            return Err(ConfineError::new(ConfineStep::EnterNamespaces, other));
        }
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
            .map_err(ConfineError::at(ConfineStep::EnterNamespaces))?;
        Ok(self)
    }

    pub(super) fn root(&self) -> &PreparedRoot {
        &self.root
    }
}

/// Runs `body` in a child process with its own users and mounts, in which it may mount overlays.
///
/// `body` gets the error if the child cannot be prepared, and returns the exit code of the child,
/// which ends with this process. This process must have one thread only.
///
/// # Errors
/// The child cannot be started.
pub(crate) fn run_with_own_mounts(
    body: impl FnOnce(Result<(), ConfineError>) -> i32,
) -> Result<ForkedProcess, ConfineError> {
    start_child(CloneFlags::empty(), MountPropagationFlags::PRIVATE, body)
}

/// Returns the namespaces of a command, except for those of users, mounts and processes.
pub(super) fn other_namespaces(has_host_network: bool) -> CloneFlags {
    let namespaces =
        CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWCGROUP;
    if has_host_network { namespaces } else { namespaces | CloneFlags::CLONE_NEWNET }
}

/// Sets the name of the machine, and switches the loopback interface on unless the network is that
/// of the host.
pub(super) fn prepare_names_and_network(has_host_network: bool) -> std::io::Result<()> {
    sethostname(HOST_NAME)?;
    if has_host_network { Ok(()) } else { loopback::switch_on() }
}

fn start_child(
    others: CloneFlags,
    mounts: MountPropagationFlags,
    body: impl FnOnce(Result<(), ConfineError>) -> i32,
) -> Result<ForkedProcess, ConfineError> {
    let failed = ConfineError::at::<std::io::Error>;
    let ids = IdMap::for_child().map_err(failed(ConfineStep::EnterNamespaces))?;
    let (mut ours, theirs) = UnixStream::pair().map_err(failed(ConfineStep::EnterNamespaces))?;
    let ids = &ids;
    let namespaces = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | others;
    let mut child = ForkedProcess::start_in(namespaces, move || body(enter(ids, theirs, mounts)))
        .map_err(failed(ConfineStep::EnterNamespaces))?;
    if let Err(error) = ids.write_from_outside(child.pid()).and_then(|()| ours.write_all(&[1])) {
        let _ = kill_process(child.pid(), Signal::KILL);
        let _ = child.wait();
        return Err(ConfineError::new(ConfineStep::EnterNamespaces, error));
    }
    Ok(child)
}

fn enter(
    ids: &IdMap,
    outside: UnixStream,
    mounts: MountPropagationFlags,
) -> Result<(), ConfineError> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(ConfineError::at(ConfineStep::FollowSupervisor))?;
    take_ids(ids, outside).map_err(ConfineError::at(ConfineStep::EnterNamespaces))?;
    // Mounts of this process must not appear outside.
    mount_change("/", mounts | MountPropagationFlags::REC)
        .map_err(ConfineError::at(ConfineStep::EnterNamespaces))
}
