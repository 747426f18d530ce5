//! The table of probes.

use super::{attributes, system_calls};

/// An attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct EscapeProbe {
    /// In the words of the matrix.
    pub(super) name: &'static str,
    /// For `sh -c`. `{out}` is a folder outside, `{ws}` the workspace, `{pid}` a process outside,
    /// `{mark}` the time that processes are to sleep by which they are found.
    pub(super) command: &'static str,
    pub(super) success_sign: SuccessSign,
    pub(super) control_outcome: ControlOutcome,
    pub(super) full_outcome: ProbeOutcome,
    pub(super) kernel_outcome: ProbeOutcome,
}

/// What becomes of an attempt in a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeOutcome {
    /// It does not happen.
    Blocked,
    /// It happens, and once the command has ended it is as it was before, and the user is told.
    Restored,
    /// It happens; why that is so.
    Allowed(&'static str),
}

/// By what one sees that it happened.
#[derive(Clone, Copy, Debug)]
pub(super) enum SuccessSign {
    /// The command says so.
    Output(&'static str),
    /// Something is there.
    Creates(&'static str),
    /// It is not as it was.
    Changes(&'static str),
    /// Somebody outside was reached.
    Connects,
    /// The process outside is dead.
    Kills,
    /// A process is there after the command.
    Stays,
}

/// What becomes of it without a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlOutcome {
    /// It happens.
    Succeeds,
    /// It happens to root.
    SucceedsAsRoot,
    /// It would harm this machine.
    Harmful,
    /// It depends on the machine, or something else prevents it too.
    MachineDependent,
}

use ControlOutcome::{Harmful, MachineDependent, Succeeds, SucceedsAsRoot};
use ProbeOutcome::{Allowed, Blocked, Restored};
use SuccessSign::{Changes, Connects, Creates, Kills, Output, Stays};

pub(super) const fn blocked(
    name: &'static str,
    line: &'static str,
    sign: SuccessSign,
    control: ControlOutcome,
) -> EscapeProbe {
    EscapeProbe {
        name,
        command: line,
        success_sign: sign,
        control_outcome: control,
        full_outcome: Blocked,
        kernel_outcome: Blocked,
    }
}

pub(super) const fn allowed(
    name: &'static str,
    line: &'static str,
    sign: SuccessSign,
    why: &'static str,
) -> EscapeProbe {
    EscapeProbe {
        name,
        command: line,
        success_sign: sign,
        control_outcome: Succeeds,
        full_outcome: Blocked,
        kernel_outcome: Allowed(why),
    }
}

/// A change to something protected that is there.
const fn blocked_change(name: &'static str, line: &'static str, sign: SuccessSign) -> EscapeProbe {
    EscapeProbe {
        name,
        command: line,
        success_sign: sign,
        control_outcome: Succeeds,
        full_outcome: Blocked,
        kernel_outcome: Restored,
    }
}

/// A name that is not there yet, so that there is nothing to mount over.
const fn restored(name: &'static str, line: &'static str, sign: SuccessSign) -> EscapeProbe {
    EscapeProbe {
        name,
        command: line,
        success_sign: sign,
        control_outcome: Succeeds,
        full_outcome: Restored,
        kernel_outcome: Restored,
    }
}

pub(super) const METADATA: &str = "Landlock does not cover metadata";
const HIDDEN: &str = "Landlock cannot exclude a file from a directory";
pub(super) const NAMES: &str = "`/proc` is shared";
pub(super) const RESTORED: SuccessSign = Output("ESCAPED");

/// Begins a line of Python with what the probes need.
macro_rules! python {
    ($code:literal) => {
        concat!(
            "python3 -c 'import os,sys,socket,ctypes,fcntl,resource\n",
            "libc=ctypes.CDLL(None,use_errno=True)\n",
            "def call(*a):\n r=libc.syscall(*a); e=ctypes.get_errno(); print(\"ESC\"+\"APED\" if \
                r>=0 or e not in (1,38) else \"refused\")\n",
            $code,
            "\nprint(\"ESC\"+\"APED\" if os.environ.get(\"DONE\") else \"\")' 2>&1"
        )
    };
}

pub(super) const FILES: &[EscapeProbe] = &[
    blocked("read a file", "cat {out}/secret", Output("outside-secret"), Succeeds),
    blocked("list a directory", "ls {out}", Output("target"), Succeeds),
    blocked("create a file", "echo x > {out}/new", Creates("{out}/new"), Succeeds),
    blocked("create a directory", "mkdir {out}/new", Creates("{out}/new"), Succeeds),
    blocked("append to a file", "echo x >> {out}/target", Changes("{out}/target"), Succeeds),
    blocked(
        "truncate a file",
        "python3 -c 'import os; os.truncate(\"{out}/target\", 0)'",
        Changes("{out}/target"),
        Succeeds,
    ),
    blocked("remove a file", "rm -f {out}/target", Changes("{out}/target"), Succeeds),
    blocked(
        "move a file into the workspace",
        "mv {out}/target mine",
        Changes("{out}/target"),
        Succeeds,
    ),
    blocked(
        "move a file out of the workspace",
        "mv file.txt {out}/new",
        Creates("{out}/new"),
        Succeeds,
    ),
    blocked(
        "create a hard link to a file",
        "ln {out}/secret mine && cat mine",
        Output("outside-secret"),
        Succeeds,
    ),
    blocked(
        "read through a symbolic link",
        "ln -s {out}/secret mine; cat mine",
        Output("outside-secret"),
        Succeeds,
    ),
    blocked(
        "write through a symbolic link",
        "ln -s {out} mine; echo x > mine/new",
        Creates("{out}/new"),
        Succeeds,
    ),
    blocked(
        "read through /proc/self/root",
        "cat /proc/self/root{out}/secret",
        Output("outside-secret"),
        Succeeds,
    ),
    blocked(
        "read through the root of another process",
        "cat /proc/{pid}/root{out}/secret",
        Output("outside-secret"),
        Succeeds,
    ),
    blocked(
        "read through the working directory of another process",
        "cat /proc/{pid}/cwd/../../..{out}/secret /proc/$PPID/root{out}/secret",
        Output("outside-secret"),
        Succeeds,
    ),
    blocked(
        "bind a Unix socket",
        python!("socket.socket(socket.AF_UNIX).bind(\"{out}/new\")"),
        Creates("{out}/new"),
        Succeeds,
    ),
    allowed("change permissions", "chmod 777 {out}/target", Changes("{out}/target"), METADATA),
    allowed(
        "change times",
        "python3 -c 'import os; os.utime(\"{out}/target\", (1, 1))'",
        Changes("{out}/target"),
        METADATA,
    ),
    allowed("read size and owner", "stat -c size=%s {out}/secret", Output("size=15"), METADATA),
    blocked(
        "read the system's password hashes",
        "cat /etc/shadow",
        Output("root:"),
        SucceedsAsRoot,
    ),
    blocked(
        "list crontabs of other users",
        "ls /var/spool/cron /var/lib/dpkg",
        Output("status"),
        Succeeds,
    ),
    blocked("create a device file", "mknod disk b 8 0", Creates("{ws}/disk"), SucceedsAsRoot),
    blocked(
        "set the set-user-ID bit (chmod)",
        "cp /bin/true x; chmod u+s x; test -u x && echo ESCAPED",
        RESTORED,
        Succeeds,
    ),
    blocked(
        "set the set-group-ID bit (chmod)",
        "cp /bin/true x; chmod g+s x; test -g x && echo ESCAPED",
        RESTORED,
        Succeeds,
    ),
    blocked(
        "set the set-user-ID bit (open)",
        python!(
            "os.open(\"x\", os.O_CREAT|os.O_WRONLY, 0o4755); os.environ[\"DONE\"]=\"1\" if \
                os.stat(\"x\").st_mode & 0o4000 else \"\""
        ),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "change the root directory (chroot)",
        python!("os.chroot(\".\"); print(\"ESC\"+\"APED\")"),
        RESTORED,
        SucceedsAsRoot,
    ),
    blocked(
        "mount a file system (mount)",
        "mount -t tmpfs none . && echo ESCAPED",
        RESTORED,
        SucceedsAsRoot,
    ),
    blocked(
        "mount a file system (fsopen)",
        python!("call(430, b\"tmpfs\", 0)"),
        RESTORED,
        SucceedsAsRoot,
    ),
    blocked("open files by handle", python!("call(304, -100, 0, 0)"), RESTORED, SucceedsAsRoot),
];

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

pub(super) const PROTECTED: &[EscapeProbe] = &[
    blocked_change(
        "create a hook",
        "echo evil > .git/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "create a hook through a symbolic link",
        "ln -s .git g; echo evil > g/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "create a hook through /proc",
        "echo evil > /proc/self/cwd/.git/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "create a hook as a hard link",
        "ln file.txt .git/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "move a file to a hook",
        "echo evil > x; mv x .git/hooks/pre-commit",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    blocked_change(
        "replace .git by a directory with a hook",
        "mv .git .git2; mkdir -p .git/hooks; echo evil > .git/hooks/x",
        Creates("{ws}/.git/hooks/x"),
    ),
    blocked_change(
        "exchange .git for a directory with a hook",
        python!(
            "os.makedirs(\"fake/hooks\"); open(\"fake/hooks/x\", \"w\").close(); \
                libc.renameat2(-100, b\"fake\", -100, b\".git\", 2)"
        ),
        Creates("{ws}/.git/hooks/x"),
    ),
    blocked_change(
        "replace the hooks directory",
        "mv .git/hooks .git/h2; mkdir .git/hooks; echo evil > .git/hooks/x",
        Creates("{ws}/.git/hooks/x"),
    ),
    blocked_change(
        "replace the hooks directory by a symbolic link",
        "mkdir e; rm -rf .git/hooks; ln -s ../e .git/hooks",
        Changes("{ws}/.git/hooks"),
    ),
    blocked_change(
        "change permissions of the hooks directory",
        "chmod 777 .git/hooks",
        Changes("{ws}/.git/hooks"),
    ),
    blocked_change(
        "replace .git by a file",
        "mv .git g; echo 'gitdir: evil' > .git",
        Changes("{ws}/.git"),
    ),
    blocked_change(
        "change .git/config",
        "git config core.hooksPath evil",
        Changes("{ws}/.git/config"),
    ),
    blocked_change(
        "replace .git/config",
        "cp .git/config c; echo '[core] hooksPath = x' >> c; mv -f c .git/config",
        Changes("{ws}/.git/config"),
    ),
    restored(
        "create .git/config.worktree",
        "echo evil > .git/config.worktree",
        Creates("{ws}/.git/config.worktree"),
    ),
    restored(
        "create .git/commondir",
        "echo ../evil > .git/commondir",
        Creates("{ws}/.git/commondir"),
    ),
    restored(
        "create a hook of a submodule",
        "mkdir -p .git/modules/m/hooks; echo evil > .git/modules/m/hooks/x",
        Creates("{ws}/.git/modules/m/hooks/x"),
    ),
    blocked_change(
        "create a hook of a nested repository",
        "echo evil > nested/.git/hooks/x",
        Creates("{ws}/nested/.git/hooks/x"),
    ),
    blocked_change(
        "replace a nested repository",
        "mv nested n2; mkdir -p nested/.git/hooks; echo evil > nested/.git/hooks/x",
        Creates("{ws}/nested/.git/hooks/x"),
    ),
    restored(
        "create a repository with a hook",
        "mkdir -p fresh/.git/hooks; echo evil > fresh/.git/hooks/x",
        Creates("{ws}/fresh/.git/hooks/x"),
    ),
    restored(
        "create a hook with other letter case",
        "mkdir -p sub/.GIT/Hooks; echo evil > sub/.GIT/Hooks/x",
        Creates("{ws}/sub/.GIT/Hooks/x"),
    ),
    blocked_change(
        "change a .git file",
        "echo 'gitdir: /tmp/evil' > worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    blocked_change(
        "replace a .git file",
        "mv worktree/.git worktree/g; echo 'gitdir: /tmp/evil' > worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    blocked_change(
        "overwrite a .git file by a rename",
        "echo 'gitdir: /tmp/evil' > g; mv -f g worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    blocked_change(
        "replace a linked worktree",
        "mv worktree w2; mkdir worktree; echo 'gitdir: /tmp/evil' > worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    restored(
        "create a .git file",
        "mkdir fresh; echo 'gitdir: ../evil' > fresh/.git",
        Creates("{ws}/fresh/.git"),
    ),
    restored(
        "create .git as a symbolic link",
        "mkdir fresh; ln -s ../evil fresh/.git",
        Creates("{ws}/fresh/.git"),
    ),
    restored(
        "create a .git/config in an unreadable directory",
        "mkdir -p fresh/.git; echo '[core] fsmonitor = evil' > fresh/.git/config; chmod 311 \
            fresh/.git",
        Creates("{ws}/fresh/.git/config"),
    ),
    blocked_change(
        "create a hook in an unreadable directory",
        "echo evil > .git/hooks/pre-commit; chmod 311 .git/hooks",
        Creates("{ws}/.git/hooks/pre-commit"),
    ),
    restored(
        "create .git/commondir in an unreadable directory",
        "cp -r .git evil; echo '[core] fsmonitor = evil' >> evil/config; echo ../evil > \
            .git/commondir; chmod 311 .git",
        Creates("{ws}/.git/commondir"),
    ),
    restored(
        "create a repository that is not named .git",
        "mkdir -p docs/objects docs/refs; echo 'ref: refs/heads/main' > docs/HEAD; echo '[core] \
            fsmonitor = evil' > docs/config",
        Creates("{ws}/docs/config"),
    ),
    restored(
        "create a repository that refers to another one",
        "mkdir -p docs x/objects x/refs; echo 'ref: refs/heads/main' > docs/HEAD; echo ../x > \
            docs/commondir; echo '[core] worktree = .' > docs/config.worktree",
        Creates("{ws}/docs/commondir"),
    ),
    restored(
        "create a repository of symbolic links",
        "mkdir -p x lib; cd lib; echo 'ref: refs/heads/m' > HEAD; ln -s ../x objects; ln -s ../x \
            refs; echo '[core] fsmonitor = evil' > config",
        Creates("{ws}/lib/config"),
    ),
    restored(
        "create a repository of executable files",
        "mkdir lib; cd lib; ln -s refs/heads/m HEAD; : > objects; : > refs; chmod +x objects \
            refs; echo '[core] fsmonitor = evil' > config",
        Creates("{ws}/lib/config"),
    ),
    restored(
        "create a repository in an incomplete repository",
        "for d in lib lib/src; do mkdir -p $d/objects $d/refs; echo 'ref: refs/heads/m' > \
            $d/HEAD; done; echo '[core] fsmonitor = evil' > lib/src/config",
        Creates("{ws}/lib/src/config"),
    ),
    restored(
        "create a repository below .git",
        "mkdir -p .git/logs/x/objects .git/logs/x/refs; cd .git/logs/x; echo 'ref: refs/heads/m' \
            > HEAD; echo '[core] fsmonitor = evil' > config",
        Creates("{ws}/.git/logs/x/config"),
    ),
    restored(
        "create a repository below a hidden name",
        "mkdir -p x.pem/objects x.pem/refs; cd x.pem; echo 'ref: refs/heads/m' > HEAD; echo \
            '[core] fsmonitor = evil' > config",
        Creates("{ws}/x.pem/config"),
    ),
    restored(
        "create editor tasks below .git",
        "mkdir -p .git/objects/x/.vscode; echo evil > .git/objects/x/.vscode/tasks.json",
        Creates("{ws}/.git/objects/x/.vscode"),
    ),
    restored(
        "create editor tasks below a hidden name",
        "mkdir -p x.pem/.vscode; echo evil > x.pem/.vscode/tasks.json",
        Creates("{ws}/x.pem/.vscode"),
    ),
    restored(
        "create a hard link to the configuration of a new repository",
        "git init -q fresh && ln fresh/.git/config x",
        Creates("{ws}/fresh/.git/config"),
    ),
    blocked_change(
        "change a hook in core.hooksPath",
        "echo evil > named/hooks/pre-commit",
        Changes("{ws}/named/hooks/pre-commit"),
    ),
    blocked_change(
        "change a file that the git configuration includes",
        "echo evil > named/included",
        Changes("{ws}/named/included"),
    ),
    blocked_change(
        "change the target of a protected link",
        "echo evil > tools/servers.json",
        Changes("{ws}/tools/servers.json"),
    ),
    blocked_change(
        "replace the target of a protected link",
        "mv tools t2; mkdir tools; echo evil > tools/servers.json",
        Changes("{ws}/tools/servers.json"),
    ),
    blocked_change("move the repository", "mv .git elsewhere", Changes("{ws}/.git/HEAD")),
    restored(
        "create a hook next to a secret that is too large to back up",
        "truncate -s 65M x.pem; mkdir fresh; echo evil > fresh/.mcp.json; echo evil > \
            .git/hooks/pre-commit; true",
        Creates("{ws}/fresh/.mcp.json"),
    ),
    restored("create .gitmodules", "echo evil > .gitmodules", Creates("{ws}/.gitmodules")),
    blocked_change(
        "change editor tasks",
        "echo evil > .vscode/tasks.json",
        Changes("{ws}/.vscode/tasks.json"),
    ),
    restored(
        "create editor configuration",
        "mkdir .idea; echo evil > .idea/workspace.xml",
        Creates("{ws}/.idea/workspace.xml"),
    ),
    restored(
        "create editor configuration in a read-only directory",
        "mkdir .idea; echo evil > .idea/workspace.xml; chmod 555 .idea",
        Creates("{ws}/.idea/workspace.xml"),
    ),
    restored(
        "create editor configuration as a symbolic link",
        "mkdir e; ln -s e .idea",
        Creates("{ws}/.idea"),
    ),
    restored(
        "create a development container",
        "mkdir -p .devcontainer; echo evil > .devcontainer/devcontainer.json",
        Creates("{ws}/.devcontainer/devcontainer.json"),
    ),
    restored(
        "create an MCP server configuration",
        "echo evil > .mcp.json",
        Creates("{ws}/.mcp.json"),
    ),
    restored(
        "create an agent configuration",
        "mkdir -p sub/.claude; echo evil > sub/.claude/settings.json",
        Creates("{ws}/sub/.claude/settings.json"),
    ),
    restored(
        "create a Cofferdam policy",
        "mkdir .cofferdam; echo evil > .cofferdam/policy.toml",
        Creates("{ws}/.cofferdam/policy.toml"),
    ),
    restored("create .envrc", "echo evil > .envrc", Creates("{ws}/.envrc")),
    restored("create .bashrc", "echo evil > .bashrc", Creates("{ws}/.bashrc")),
    blocked_change("change a secret", "echo x >> .env", Changes("{ws}/.env")),
    blocked_change("replace a secret", "rm -f .env; echo x > .env", Changes("{ws}/.env")),
    blocked_change(
        "replace the directory of a secret",
        "mv deploy d2; mkdir deploy; echo mine > deploy/id_ed25519",
        Changes("{ws}/deploy/id_ed25519"),
    ),
    allowed("read a secret", "cat .env", Output("env-secret"), HIDDEN),
    allowed(
        "read a secret through a symbolic link",
        "ln -s .env e; cat e",
        Output("env-secret"),
        HIDDEN,
    ),
    allowed("read a secret through a hard link", "ln .env e; cat e", Output("env-secret"), HIDDEN),
    allowed("read a secret after renaming it", "mv .env e; cat e", Output("env-secret"), HIDDEN),
    allowed(
        "read a secret after unmounting its mask",
        "umount .env 2> /dev/null; cat .env",
        Output("env-secret"),
        HIDDEN,
    ),
    allowed(
        "read a secret after renaming its directory",
        "mv deploy d2; cat d2/id_ed25519; cat deploy/id_ed25519",
        Output("key-secret"),
        HIDDEN,
    ),
    allowed("read a private key", "cat deploy/id_ed25519", Output("key-secret"), HIDDEN),
];

/// The table in its parts.
pub(super) const ALL: [(&str, &[&[EscapeProbe]]); 4] = [
    ("Files outside the workspace", &[FILES, attributes::FILES]),
    ("Network", &[NETWORK, system_calls::SOCKETS]),
    ("Processes and the kernel", &[PROCESSES, system_calls::PROCESSES]),
    ("Protected paths of the workspace", &[PROTECTED]),
];
