//! Directories that a command closes to their owner: what is in them is found and undone all the
//! same, and what is reported is reported.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use cofferdam::policy::SandboxLevel;
use cofferdam::sandbox::CommandSandbox;
use cofferdam_tests::guests::TestHost;

use super::{CONFINING_LEVELS, host_builder, new_host, rules_for_level, run_line};

const SETUP: &str = "git init -q; git config core.hooksPath tools/hk; mkdir -p tools/hk app src \
    lib user; git init -q lib/n; echo mine > AGENTS.md; chmod 500 user";

/// Plants, and afterwards closes the directories around them.
const PLANT_LINE: &str = r#"
plant() { mkdir -p "${1%/*}"; echo evil > "$1"; }
plant tools/hk/pre-commit
plant lib/n/.git/hooks/pre-commit
plant app/.vscode/launch.json
mkdir -p src/q/objects src/q/refs; echo ref: refs/heads/m > src/q/HEAD
printf '[core]\nbare=false\nworktree=..\nfsmonitor="touch x; false"\n' > src/q/config
plant n/AGENTS.md
plant n/.cargo/config.toml
plant n/.vscode/tasks.json
plant deep/a/b/.vscode/tasks.json
chmod 700 user; plant user/.vscode/tasks.json
plant .vscode/tasks.json
echo script-shell=./e.sh > .npmrc
echo evil >> AGENTS.md
"#;
const CLOSED: &str =
    "tools/hk tools lib/n/.git lib/n lib app src/q src n deep/a/b deep/a deep user";
const PLANTED: &[&str] = &[
    "tools/hk/pre-commit",
    "lib/n/.git/hooks/pre-commit",
    "app/.vscode/launch.json",
    "src/q/config",
    "n/.vscode/tasks.json",
    "deep/a/b/.vscode/tasks.json",
    "user/.vscode/tasks.json",
    ".vscode/tasks.json",
];

fn set_up(test_host: &TestHost) {
    let status = Command::new("sh")
        .args(["-ec", SETUP])
        .current_dir(test_host.workspace_dir())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.expect("sh starts").success());
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// The paths that a notice about discarded changes names.
fn names_discarded(line: &str) -> impl Iterator<Item = &str> {
    let list = line.split_once("the change of ").or_else(|| line.split_once("the changes of "));
    let list = list.map_or("", |(_, list)| list);
    let names = list.split_once(" was discarded").or_else(|| list.split_once(" were discarded"));
    names.map_or("", |(names, _)| names).split(", ")
}

/// `user` are the permissions of the directory that was closed before.
fn check(test_host: &TestHost, user: u32, said: &str) {
    let at = |path: &str| test_host.workspace_dir().join(path);
    // In a private view nobody could approve them, so they were discarded.
    for path in ["n/AGENTS.md", "n/.cargo/config.toml", "AGENTS.md"] {
        let [created, changed] = ["created", "changed"].map(|verb| format!("{verb} {path}, one"));
        let discarded = said.lines().any(|line| names_discarded(line).any(|name| name == path));
        assert!(said.contains(&created) || said.contains(&changed) || discarded, "{path}: {said}");
    }
    assert!(!said.contains("COULD NOT") && !said.contains("removed AGENTS.md"), "{said}");
    // The directory that was closed before has what it had; the rest is open to the next look.
    assert_eq!(mode(&at("user")), user, "{said}");
    for open in ["", "tools", "tools/hk", "lib", "app", "n"] {
        assert_eq!(mode(&at(open)) & 0o700, 0o700, "{open}: {said}");
    }
    run_line(test_host, "chmod -R u+rwX .");
    for planted in PLANTED {
        assert!(fs::symlink_metadata(at(planted)).is_err(), "{planted}: {said}");
    }
    assert!(!fs::read_to_string(at(".npmrc")).is_ok_and(|text| text.contains("e.sh")), "{said}");
}

#[test]
fn no_plant_is_hidden_by_permissions_of_directories() {
    for level in CONFINING_LEVELS {
        for owner in 0..8 {
            let test_host = new_host(level);
            set_up(&test_host);
            let said = run_line(&test_host, &format!("{PLANT_LINE}chmod {owner}00 {CLOSED}"));
            println!("{level} {owner}00: {said}");
            check(&test_host, owner << 6 | 0o500, &said);
            if owner != 7 {
                assert!(said.contains("your access was restored"), "{level} {owner}00: {said}");
            }
        }
    }
}

#[test]
fn no_plant_is_hidden_by_permissions_of_the_workspace() {
    for level in CONFINING_LEVELS {
        for owner in 0..8 {
            let test_host = new_host(level);
            set_up(&test_host);
            let line = format!("{PLANT_LINE}chmod 500 user; chmod {owner}00 src/q .");
            let said = run_line(&test_host, &line);
            println!("{level} {owner}00: {said}");
            check(&test_host, 0o500, &said);
        }
    }
}

#[test]
fn permissions_around_the_state_directory_do_not_keep_a_plant() {
    for closed in ["state/own/set-aside/unfinished", "state/own", "state", ""] {
        for owner in ["000", "400", "500"] {
            let home = tempfile::tempdir().expect("a directory");
            let own = home.path().join("state/own");
            fs::create_dir_all(own.join("set-aside/unfinished")).expect("it is made");
            let rules = rules_for_level(SandboxLevel::Kernel);
            let tests = std::env::current_exe().expect("it has a path");
            let program = tests.parent().and_then(Path::parent).expect("it is in a directory");
            let commands = CommandSandbox::new(
                program.join("cofferdam-under-test"),
                rules.clone(),
                own.join("set-aside"),
                cofferdam_cli::host_environment(),
            );
            let commands = commands.with_own(vec![own.clone()]);
            let test_host = host_builder(rules).with_commands(Arc::new(commands)).build();
            let target = home.path().join(closed);
            let was = mode(&target);
            let line = format!(
                "mkdir .vscode; echo evil > .vscode/tasks.json; chmod {owner} {}",
                target.display()
            );
            let said = run_line(&test_host, &line);
            assert!(
                !test_host.workspace_dir().join(".vscode").exists(),
                "{closed} {owner}: {said}"
            );
            assert_eq!(mode(&target), was, "{closed} {owner}: {said}");
            assert!(
                said.contains("they were restored") && !said.contains("cannot remove"),
                "{closed} {owner}: {said}"
            );
        }
    }
}
