//! Probes of the network.

use super::ControlOutcome::{MachineDependent, Succeeds, SucceedsAsRoot};
use super::SuccessSign::Connects;
use super::{EscapeProbe, RESTORED, blocked};

pub(super) const NETWORK: &[EscapeProbe] = &[
    blocked(
        "TCP",
        python!("socket.create_connection((\"127.0.0.1\", {tcp}), 2)"),
        Connects,
        Succeeds,
    ),
    blocked(
        "TCP to an IPv4-mapped IPv6 address",
        python!("socket.create_connection((\"::ffff:127.0.0.1\", {tcp}), 2)"),
        Connects,
        Succeeds,
    ),
    blocked(
        "TCP Fast Open",
        python!("s=socket.socket(); s.sendto(b\"x\", 0x20000000, (\"127.0.0.1\", {tcp}))"),
        Connects,
        MachineDependent,
    ),
    blocked(
        "UDP",
        python!(
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", \
                {udp}))"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a Unix socket",
        python!("socket.socket(socket.AF_UNIX).connect(\"{out}/stream\")"),
        Connects,
        Succeeds,
    ),
    blocked(
        "a Unix datagram socket",
        python!(
            "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b\"x\", \"{out}/datagram\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "a Unix datagram pair",
        python!(
            "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b\"x\", \
                \"{out}/datagram\")"
        ),
        Connects,
        Succeeds,
    ),
    blocked(
        "an abstract Unix socket",
        python!("socket.socket(socket.AF_UNIX).connect(\"\\0{abstract}\")"),
        Connects,
        Succeeds,
    ),
    blocked(
        "a raw socket",
        python!("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print(\"ESC\"+\"APED\")"),
        RESTORED,
        SucceedsAsRoot,
    ),
    blocked(
        "a packet socket",
        python!("socket.socket(17, socket.SOCK_RAW, 0); print(\"ESC\"+\"APED\")"),
        RESTORED,
        SucceedsAsRoot,
    ),
    blocked(
        "a netlink socket",
        python!("socket.socket(16, socket.SOCK_RAW, 9); print(\"ESC\"+\"APED\")"),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "an AF_ALG socket",
        python!("socket.socket(38, 5, 0); print(\"ESC\"+\"APED\")"),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "a vsock socket",
        python!("socket.socket(40, 1, 0); print(\"ESC\"+\"APED\")"),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "io_uring",
        python!("call(425, 8, ctypes.create_string_buffer(120))"),
        RESTORED,
        MachineDependent,
    ),
];
