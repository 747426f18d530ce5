//! The start of a supervisor: it reads its request, gets into a process that can execute it, and
//! waits for that.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use super::error::{ConfineError, ConfineStep, StepProblem};
use super::guard::guard_supervisor;
use super::link::SupervisorLink;
use super::protocol::{
    GuardPreparation, SandboxPreparation, SupervisedView, SupervisorOrder, SupervisorPreparation,
    SupervisorRequest,
};
use super::supervisor::supervise;
use crate::os::{self, ForkedProcess, PreparedSandbox};

/// Reads a request from standard input and executes it.
///
/// # Errors
/// The request cannot be read, or the process cannot prepare itself.
pub fn supervise_command() -> Result<(), ConfineError> {
    os::protect_process_memory();
    os::close_inherited_files(None).map_err(ConfineError::at(ConfineStep::CloseInheritedFiles))?;
    let mut host =
        SupervisorLink::from_stdin().map_err(ConfineError::at(ConfineStep::ReadRequest))?;
    match receive_order(&mut host)? {
        None => Ok(()),
        Some(SupervisorOrder::Run(order)) => execute(&order, host),
        Some(SupervisorOrder::Prepare(SupervisorPreparation::Sandbox(preparation))) => {
            supervise_prepared(&preparation, host)
        }
        Some(SupervisorOrder::Prepare(SupervisorPreparation::Guard(preparation))) => {
            supervise_guarded(&preparation, host)
        }
    }
}

fn receive_order(host: &mut SupervisorLink) -> Result<Option<SupervisorOrder>, ConfineError> {
    host.receive().map_err(ConfineError::at(ConfineStep::ReadRequest))
}

/// Executes a request for which nothing is prepared.
fn execute(order: &SupervisorRequest, host: SupervisorLink) -> Result<(), ConfineError> {
    match GuardPreparation::for_request(order) {
        Some(preparation) => guard_supervisor(&preparation, || execute_unguarded(order, host)),
        // If the supervisor is killed, the kernel kills the command, and there is nothing to
        // restore in the workspace.
        None => execute_unguarded(order, host),
    }
}

fn execute_unguarded(
    order: &SupervisorRequest,
    mut host: SupervisorLink,
) -> Result<(), ConfineError> {
    match &order.view {
        SupervisedView::Layer(_) => supervise_with_own_mounts(order, host),
        SupervisedView::ReadOnly | SupervisedView::Direct => {
            supervise(order, &mut host, Ok(None));
            Ok(())
        }
    }
}

/// Starts the guard and the supervisor before there is a request. The supervisor receives and
/// executes it.
fn supervise_guarded(
    preparation: &GuardPreparation,
    mut host: SupervisorLink,
) -> Result<(), ConfineError> {
    guard_supervisor(preparation, || match receive_order(&mut host)? {
        // The guard looks for the record of the command in the directory that it knows.
        Some(SupervisorOrder::Run(order))
            if GuardPreparation::for_request(&order).as_ref() == Some(preparation) =>
        {
            execute_unguarded(&order, host)
        }
        Some(SupervisorOrder::Run(_) | SupervisorOrder::Prepare(_)) => {
            let other = std::io::Error::other("the guard was prepared for other commands");
            Err(ConfineError::new(ConfineStep::ReadRequest, other))
        }
        None => Ok(()),
    })
}

/// Prepares a sandbox in a child, which then waits for the request and executes it, and waits for
/// its end. If the sandbox cannot be prepared, executes the request without it.
fn supervise_prepared(
    preparation: &SandboxPreparation,
    mut host: SupervisorLink,
) -> Result<(), ConfineError> {
    let start = ConfineStep::StartSupervisor;
    let (mut ours, theirs) = UnixStream::pair().map_err(ConfineError::at(start))?;
    let in_child = |prepared: Result<PreparedSandbox, ConfineError>| {
        let Ok(prepared) = prepared else { return 0 };
        let is_known = (&theirs).write_all(&[1]);
        drop(theirs);
        match is_known.map(|()| receive_order(&mut host)) {
            Ok(Ok(Some(SupervisorOrder::Run(order)))) => {
                let prepared = prepared.begin_command(preparation, &order);
                supervise(&order, &mut host, prepared.map(Some));
                0
            }
            Ok(Ok(None)) => 0,
            Ok(Ok(Some(SupervisorOrder::Prepare(_))) | Err(_)) | Err(_) => 1,
        }
    };
    let child = os::PreparedSandbox::run(preparation, in_child);
    // The child has its own copy of the other end, or has dropped it.
    let is_prepared = child.is_ok() && ours.read_exact(&mut [0]).is_ok();
    match child {
        Ok(child) if is_prepared => wait_for_supervisor(child, host),
        Ok(_) | Err(_) => match receive_order(&mut host)? {
            Some(SupervisorOrder::Run(order)) => execute(&order, host),
            Some(SupervisorOrder::Prepare(_)) | None => Ok(()),
        },
    }
}

/// Executes a request in a child that can mount an overlay, and waits for its end. If this process
/// is killed, the kernel kills the child and the command, and there is nothing to restore.
fn supervise_with_own_mounts(
    order: &SupervisorRequest,
    mut host: SupervisorLink,
) -> Result<(), ConfineError> {
    let in_child = |entered: Result<(), ConfineError>| {
        supervise(order, &mut host, entered.map(|()| None));
        0
    };
    match os::run_with_own_mounts(in_child) {
        Ok(child) => wait_for_supervisor(child, host),
        Err(error) => {
            supervise(order, &mut host, Err(error));
            Ok(())
        }
    }
}

/// Waits for the end of a child that executes a request.
fn wait_for_supervisor(mut child: ForkedProcess, host: SupervisorLink) -> Result<(), ConfineError> {
    // The output and the link belong to the child. They end with it.
    drop(host);
    File::open("/dev/null")
        .and_then(|nothing| Ok(rustix::stdio::dup2_stdin(nothing)?))
        .and_then(|()| replace_output())
        .map_err(ConfineError::at(ConfineStep::ReplaceStreams))?;
    let status = child.wait().map_err(ConfineError::at(ConfineStep::WaitForCommand))?;
    // If the child was killed, the guard restores the directories that the command wrote directly.
    if status.success() {
        return Ok(());
    }
    Err(ConfineError::new(ConfineStep::WaitForCommand, StepProblem::EndedEarly(status)))
}

/// Gives up the output, which belongs to the command.
pub(super) fn replace_output() -> std::io::Result<()> {
    let nothing = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(rustix::stdio::dup2_stderr(&nothing)?)
}
