//! Probes of files outside of the workspace.

use super::ControlOutcome::{Succeeds, SucceedsAsRoot};
use super::SuccessSign::{Changes, Creates, Output};
use super::{EscapeProbe, METADATA, RESTORED, allowed, blocked};

pub(super) const FILES: &[EscapeProbe] = &[
    blocked("read a file", "cat {out}/secret", Output("outside-secret"), Succeeds),
    blocked("list a folder", "ls {out}", Output("target"), Succeeds),
    blocked("make a file", "echo x > {out}/new", Creates("{out}/new"), Succeeds),
    blocked("make a folder", "mkdir {out}/new", Creates("{out}/new"), Succeeds),
    blocked("append to a file", "echo x >> {out}/target", Changes("{out}/target"), Succeeds),
    blocked(
        "cut a file",
        "python3 -c 'import os; os.truncate(\"{out}/target\", 0)'",
        Changes("{out}/target"),
        Succeeds,
    ),
    blocked("remove a file", "rm -f {out}/target", Changes("{out}/target"), Succeeds),
    blocked("move a file here", "mv {out}/target mine", Changes("{out}/target"), Succeeds),
    blocked("move a file out", "mv file.txt {out}/new", Creates("{out}/new"), Succeeds),
    blocked(
        "hard link to a file",
        "ln {out}/secret mine && cat mine",
        Output("outside-secret"),
        Succeeds,
    ),
    blocked(
        "read through a link",
        "ln -s {out}/secret mine; cat mine",
        Output("outside-secret"),
        Succeeds,
    ),
    blocked(
        "write through a link",
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
        "read through another process' root",
        "cat /proc/{pid}/root{out}/secret",
        Output("outside-secret"),
        Succeeds,
    ),
    blocked(
        "read through another process' folder",
        "cat /proc/{pid}/cwd/../../..{out}/secret /proc/$PPID/root{out}/secret",
        Output("outside-secret"),
        Succeeds,
    ),
    blocked(
        "bind a socket",
        python!("socket.socket(socket.AF_UNIX).bind(\"{out}/new\")"),
        Creates("{out}/new"),
        Succeeds,
    ),
    allowed("permissions of a file", "chmod 777 {out}/target", Changes("{out}/target"), METADATA),
    allowed(
        "times of a file",
        "python3 -c 'import os; os.utime(\"{out}/target\", (1, 1))'",
        Changes("{out}/target"),
        METADATA,
    ),
    allowed(
        "size and owner of a file",
        "stat -c size=%s {out}/secret",
        Output("size=15"),
        METADATA,
    ),
    blocked("passwords of the system", "cat /etc/shadow", Output("root:"), SucceedsAsRoot),
    blocked("another user's cron", "ls /var/spool/cron /var/lib/dpkg", Output("status"), Succeeds),
    blocked("a device of its own", "mknod disk b 8 0", Creates("{ws}/disk"), SucceedsAsRoot),
    blocked(
        "a file that runs as its owner (chmod)",
        "cp /bin/true x; chmod u+s x; test -u x && echo ESCAPED",
        RESTORED,
        Succeeds,
    ),
    blocked(
        "a file that runs as its group (chmod)",
        "cp /bin/true x; chmod g+s x; test -g x && echo ESCAPED",
        RESTORED,
        Succeeds,
    ),
    blocked(
        "a file that runs as its owner (open)",
        python!(
            "os.open(\"x\", os.O_CREAT|os.O_WRONLY, 0o4755); os.environ[\"DONE\"]=\"1\" if \
                os.stat(\"x\").st_mode & 0o4000 else \"\""
        ),
        RESTORED,
        Succeeds,
    ),
    blocked(
        "a root of its own",
        python!("os.chroot(\".\"); print(\"ESC\"+\"APED\")"),
        RESTORED,
        SucceedsAsRoot,
    ),
    blocked("a mount", "mount -t tmpfs none . && echo ESCAPED", RESTORED, SucceedsAsRoot),
    blocked(
        "a mount over the new interface",
        python!("call(430, b\"tmpfs\", 0)"),
        RESTORED,
        SucceedsAsRoot,
    ),
    blocked("files by handle", python!("call(304, -100, 0, 0)"), RESTORED, SucceedsAsRoot),
];
