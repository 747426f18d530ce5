//! The system call filter for this process and its descendants, built from the table in
//! [`super::syscalls`].

use seccompiler::{BpfProgram, apply_filter, sock_filter};

use super::syscalls::{ArgumentTest, RefusalCondition, SyscallAccess, SyscallGroup, table};
use crate::protocol::SocketAccess;

/// `AUDIT_ARCH_*` of `linux/audit.h`. Programs can also make system calls of other architectures,
/// which have other numbers.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: u32 = 0xc000_00f3;

/// Instructions of `linux/bpf_common.h`.
const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

/// Results of `linux/seccomp.h`.
const KILL_PROCESS: u32 = 0x8000_0000;
const ERROR: u32 = 0x0005_0000;
const ALLOW: u32 = 0x7fff_0000;

/// Offsets in `struct seccomp_data` of `linux/seccomp.h`.
const NUMBER_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;
const ARGUMENTS_OFFSET: u32 = 16;

/// What the filter does with a call.
#[derive(Clone, Copy, Debug)]
enum CallVerdict<'a> {
    Allow,
    Fail(i32),
    /// The call fails with this error if all tests of one list hold.
    FailIf(&'a [Vec<ArgumentTest>], i32),
}

/// The first of a range of numbers with the same verdict. The range ends at the next one.
type VerdictRange<'a> = (u32, CallVerdict<'a>);

/// Applies the filter to this process permanently.
pub(super) fn apply(sockets: SocketAccess) -> Result<(), seccompiler::Error> {
    apply_filter(&build_filter(&table(sockets)))
}

/// Builds a filter for all calls.
///
/// It is one filter, although one for each error would be simpler to build: the kernel makes each
/// filter executable, and evaluates it for each number, when it is installed. The verdict is found
/// by halves, in about ten steps.
fn build_filter(table: &[SyscallGroup]) -> BpfProgram {
    let mut program = vec![
        step(LOAD_WORD, 0, 0, ARCHITECTURE_OFFSET),
        step(JUMP_IF_EQUAL, 1, 0, ARCHITECTURE),
        step(RETURN, 0, 0, KILL_PROCESS),
        step(LOAD_WORD, 0, 0, NUMBER_OFFSET),
    ];
    add_search(&verdict_ranges(table), &mut program);
    program
}

fn step(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Returns the verdicts for all numbers, sorted by number. Calls with numbers outside the table
/// fail with `ENOSYS`.
///
/// On x86-64 this covers the x32 variants too, which have the same numbers with an extra bit.
fn verdict_ranges(table: &[SyscallGroup]) -> Vec<VerdictRange<'_>> {
    const UNKNOWN: CallVerdict<'_> = CallVerdict::Fail(libc::ENOSYS);
    let mut known: Vec<VerdictRange<'_>> = table
        .iter()
        .flat_map(|group| {
            let verdict = match &group.access {
                SyscallAccess::Allowed => CallVerdict::Allow,
                SyscallAccess::Denied(RefusalCondition::Always, error) => CallVerdict::Fail(*error),
                SyscallAccess::Denied(RefusalCondition::Any(tests), error) => {
                    CallVerdict::FailIf(tests, *error)
                }
            };
            group.calls.iter().map(move |(_, number)| (*number, verdict))
        })
        .collect();
    known.sort_by_key(|(number, _)| *number);
    let mut ranges = Vec::new();
    // The number after the last range so far.
    let mut next = 0;
    for (number, verdict) in known {
        if number > next {
            add_range(&mut ranges, (next, UNKNOWN));
        }
        add_range(&mut ranges, (number, verdict));
        next = number.saturating_add(1);
    }
    add_range(&mut ranges, (next, UNKNOWN));
    ranges
}

/// Adds a range, or extends the last one if that has the same verdict.
fn add_range<'a>(ranges: &mut Vec<VerdictRange<'a>>, range: VerdictRange<'a>) {
    let is_same = match (ranges.last().map(|(_, verdict)| *verdict), range.1) {
        (Some(CallVerdict::Allow), CallVerdict::Allow) => true,
        (Some(CallVerdict::Fail(one)), CallVerdict::Fail(other)) => one == other,
        (
            Some(CallVerdict::Allow | CallVerdict::Fail(_) | CallVerdict::FailIf(..)) | None,
            CallVerdict::Allow | CallVerdict::Fail(_) | CallVerdict::FailIf(..),
        ) => false,
    };
    if !is_same {
        ranges.push(range);
    }
}

/// Adds the search for the range of the loaded number. Every way through it ends with a result.
fn add_search(ranges: &[VerdictRange<'_>], program: &mut BpfProgram) {
    match ranges {
        // There is always a range.
        [] => program.push(step(RETURN, 0, 0, KILL_PROCESS)),
        [(_, verdict)] => add_verdict(*verdict, program),
        _ => {
            let (lower, upper) = ranges.split_at(ranges.len() / 2);
            let first = upper.first().map_or(0, |(first, _)| *first);
            program.push(step(JUMP_IF_AT_LEAST, 0, 1, first));
            let jump = add_jump(program);
            add_search(lower, program);
            jump.end_here(program);
            add_search(upper, program);
        }
    }
}

fn add_verdict(verdict: CallVerdict<'_>, program: &mut BpfProgram) {
    let (lists, error) = match verdict {
        CallVerdict::Allow => (&[][..], 0),
        CallVerdict::Fail(error) => return program.push(failure(error)),
        CallVerdict::FailIf(lists, error) => (lists, error),
    };
    for tests in lists {
        let misses: Vec<PendingJump> = tests.iter().map(|test| add_test(*test, program)).collect();
        program.push(failure(error));
        misses.into_iter().for_each(|miss| miss.end_here(program));
    }
    program.push(step(RETURN, 0, 0, ALLOW));
}

fn failure(error: i32) -> sock_filter {
    step(RETURN, 0, 0, ERROR | error.cast_unsigned())
}

/// Adds a test, and returns the jump for the case that it does not hold.
fn add_test(test: ArgumentTest, program: &mut BpfProgram) -> PendingJump {
    let (argument, mask, value) = match test {
        ArgumentTest::NotEqual(argument, value) => (argument, None, value),
        ArgumentTest::HasBits(argument, bits) => (argument, Some(bits), bits),
        ArgumentTest::MaskedEqual(argument, mask, value) => (argument, Some(mask), value & mask),
    };
    // The kernel reads all of these arguments as 32 bits and ignores the upper half of the
    // register. All supported machines store the lower half first.
    program.push(step(LOAD_WORD, 0, 0, ARGUMENTS_OFFSET + 8 * u32::from(argument)));
    program.extend(mask.map(|mask| step(AND, 0, 0, lower_half(mask))));
    let (if_equal, if_not) = match test {
        // The next instruction is the jump.
        ArgumentTest::NotEqual(..) => (0, 1),
        ArgumentTest::HasBits(..) | ArgumentTest::MaskedEqual(..) => (1, 0),
    };
    program.push(step(JUMP_IF_EQUAL, if_equal, if_not, lower_half(value)));
    add_jump(program)
}

/// Returns the lower 32 bits.
fn lower_half(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// A jump whose end is not known yet.
struct PendingJump(usize);

fn add_jump(program: &mut BpfProgram) -> PendingJump {
    program.push(step(JUMP, 0, 0, 0));
    PendingJump(program.len())
}

impl PendingJump {
    /// Lets the jump lead to the next instruction that is added.
    fn end_here(self, program: &mut BpfProgram) {
        // The kernel refuses a filter with a longer jump, and then no command runs.
        let distance = u32::try_from(program.len() - self.0).unwrap_or(u32::MAX);
        if let Some(jump) = program.get_mut(self.0 - 1) {
            jump.k = distance;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use seccompiler::{
        SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch,
    };

    use super::*;

    const ALL: [SocketAccess; 4] = [
        SocketAccess::Own,
        SocketAccess::OwnAndNetwork,
        SocketAccess::Pairs,
        SocketAccess::PairsAndNetwork,
    ];

    /// Evaluates a program for a call of an architecture, and counts the steps.
    fn run(program: &BpfProgram, architecture: u32, number: u32, arguments: &[u32; 6]) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = &program[at];
            at += 1;
            let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
            match step.code {
                LOAD_WORD => {
                    loaded = match step.k {
                        NUMBER_OFFSET => number,
                        ARCHITECTURE_OFFSET => architecture,
                        offset if offset % 8 == 0 => {
                            arguments[usize::try_from(offset / 8).expect("it fits") - 2]
                        }
                        // The upper half of an argument.
                        _ => 0xdead_beef,
                    }
                }
                AND => loaded &= step.k,
                JUMP => at += usize::try_from(step.k).expect("it fits"),
                JUMP_IF_EQUAL => at += jump(loaded == step.k),
                0x25 => at += jump(loaded > step.k),
                JUMP_IF_AT_LEAST => at += jump(loaded >= step.k),
                RETURN => return step.k,
                code => panic!("{code:x}"),
            }
        }
    }

    fn answer(program: &BpfProgram, number: u32, arguments: &[u32; 6]) -> u32 {
        run(program, ARCHITECTURE, number, arguments)
    }

    #[test]
    fn what_the_table_does_not_have_is_not_there() {
        for sockets in ALL {
            let table = table(sockets);
            let known = numbers(&table);
            let program = build_filter(&table);
            for number in (0..1000).chain([0x4000_0000, 0x4000_0027, u32::MAX]) {
                let is_absent =
                    answer(&program, number, &[0; 6]) == ERROR | libc::ENOSYS.cast_unsigned();
                assert!(is_absent || known.contains(&number), "{sockets:?}: {number}");
            }
            let most = known.iter().max().expect("there are some");
            let absent = ERROR | libc::ENOSYS.cast_unsigned();
            assert_eq!(answer(&program, most + 1, &[0; 6]), absent);
            // The kernel takes programs of at most 4096 instructions.
            assert!(program.len() < 2000, "{}", program.len());
        }
    }

    #[test]
    fn calls_of_other_architectures_end_the_process() {
        let program = build_filter(&table(SocketAccess::Own));
        for architecture in [0, 0x4000_0003, !ARCHITECTURE] {
            assert_eq!(run(&program, architecture, 0, &[0; 6]), KILL_PROCESS);
        }
    }

    fn numbers(table: &[SyscallGroup]) -> Vec<u32> {
        table.iter().flat_map(|group| group.calls.iter().map(|(_, number)| *number)).collect()
    }

    /// The filter must do what one filter for each error does, which `seccompiler` builds.
    #[test]
    fn the_filter_does_what_separate_filters_do() {
        for sockets in ALL {
            let table = table(sockets);
            let program = build_filter(&table);
            let separate = separate_filters(&table);
            for number in 0..600 {
                for arguments in interesting_arguments(&table, number) {
                    let expected = separate
                        .iter()
                        .map(|filter| answer(filter, number, &arguments))
                        .find(|answer| *answer != ALLOW)
                        .unwrap_or(match numbers(&table).contains(&number) {
                            true => ALLOW,
                            false => ERROR | libc::ENOSYS.cast_unsigned(),
                        });
                    assert_eq!(
                        answer(&program, number, &arguments),
                        expected,
                        "{sockets:?}: {number} {arguments:x?}"
                    );
                }
            }
        }
    }

    /// Returns arguments with the values of all tests of a call, and with other values.
    fn interesting_arguments(table: &[SyscallGroup], number: u32) -> Vec<[u32; 6]> {
        let mut all = vec![[0; 6], [u32::MAX; 6]];
        let group =
            table.iter().find(|group| group.calls.iter().any(|(_, known)| *known == number));
        let Some(SyscallAccess::Denied(RefusalCondition::Any(lists), _)) =
            group.map(|group| &group.access)
        else {
            return all;
        };
        for test in lists.iter().flatten() {
            let (argument, value) = match *test {
                ArgumentTest::NotEqual(argument, value)
                | ArgumentTest::HasBits(argument, value) => (argument, lower_half(value)),
                ArgumentTest::MaskedEqual(argument, mask, value) => {
                    (argument, lower_half(value | !mask))
                }
            };
            for others in all.clone().iter().take(40) {
                for value in [value, value ^ 1, value | 0x8000_0000, !value, value.wrapping_add(1)]
                {
                    let mut arguments = *others;
                    arguments[usize::from(argument)] = value;
                    all.push(arguments);
                }
            }
        }
        all
    }

    fn separate_filters(table: &[SyscallGroup]) -> Vec<BpfProgram> {
        let mut all: BTreeMap<i32, BTreeMap<i64, Vec<SeccompRule>>> = BTreeMap::new();
        for group in table {
            let SyscallAccess::Denied(when, error) = &group.access else { continue };
            let rule = |tests: &Vec<ArgumentTest>| {
                SeccompRule::new(tests.iter().map(condition).collect()).expect("a rule")
            };
            for (_, number) in group.calls {
                let rules = match when {
                    // An empty list matches every call.
                    RefusalCondition::Always => Vec::new(),
                    RefusalCondition::Any(tests) => tests.iter().map(rule).collect(),
                };
                all.entry(*error).or_default().insert(i64::from(*number), rules);
            }
        }
        #[cfg(target_arch = "x86_64")]
        let architecture = TargetArch::x86_64;
        #[cfg(target_arch = "aarch64")]
        let architecture = TargetArch::aarch64;
        #[cfg(target_arch = "riscv64")]
        let architecture = TargetArch::riscv64;
        all.into_iter()
            .map(|(error, rules)| {
                let refuse = SeccompAction::Errno(error.cast_unsigned());
                SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)
                    .and_then(BpfProgram::try_from)
                    .expect("the rules are valid")
            })
            .collect()
    }

    fn condition(test: &ArgumentTest) -> SeccompCondition {
        let (argument, operator, value) = match *test {
            ArgumentTest::NotEqual(argument, value) => (argument, SeccompCmpOp::Ne, value),
            ArgumentTest::HasBits(argument, bits) => (argument, SeccompCmpOp::MaskedEq(bits), bits),
            ArgumentTest::MaskedEqual(argument, mask, value) => {
                (argument, SeccompCmpOp::MaskedEq(mask), value)
            }
        };
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value).expect("valid")
    }
}
