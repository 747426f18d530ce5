//! The complete table of system calls of x86-64, AArch64 and RISC-V 64: which of them a command
//! gets, and why.
//!
//! A call that is open is open for a reason too: most of them act on what Landlock and the
//! namespaces have already decided on. A call that the table does not have does not exist for a
//! command, so a newer kernel opens nothing.
//!
//! Arguments are compared with the values that are allowed, and never with those that are refused:
//! the kernel may know a second way to write the same thing. The filter looks at 32 bits, as the
//! kernel does for all of these arguments.

mod files;
mod kernel;
mod options;
mod processes;
mod sockets;

use super::super::super::confine::protocol::SocketAccess;

/// Names and numbers of system calls.
type SyscallList = &'static [(&'static str, u32)];

/// System calls that are treated alike, for the same reason.
#[derive(Debug)]
pub(super) struct SyscallGroup {
    pub(super) calls: SyscallList,
    pub(super) access: SyscallAccess,
    /// For whoever reads this table.
    #[allow(dead_code, reason = "the table is documentation as much as data")]
    pub(super) reason: &'static str,
}

/// What a command gets of a call.
#[derive(Debug)]
pub(super) enum SyscallAccess {
    Allowed,
    /// It fails with this error.
    Denied(RefusalCondition, i32),
}

/// The condition of a refusal.
#[derive(Debug)]
pub(super) enum RefusalCondition {
    Always,
    /// One of these holds, each of which is a list of tests that all have to hold.
    Any(Vec<Vec<ArgumentTest>>),
}

/// A test of one argument, by its number from 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArgumentTest {
    NotEqual(u8, u64),
    /// These bits of it are all set.
    HasBits(u8, u64),
    /// The bits of the mask have this value.
    MaskedEqual(u8, u64, u64),
}

/// Which of the sandboxes the table is for.
#[derive(Clone, Copy, Debug)]
struct SandboxKind {
    /// The other processes and the files of the user are there too: there are no namespaces.
    shares_host: bool,
    network: bool,
}

/// The whole table. Each call is in it once.
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

/// Numbers that lead to the kernel are known by the names of `linux-raw-sys`, which has them from
/// the kernel's headers.
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

/// Programs do what they do on a kernel that does not have it.
fn deny_as_absent(calls: SyscallList, why: &'static str) -> SyscallGroup {
    SyscallGroup {
        calls,
        access: SyscallAccess::Denied(RefusalCondition::Always, libc::ENOSYS),
        reason: why,
    }
}

/// Programs do what they do on a file system that does not have it.
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

/// Holds unless the argument is one of these.
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

    /// All numbers that the kernel has given to system calls of this architecture, up to Linux
    /// 6.17.
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
        // An empty list would refuse each call, or none.
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
