//! Probes about system calls that reach past Landlock: for sockets, and for other processes.

use super::attributes::python;
use super::probes::ControlOutcome::{Harmful, MachineDependent, Succeeds};
use super::probes::SuccessSign::{Connects, Kills, Output};
use super::probes::{EscapeProbe, NAMES, RESTORED, allowed, blocked};

pub(super) const SOCKETS: &[EscapeProbe] = &[
    blocked(
        "a Unix raw pair",
        python!(
            "socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)[0].sendto(b\"x\", \
                \"{out}/datagram\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a Unix raw pair with flags",
        python!(
            "t=socket.SOCK_RAW|socket.SOCK_NONBLOCK|socket.SOCK_CLOEXEC\n\
            socket.socketpair(socket.AF_UNIX, t)[0].sendto(b\"x\", \"{out}/datagram\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a Unix datagram pair with a 64-bit type argument",
        python!(
            "p=(ctypes.c_int*2)(); call(53, 1, (1<<32)|2, 0, p)\nsocket.socket(socket.AF_UNIX, \
                socket.SOCK_DGRAM, 0, p[0]).sendto(b\"x\", \"{out}/datagram\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a Unix raw pair that sends a message to a path",
        python!(
            "socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)[0].sendmsg([b\"x\"], [], 0, \
                \"{out}/datagram\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a Unix raw pair that is reconnected",
        python!(
            "s=socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)[0]; \
                s.connect(\"{out}/datagram\"); s.send(b\"x\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a Unix sequenced-packet pair",
        python!(
            "s=socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)[0]; s.sendto(b\"x\", \
                \"{out}/datagram\")"
        ),
        Connects,
        MachineDependent,
    ),
    blocked(
        "a Unix stream pair",
        python!("a,b=socket.socketpair(); b.close(); a.connect(\"{out}/stream\")"),
        Connects,
        MachineDependent,
    ),
    blocked(
        "a Unix socket in the workspace",
        python!("socket.socket(socket.AF_UNIX).connect(\"service/socket\")"),
        Connects,
        Succeeds,
    ),
    blocked(
        "a Unix socket in the workspace through a hard link",
        python!(
            "os.link(\"service/socket\", \"other\"); \
                socket.socket(socket.AF_UNIX).connect(\"other\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a Unix socket in the workspace after its directory was renamed",
        python!(
            "os.rename(\"service\", \"moved\"); \
                socket.socket(socket.AF_UNIX).connect(\"moved/socket\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a Unix socket in the workspace after it was renamed",
        python!(
            "os.rename(\"service/socket\", \"moved\"); \
                socket.socket(socket.AF_UNIX).connect(\"moved\")"
        ),
        Connects,
        Succeeds,
    ),
    allowed("list the sockets of the machine", "cat /proc/net/unix", Output("{out}/stream"), NAMES),
];

pub(super) const PROCESSES: &[EscapeProbe] = &[
    blocked(
        "kill another process (pidfd)",
        python!("call(424, raw(434, {pid}, 0), 9, 0, 0)"),
        Kills,
        Succeeds,
    ),
    blocked(
        "kill another process (queued signal)",
        python!(
            "call(129, {pid}, 9, struct.pack(\"iiiiii\", 9, 0, -1, 0, os.getpid(), \
                os.getuid())+bytes(104))"
        ),
        Kills,
        Succeeds,
    ),
    blocked(
        "kill another process (thread signal)",
        python!("call(234, {pid}, {pid}, 9)"),
        Kills,
        Succeeds,
    ),
    blocked(
        "kill another process (pipe signal)",
        python!(
            "r,w=os.pipe(); fcntl.fcntl(r, 8, {pid}); fcntl.fcntl(r, 10, 9); fcntl.fcntl(r, 4, \
                os.O_NONBLOCK|0x2000); os.write(w, b\"x\")"
        ),
        Kills,
        Succeeds,
    ),
    blocked(
        "read its memory (process_vm_readv)",
        python!(
            "b=ctypes.create_string_buffer(8); v=struct.pack(\"QQ\", ctypes.addressof(b), 8); \
                f=struct.pack(\"QQ\", 1, 8)\nr=raw(310, {pid}, v, 1, f, 1, 0); escaped(r >= 0 or \
                ctypes.get_errno() == 14)"
        ),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "set its scheduling policy",
        python!("call(144, {pid}, 3, bytes(8))"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "set its real-time priority",
        python!("call(142, {pid}, bytes(8))"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "set its scheduling attributes",
        python!("call(314, {pid}, struct.pack(\"IIQiIQQQ\", 48, 0, 0, 5, 0, 0, 0, 0), 0)"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "set its CPU affinity",
        python!("call(203, {pid}, 8, struct.pack(\"Q\", 1))"),
        RESTORED,
        Succeeds,
    ),
    blocked("lower its I/O priority", python!("call(251, 1, {pid}, 0x6000)"), RESTORED, Succeeds),
    blocked(
        "lower the I/O priority of all processes",
        python!("call(251, 3, os.getuid(), 0x6000)"),
        RESTORED,
        Harmful,
    ),
    blocked(
        "lower the priority of all processes",
        python!("call(141, 2, os.getuid(), 19)"),
        RESTORED,
        Harmful,
    ),
    blocked(
        "share a core-scheduling group with it",
        python!("call(157, 62, 2, {pid}, 0, 0)"),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "move its memory pages",
        python!("call(256, {pid}, 8, struct.pack(\"Q\", 1), struct.pack(\"Q\", 1))"),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "compare its open files",
        python!("call(312, {pid}, {pid}, 1, 0, 0)"),
        RESTORED,
        MachineDependent,
    ),
    blocked("remove a message queue", python!("call(241, b\"{queue}\")"), RESTORED, Succeeds),
    blocked(
        "read a message queue",
        python!("call(240, b\"{queue}\", 0, 0, 0)"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "look up mounts by ID",
        python!("call(458, struct.pack(\"IIQQ\", 24, 0, 2**64-1, 0), bytes(800), 100, 0)"),
        RESTORED,
        MachineDependent,
    ),
];
