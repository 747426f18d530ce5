//! Probes about system calls that reach past Landlock: for sockets, and for other processes.

use super::attributes::python;
use super::probes::ControlOutcome::{Harmful, MachineDependent, Succeeds};
use super::probes::SuccessSign::{Connects, Kills, Output};
use super::probes::{EscapeProbe, NAMES, RESTORED, allowed, blocked};

pub(super) const SOCKETS: &[EscapeProbe] = &[
    blocked(
        "a unix socket from a raw pair",
        python!(
            "socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)[0].sendto(b\"x\", \
                \"{out}/datagram\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a unix socket from a raw pair with flags",
        python!(
            "t=socket.SOCK_RAW|socket.SOCK_NONBLOCK|socket.SOCK_CLOEXEC\n\
            socket.socketpair(socket.AF_UNIX, t)[0].sendto(b\"x\", \"{out}/datagram\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a unix socket from a pair, its type in 64 bits",
        python!(
            "p=(ctypes.c_int*2)(); call(53, 1, (1<<32)|2, 0, p)\nsocket.socket(socket.AF_UNIX, \
                socket.SOCK_DGRAM, 0, p[0]).sendto(b\"x\", \"{out}/datagram\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a unix socket from a pair, with an address in a message",
        python!(
            "socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)[0].sendmsg([b\"x\"], [], 0, \
                \"{out}/datagram\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a unix socket from a pair, connected anew",
        python!(
            "s=socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)[0]; \
                s.connect(\"{out}/datagram\"); s.send(b\"x\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a unix socket from a sequenced pair",
        python!(
            "s=socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)[0]; s.sendto(b\"x\", \
                \"{out}/datagram\")"
        ),
        Connects,
        MachineDependent,
    ),
    blocked(
        "a unix socket from a stream pair",
        python!("a,b=socket.socketpair(); b.close(); a.connect(\"{out}/stream\")"),
        Connects,
        MachineDependent,
    ),
    blocked(
        "a unix socket of the workspace",
        python!("socket.socket(socket.AF_UNIX).connect(\"service/socket\")"),
        Connects,
        Succeeds,
    ),
    blocked(
        "a unix socket of the workspace by another name",
        python!(
            "os.link(\"service/socket\", \"other\"); \
                socket.socket(socket.AF_UNIX).connect(\"other\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a unix socket of the workspace in a directory that moved",
        python!(
            "os.rename(\"service\", \"moved\"); \
                socket.socket(socket.AF_UNIX).connect(\"moved/socket\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a unix socket of the workspace that is moved",
        python!(
            "os.rename(\"service/socket\", \"moved\"); \
                socket.socket(socket.AF_UNIX).connect(\"moved\")"
        ),
        Connects,
        Succeeds,
    ),
    allowed("sockets of the machine", "cat /proc/net/unix", Output("{out}/stream"), NAMES),
];

pub(super) const PROCESSES: &[EscapeProbe] = &[
    blocked(
        "kill by a descriptor",
        python!("call(424, raw(434, {pid}, 0), 9, 0, 0)"),
        Kills,
        Succeeds,
    ),
    blocked(
        "kill by a queued signal",
        python!(
            "call(129, {pid}, 9, struct.pack(\"iiiiii\", 9, 0, -1, 0, os.getpid(), \
                os.getuid())+bytes(104))"
        ),
        Kills,
        Succeeds,
    ),
    blocked("kill a thread", python!("call(234, {pid}, {pid}, 9)"), Kills, Succeeds),
    blocked(
        "kill as the owner of a pipe",
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
    blocked("choose its scheduler", python!("call(144, {pid}, 3, bytes(8))"), RESTORED, Succeeds),
    blocked(
        "choose its real-time priority",
        python!("call(142, {pid}, bytes(8))"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "choose its scheduling attributes",
        python!("call(314, {pid}, struct.pack(\"IIQiIQQQ\", 48, 0, 0, 5, 0, 0, 0, 0), 0)"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "choose its processors",
        python!("call(203, {pid}, 8, struct.pack(\"Q\", 1))"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "slow its reads and writes",
        python!("call(251, 1, {pid}, 0x6000)"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "slow the reads and writes of all processes",
        python!("call(251, 3, os.getuid(), 0x6000)"),
        RESTORED,
        Harmful,
    ),
    blocked("slow all processes", python!("call(141, 2, os.getuid(), 19)"), RESTORED, Harmful),
    blocked(
        "share a processor with it",
        python!("call(157, 62, 2, {pid}, 0, 0)"),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "move its memory",
        python!("call(256, {pid}, 8, struct.pack(\"Q\", 1), struct.pack(\"Q\", 1))"),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "compare what it has open",
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
        "mounts by number",
        python!("call(458, struct.pack(\"IIQQ\", 24, 0, 2**64-1, 0), bytes(800), 100, 0)"),
        RESTORED,
        MachineDependent,
    ),
];
