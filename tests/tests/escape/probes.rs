//! The table of probes.

/// Begins a line of Python with what the probes need.
macro_rules! python {
    ($code:literal) => {
        concat!(
            "python3 -c 'import os,sys,socket,ctypes,fcntl,resource\n",
            "libc=ctypes.CDLL(None,use_errno=True)\n",
            "def call(*a):\n r=libc.syscall(*a); e=ctypes.get_errno(); print(\"ESC\"+\"APED\" if \
                r>=0 or e not in (1,38) else \"refused\")\n",
            $code,
            "\nprint(\"ESC\"+\"APED\" if os.environ.get(\"DONE\") else \"\")' 2>&1"
        )
    };
}

// The macro above is only visible in the modules below it.
mod files;
mod network;
mod processes;
mod protected;

use super::{attributes, system_calls};
use files::FILES;
use network::NETWORK;
use processes::PROCESSES;
use protected::PROTECTED;

/// An attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct EscapeProbe {
    /// In the words of the matrix.
    pub(super) name: &'static str,
    /// For `sh -c`. `{out}` is a folder outside, `{ws}` the workspace, `{pid}` a process outside,
    /// `{mark}` the time that processes are to sleep by which they are found.
    pub(super) command: &'static str,
    pub(super) success_sign: SuccessSign,
    pub(super) control_outcome: ControlOutcome,
    /// With a private view of the workspace.
    pub(super) full_outcome: ProbeOutcome,
    /// In namespaces, but without a private view.
    pub(super) direct_outcome: ProbeOutcome,
    pub(super) kernel_outcome: ProbeOutcome,
}

/// What becomes of an attempt in a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeOutcome {
    /// It does not happen, or only in the private view of the command, whose change is discarded.
    Blocked,
    /// It happens, and once the command has ended it is as it was before, and the user is told.
    Restored,
    /// It happens; why that is so.
    Allowed(&'static str),
}

/// By what one sees that it happened.
#[derive(Clone, Copy, Debug)]
pub(super) enum SuccessSign {
    /// The command says so.
    Output(&'static str),
    /// Something is there.
    Creates(&'static str),
    /// It is not as it was.
    Changes(&'static str),
    /// Somebody outside was reached.
    Connects,
    /// The process outside is dead.
    Kills,
    /// A process is there after the command.
    Stays,
}

/// What becomes of it without a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlOutcome {
    /// It happens.
    Succeeds,
    /// It happens to root.
    SucceedsAsRoot,
    /// It would harm this machine.
    Harmful,
    /// It depends on the machine, or something else prevents it too.
    MachineDependent,
}

use ControlOutcome::Succeeds;
use ProbeOutcome::{Allowed, Blocked, Restored};
use SuccessSign::Output;

pub(super) const fn blocked(
    name: &'static str,
    line: &'static str,
    sign: SuccessSign,
    control: ControlOutcome,
) -> EscapeProbe {
    EscapeProbe {
        name,
        command: line,
        success_sign: sign,
        control_outcome: control,
        full_outcome: Blocked,
        direct_outcome: Blocked,
        kernel_outcome: Blocked,
    }
}

pub(super) const fn allowed(
    name: &'static str,
    line: &'static str,
    sign: SuccessSign,
    why: &'static str,
) -> EscapeProbe {
    EscapeProbe {
        name,
        command: line,
        success_sign: sign,
        control_outcome: Succeeds,
        full_outcome: Blocked,
        direct_outcome: Blocked,
        kernel_outcome: Allowed(why),
    }
}

/// A change to something protected that is there.
const fn blocked_change(name: &'static str, line: &'static str, sign: SuccessSign) -> EscapeProbe {
    EscapeProbe {
        name,
        command: line,
        success_sign: sign,
        control_outcome: Succeeds,
        full_outcome: Blocked,
        direct_outcome: Blocked,
        kernel_outcome: Restored,
    }
}

/// A name that is not there yet, so that there is nothing to mount over.
const fn restored(name: &'static str, line: &'static str, sign: SuccessSign) -> EscapeProbe {
    EscapeProbe {
        name,
        command: line,
        success_sign: sign,
        control_outcome: Succeeds,
        full_outcome: Blocked,
        direct_outcome: Restored,
        kernel_outcome: Restored,
    }
}

pub(super) const METADATA: &str = "Landlock does not cover metadata";
const HIDDEN: &str = "Landlock cannot exclude a file from a directory";
pub(super) const NAMES: &str = "`/proc` is shared";
pub(super) const RESTORED: SuccessSign = Output("ESCAPED");

/// The table in its parts.
pub(super) const ALL: [(&str, &[&[EscapeProbe]]); 4] = [
    ("Files outside the workspace", &[FILES, attributes::FILES]),
    ("Network", &[NETWORK, system_calls::SOCKETS]),
    ("Processes and the kernel", &[PROCESSES, system_calls::PROCESSES]),
    ("Protected paths of the workspace", &[PROTECTED]),
];
