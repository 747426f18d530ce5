//! The filter of system calls, made of the list in [`super::syscalls`]. It holds for this process and all that it starts.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch, apply_filter,
    sock_filter,
};

use super::super::super::confine::order::Sockets;
use super::syscalls::{AS_IF_NOT_THERE, Is, NEWEST_KNOWN, When, refused};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: TargetArch = TargetArch::riscv64;

/// Applies it for good.
pub(super) fn apply(sockets: Sockets) -> Result<(), seccompiler::Error> {
    let mut absent = BTreeMap::new();
    for (number, _) in AS_IF_NOT_THERE {
        absent.insert(*number, Vec::new());
    }
    for program in [compile(absent, libc::ENOSYS)?, compile(rules(sockets)?, libc::EPERM)?, nothing_newer()] {
        apply_filter(&program)?;
    }
    Ok(())
}

fn rules(sockets: Sockets) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for entry in refused(sockets) {
        let of_call = rules.entry(entry.number).or_default();
        match entry.when {
            // An empty list matches each call.
            When::Always => of_call.clear(),
            When::Any(tests) => {
                for test in tests {
                    let conditions = test.iter().map(condition).collect::<Result<_, _>>()?;
                    of_call.push(SeccompRule::new(conditions)?);
                }
            }
        }
    }
    Ok(rules)
}

fn condition(test: &Is) -> Result<SeccompCondition, seccompiler::Error> {
    let (argument, operator, value) = match *test {
        Is::Equal(argument, value) => (argument, SeccompCmpOp::Eq, value),
        Is::Not(argument, value) => (argument, SeccompCmpOp::Ne, value),
        Is::Has(argument, bits) => (argument, SeccompCmpOp::MaskedEq(bits), bits),
        Is::Masked(argument, mask, value) => (argument, SeccompCmpOp::MaskedEq(mask), value),
    };
    // The kernel takes all of these as 32 bits, whatever is in the other half of the register.
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?)
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Result<BpfProgram, seccompiler::Error> {
    let refuse = SeccompAction::Errno(error.cast_unsigned());
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refuse, ARCHITECTURE)?.try_into()?)
}

/// Numbers above the newest known call are not there. On x86-64 that is also the second way to each call, which has the same
/// numbers with a bit set.
fn nothing_newer() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERROR: u32 = 0x0005_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_IF_GREATER, 0, 1, NEWEST_KNOWN),
        step(RETURN, 0, 0, ERROR | libc::ENOSYS.cast_unsigned()),
        step(RETURN, 0, 0, ALLOW),
    ]
}
