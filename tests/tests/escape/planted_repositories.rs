//! Repositories that a command plants: whatever git takes for one, nothing in it runs when the
//! user's own git comes by.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use cofferdam::policy::SandboxLevel;

use super::{CONFINING_LEVELS, new_host, run_line};

/// Writes settings that run something, into the folder that is named.
const PLANT_SCRIPT: &str = concat!(
    r#"plant() { mkdir -p "$1"; printf '[core]\nrepositoryformatversion=0\nbare=false\n"#,
    r#"worktree=..\nfsmonitor="touch RAN; false"\n' > "$1/config"; }"#,
    "\n",
    r#"head() { echo ref: refs/heads/m > "$1/HEAD"; }"#,
    "\n",
    r#"beside() { mkdir -p "$1/objects" "$1/refs"; printf '[core]\nrepositoryformatversion=1\n"#,
    r#"fsmonitor="touch RAN; false"\n[extensions]\nworktreeConfig=true\n' > "$1/config"; }"#,
    "\n",
    r#"apart() { printf '[core]\nbare=false\nworktree=..\n' > "$1/config.worktree"; }"#,
    "\n",
);

/// A name, the commands one after the other, and the folder in which git is run by the user.
type Plant = (&'static str, &'static [&'static str], &'static str);

const PLANT_CASES: &[Plant] = &[
    ("folders", &["plant lib; head lib; mkdir lib/objects lib/refs"], "lib"),
    (
        "links",
        &["plant lib; head lib; mkdir x; ln -s ../x lib/objects; ln -s ../x lib/refs"],
        "lib",
    ),
    ("a link to itself", &["plant lib; head lib; ln -s . lib/objects; ln -s . lib/refs"], "lib"),
    (
        "executable files",
        &["plant lib; head lib; cd lib; : > objects; : > refs; chmod +x objects refs"],
        "lib",
    ),
    (
        "a head that is a link",
        &["plant lib; ln -s refs/heads/m lib/HEAD; mkdir lib/objects lib/refs"],
        "lib",
    ),
    (
        "a head without a branch",
        &["plant lib; printf '%040d\\n' 7 > lib/HEAD; mkdir lib/objects; ln -s objects lib/refs"],
        "lib",
    ),
    (
        "links that lead nowhere yet",
        &["plant lib; head lib; ln -s ../x lib/objects; ln -s ../x lib/refs", "mkdir x"],
        "lib",
    ),
    (
        "files that are made executable",
        &["plant lib; head lib; : > lib/objects; : > lib/refs", "chmod +x lib/objects lib/refs"],
        "lib",
    ),
    (
        "settings first",
        &["plant lib", "head lib", "mkdir lib/objects", "ln -s objects lib/refs"],
        "lib",
    ),
    ("settings last", &["mkdir lib; head lib; mkdir lib/objects lib/refs", "plant lib"], "lib"),
    (
        "settings and a part",
        &["plant lib; mkdir lib/objects lib/refs", "touch lib/config; head lib"],
        "lib",
    ),
    (
        "a part that is renamed",
        &["plant lib; mkdir lib/objects lib/r; head lib", "mv lib/r lib/refs"],
        "lib",
    ),
    (
        "a folder that is renamed",
        &["plant lib; head lib; mkdir lib/objects", "mkdir lib/refs; mv lib other"],
        "other",
    ),
    (
        "in what looks like a repository",
        &["mkdir -p app/objects app/refs; head app; plant app/src; head app/src; mkdir \
                app/src/objects app/src/refs"],
        "app/src",
    ),
    (
        "in what looks like a repository, later",
        &[
            "mkdir -p app/objects app/refs; head app",
            "plant app/src; head app/src; mkdir app/src/objects app/src/refs",
        ],
        "app/src",
    ),
    (
        "in the repository",
        &["plant .git/x; head .git/x; mkdir .git/x/objects .git/x/refs"],
        ".git/x",
    ),
    (
        "in the objects",
        &["plant .git/objects/x; head .git/objects/x; mkdir .git/objects/x/objects \
                .git/objects/x/refs"],
        ".git/objects/x",
    ),
    (
        "as a branch",
        &["plant .git/refs/x; head .git/refs/x; mkdir .git/refs/x/objects .git/refs/x/refs"],
        ".git/refs/x",
    ),
    (
        "in the logs",
        &["plant .git/logs; head .git/logs; mkdir -p .git/logs/objects .git/logs/refs"],
        ".git/logs",
    ),
    (
        "in large files",
        &["plant .git/lfs/x; head .git/lfs/x; mkdir .git/lfs/x/objects .git/lfs/x/refs"],
        ".git/lfs/x",
    ),
    ("in a secret", &["plant x.pem; head x.pem; mkdir x.pem/objects x.pem/refs"], "x.pem"),
    (
        "in a folder of a secret",
        &["plant .aws/x; head .aws/x; mkdir .aws/x/objects .aws/x/refs"],
        ".aws/x",
    ),
    (
        "in a package",
        &["plant node_modules/p; head node_modules/p; mkdir node_modules/p/objects \
                node_modules/p/refs"],
        "node_modules/p",
    ),
    (
        "beside another",
        &["beside x; mkdir lib; head lib; apart lib; echo ../x > lib/commondir"],
        "lib",
    ),
    (
        "beside another, later",
        &["beside x; mkdir lib; head lib; apart lib", "echo ../x > lib/commondir"],
        "lib",
    ),
    (
        "beside another, with a head at last",
        &["beside x; mkdir lib; apart lib; echo ../x > lib/commondir", "head lib"],
        "lib",
    ),
    (
        "by a pointer",
        &["plant store; head store; mkdir store/objects store/refs sub; echo 'gitdir: ../store' \
                > sub/.git"],
        "sub",
    ),
    (
        "by pointers",
        &["plant s; head s; mkdir s/objects s/refs t sub; head t; echo ../s > t/commondir; ln \
                -s ../t sub/.git"],
        "sub",
    ),
    (
        "from a real one",
        &["git init -q --bare lib; git -C lib config core.bare false; git -C lib config \
                core.worktree ..; git -C lib config core.fsmonitor 'touch RAN; false'"],
        "lib",
    ),
    (
        "settings that are a link",
        &["plant y; mkdir lib lib/objects lib/refs; head lib; ln -s ../y/config lib/config"],
        "lib",
    ),
    (
        "settings that include others",
        &["plant y; mkdir lib lib/objects lib/refs; head lib; printf \
                '[core]\\nrepositoryformatversion=0\\nbare=false\\nworktree=..\\n\
                [include]\\npath=../y/config\\n' > lib/config"],
        "lib",
    ),
    (
        "in a folder that cannot be listed",
        &["plant a/lib; head a/lib; mkdir a/lib/objects a/lib/refs; chmod 311 a a/lib"],
        "a/lib",
    ),
    (
        "far below",
        &["d=$(printf 'd/%.0s' $(seq 300)); plant ${d}lib; head ${d}lib; mkdir ${d}lib/objects \
                ${d}lib/refs; ln -s ${d}lib here"],
        "here",
    ),
];

/// Only a git that knows this format, of version 2.45 or newer, takes it for a repository.
const NEWER_FORMAT_PLANTS: Plant = (
    "of another format",
    &["git init -q --ref-format=reftable lib; git -C lib config core.fsmonitor 'touch RAN; false'"],
    "lib",
);

/// All plants that mean something to this machine's git.
fn usable_plants() -> impl Iterator<Item = &'static Plant> {
    let temporary = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("git");
    let command =
        command.args(["init", "--quiet", "--ref-format=reftable"]).current_dir(temporary.path());
    let is_known = command.stderr(Stdio::null()).status().expect("git starts").success();
    PLANT_CASES.iter().chain(is_known.then_some(&NEWER_FORMAT_PLANTS))
}

/// Whether something ran when the user's git came by.
fn payload_runs(level: SandboxLevel, commands: &[&str], folder: &str) -> (bool, String) {
    let test_host = new_host(level);
    let outside = tempfile::tempdir().expect("a folder");
    let ran = outside.path().join("ran");
    run_git(test_host.workspace_dir(), &["init", "--quiet"]);
    test_host.write_file(".git/lfs/x/y", "");
    let mut said = String::new();
    for line in commands {
        let line = format!("{PLANT_SCRIPT}{line}").replace("RAN", &ran.display().to_string());
        said += &run_line(&test_host, &line);
    }
    run_git(&test_host.workspace_dir().join(folder), &["status"]);
    // A prompt asks for the branch, and a diff for more.
    run_git(&test_host.workspace_dir().join(folder), &["diff"]);
    (ran.exists(), said)
}

fn run_git(folder: &Path, arguments: &[&str]) {
    if folder.is_dir() {
        let mut command = Command::new("git");
        let status = command
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        // In what is no repository it fails.
        let _ = status.expect("git starts");
    }
}

#[test]
fn without_a_sandbox_what_is_planted_runs() {
    let idle: Vec<_> = usable_plants()
        .filter(|(_, commands, folder)| !payload_runs(SandboxLevel::None, commands, folder).0)
        .collect();
    assert!(idle.is_empty(), "these show nothing: {idle:#?}");
}

#[test]
fn nothing_runs_from_a_repository_that_a_command_planted() {
    let mut survived = Vec::new();
    for level in CONFINING_LEVELS {
        for (name, commands, folder) in usable_plants() {
            let (ran, said) = payload_runs(level, commands, folder);
            if ran {
                survived.push(format!(
                    "`{level}`: {name}: {commands:?}\n    said: {}",
                    said.chars().take(600).collect::<String>()
                ));
            }
        }
    }
    assert!(survived.is_empty(), "{}", survived.join("\n"));
}

#[test]
fn nothing_is_left_where_a_repository_keeps_what_it_stores() {
    let lines = [
        "mkdir -p app/objects app/refs; echo ref: refs/heads/m > app/HEAD",
        "for store in objects refs logs lfs modules; do for r in app .git; do mkdir -p \
            $r/$store/a/.vscode; echo evil > $r/$store/a/.vscode/tasks.json; \
         mkdir -p $r/$store/b/.git/hooks; echo evil > $r/$store/b/.git/hooks/pre-commit; echo \
         evil > $r/$store/.mcp.json; done; done",
        "mkdir -p k.pem/a/.vscode; echo evil > k.pem/a/.vscode/tasks.json",
        // What git would run there was there before, so that only the parts go.
        "cd src; echo ref: refs/heads/m > HEAD; mkdir -p objects refs sub/.vscode; echo evil > \
            sub/.vscode/tasks.json; echo evil > .mcp.json",
    ];
    for level in CONFINING_LEVELS {
        let test_host = new_host(level);
        run_git(test_host.workspace_dir(), &["init", "--quiet"]);
        test_host.write_file("src/config", "mine");
        std::thread::sleep(std::time::Duration::from_millis(2100));
        for line in lines {
            run_line(&test_host, line);
        }
        let mut find = Command::new("find");
        find.args([
            ".",
            "-name",
            ".vscode",
            "-o",
            "-name",
            ".mcp.json",
            "-o",
            "-name",
            "pre-commit",
        ])
        .current_dir(test_host.workspace_dir());
        let left = find.output().expect("it runs").stdout;
        assert_eq!(String::from_utf8_lossy(&left), "", "{level}");
        assert_eq!(
            fs::read_to_string(test_host.workspace_dir().join("src/config")).expect("it is there"),
            "mine",
            "{level}"
        );
    }
}

#[test]
fn branches_have_any_name() {
    for level in CONFINING_LEVELS {
        let test_host = new_host(level);
        run_git(test_host.workspace_dir(), &["init", "--quiet"]);
        let names = "config hooks HEADS objects refs id_rsa server.key fix/config fix/hooks \
            logs/x commondir";
        let commit = "git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m x";
        let line = format!(
            "{commit}; for b in {names}; do git checkout -q -b $b && {commit} || exit 1; done"
        );
        let said = run_line(&test_host, &line);
        assert!(
            said.starts_with("ending 0 code 0") && !said.contains("[sandbox]"),
            "{level}: {said}"
        );
        let said = run_line(
            &test_host,
            "git branch | wc -l; git fsck && git pack-refs --all && git rev-parse id_rsa \
                server.key && git gc -q && echo done",
        );
        assert!(
            said.contains("12") && said.contains("done") && !said.contains("[sandbox]"),
            "{level}: {said}"
        );
    }
}

#[test]
fn a_bare_repository_as_the_workspace_stays_whole() {
    for level in CONFINING_LEVELS {
        let test_host = new_host(level);
        run_git(test_host.workspace_dir(), &["init", "--quiet", "--bare"]);
        test_host.write_file("store/HEAD", "ref: refs/heads/main\n");
        for path in ["store/objects/x", "store/refs/x", "store/config"] {
            test_host.write_file(path, "");
        }
        std::thread::sleep(std::time::Duration::from_millis(2100));
        let line = "c=$(git -c user.name=A -c user.email=a@example.org commit-tree -m x $(git \
            mktree < /dev/null)) && git update-ref refs/heads/main $c \
            && git symbolic-ref HEAD refs/heads/other && touch objects/y refs/y store/HEAD \
            store/objects store/refs && echo done";
        let said = run_line(&test_host, line);
        assert!(said.contains("done") && !said.contains("[sandbox]"), "{level}: {said}");
        for path in ["HEAD", "objects", "refs", "config", "store/HEAD", "store/refs/x"] {
            assert!(test_host.workspace_dir().join(path).exists(), "{level}: {path}");
        }
    }
}
