//! System calls for sockets.
//!
//! A socket with a path or a name could belong to a service that starts programs on request. A
//! command without a network namespace of its own therefore gets connected pairs only.

use super::{ArgumentTest, SandboxKind, SyscallGroup, allow, calls, deny, deny_if, none_of};

/// The bits of the argument `type` that hold the socket type. Besides these, the kernel accepts
/// only `SOCK_NONBLOCK` and `SOCK_CLOEXEC`.
const TYPE_MASK: u64 = 0xf;

pub(super) fn groups(sandbox: SandboxKind) -> Vec<SyscallGroup> {
    vec![
        allow(
            calls!(__NR_bind __NR_connect __NR_listen __NR_accept __NR_accept4 __NR_sendto
                __NR_sendmsg __NR_sendmmsg __NR_recvfrom
                __NR_recvmsg __NR_recvmmsg __NR_shutdown __NR_getsockname __NR_getpeername
                __NR_getsockopt __NR_setsockopt),
            "they use an existing socket, and this table decides which sockets can exist; a \
                connected pair ignores or rejects addresses",
        ),
        socket(sandbox),
        socket_pairs(sandbox),
    ]
}

fn socket(sandbox: SandboxKind) -> SyscallGroup {
    const WHY: &str = "these families are rarely needed and had many vulnerabilities; raw sockets \
        can read and forge packets of other programs; of netlink, only the list of interfaces is \
        allowed";
    if sandbox.shares_host && !sandbox.network {
        return deny(
            calls!(__NR_socket),
            "network access is not allowed, and a socket with a path may belong to a service",
        );
    }
    let [unix, inet, inet6, netlink, stream, datagram, route] = [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
        libc::SOCK_STREAM,
        libc::SOCK_DGRAM,
        libc::NETLINK_ROUTE,
    ]
    .map(i32::cast_unsigned);
    let mut families = vec![inet, inet6, netlink];
    if !sandbox.shares_host {
        families.push(unix);
    }
    // Internet sockets may be streams and datagrams, netlink sockets use one protocol, and Unix
    // sockets in a private file system are unrestricted.
    let internet = [netlink, unix].map(|family| ArgumentTest::NotEqual(0, family.into()));
    let raw = other_types([stream, datagram]).map(|type_| [internet.as_slice(), &[type_]].concat());
    let foreign = [inet, inet6, unix].map(|family| ArgumentTest::NotEqual(0, family.into()));
    let foreign = [foreign.as_slice(), &[ArgumentTest::NotEqual(2, route.into())]].concat();
    deny_if(calls!(__NR_socket), [none_of(0, &families), foreign].into_iter().chain(raw), WHY)
}

/// Returns tests that refuse all other types, including unknown ones.
fn other_types(allowed: [u32; 2]) -> impl Iterator<Item = ArgumentTest> {
    (0..=TYPE_MASK)
        .filter(move |type_| !allowed.iter().any(|allowed| u64::from(*allowed) == *type_))
        .map(|type_| ArgumentTest::MaskedEqual(1, TYPE_MASK, type_))
}

/// Returns the rules for socket pairs. The kernel turns a raw pair into a datagram pair, which can
/// send data to any address.
fn socket_pairs(sandbox: SandboxKind) -> SyscallGroup {
    let [unix, stream, seqpacket] =
        [libc::AF_UNIX, libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(i32::cast_unsigned);
    let mut tests = vec![none_of(0, &[unix])];
    if sandbox.shares_host {
        tests.extend(other_types([stream, seqpacket]).map(|type_| vec![type_]));
    }
    let why = "all other types can send to any socket with a path, such as the socket of a service \
        manager; with a separate file system, a command can have these types too";
    deny_if(calls!(__NR_socketpair), tests, why)
}
