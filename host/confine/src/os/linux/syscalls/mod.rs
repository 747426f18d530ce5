//! The complete table of system calls of x86-64, AArch64 and RISC-V 64, with the access that a
//! command gets and the reason.
//!
//! Allowed calls have a reason too: most of them act on objects that Landlock and the namespaces
//! control already. Calls outside the table fail for a command, so that a newer kernel adds no
//! access.
//!
//! Conditions list the allowed argument values, never the refused ones, because the kernel may know
//! a second spelling of a refused value. The filter compares 32 bits, as the kernel does for all of
//! these arguments.

mod files;
mod kernel;
mod options;
mod processes;
mod sockets;

use crate::protocol::SocketAccess;

/// The names and numbers of system calls.
type SyscallList = &'static [(&'static str, u32)];

/// System calls that get the same access for the same reason.
#[derive(Debug)]
pub(super) struct SyscallGroup {
    pub(super) calls: SyscallList,
    pub(super) access: SyscallAccess,
    /// The reason, for readers of this table.
    #[allow(dead_code, reason = "the table also serves as documentation")]
    pub(super) reason: &'static str,
}

/// The access of a command to a system call.
#[derive(Debug)]
pub(super) enum SyscallAccess {
    Allowed,
    /// The call fails with this error if the condition holds.
    Denied(RefusalCondition, i32),
}

/// The condition under which a call is refused.
#[derive(Debug)]
pub(super) enum RefusalCondition {
    Always,
    /// At least one of these lists holds. A list holds if all of its tests hold.
    Any(Vec<Vec<ArgumentTest>>),
}

/// A test of one argument, given by its index from 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArgumentTest {
    NotEqual(u8, u64),
    /// All of these bits are set.
    HasBits(u8, u64),
    /// The bits of the mask (second field) have this value (third field).
    MaskedEqual(u8, u64, u64),
}

/// The properties of the sandbox for which the table is built.
#[derive(Clone, Copy, Debug)]
struct SandboxKind {
    /// Whether the command shares processes and files with the user, because there are no
    /// namespaces.
    shares_host: bool,
    network: bool,
}

/// Returns the whole table, in which each call occurs once.
pub(super) fn table(sockets: SocketAccess) -> Vec<SyscallGroup> {
    let sandbox = SandboxKind {
        shares_host: matches!(sockets, SocketAccess::Pairs | SocketAccess::PairsAndNetwork),
        network: matches!(sockets, SocketAccess::OwnAndNetwork | SocketAccess::PairsAndNetwork),
    };
    [
        files::groups(sandbox),
        processes::groups(sandbox),
        kernel::groups(),
        sockets::groups(sandbox),
        options::groups(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Builds a list of calls from the names in `linux-raw-sys`, which takes the numbers from the
/// kernel headers.
macro_rules! calls {
    ($($name:ident)*) => { &[$((stringify!($name), ::linux_raw_sys::general::$name)),*] };
}
use calls;

fn allow(calls: SyscallList, why: &'static str) -> SyscallGroup {
    SyscallGroup { calls, access: SyscallAccess::Allowed, reason: why }
}

fn deny(calls: SyscallList, why: &'static str) -> SyscallGroup {
    SyscallGroup {
        calls,
        access: SyscallAccess::Denied(RefusalCondition::Always, libc::EPERM),
        reason: why,
    }
}

/// Denies calls with the error for unknown calls, as on a kernel without them. Programs then use
/// their fallbacks.
fn deny_as_absent(calls: SyscallList, why: &'static str) -> SyscallGroup {
    SyscallGroup {
        calls,
        access: SyscallAccess::Denied(RefusalCondition::Always, libc::ENOSYS),
        reason: why,
    }
}

/// Denies calls with the error for unsupported operations, as on a file system without them.
/// Programs then use their fallbacks.
fn deny_as_unsupported(calls: SyscallList, why: &'static str) -> SyscallGroup {
    SyscallGroup {
        calls,
        access: SyscallAccess::Denied(RefusalCondition::Always, libc::EOPNOTSUPP),
        reason: why,
    }
}

fn deny_if(
    calls: SyscallList,
    tests: impl IntoIterator<Item = Vec<ArgumentTest>>,
    why: &'static str,
) -> SyscallGroup {
    deny_if_with_errno(calls, tests, libc::EPERM, why)
}

fn deny_if_with_errno(
    calls: SyscallList,
    tests: impl IntoIterator<Item = Vec<ArgumentTest>>,
    error: i32,
    why: &'static str,
) -> SyscallGroup {
    SyscallGroup {
        calls,
        access: SyscallAccess::Denied(RefusalCondition::Any(tests.into_iter().collect()), error),
        reason: why,
    }
}

/// Returns tests that hold if the argument has none of these values.
fn none_of(argument: u8, values: &[u32]) -> Vec<ArgumentTest> {
    values.iter().map(|value| ArgumentTest::NotEqual(argument, u64::from(*value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [SocketAccess; 4] = [
        SocketAccess::Own,
        SocketAccess::OwnAndNetwork,
        SocketAccess::Pairs,
        SocketAccess::PairsAndNetwork,
    ];

    /// All numbers that the kernel assigns to system calls of this architecture, up to Linux 6.17.
    fn numbers() -> Vec<u32> {
        #[cfg(target_arch = "x86_64")]
        let before = 0..=335;
        #[cfg(target_arch = "aarch64")]
        let before = (0..=243).chain(260..=294);
        #[cfg(target_arch = "riscv64")]
        let before = (0..=37).chain(39..=243).chain(258..=294);
        before.chain(424..=469).collect()
    }

    #[test]
    fn every_system_call_is_in_the_table_once_with_a_reason() {
        for sockets in ALL {
            let table = table(sockets);
            let mut listed: Vec<u32> = table
                .iter()
                .flat_map(|group| group.calls.iter().map(|(_, number)| *number))
                .collect();
            listed.sort_unstable();
            assert_eq!(listed, numbers(), "{sockets:?}");
            assert!(
                table.iter().all(|group| !group.reason.is_empty() && !group.calls.is_empty()),
                "{sockets:?}"
            );
        }
    }

    #[test]
    fn a_condition_is_never_empty() {
        // An empty list would refuse all calls or none.
        for group in ALL.into_iter().flat_map(table) {
            if let SyscallAccess::Denied(RefusalCondition::Any(tests), _) = &group.access {
                assert!(
                    !tests.is_empty() && tests.iter().all(|test| !test.is_empty()),
                    "{group:?}"
                );
            }
        }
    }
}
