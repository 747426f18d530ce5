//! Probes about what belongs to a file besides its content: attributes, times of use, numbers.
//! Landlock does not look at it.

use super::probes::ControlOutcome::{Harmful, MachineDependent, Succeeds, SucceedsAsRoot};
use super::probes::SuccessSign::Output;
use super::probes::{EscapeProbe, METADATA, RESTORED, allowed, blocked};

/// Begins a line of Python; `call` says whether a system call succeeded.
macro_rules! python {
    ($code:literal) => {
        concat!(
            "python3 -c 'import os,socket,ctypes,fcntl,struct\n",
            "libc=ctypes.CDLL(None,use_errno=True)\n",
            "def escaped(yes): print(\"ESC\"+\"APED\" if yes else \"refused %d\" % \
                ctypes.get_errno())\n",
            "def raw(*a): return libc.syscall(*[ctypes.c_long(x) if isinstance(x,int) else x for \
                x in a])\n",
            "def call(*a):\n r=raw(*a); escaped(r>=0); return r\n",
            $code,
            "' 2>&1"
        )
    };
}
pub(super) use python;

pub(super) const FILES: &[EscapeProbe] = &[
    blocked(
        "set an extended attribute",
        python!("os.setxattr(\"{out}/target\", \"user.x\", b\"1\"); escaped(True)"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "set an extended attribute (setxattrat)",
        python!(
            "v=ctypes.create_string_buffer(b\"1\"); a=struct.pack(\"QII\", ctypes.addressof(v), \
                1, 0)\ncall(463, -100, b\"{out}/target\", 0, b\"user.x\", a, 16)"
        ),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "remove an extended attribute",
        python!("os.removexattr(\"{out}/secret\", \"user.kept\"); escaped(True)"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "read an extended attribute",
        python!("print(os.getxattr(\"{out}/secret\", \"user.kept\"))"),
        Output("attribute-secret"),
        Succeeds,
    ),
    blocked(
        "list extended attributes",
        python!("print(os.listxattr(\"{out}/secret\"))"),
        Output("user.kept"),
        Succeeds,
    ),
    blocked(
        "set an extended attribute of a program through a read-only descriptor",
        python!(
            "os.setxattr(os.open(\"/usr/bin/env\", 0), \"user.cofferdam\", b\"1\"); escaped(True)"
        ),
        RESTORED,
        Harmful,
    ),
    blocked(
        "change inode flags of a program through a read-only descriptor",
        python!(
            "fcntl.ioctl(os.open(\"/usr/bin/env\", 0), 0x40086602, struct.pack(\"l\", 0x80040)); \
                escaped(True)"
        ),
        RESTORED,
        Harmful,
    ),
    blocked(
        "change inode flags (file_setattr)",
        python!("call(469, -100, b\"{out}/target\", bytes(24), 24, 0)"),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "take a lease on a program file",
        python!("fcntl.fcntl(os.open(\"/usr/bin/env\", 0), 1024, 0); escaped(True)"),
        RESTORED,
        SucceedsAsRoot,
    ),
    blocked(
        "watch a directory (inotify)",
        python!(
            "fd=libc.inotify_init(); escaped(libc.inotify_add_watch(fd, b\"{out}\", 0x100) >= 0)"
        ),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "watch a directory (fanotify)",
        python!("call(300, 0x200, 0)"),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "get the handle of a file",
        python!(
            "call(303, -100, b\"{out}/target\", struct.pack(\"Ii\", 128, 0)+bytes(128), bytes(8), \
                0)"
        ),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "set the set-user-ID bit (unnamed temporary file)",
        python!(
            "fd=os.open(\".\", os.O_TMPFILE|os.O_WRONLY, 0o4755); escaped(os.fstat(fd).st_mode & \
                0o4000)"
        ),
        RESTORED,
        Succeeds,
    ),
    allowed(
        "change the group",
        python!("os.chown(\"{out}/target\", -1, os.getgid()); escaped(True)"),
        RESTORED,
        METADATA,
    ),
    allowed(
        "read the target of a symbolic link",
        "readlink {out}/pointer",
        Output("pointer-secret"),
        METADATA,
    ),
];
