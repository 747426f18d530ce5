//! The system call filter for this process and its descendants, built from the table in
//! [`super::syscalls`].

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::syscalls::{ArgumentTest, RefusalCondition, SyscallAccess, SyscallGroup, table};
use crate::protocol::SocketAccess;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: TargetArch = TargetArch::aarch64;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: TargetArch = TargetArch::riscv64;

/// The rules of the filter by system call number.
type RulesBySyscall = BTreeMap<i64, Vec<SeccompRule>>;

/// Applies the filter to this process permanently.
pub(super) fn apply(sockets: SocketAccess) -> Result<(), seccompiler::Error> {
    let table = table(sockets);
    // The kernel uses the newest of several equal refusals, so the filter for unknown calls comes
    // last.
    for (error, rules) in rules(&table)? {
        apply_filter(&compile(rules, error)?)?;
    }
    apply_filter(&deny_unknown(&table))
}

/// Groups the rules by the error that a refused call returns.
fn rules(table: &[SyscallGroup]) -> Result<BTreeMap<i32, RulesBySyscall>, seccompiler::Error> {
    let mut all: BTreeMap<i32, RulesBySyscall> = BTreeMap::new();
    for group in table {
        let SyscallAccess::Denied(when, error) = &group.access else { continue };
        for (_, number) in group.calls {
            let rules = match when {
                // An empty list matches every call.
                RefusalCondition::Always => Vec::new(),
                RefusalCondition::Any(tests) => {
                    tests.iter().map(|tests| rule(tests)).collect::<Result<_, _>>()?
                }
            };
            all.entry(*error).or_default().insert(i64::from(*number), rules);
        }
    }
    Ok(all)
}

fn rule(tests: &[ArgumentTest]) -> Result<SeccompRule, seccompiler::Error> {
    let conditions = tests.iter().map(condition).collect::<Result<_, _>>()?;
    Ok(SeccompRule::new(conditions)?)
}

fn condition(test: &ArgumentTest) -> Result<SeccompCondition, seccompiler::Error> {
    let (argument, operator, value) = match *test {
        ArgumentTest::NotEqual(argument, value) => (argument, SeccompCmpOp::Ne, value),
        ArgumentTest::HasBits(argument, bits) => (argument, SeccompCmpOp::MaskedEq(bits), bits),
        ArgumentTest::MaskedEqual(argument, mask, value) => {
            (argument, SeccompCmpOp::MaskedEq(mask), value)
        }
    };
    // The kernel reads all of these arguments as 32 bits and ignores the upper half of the
    // register.
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?)
}

fn compile(rules: RulesBySyscall, error: i32) -> Result<BpfProgram, seccompiler::Error> {
    let refuse = SeccompAction::Errno(error.cast_unsigned());
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refuse, ARCHITECTURE)?.try_into()?)
}

/// Builds a filter that denies all calls with numbers outside the table (`ENOSYS`).
///
/// On x86-64 this covers the x32 variants too, which have the same numbers with an extra bit.
fn deny_unknown(table: &[SyscallGroup]) -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_GREATER: u16 = 0x25;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERROR: u32 = 0x0005_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let mut program = vec![step(LOAD_WORD, 0, 0, 0)];
    for (first, last) in ranges(table) {
        // A number between two ranges is denied. A number above this range goes on to the next
        // range.
        program.extend([
            step(JUMP_IF_AT_LEAST, 1, 0, first),
            step(RETURN, 0, 0, ERROR | libc::ENOSYS.cast_unsigned()),
            step(JUMP_IF_GREATER, 1, 0, last),
            step(RETURN, 0, 0, ALLOW),
        ]);
    }
    program.push(step(RETURN, 0, 0, ERROR | libc::ENOSYS.cast_unsigned()));
    program
}

/// Returns the numbers of the table as sorted ranges without gaps.
fn ranges(table: &[SyscallGroup]) -> Vec<(u32, u32)> {
    let mut numbers: Vec<u32> =
        table.iter().flat_map(|group| group.calls.iter().map(|(_, number)| *number)).collect();
    numbers.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if number <= last.saturating_add(1) => *last = number,
            Some(_) | None => ranges.push((number, number)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates a program that uses only these four instructions.
    fn answer(program: &BpfProgram, number: u32) -> u32 {
        let mut at = 0;
        loop {
            let step = &program[at];
            at += 1;
            match step.code {
                0x20 => {}
                0x25 => at += usize::from(if number > step.k { step.jt } else { step.jf }),
                0x35 => at += usize::from(if number >= step.k { step.jt } else { step.jf }),
                _ => return step.k,
            }
        }
    }

    #[test]
    fn what_the_table_does_not_have_is_not_there() {
        let table = table(SocketAccess::Pairs);
        let known: Vec<u32> =
            table.iter().flat_map(|group| group.calls.iter().map(|(_, number)| *number)).collect();
        let program = deny_unknown(&table);
        for number in (0..1000).chain([0x4000_0000, 0x4000_0027, u32::MAX]) {
            assert_eq!(
                answer(&program, number) == 0x7fff_0000,
                known.contains(&number),
                "{number}"
            );
        }
        let most = known.iter().max().expect("there are some");
        assert_eq!(answer(&program, most + 1), 0x0005_0000 | libc::ENOSYS.cast_unsigned());
    }

    #[test]
    fn the_table_compiles_for_each_sandbox() {
        for sockets in [
            SocketAccess::Own,
            SocketAccess::OwnAndNetwork,
            SocketAccess::Pairs,
            SocketAccess::PairsAndNetwork,
        ] {
            for (error, rules) in rules(&table(sockets)).expect("the rules are valid") {
                compile(rules, error)
                    .unwrap_or_else(|problem| panic!("{sockets:?}: {error}: {problem}"));
            }
        }
    }
}
