//! The table of probes.

use super::{attributes, system_calls};

/// An attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// In the words of the matrix.
    pub(super) name: &'static str,
    /// For `sh -c`. `{out}` is a folder outside, `{ws}` the workspace, `{pid}` a process outside, `{mark}` the time that
    /// processes are to sleep by which they are found.
    pub(super) line: &'static str,
    pub(super) sign: Sign,
    pub(super) control: Control,
    pub(super) full: Fate,
    pub(super) kernel: Fate,
}

/// What becomes of an attempt in a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It does not happen.
    Closed,
    /// It happens, and once the command has ended it is as it was before, and the user is told.
    Undone,
    /// It happens; why that is so.
    Open(&'static str),
}

/// By what one sees that it happened.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sign {
    /// The command says so.
    Says(&'static str),
    /// Something is there.
    Makes(&'static str),
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
pub(super) enum Control {
    /// It happens.
    Happens,
    /// It happens to root.
    HappensToRoot,
    /// It would harm this machine.
    Harms,
    /// It depends on the machine, or something else prevents it too.
    Depends,
}

use Control::{Depends, Happens, HappensToRoot, Harms};
use Fate::{Closed, Open, Undone};
use Sign::{Changes, Connects, Kills, Makes, Says, Stays};

pub(super) const fn closed(name: &'static str, line: &'static str, sign: Sign, control: Control) -> Probe {
    Probe { name, line, sign, control, full: Closed, kernel: Closed }
}

pub(super) const fn open(name: &'static str, line: &'static str, sign: Sign, why: &'static str) -> Probe {
    Probe { name, line, sign, control: Happens, full: Closed, kernel: Open(why) }
}

/// A change to something protected that is there.
const fn held(name: &'static str, line: &'static str, sign: Sign) -> Probe {
    Probe { name, line, sign, control: Happens, full: Closed, kernel: Undone }
}

/// A name that is not there yet, so that there is nothing to mount over.
const fn undone(name: &'static str, line: &'static str, sign: Sign) -> Probe {
    Probe { name, line, sign, control: Happens, full: Undone, kernel: Undone }
}

pub(super) const METADATA: &str = "Landlock does not look at metadata";
const HIDDEN: &str = "Landlock cannot except a file from a folder";
pub(super) const NAMES: &str = "`/proc` is shared";
pub(super) const DONE: Sign = Says("ESCAPED");

/// Begins a line of Python with what the probes need.
macro_rules! python {
    ($code:literal) => {
        concat!(
            "python3 -c 'import os,sys,socket,ctypes,fcntl,resource\n",
            "libc=ctypes.CDLL(None,use_errno=True)\n",
            "def call(*a):\n r=libc.syscall(*a); e=ctypes.get_errno(); print(\"ESC\"+\"APED\" if r>=0 or e not in (1,38) else \"refused\")\n",
            $code,
            "\nprint(\"ESC\"+\"APED\" if os.environ.get(\"DONE\") else \"\")' 2>&1"
        )
    };
}

pub(super) const FILES: &[Probe] = &[
    closed("read a file", "cat {out}/secret", Says("outside-secret"), Happens),
    closed("list a folder", "ls {out}", Says("target"), Happens),
    closed("make a file", "echo x > {out}/new", Makes("{out}/new"), Happens),
    closed("make a folder", "mkdir {out}/new", Makes("{out}/new"), Happens),
    closed("append to a file", "echo x >> {out}/target", Changes("{out}/target"), Happens),
    closed("cut a file", "python3 -c 'import os; os.truncate(\"{out}/target\", 0)'", Changes("{out}/target"), Happens),
    closed("remove a file", "rm -f {out}/target", Changes("{out}/target"), Happens),
    closed("move a file here", "mv {out}/target mine", Changes("{out}/target"), Happens),
    closed("move a file out", "mv file.txt {out}/new", Makes("{out}/new"), Happens),
    closed("hard link to a file", "ln {out}/secret mine && cat mine", Says("outside-secret"), Happens),
    closed("read through a link", "ln -s {out}/secret mine; cat mine", Says("outside-secret"), Happens),
    closed("write through a link", "ln -s {out} mine; echo x > mine/new", Makes("{out}/new"), Happens),
    closed("read through /proc/self/root", "cat /proc/self/root{out}/secret", Says("outside-secret"), Happens),
    closed("read through another process' root", "cat /proc/{pid}/root{out}/secret", Says("outside-secret"), Happens),
    closed(
        "read through another process' folder",
        "cat /proc/{pid}/cwd/../../..{out}/secret /proc/$PPID/root{out}/secret",
        Says("outside-secret"),
        Happens,
    ),
    closed("bind a socket", python!("socket.socket(socket.AF_UNIX).bind(\"{out}/new\")"), Makes("{out}/new"), Happens),
    open("permissions of a file", "chmod 777 {out}/target", Changes("{out}/target"), METADATA),
    open("times of a file", "python3 -c 'import os; os.utime(\"{out}/target\", (1, 1))'", Changes("{out}/target"), METADATA),
    open("size and owner of a file", "stat -c size=%s {out}/secret", Says("size=15"), METADATA),
    closed("passwords of the system", "cat /etc/shadow", Says("root:"), HappensToRoot),
    closed("another user's cron", "ls /var/spool/cron /var/lib/dpkg", Says("status"), Happens),
    closed("a device of its own", "mknod disk b 8 0", Makes("{ws}/disk"), HappensToRoot),
    closed("a file that runs as its owner (chmod)", "cp /bin/true x; chmod u+s x; test -u x && echo ESCAPED", DONE, Happens),
    closed("a file that runs as its group (chmod)", "cp /bin/true x; chmod g+s x; test -g x && echo ESCAPED", DONE, Happens),
    closed(
        "a file that runs as its owner (open)",
        python!("os.open(\"x\", os.O_CREAT|os.O_WRONLY, 0o4755); os.environ[\"DONE\"]=\"1\" if os.stat(\"x\").st_mode & 0o4000 else \"\""),
        DONE,
        Happens,
    ),
    closed("a root of its own", python!("os.chroot(\".\"); print(\"ESC\"+\"APED\")"), DONE, HappensToRoot),
    closed("a mount", "mount -t tmpfs none . && echo ESCAPED", DONE, HappensToRoot),
    closed("a mount over the new interface", python!("call(430, b\"tmpfs\", 0)"), DONE, HappensToRoot),
    closed("files by handle", python!("call(304, -100, 0, 0)"), DONE, HappensToRoot),
];

pub(super) const NETWORK: &[Probe] = &[
    closed("TCP", python!("socket.create_connection((\"127.0.0.1\", {tcp}), 2)"), Connects, Happens),
    closed("TCP over IPv6 mapping", python!("socket.create_connection((\"::ffff:127.0.0.1\", {tcp}), 2)"), Connects, Happens),
    closed(
        "TCP with data in the first packet",
        python!("s=socket.socket(); s.sendto(b\"x\", 0x20000000, (\"127.0.0.1\", {tcp}))"),
        Connects,
        Depends,
    ),
    closed("UDP", python!("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", {udp}))"), Connects, Happens),
    closed("a unix socket", python!("socket.socket(socket.AF_UNIX).connect(\"{out}/stream\")"), Connects, Happens),
    closed(
        "a unix datagram socket",
        python!("socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b\"x\", \"{out}/datagram\")"),
        Connects,
        Happens,
    ),
    closed(
        "a unix socket from a pair",
        python!("socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b\"x\", \"{out}/datagram\")"),
        Connects,
        Happens,
    ),
    closed("an abstract unix socket", python!("socket.socket(socket.AF_UNIX).connect(\"\\0{abstract}\")"), Connects, Happens),
    closed("a raw socket", python!("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print(\"ESC\"+\"APED\")"), DONE, HappensToRoot),
    closed("a packet socket", python!("socket.socket(17, socket.SOCK_RAW, 0); print(\"ESC\"+\"APED\")"), DONE, HappensToRoot),
    closed("netlink to the kernel", python!("socket.socket(16, socket.SOCK_RAW, 9); print(\"ESC\"+\"APED\")"), DONE, Depends),
    closed("the kernel's crypto sockets", python!("socket.socket(38, 5, 0); print(\"ESC\"+\"APED\")"), DONE, Depends),
    closed("a socket to the hypervisor", python!("socket.socket(40, 1, 0); print(\"ESC\"+\"APED\")"), DONE, Depends),
    closed("io_uring", python!("call(425, 8, ctypes.create_string_buffer(120))"), DONE, Depends),
];

pub(super) const PROCESSES: &[Probe] = &[
    closed("kill", "kill -9 {pid}", Kills, Happens),
    closed("kill all", "kill -9 -1; sleep 0.1", Kills, Harms),
    closed("trace", python!("print(\"ESC\"+\"APED\" if libc.ptrace(16, {pid}, 0, 0) == 0 else \"\")"), DONE, Happens),
    closed("read its environment", "tr '\\0' '\\n' < /proc/{pid}/environ", Says("victim-secret"), Happens),
    closed("read its memory", "dd if=/proc/{pid}/mem bs=1 count=0 && echo ESCAPED", DONE, Happens),
    closed("read its memory map", "grep -q . /proc/{pid}/maps && echo ESCAPED", DONE, Happens),
    closed("see its files", "ls -l /proc/{pid}/fd | grep -q /dev/null && echo ESCAPED", DONE, Happens),
    open("see its command line", "tr '\\0' ' ' < /proc/{pid}/cmdline", Says("sleep 86000"), NAMES),
    closed("slow it", "renice 19 -p {pid} > /dev/null && echo ESCAPED", DONE, Happens),
    closed(
        "change its limits",
        python!("resource.prlimit({pid}, resource.RLIMIT_NOFILE, (64, 64)); print(\"ESC\"+\"APED\")"),
        DONE,
        Happens,
    ),
    closed(
        "take its files",
        python!("fd=libc.syscall(434, {pid}, 0); print(\"ESC\"+\"APED\" if libc.syscall(438, fd, 1, 0) >= 0 else \"\")"),
        DONE,
        Happens,
    ),
    closed("a namespace of its own", "unshare --user true && echo ESCAPED", DONE, Happens),
    closed(
        "a namespace of its own (clone)",
        python!("call(56, 0x10000000 | 17, 0, 0, 0, 0) if False else call(272, 0x10000000)"),
        DONE,
        Happens,
    ),
    closed("enter a namespace", "nsenter --target {pid} --uts true && echo ESCAPED", DONE, HappensToRoot),
    closed(
        "memory of another process of the user",
        python!(
            "libc.shmat.restype=ctypes.c_void_p; r=libc.shmat({shm}, None, 0); print(\"ESC\"+\"APED\" if r != 2**64-1 else \"refused\")"
        ),
        DONE,
        Happens,
    ),
    closed("keys of the session", python!("call(250, 0, -3, 1)"), DONE, Happens),
    closed("a new key", python!("call(248, b\"user\", b\"cofferdam\", b\"x\", 1, -3)"), DONE, Happens),
    closed("a program in the kernel", python!("call(321, 0, ctypes.create_string_buffer(128), 128)"), DONE, HappensToRoot),
    closed("performance counters", python!("call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0)"), DONE, Depends),
    closed("userfaultfd", python!("call(323, 1)"), DONE, Depends),
    closed("random addresses off", "setarch --addr-no-randomize true && echo ESCAPED", DONE, Happens),
    closed("the second way to each system call", python!("call(0x40000000 | 39)"), DONE, Depends),
    closed("a system call from the future", python!("call(467, -100, b\".\", 0, 0, 0)"), DONE, Depends),
    closed(
        "the 32-bit way to each system call",
        "test -e /lib/ld-linux.so.2 && /lib/ld-linux.so.2 --version && echo ESCAPED",
        DONE,
        Depends,
    ),
    closed(
        "type at the terminal",
        python!("m,s=os.openpty(); os.setsid(); fcntl.ioctl(s, 0x540e, 0); fcntl.ioctl(s, 0x5412, b\"x\"); print(\"ESC\"+\"APED\")"),
        DONE,
        Depends,
    ),
    closed("the controlling terminal", "(exec 3<>/dev/tty) && echo ESCAPED", DONE, Depends),
    closed("inherited files", "python3 -c 'import os; print(os.read({fd}, 99))'", Says("inherited-secret"), Happens),
    closed(
        "what the kernel does with crashes",
        "echo '|/bin/false' > /proc/sys/kernel/core_pattern",
        Changes("/proc/sys/kernel/core_pattern"),
        Harms,
    ),
    closed("the name of the machine", "hostname evil; echo evil > /proc/sys/kernel/hostname", Changes("/proc/sys/kernel/hostname"), Harms),
    closed("the clock", "date -s @1000000000 && echo ESCAPED", DONE, Harms),
    closed("messages of the kernel", "dmesg | grep -q . && echo ESCAPED", DONE, HappensToRoot),
    closed("a daemon", "(setsid sleep {mark} > /dev/null 2>&1 &) ; sleep 0.3", Stays, Happens),
    closed(
        "a daemon that ignores signals",
        "setsid sh -c 'trap \"\" TERM HUP INT; sleep {mark}; true' > /dev/null 2>&1 & sleep 0.1",
        Stays,
        Happens,
    ),
    closed("a process in the background", "sleep {mark} & echo started", Stays, Depends),
    closed("a stopped process", "(setsid sh -c 'kill -STOP $$; sleep {mark}' > /dev/null 2>&1 &); sleep 0.1", Stays, Happens),
    // Some 250 processes and no more, whatever the sandbox does; the tests allow half of that.
    closed("a fork bomb", "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep 5; }; f 6 # {mark}", Stays, Harms),
    closed(
        "a hundred thousand open files",
        python!("n=[os.open(\"/dev/null\", 0) for _ in range(100000)]; print(\"ESC\"+\"APED\")"),
        DONE,
        Depends,
    ),
    closed("a file of a terabyte", "truncate -s 1T big && echo ESCAPED", DONE, Happens),
    closed("core dumps", "ulimit -c unlimited && echo ESCAPED", DONE, Depends),
];

pub(super) const PROTECTED: &[Probe] = &[
    held("plant a hook", "echo evil > .git/hooks/pre-commit", Makes("{ws}/.git/hooks/pre-commit")),
    held("plant a hook through a link", "ln -s .git g; echo evil > g/hooks/pre-commit", Makes("{ws}/.git/hooks/pre-commit")),
    held("plant a hook through /proc", "echo evil > /proc/self/cwd/.git/hooks/pre-commit", Makes("{ws}/.git/hooks/pre-commit")),
    held("plant a hook by a hard link", "ln file.txt .git/hooks/pre-commit", Makes("{ws}/.git/hooks/pre-commit")),
    held("plant a hook by moving it there", "echo evil > x; mv x .git/hooks/pre-commit", Makes("{ws}/.git/hooks/pre-commit")),
    held("plant a hook by way of another .git", "mv .git .git2; mkdir -p .git/hooks; echo evil > .git/hooks/x", Makes("{ws}/.git/hooks/x")),
    held(
        "plant a hook by way of an exchanged .git",
        python!("os.makedirs(\"fake/hooks\"); open(\"fake/hooks/x\", \"w\").close(); libc.renameat2(-100, b\"fake\", -100, b\".git\", 2)"),
        Makes("{ws}/.git/hooks/x"),
    ),
    held(
        "plant a hook by way of other hooks",
        "mv .git/hooks .git/h2; mkdir .git/hooks; echo evil > .git/hooks/x",
        Makes("{ws}/.git/hooks/x"),
    ),
    held("hooks that are a link", "mkdir e; rm -rf .git/hooks; ln -s ../e .git/hooks", Changes("{ws}/.git/hooks")),
    held("permissions of hooks", "chmod 777 .git/hooks", Changes("{ws}/.git/hooks")),
    held("a .git that is a file", "mv .git g; echo 'gitdir: evil' > .git", Changes("{ws}/.git")),
    held("git's settings", "git config core.hooksPath evil", Changes("{ws}/.git/config")),
    held(
        "git's settings, replaced",
        "cp .git/config c; echo '[core] hooksPath = x' >> c; mv -f c .git/config",
        Changes("{ws}/.git/config"),
    ),
    undone("git's settings of a worktree", "echo evil > .git/config.worktree", Makes("{ws}/.git/config.worktree")),
    undone("git's common folder", "echo ../evil > .git/commondir", Makes("{ws}/.git/commondir")),
    undone("a hook of a module", "mkdir -p .git/modules/m/hooks; echo evil > .git/modules/m/hooks/x", Makes("{ws}/.git/modules/m/hooks/x")),
    held("a hook of a nested repository", "echo evil > nested/.git/hooks/x", Makes("{ws}/nested/.git/hooks/x")),
    held(
        "another nested repository in its place",
        "mv nested n2; mkdir -p nested/.git/hooks; echo evil > nested/.git/hooks/x",
        Makes("{ws}/nested/.git/hooks/x"),
    ),
    undone("a hook of a new repository", "mkdir -p fresh/.git/hooks; echo evil > fresh/.git/hooks/x", Makes("{ws}/fresh/.git/hooks/x")),
    undone("a hook in other letters", "mkdir -p sub/.GIT/Hooks; echo evil > sub/.GIT/Hooks/x", Makes("{ws}/sub/.GIT/Hooks/x")),
    held("a .git file that points elsewhere", "echo 'gitdir: /tmp/evil' > worktree/.git", Changes("{ws}/worktree/.git")),
    held("a .git file, replaced", "mv worktree/.git worktree/g; echo 'gitdir: /tmp/evil' > worktree/.git", Changes("{ws}/worktree/.git")),
    held("a .git file, overwritten by a move", "echo 'gitdir: /tmp/evil' > g; mv -f g worktree/.git", Changes("{ws}/worktree/.git")),
    held(
        "another worktree in its place",
        "mv worktree w2; mkdir worktree; echo 'gitdir: /tmp/evil' > worktree/.git",
        Changes("{ws}/worktree/.git"),
    ),
    undone("a new .git file", "mkdir fresh; echo 'gitdir: ../evil' > fresh/.git", Makes("{ws}/fresh/.git")),
    undone("a .git link", "mkdir fresh; ln -s ../evil fresh/.git", Makes("{ws}/fresh/.git")),
    undone(
        "settings in a folder that cannot be listed",
        "mkdir -p fresh/.git; echo '[core] fsmonitor = evil' > fresh/.git/config; chmod 311 fresh/.git",
        Makes("{ws}/fresh/.git/config"),
    ),
    held(
        "a hook in a folder that cannot be listed",
        "echo evil > .git/hooks/pre-commit; chmod 311 .git/hooks",
        Makes("{ws}/.git/hooks/pre-commit"),
    ),
    undone(
        "git's common folder in a folder that cannot be listed",
        "cp -r .git evil; echo '[core] fsmonitor = evil' >> evil/config; echo ../evil > .git/commondir; chmod 311 .git",
        Makes("{ws}/.git/commondir"),
    ),
    undone(
        "a repository by another name",
        "mkdir -p docs/objects docs/refs; echo 'ref: refs/heads/main' > docs/HEAD; echo '[core] fsmonitor = evil' > docs/config",
        Makes("{ws}/docs/config"),
    ),
    undone(
        "a repository that points at another one",
        "mkdir -p docs x/objects x/refs; echo 'ref: refs/heads/main' > docs/HEAD; echo ../x > docs/commondir; echo '[core] worktree = .' > docs/config.worktree",
        Makes("{ws}/docs/commondir"),
    ),
    undone(
        "a repository of links",
        "mkdir -p x lib; cd lib; echo 'ref: refs/heads/m' > HEAD; ln -s ../x objects; ln -s ../x refs; echo '[core] fsmonitor = evil' > config",
        Makes("{ws}/lib/config"),
    ),
    undone(
        "a repository of executable files",
        "mkdir lib; cd lib; ln -s refs/heads/m HEAD; : > objects; : > refs; chmod +x objects refs; echo '[core] fsmonitor = evil' > config",
        Makes("{ws}/lib/config"),
    ),
    undone(
        "a repository in what looks like one",
        "for d in lib lib/src; do mkdir -p $d/objects $d/refs; echo 'ref: refs/heads/m' > $d/HEAD; done; echo '[core] fsmonitor = evil' > lib/src/config",
        Makes("{ws}/lib/src/config"),
    ),
    undone(
        "a repository in what git stores",
        "mkdir -p .git/logs/x/objects .git/logs/x/refs; cd .git/logs/x; echo 'ref: refs/heads/m' > HEAD; echo '[core] fsmonitor = evil' > config",
        Makes("{ws}/.git/logs/x/config"),
    ),
    undone(
        "a repository in a secret",
        "mkdir -p x.pem/objects x.pem/refs; cd x.pem; echo 'ref: refs/heads/m' > HEAD; echo '[core] fsmonitor = evil' > config",
        Makes("{ws}/x.pem/config"),
    ),
    undone(
        "tasks of an editor in what git stores",
        "mkdir -p .git/objects/x/.vscode; echo evil > .git/objects/x/.vscode/tasks.json",
        Makes("{ws}/.git/objects/x/.vscode"),
    ),
    undone("tasks of an editor in a secret", "mkdir -p x.pem/.vscode; echo evil > x.pem/.vscode/tasks.json", Makes("{ws}/x.pem/.vscode")),
    undone(
        "settings of a new repository by another name of theirs",
        "git init -q fresh && ln fresh/.git/config x",
        Makes("{ws}/fresh/.git/config"),
    ),
    held("a hook where the settings say", "echo evil > named/hooks/pre-commit", Changes("{ws}/named/hooks/pre-commit")),
    held("settings that the settings include", "echo evil > named/included", Changes("{ws}/named/included")),
    held("what a protected link leads to", "echo evil > tools/servers.json", Changes("{ws}/tools/servers.json")),
    held(
        "another file in place of what a protected link leads to",
        "mv tools t2; mkdir tools; echo evil > tools/servers.json",
        Changes("{ws}/tools/servers.json"),
    ),
    held("the repository, moved away", "mv .git elsewhere", Changes("{ws}/.git/HEAD")),
    undone(
        "a hook beside a secret that is too large to keep",
        "truncate -s 65M x.pem; mkdir fresh; echo evil > fresh/.mcp.json; echo evil > .git/hooks/pre-commit; true",
        Makes("{ws}/fresh/.mcp.json"),
    ),
    undone("modules", "echo evil > .gitmodules", Makes("{ws}/.gitmodules")),
    held("tasks of an editor", "echo evil > .vscode/tasks.json", Changes("{ws}/.vscode/tasks.json")),
    undone("new settings of an editor", "mkdir .idea; echo evil > .idea/workspace.xml", Makes("{ws}/.idea/workspace.xml")),
    undone(
        "settings of an editor in a folder that cannot be changed",
        "mkdir .idea; echo evil > .idea/workspace.xml; chmod 555 .idea",
        Makes("{ws}/.idea/workspace.xml"),
    ),
    undone("settings of an editor that are a link", "mkdir e; ln -s e .idea", Makes("{ws}/.idea")),
    undone(
        "a development container",
        "mkdir -p .devcontainer; echo evil > .devcontainer/devcontainer.json",
        Makes("{ws}/.devcontainer/devcontainer.json"),
    ),
    undone("servers of an agent", "echo evil > .mcp.json", Makes("{ws}/.mcp.json")),
    undone("settings of an agent", "mkdir -p sub/.claude; echo evil > sub/.claude/settings.json", Makes("{ws}/sub/.claude/settings.json")),
    undone("this program's own settings", "mkdir .cofferdam; echo evil > .cofferdam/policy.toml", Makes("{ws}/.cofferdam/policy.toml")),
    undone("what runs on entering a folder", "echo evil > .envrc", Makes("{ws}/.envrc")),
    undone("start files of a shell", "echo evil > .bashrc", Makes("{ws}/.bashrc")),
    held("change a secret", "echo x >> .env", Changes("{ws}/.env")),
    held("replace a secret", "rm -f .env; echo x > .env", Changes("{ws}/.env")),
    held("another secret in its place", "mv deploy d2; mkdir deploy; echo mine > deploy/id_ed25519", Changes("{ws}/deploy/id_ed25519")),
    open("read a secret", "cat .env", Says("env-secret"), HIDDEN),
    open("read a secret through a link", "ln -s .env e; cat e", Says("env-secret"), HIDDEN),
    open("read a secret through a hard link", "ln .env e; cat e", Says("env-secret"), HIDDEN),
    open("read a secret by another name", "mv .env e; cat e", Says("env-secret"), HIDDEN),
    open("read a secret without its mask", "umount .env 2> /dev/null; cat .env", Says("env-secret"), HIDDEN),
    open("read a secret in a folder that moved", "mv deploy d2; cat d2/id_ed25519; cat deploy/id_ed25519", Says("key-secret"), HIDDEN),
    open("read a private key", "cat deploy/id_ed25519", Says("key-secret"), HIDDEN),
];

/// The table in its parts.
pub(super) const ALL: [(&str, &[&[Probe]]); 4] = [
    ("Files outside of the workspace", &[FILES, attributes::FILES]),
    ("Network", &[NETWORK, system_calls::SOCKETS]),
    ("Processes and the kernel", &[PROCESSES, system_calls::PROCESSES]),
    ("Protected paths of the workspace", &[PROTECTED]),
];
