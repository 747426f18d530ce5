//! What developers do all day works inside.

use std::fs;
use std::process::Command;

use cofferdam::policy::SandboxLevel;
use cofferdam_tests::guests::TestHost;

use super::{CONFINING_LEVELS, new_host, run_line};

/// A name, a line, and what it has to say.
const WORKING_LINES: &[(&str, &str, &str)] = &[
    ("echo", "echo hello", "hello"),
    ("pipes", "seq 100 | sort -rn | head -1", "100"),
    ("redirections", "echo a > f; echo b >> f; cat < f; cat f 2> /dev/null | wc -l", "2"),
    ("here-documents", "cat <<X\nfrom here\nX", "from here"),
    ("background jobs that end", "(sleep 0.05; echo later) & wait; echo done", "later"),
    ("subshells and traps", "trap 'echo trapped' EXIT; (exit 3); echo $?", "trapped"),
    ("kill a child", "sleep 50 & kill $!; wait $!; echo $?", "143"),
    (
        "write files",
        "mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && cp -p a/d e && rm -r a && cat e",
        "x",
    ),
    ("permissions of files", "echo '#!/bin/sh' > s; echo 'echo ran' >> s; chmod +x s; ./s", "ran"),
    ("links", "ln -s file.txt l && cat l && ln file.txt h && cat h", "text"),
    (
        "temporary files",
        "f=$(mktemp) && echo in > $f && cat $f && d=$(mktemp -d) && touch $d/x && ls $d",
        "in",
    ),
    ("find and grep", "find . -name '*.txt' | xargs grep -l text", "file.txt"),
    ("sed and awk", "printf 'a b\\n' | sed s/a/c/ | awk '{print $2, $1}'", "b c"),
    ("tar", "tar czf t.tgz file.txt && tar tzf t.tgz", "file.txt"),
    ("diff", "echo other > o; diff file.txt o; echo $?", "1"),
    ("test scripts", "printf 'test 1 = 1 && echo passed\\n' > test.sh && sh test.sh", "passed"),
    ("make", "printf 'all:\\n\\t@echo made\\n' > Makefile && make", "made"),
    (
        "a C program",
        "printf 'int puts(const char*);int main(){puts(\"compiled\");}' > m.c && cc m.c -o m && \
            ./m",
        "compiled",
    ),
    ("git status", "git status --short && echo status", "status"),
    ("git diff", "echo more >> file.txt && git diff --stat", "1 file changed"),
    (
        "git commit",
        "echo n > n && git add n && git -c user.name=A -c user.email=a@example.org commit -qm \
            second && git log --oneline | wc -l",
        "2",
    ),
    ("git branches", "git checkout -q -b topic && git branch", "topic"),
    (
        "git stash",
        "echo more >> file.txt && git -c user.name=A -c user.email=a@example.org stash -q && git \
            stash list",
        "stash@{0}",
    ),
    (
        "git init",
        "git init -q new && git -C new status --short && test -e new/.git/config && echo made",
        "made",
    ),
    (
        "a bare repository",
        "git init -q --bare store && git -C store config --get core.bare",
        "true",
    ),
    (
        "git clone",
        "git clone -q . copy && git -C copy remote -v && git -C copy log --oneline",
        "first",
    ),
    (
        "python",
        "python3 -c 'import json, ssl, sqlite3, tempfile; print(json.dumps([1, \
            tempfile.gettempdir() != \"\"]))'",
        "[1, true]",
    ),
    (
        "a process of python's",
        "python3 -c 'import subprocess; print(subprocess.run([\"echo\", \"child\"], \
            capture_output=True).stdout)'",
        "child",
    ),
    (
        "threads",
        "python3 -c 'import threading; t=threading.Thread(target=lambda: print(\"thread\")); \
            t.start(); t.join()'",
        "thread",
    ),
    (
        "socket pairs",
        "python3 -c 'import socket; a,b=socket.socketpair(); a.send(b\"pair\"); print(b.recv(4))'",
        "pair",
    ),
    (
        "an event loop",
        "python3 -c 'import asyncio; print(asyncio.run(asyncio.sleep(0, \"looped\")))'",
        "looped",
    ),
    (
        "a database",
        "python3 -c 'import sqlite3; d=sqlite3.connect(\"d\"); d.execute(\"pragma \
            journal_mode=wal\"); d.execute(\"create table t(x)\"); \
         d.execute(\"insert into t values(42)\"); d.commit(); print(d.execute(\"select x from \
         t\").fetchall())'",
        "[(42,)]",
    ),
    (
        "copies with all that belongs to a file",
        "cp -a file.txt c && cp -p file.txt d && ls -l c d && stat -c %a c d | uniq | wc -l",
        "1",
    ),
    ("priorities of its own", "nice -n 5 ionice -c 3 taskset 1 echo slower", "slower"),
    ("locks", "flock file.txt echo locked", "locked"),
    ("a file that grows", "timeout 1 tail -f file.txt; test $? = 124 && echo waited", "waited"),
    ("git gc", "git gc -q && git fsck && echo collected", "collected"),
    (
        "make in parallel",
        "printf 'all: a b\\n%%:\\n\\t@echo made $@\\n' > Makefile && make -j2",
        "made b",
    ),
    (
        "/proc/self",
        "grep -q '^State' /proc/self/status && test -e /proc/self/exe && nproc > /dev/null && \
            echo seen",
        "seen",
    ),
    ("users and time", "id -un > /dev/null && date > /dev/null && echo known", "known"),
    ("the example of a secret", "cat .env.example", "KEY="),
    ("cargo", "cargo --version", "cargo 1."),
    (
        "a build with cargo",
        "cargo init --quiet --offline --name hello hello && cd hello && cargo run --quiet \
            --offline && cargo test --quiet --offline",
        "Hello, world!",
    ),
];

/// What only a network of its own and a `/dev` of its own make possible.
const WORKING_LINES_IN_FULL: &[(&str, &str, &str)] = &[
    (
        "a server and its client",
        "python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\",0)); \
            c=socket.create_connection(s.getsockname()); print(\"served\")'",
        "served",
    ),
    (
        "a unix socket of its own",
        "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen(); \
            print(\"bound\")'",
        "bound",
    ),
    (
        "a pool of processes",
        "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))'",
        "[1, 2]",
    ),
    (
        "files in the home",
        "mkdir -p ~/.cache/x && echo kept > ~/.cache/x/y && cat ~/.cache/x/y",
        "kept",
    ),
    ("/tmp by its name", "echo there > /tmp/x && cat /tmp/x", "there"),
];

fn new_host_with_files(level: SandboxLevel) -> TestHost {
    let test_host = new_host(level);
    test_host.write_file("file.txt", "text\n");
    test_host.write_file(".env.example", "KEY=\n");
    let git = |arguments: &[&str]| {
        assert!(
            Command::new("git")
                .args(arguments)
                .current_dir(test_host.workspace_dir())
                .status()
                .expect("git starts")
                .success()
        );
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&[
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "commit",
        "--quiet",
        "-m",
        "first",
    ]);
    test_host
}

fn failures(level: SandboxLevel, table: &[(&str, &str, &str)]) -> Vec<String> {
    let mut failures = Vec::new();
    for (name, line, says) in table {
        let test_host = new_host_with_files(level);
        let said = run_line(&test_host, &format!("exec 2>&1; {line}"));
        if !said.starts_with("ending 0 code 0:")
            || !said.contains(says)
            || said.contains("[sandbox]")
        {
            failures.push(format!(
                "`{level}`: {name}: {line}\n    {}",
                said.chars().take(600).collect::<String>()
            ));
        }
    }
    failures
}

#[test]
fn ordinary_commands_work_in_full() {
    let failures = [
        failures(SandboxLevel::Full, WORKING_LINES),
        failures(SandboxLevel::Full, WORKING_LINES_IN_FULL),
    ]
    .concat();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn ordinary_commands_work_in_kernel() {
    let failures = failures(SandboxLevel::Kernel, WORKING_LINES);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_linked_worktree_knows_its_repository_and_does_not_change_it() {
    for level in CONFINING_LEVELS {
        let main = new_host_with_files(level);
        let test_host = new_host(level);
        let git = |arguments: &[&str]| {
            Command::new("git")
                .args(arguments)
                .current_dir(main.workspace_dir())
                .status()
                .expect("git starts")
        };
        assert!(
            git(&[
                "worktree",
                "add",
                "--quiet",
                "--detach",
                test_host.workspace_dir().to_str().expect("a path")
            ])
            .success()
        );
        let said = run_line(
            &test_host,
            "git log --oneline; git status --short && echo status; git config x.y z; echo evil > \
                $(git rev-parse --git-common-dir)/hooks/x",
        );
        assert!(said.contains("first") && said.contains("status"), "{level}: {said}");
        assert!(!main.workspace_dir().join(".git/hooks/x").exists(), "{level}");
        assert!(
            !fs::read_to_string(main.workspace_dir().join(".git/config"))
                .expect("it is there")
                .contains("[x]"),
            "{level}"
        );
    }
}

#[test]
fn what_is_written_in_the_workspace_is_there_afterwards_and_nothing_else() {
    for level in CONFINING_LEVELS {
        let test_host = new_host_with_files(level);
        test_host.write_file(".env", "KEY=x\n");
        let before = file_names(&test_host);
        run_line(&test_host, "echo made > made; touch $TMPDIR/x; cat .env; echo evil > .mcp.json");
        assert_eq!(
            fs::read_to_string(test_host.workspace_dir().join("made")).expect("it is there"),
            "made\n"
        );
        assert_eq!(
            file_names(&test_host),
            [before, vec!["made".into()]]
                .concat()
                .into_iter()
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
        );
    }
}

fn file_names(test_host: &TestHost) -> Vec<String> {
    let names = fs::read_dir(test_host.workspace_dir())
        .expect("it is listed")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
