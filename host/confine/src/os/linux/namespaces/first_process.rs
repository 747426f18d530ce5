//! The first process of a command's namespaces.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sched::CloneFlags;
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, chdir, set_dumpable_behavior,
    set_parent_process_death_signal, setsid, wait,
};

use super::super::mount_plan::MountPlan;
use super::super::{close_inherited_files, drop_privileges};
use super::command_root::enter_root;
use super::id_map::IdMap;
use super::supervisor_process::{PreparedSandbox, other_namespaces, prepare_names_and_network};
use crate::confined_command::{PREPARATION_FAILED, execute_command};
use crate::exit_code::exit_code;
use crate::os::ForkedProcess;
use crate::protocol::{ChildReadiness, NetworkAccess, PROXY_PORT};
use crate::{ConfineError, ConfineStep, SupervisorLink};

/// The time for the parent to set the IDs, which takes it two system calls.
const ID_TIMEOUT: Duration = Duration::from_secs(10);

/// What the first process needs to start a command.
#[derive(Debug)]
pub(crate) struct NamespaceStart {
    pub(in super::super) plan: MountPlan,
    /// What the supervisor has prepared.
    pub(in super::super) prepared: Option<PreparedSandbox>,
    /// The working directory, as the command sees it.
    pub(in super::super) directory: PathBuf,
    pub(in super::super) network: NetworkAccess,
}

impl NamespaceStart {
    /// Starts the first process of new namespaces, which starts the command with these additional
    /// variables. The command gets its restrictions on the link.
    ///
    /// This process must have one thread only.
    ///
    /// # Errors
    /// The namespaces cannot be created. Later errors arrive on the link.
    pub(crate) fn start(
        self,
        link: SupervisorLink,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<ForkedProcess, ConfineError> {
        let failed = ConfineError::at::<std::io::Error>;
        let has_host_network = self.network == NetworkAccess::Host;
        let mut namespaces =
            CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
        if self.prepared.is_none() {
            namespaces |= other_namespaces(has_host_network);
        }
        let ids = IdMap::for_child().map_err(failed(ConfineStep::EnterNamespaces))?;
        let (mut ours, theirs) =
            UnixStream::pair().map_err(failed(ConfineStep::EnterNamespaces))?;
        let ids = &ids;
        let child =
            ForkedProcess::start_in(namespaces, move || self.run(ids, theirs, link, environment))
                .map_err(failed(ConfineStep::EnterNamespaces))?;
        ids.write_from_outside(child.pid())
            .and_then(|()| ours.write_all(&[1]))
            .map_err(failed(ConfineStep::EnterNamespaces))?;
        Ok(child)
    }

    /// Prepares the namespaces, starts the command, and returns the exit code of this process.
    fn run(
        self,
        ids: &IdMap,
        outside: UnixStream,
        mut link: SupervisorLink,
        environment: Vec<(OsString, OsString)>,
    ) -> i32 {
        let started = self.prepare(ids, outside, &mut link).and_then(|()| {
            let link = &mut link;
            ForkedProcess::start(move || execute_command(link, environment))
                .map_err(ConfineError::at(ConfineStep::StartSandbox))
        });
        let command = match started.and_then(|command| drop_everything().map(|()| command)) {
            Ok(command) => command,
            Err(error) => {
                // If this fails too, the supervisor is gone.
                let _ = link.send(&ChildReadiness::Failed(error.encode()));
                return PREPARATION_FAILED;
            }
        };
        drop(link);
        wait_for_all_until(command.pid()).map_or(PREPARATION_FAILED, exit_code)
    }

    fn prepare(
        &self,
        ids: &IdMap,
        outside: UnixStream,
        link: &mut SupervisorLink,
    ) -> Result<(), ConfineError> {
        let failed = ConfineError::at::<std::io::Error>;
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(ConfineError::at(ConfineStep::FollowSupervisor))?;
        take_ids(ids, outside).map_err(failed(ConfineStep::EnterNamespaces))?;
        close_inherited_files(Some(link)).map_err(failed(ConfineStep::CloseInheritedFiles))?;
        // Signals that a terminal sends to the group of the supervisor are not for this process.
        let _ = setsid();
        if self.prepared.is_none() {
            prepare_names_and_network(self.network == NetworkAccess::Host)
                .map_err(failed(ConfineStep::EnterNamespaces))?;
        }
        if self.network == NetworkAccess::Proxy {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT));
            listener
                .and_then(|listener| {
                    link.send_with_descriptors(&ChildReadiness::Listening, &[listener.as_fd()])
                })
                .map_err(failed(ConfineStep::OpenProxy))?;
        }
        enter_root(&self.plan, self.prepared.as_ref().map(PreparedSandbox::root))?;
        chdir(&self.directory).map_err(std::io::Error::from).map_err(failed(ConfineStep::MountRoot))
    }
}

/// Waits until the parent has set its part of the IDs, and sets the rest.
pub(super) fn take_ids(ids: &IdMap, mut outside: UnixStream) -> std::io::Result<()> {
    // The end of the parent never shows here, because this process has a copy of the parent's end.
    outside.set_read_timeout(Some(ID_TIMEOUT))?;
    outside.read_exact(&mut [0])?;
    // `/proc/self/uid_map` belongs to the user only while others may read the memory of this
    // process, which holds nothing but the request.
    let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
    let written = ids.write_from_inside();
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    written
}

/// Gives up the output, which belongs to the command alone, and all privileges in the namespaces.
fn drop_everything() -> Result<(), ConfineError> {
    let nothing = File::options().read(true).write(true).open("/dev/null");
    let nothing = nothing.map_err(ConfineError::at(ConfineStep::ReplaceStreams))?;
    rustix::stdio::dup2_stdin(&nothing)
        .and_then(|()| rustix::stdio::dup2_stdout(&nothing))
        .and_then(|()| rustix::stdio::dup2_stderr(&nothing))
        .map_err(ConfineError::at(ConfineStep::ReplaceStreams))?;
    drop_privileges()
}

/// Waits for all children, which includes orphans of the namespace, until this one has ended.
fn wait_for_all_until(command: Pid) -> Option<ExitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => {
                return Some(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}
