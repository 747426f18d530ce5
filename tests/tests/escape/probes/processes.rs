//! Probes of processes and the kernel.

use super::ControlOutcome::{Harmful, MachineDependent, Succeeds, SucceedsAsRoot};
use super::SuccessSign::{Changes, Kills, Output, Stays};
use super::{EscapeProbe, NAMES, RESTORED, allowed, blocked};

pub(super) const PROCESSES: &[EscapeProbe] = &[
    blocked("kill another process", "kill -9 {pid}", Kills, Succeeds),
    blocked("kill all processes", "kill -9 -1; sleep 0.1", Kills, Harmful),
    blocked(
        "trace another process",
        python!("print(\"ESC\"+\"APED\" if libc.ptrace(16, {pid}, 0, 0) == 0 else \"\")"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "read its environment variables",
        "tr '\\0' '\\n' < /proc/{pid}/environ",
        Output("victim-secret"),
        Succeeds,
    ),
    blocked(
        "read its memory",
        "dd if=/proc/{pid}/mem bs=1 count=0 && echo ESCAPED",
        RESTORED,
        Succeeds,
    ),
    blocked(
        "read its memory map",
        "grep -q . /proc/{pid}/maps && echo ESCAPED",
        RESTORED,
        Succeeds,
    ),
    blocked(
        "list its open files",
        "ls -l /proc/{pid}/fd | grep -q /dev/null && echo ESCAPED",
        RESTORED,
        Succeeds,
    ),
    allowed(
        "read the command lines of other processes",
        "tr '\\0' ' ' < /proc/{pid}/cmdline",
        Output("sleep 86000"),
        NAMES,
    ),
    blocked(
        "lower its priority",
        "renice 19 -p {pid} > /dev/null && echo ESCAPED",
        RESTORED,
        Succeeds,
    ),
    blocked(
        "change its resource limits",
        python!(
            "resource.prlimit({pid}, resource.RLIMIT_NOFILE, (64, 64)); print(\"ESC\"+\"APED\")"
        ),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "copy its file descriptors",
        python!(
            "fd=libc.syscall(434, {pid}, 0); print(\"ESC\"+\"APED\" if libc.syscall(438, fd, 1, \
                0) >= 0 else \"\")"
        ),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "create a user namespace (unshare)",
        "unshare --user true && echo ESCAPED",
        RESTORED,
        Succeeds,
    ),
    blocked(
        "create a user namespace (system call)",
        python!("call(56, 0x10000000 | 17, 0, 0, 0, 0) if False else call(272, 0x10000000)"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "enter another namespace",
        "nsenter --target {pid} --uts true && echo ESCAPED",
        RESTORED,
        SucceedsAsRoot,
    ),
    blocked(
        "attach shared memory of another process",
        python!(
            "libc.shmat.restype=ctypes.c_void_p; r=libc.shmat({shm}, None, 0); \
                print(\"ESC\"+\"APED\" if r != 2**64-1 else \"refused\")"
        ),
        RESTORED,
        Succeeds,
    ),
    blocked("read the session keyring", python!("call(250, 0, -3, 1)"), RESTORED, Succeeds),
    blocked(
        "add a key to a keyring",
        python!("call(248, b\"user\", b\"cofferdam\", b\"x\", 1, -3)"),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "load a BPF program",
        python!("call(321, 0, ctypes.create_string_buffer(128), 128)"),
        RESTORED,
        SucceedsAsRoot,
    ),
    blocked(
        "open performance counters",
        python!("call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0)"),
        RESTORED,
        MachineDependent,
    ),
    blocked("create a userfaultfd", python!("call(323, 1)"), RESTORED, MachineDependent),
    blocked("disable ASLR", "setarch --addr-no-randomize true && echo ESCAPED", RESTORED, Succeeds),
    blocked("x32 system calls", python!("call(0x40000000 | 39)"), RESTORED, MachineDependent),
    blocked(
        "unknown system call numbers",
        python!("call(467, -100, b\".\", 0, 0, 0)"),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "32-bit system calls",
        "test -e /lib/ld-linux.so.2 && /lib/ld-linux.so.2 --version && echo ESCAPED",
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "insert input into the terminal",
        python!(
            "m,s=os.openpty(); os.setsid(); fcntl.ioctl(s, 0x540e, 0); fcntl.ioctl(s, 0x5412, \
                b\"x\"); print(\"ESC\"+\"APED\")"
        ),
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "open the controlling terminal",
        "(exec 3<>/dev/tty) && echo ESCAPED",
        RESTORED,
        MachineDependent,
    ),
    blocked(
        "use inherited file descriptors",
        "python3 -c 'import os; print(os.read({fd}, 99))'",
        Output("inherited-secret"),
        Succeeds,
    ),
    blocked(
        "change the core dump handler",
        "echo '|/bin/false' > /proc/sys/kernel/core_pattern",
        Changes("/proc/sys/kernel/core_pattern"),
        Harmful,
    ),
    blocked(
        "change the host name",
        "hostname evil; echo evil > /proc/sys/kernel/hostname",
        Changes("/proc/sys/kernel/hostname"),
        Harmful,
    ),
    blocked("change the clock", "date -s @1000000000 && echo ESCAPED", RESTORED, Harmful),
    blocked("read kernel messages", "dmesg | grep -q . && echo ESCAPED", RESTORED, SucceedsAsRoot),
    blocked(
        "leave a daemon running",
        "(setsid sleep {mark} > /dev/null 2>&1 &) ; sleep 0.3",
        Stays,
        Succeeds,
    ),
    blocked(
        "leave a daemon running that ignores signals",
        "setsid sh -c 'trap \"\" TERM HUP INT; sleep {mark}; true' > /dev/null 2>&1 & sleep 0.1",
        Stays,
        Succeeds,
    ),
    blocked(
        "leave a background process running",
        "sleep {mark} & echo started",
        Stays,
        MachineDependent,
    ),
    blocked(
        "leave a stopped process behind",
        "(setsid sh -c 'kill -STOP $$; sleep {mark}' > /dev/null 2>&1 &); sleep 0.1",
        Stays,
        Succeeds,
    ),
    // Some 250 processes and no more, whatever the sandbox does; the tests allow half of that.
    blocked(
        "run a fork bomb",
        "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep 5; }; f 6 # {mark}",
        Stays,
        Harmful,
    ),
    blocked(
        "open 100,000 files",
        python!("n=[os.open(\"/dev/null\", 0) for _ in range(100000)]; print(\"ESC\"+\"APED\")"),
        RESTORED,
        MachineDependent,
    ),
    blocked("create a file of 1 TiB", "truncate -s 1T big && echo ESCAPED", RESTORED, Succeeds),
    blocked("enable core dumps", "ulimit -c unlimited && echo ESCAPED", RESTORED, MachineDependent),
];
