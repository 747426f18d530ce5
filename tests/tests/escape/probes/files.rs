//! Probes of files outside of the workspace.

use super::ControlOutcome::{Succeeds, SucceedsAsRoot};
use super::SuccessSign::{Changes, Creates, Output};
use super::{EscapeProbe, METADATA, RESTORED, allowed, blocked};

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
