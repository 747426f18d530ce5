//! Programs and kinds of files that need care in a private view.
//!
//! Tests whose names begin with `care` run as an ordinary user, too. Directories that ignore case
//! have no test: few kernels have them.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use cofferdam_tests::program::{ProgramOutput, TestHome, wait_for_sleep};

use super::{describe_tree, differences, private_host, run_ok, undo};
use crate::run_line;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");
/// The programs of the system only, because those of a user may need more than a sandbox has.
const SYSTEM_PATH: &str = "PATH=/usr/bin:/bin:/usr/local/bin; export PATH\n";
const GIT: &str = "git() { command git -c user.name=A -c user.email=a@example.org \
    -c protocol.file.allow=always -c init.defaultBranch=main \"$@\"; }\n";

fn text(root: &Path, path: &str) -> String {
    fs::read_to_string(root.join(path)).expect("it is read")
}

#[test]
fn care_git_works_in_a_private_view_and_is_undone() {
    let test_host = private_host();
    let root = test_host.workspace_dir();
    let git = |line: &str| run_ok(&test_host, &format!("{GIT}{line}"));
    git("git init -q; echo one > file; git add file; git commit -qm one");
    git("git switch -qc other; echo other > other; git add other; git commit -qm other
         git switch -q main; echo two >> file; git commit -qam two");
    let before = describe_tree(root);
    git("git switch -q other; git rebase -q main");
    assert_eq!((text(root, "file"), text(root, "other")), ("one\ntwo\n".into(), "other\n".into()));
    undo(&test_host);
    assert_eq!(differences(&before, &describe_tree(root)), [""; 0]);
    git("echo three >> file; git stash -q; test \"$(cat file)\" = \"$(printf 'one\\ntwo')\"");
    git("git stash pop -q; grep -q three file; git commit -qam three");
    git("git gc -q; git fsck --strict; test $(git rev-list --count --all) -ge 4");
    assert!(root.join(".git/packed-refs").exists());
}

#[test]
fn care_a_worktree_of_the_user_works_and_a_command_creates_none() {
    let test_host = private_host();
    let root = test_host.workspace_dir();
    prepare(
        root,
        "git init -q; echo x > x; git add x; git commit -qm x; git worktree add -q wt -b other",
    );
    run_ok(
        &test_host,
        &format!("{GIT}cd wt; echo w > new; git add new; git commit -qm worktree; git status"),
    );
    run_ok(&test_host, "git log --oneline other | grep -q worktree; git worktree list");
    // The pointers of a worktree decide where git finds the hooks.
    let said = run_line(&test_host, &format!("{GIT}git worktree add -q wt2 -b third"));
    assert!(said.contains("wt2/.git was created, which is not allowed"), "{said}");
    assert!(!root.join("wt2/.git").exists());
}

/// Runs lines of shell outside, as a user prepares a workspace.
fn prepare(root: &Path, line: &str) {
    let ran = std::process::Command::new("sh")
        .args(["-c", &format!("set -e\n{GIT}{line}")])
        .current_dir(root)
        .output()
        .expect("it starts");
    assert!(ran.status.success(), "{line}: {ran:?}");
}

#[test]
fn care_a_submodule_is_added_and_updated() {
    let test_host = private_host();
    let root = test_host.workspace_dir();
    prepare(
        root,
        "git init -q part; cd part; echo x > x; git add x; git commit -qm part; cd ..
         git init -q top; cd top; git submodule --quiet add ../part sub; git commit -qm top",
    );
    run_ok(
        &test_host,
        &format!(
            "{GIT}cd top/sub; echo more >> x; git commit -qam more; cd ..; git add sub
             git commit -qm 'new part'; git submodule status | grep -q '^ '; git -C sub log \
                --oneline | grep -q more"
        ),
    );
    prepare(root, "cd top; git submodule status | grep -q '^ '; git fsck; git -C sub fsck");
}

#[test]
fn care_a_database_of_sqlite_is_whole() {
    let test_host = private_host();
    let python = |code: &str| {
        run_ok(&test_host, &format!("{SYSTEM_PATH}python3 -c 'import sqlite3\n{code}'"))
    };
    for mode in ["delete", "wal"] {
        python(&format!(
            "d = sqlite3.connect(\"{mode}.db\")\nd.execute(\"pragma journal_mode={mode}\")
d.execute(\"create table t (n)\")\nd.executemany(\"insert into t values (?)\", \
                [(n,) for n in range(1000)])\nd.commit()"
        ));
        python(&format!(
            "d = sqlite3.connect(\"{mode}.db\")\nd.execute(\"update t set n = n + 1\")\nd.commit()
d.execute(\"delete from t where n > 500\")"
        ));
        // The transaction that was not committed is none.
        python(&format!(
            "d = sqlite3.connect(\"{mode}.db\")
assert d.execute(\"select count(*), sum(n) from t\").fetchone() == (1000, 500500)
assert d.execute(\"pragma integrity_check\").fetchone() == (\"ok\",)"
        ));
    }
}

#[test]
fn care_make_builds_again_only_what_changed() {
    let test_host = private_host();
    test_host.write_file(
        "Makefile",
        "all: a b\na: a.in\n\tcp a.in a; echo a >> log\nb: b.in a\n\tcp b.in b; echo b >> log\n",
    );
    test_host.write_file("a.in", "a\n");
    test_host.write_file("b.in", "b\n");
    let log = || text(test_host.workspace_dir(), "log");
    run_ok(&test_host, "make");
    assert_eq!(log(), "a\nb\n");
    run_ok(&test_host, "make");
    assert_eq!(log(), "a\nb\n", "nothing changed");
    run_ok(&test_host, "echo new > b.in");
    run_ok(&test_host, "make");
    assert_eq!(log(), "a\nb\nb\n");
    run_ok(&test_host, "touch a.in; make");
    assert_eq!(log(), "a\nb\nb\na\nb\n");
}

#[test]
fn care_npm_and_pip_install_local_packages() {
    let test_host = private_host();
    let root = test_host.workspace_dir();
    test_host.write_file("package.json", r#"{"name": "top", "version": "1.0.0"}"#);
    test_host.write_file(
        "part/package.json",
        r#"{"name": "part", "version": "1.2.3", "main": "index.js"}"#,
    );
    test_host.write_file("part/index.js", "module.exports = 'from the part';\n");
    run_ok(
        &test_host,
        &format!(
            "{SYSTEM_PATH}tar -czf part.tgz --transform s,^part,package, part
             npm install --offline --no-audit --no-fund ./part.tgz
             node -e 'console.log(require(\"part\"))' | grep -q 'from the part'"
        ),
    );
    assert_eq!(text(root, "node_modules/part/index.js"), "module.exports = 'from the part';\n");
    assert!(text(root, "package.json").contains("part.tgz"));
    let said = run_ok(
        &test_host,
        &format!(
            "{SYSTEM_PATH}python3 -c 'import zipfile
z = zipfile.ZipFile(\"demo-1.0-py3-none-any.whl\", \"w\")
z.writestr(\"demo.py\", \"text = 42\")
i = \"demo-1.0.dist-info/\"
z.writestr(i + \"METADATA\", \"Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n\")
z.writestr(i + \"WHEEL\", \"Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n\")
z.writestr(i + \"RECORD\", \"\")
z.close()'
             python3 -m pip install -q --no-index --no-deps --disable-pip-version-check \
                --root-user-action=ignore --target vendor ./demo-1.0-py3-none-any.whl
             PYTHONPATH=vendor python3 -c 'import demo; print(demo.text)'"
        ),
    );
    assert!(said.contains("42"), "{said}");
    assert_eq!(text(root, "vendor/demo.py"), "text = 42");
}

/// What an editor does to save a file: it writes a new one and renames it.
fn save(path: &Path, content: &str) {
    let new = path.with_extension("new");
    fs::write(&new, content).expect("it is written");
    fs::rename(new, path).expect("it is renamed");
}

#[test]
fn care_an_editor_that_saves_meanwhile_loses_nothing() {
    for (saved, mark) in [("file", "0.5173"), ("other", "0.5174")] {
        let test_host = private_host();
        let root = test_host.workspace_dir();
        test_host.write_file("file", "old\n");
        test_host.write_file("other", "old\n");
        let path = root.join(saved);
        let editor = std::thread::spawn(move || {
            wait_for_sleep(mark);
            save(&path, "editor\n");
        });
        let said = run_line(&test_host, &format!("echo new > file; sleep {mark}"));
        editor.join().expect("it saved");
        let now = [text(root, "file"), text(root, "other")];
        if saved == "file" {
            assert!(said.contains("changed by another process"), "{said}");
            assert_eq!(now, ["editor\n", "old\n"]);
        } else {
            assert!(said.starts_with("ending 0 code 0:"), "{said}");
            assert_eq!(now, ["new\n", "editor\n"]);
        }
    }
}

#[test]
fn care_sockets_and_large_sparse_files_are_committed() {
    let test_host = private_host();
    let root = test_host.workspace_dir();
    run_ok(
        &test_host,
        &format!(
            "{SYSTEM_PATH}python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'
             mkfifo d; truncate -s 6G huge; printf end | dd of=huge bs=1 seek=5G conv=notrunc \
                status=none; truncate -s 900M large"
        ),
    );
    let kind = |path: &str| root.join(path).symlink_metadata().expect("it is there").file_type();
    assert!(kind("s").is_socket() && kind("d").is_fifo());
    let huge = root.join("huge").metadata().expect("it is there");
    assert!(huge.len() == 6 << 30 && huge.blocks() < 1000, "{huge:?}");
    run_ok(&test_host, "test \"$(dd if=huge bs=1 skip=5G count=3 status=none)\" = end");
    // A part of an old file is written, and the rest stays a hole.
    run_ok(&test_host, "printf END | dd of=large bs=1 seek=800M conv=notrunc status=none");
    let large = root.join("large").metadata().expect("it is there");
    assert!(large.len() == 900 << 20 && large.blocks() < 100_000, "{large:?}");
    undo(&test_host);
    run_ok(&test_host, "test -z \"$(tr -d '\\0' < large)\"");
}

#[test]
fn care_a_command_sets_no_set_id_bit_and_a_written_file_loses_it() {
    let test_host = private_host();
    let root = test_host.workspace_dir();
    let mode = |path: &str| root.join(path).metadata().expect("it is there").mode() & 0o7777;
    test_host.write_file("old", "old\n");
    test_host.write_file("written", "old\n");
    let said = run_line(
        &test_host,
        "cp /bin/true new; chmod 6755 new; chmod 4755 old; cp -p /bin/su copied; mkdir d
         chmod 2755 d; echo done",
    );
    assert!(said.contains("'new': Operation not permitted") && said.contains("done"), "{said}");
    for path in ["new", "old", "copied", "d"] {
        assert_eq!(mode(path) & 0o6000, 0, "{path}");
    }
    for path in ["old", "written"] {
        let with_bit = fs::Permissions::from_mode(0o4755);
        fs::set_permissions(root.join(path), with_bit).expect("it is set");
    }
    run_ok(&test_host, "cat old; echo more >> written");
    assert_eq!((mode("old"), mode("written")), (0o4755, 0o755));
}

#[test]
fn care_files_of_others_keep_their_owner_or_stay_as_they_are() {
    let test_host = private_host();
    let root = test_host.workspace_dir();
    let owner = |path: &str| {
        let found = root.join(path).metadata().expect("it is there");
        (found.uid(), found.gid(), found.mode() & 0o7777)
    };
    if rustix::process::geteuid().is_root() {
        // A command of root has no privileges, so that it needs the permissions of others.
        test_host.write_file("d/file", "old\n");
        for (path, mode) in [("d/file", 0o666), ("d", 0o777)] {
            let path = root.join(path);
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is set");
            std::os::unix::fs::chown(path, Some(1234), Some(4321)).expect("it is set");
        }
        run_ok(&test_host, "echo more >> d/file; echo own > d/new");
        assert_eq!(owner("d/file"), (1234, 4321, 0o666));
        assert_eq!(text(root, "d/file"), "old\nmore\n");
        assert_eq!((owner("d/new").0, owner("d").0, owner("d").1), (0, 1234, 4321));
        undo(&test_host);
        assert_eq!((owner("d/file"), text(root, "d/file")), ((1234, 4321, 0o666), "old\n".into()));
        return;
    }
    // Root has left this file for the test, because this user cannot create one.
    let home = std::env::var_os("HOME").expect("a home");
    let left = Path::new(&home).join("file-of-root");
    fs::rename(left, root.join("others")).expect("it was left");
    let said = run_line(&test_host, "cat others; echo more >> others; chmod 600 others; echo done");
    assert!(said.contains("root's") && said.contains("done"), "{said}");
    assert_eq!((owner("others"), text(root, "others")), ((0, 0, 0o644), "root's\n".into()));
    run_ok(&test_host, "rm others; echo mine > others");
    assert_eq!((owner("others").0, text(root, "others")), (65534, "mine\n".into()));
    undo(&test_host);
    assert_eq!((owner("others"), text(root, "others")), ((0, 0, 0o644), "root's\n".into()));
}

/// Runs the program in a workspace that these lines of shell prepare, as root of a user namespace.
fn run_after(preparation: &str, line: &str) -> (TestHome, ProgramOutput) {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    home.write_file("workspace/old", "old\n");
    home.write_file("config/cofferdam/config.toml", "[commands]\nminimum = \"full\"\n");
    let input = serde_json::json!({"command": line}).to_string();
    let mut command = std::process::Command::new("unshare");
    home.configure(&mut command);
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg(format!(
            "set -e; {preparation}; cd workspace; \"$@\"; status=$?; cat file; exit $status"
        ))
        .args(["sh", PROGRAM, "tools", "call", "bash", &input, "--mode", "auto"])
        .current_dir(home.path());
    let ran = home.start(command).wait_for_exit();
    (home, ran)
}

#[test]
fn a_read_only_file_system_stays_as_it_is() {
    let prepare = "echo kept > workspace/file; mount --bind workspace workspace
        mount -o remount,bind,ro workspace";
    let (home, ran) = run_after(prepare, "cat old; echo new > file || echo refused");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("old") && said.contains("refused") && said.contains("kept"), "{said}");
    assert_eq!(text(&home.workspace(), "file"), "kept\n");
}

#[test]
fn a_workspace_on_an_overlay_is_written_directly() {
    // As in a container.
    let prepare = "mkdir upper work; mount -t overlay overlay -o userxattr \
        -o lowerdir=workspace,upperdir=upper,workdir=work workspace";
    let line = "echo new > file; rm old; mkdir -p .vscode; echo x > .vscode/tasks.json";
    let (home, ran) = run_after(prepare, line);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("new"), "{said}");
    assert_eq!(text(home.path(), "upper/file"), "new\n");
    assert!(!home.path().join("upper/.vscode/tasks.json").exists(), "{said}");
    assert!(home.has_file("old") && !home.has_file("file"), "the layer below");
}
