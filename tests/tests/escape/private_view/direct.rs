//! The setting `direct`: directories that commands write without a private view of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam::policy::{CommandRules, DirectDirectory, SandboxLevel};
use cofferdam_tests::guests::TestHost;
use cofferdam_tests::program::{TestHome, find_processes, wait_for_sleep, wait_until};

use super::commits::{call, home};
use super::{describe_tree, undo};
use crate::{host_with_rules, rules_for_level, run_line};

fn host_with_direct(directories: &[&str]) -> TestHost {
    let parse = |text: &&str| DirectDirectory::parse(text).expect("a plain directory");
    let direct = directories.iter().map(parse).collect();
    host_with_rules(CommandRules { direct, ..rules_for_level(SandboxLevel::Full) })
}

fn home_with_direct(directories: &str) -> TestHome {
    let home = home();
    let config = format!("[commands]\nminimum = \"full\"\ndirect = {directories}\n");
    home.write_file("config/cofferdam/config.toml", config);
    home
}

/// Runs a line that has to succeed; what it said.
fn run(test_host: &TestHost, line: &str) -> String {
    let said = run_line(test_host, &format!("set -e\n{line}"));
    assert!(said.starts_with("ending 0 code 0:"), "{line}: {said}");
    said
}

fn has(test_host: &TestHost, path: &str) -> bool {
    test_host.workspace_dir().join(path).symlink_metadata().is_ok()
}

#[test]
fn a_direct_directory_is_written_at_once_and_the_rest_when_the_command_ends() {
    let home = home_with_direct(r#"["target/", "web/cache"]"#).with_file("target/old", "old\n");
    let line = "echo x > target/new; rm target/old; mkdir -p web/cache/a; echo x > web/cache/a/b; \
        echo x > other; sleep 0.16180";
    let running = home.start(call(&home, line));
    wait_for_sleep("0.16180");
    assert!(home.has_file("target/new") && !home.has_file("target/old"));
    assert!(home.has_file("web/cache/a/b") && !home.has_file("other"));
    let ran = running.wait_for_exit();
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    let notice = "the command wrote directly to target, web/cache: these changes cannot be undone";
    assert!(said.contains(notice), "{said}");
    assert!(home.has_file("other"));
    let log = home.run(&["audit", "show", "--json"]).stdout;
    assert!(log.contains(r#""path":"other""#) && !log.contains(r#""path":"target"#), "{log}");
    let doctor = home.run(&["doctor"]).stdout;
    assert!(doctor.contains("written directly: target; `cofferdam undo`"), "{doctor}");
    let explain =
        home.run(&["policy", "explain", "bash", "--command", "make", "--mode", "auto"]).stdout;
    assert!(explain.contains("It writes target, web/cache directly"), "{explain}");
}

#[test]
fn undo_leaves_a_direct_directory_alone() {
    let test_host = host_with_direct(&["target"]);
    run(&test_host, "echo x > target/new; echo x > other");
    undo(&test_host);
    assert!(has(&test_host, "target/new") && !has(&test_host, "other"));
    // A command that changes nothing else leaves no record.
    run(&test_host, "echo y > target/new");
    assert!(test_host.history().list().expect("it is listed").is_empty());
}

#[test]
fn an_empty_directory_that_was_made_for_a_command_is_removed_again() {
    let test_host = host_with_direct(&["a/b/target"]);
    let said = run(&test_host, "ls -d a/b/target; true > /tmp/x");
    assert!(said.contains("a/b/target") && !said.contains("[sandbox]"), "{said}");
    assert!(!has(&test_host, "a"));
    run(&test_host, "echo x > a/b/target/x");
    assert!(has(&test_host, "a/b/target/x"));
}

#[test]
fn times_in_a_direct_directory_survive_for_incremental_builds() {
    let test_host = host_with_direct(&["target"]);
    let makefile = "target/out: in\n\tmkdir -p target\n\tcat in > target/out\n\techo built\n";
    test_host.write_file("Makefile", makefile);
    test_host.write_file("in", "one\n");
    assert!(run(&test_host, "make 2>&1").contains("built"));
    let stamp = || {
        let metadata =
            test_host.workspace_dir().join("target/out").metadata().expect("it is there");
        metadata.modified().expect("it has a time")
    };
    let first = stamp();
    assert!(run(&test_host, "make 2>&1").contains("up to date"));
    assert_eq!(stamp(), first);
    // A change that a command commits is newer than what was built before.
    run(&test_host, "echo two > in");
    assert!(run(&test_host, "make 2>&1").contains("built"));
    let text = fs::read_to_string(test_host.workspace_dir().join("target/out"));
    assert_eq!(text.expect("it is read"), "two\n");
}

#[test]
fn protected_paths_in_a_direct_directory_are_not_left_behind() {
    let test_host = host_with_direct(&["target"]);
    let line = "git init -q target/x; echo true > target/x/.git/hooks/pre-commit; mkdir -p \
        target/y/.vscode; echo x > target/y/.vscode/tasks.json; git -C target/x config \
        core.fsmonitor 'touch owned'; echo x > target/fine";
    let said = run_line(&test_host, line);
    for path in ["target/x/.git/hooks/pre-commit", "target/y/.vscode/tasks.json"] {
        assert!(!has(&test_host, path), "{path}: {said}");
    }
    let config = fs::read_to_string(test_host.workspace_dir().join("target/x/.git/config"));
    assert!(!config.unwrap_or_default().contains("fsmonitor"), "{said}");
    assert!(has(&test_host, "target/fine"), "{said}");
    assert!(said.contains("[sandbox]"), "{said}");
}

#[test]
fn instruction_files_in_a_direct_directory_are_kept_and_named() {
    let test_host = host_with_direct(&["target"]);
    let said = run(&test_host, "echo obey > target/AGENTS.md");
    assert!(has(&test_host, "target/AGENTS.md"));
    assert!(said.contains("created target/AGENTS.md, one of the files"), "{said}");
}

#[test]
fn a_link_in_place_of_a_direct_directory_is_not_followed() {
    let test_host = host_with_direct(&["target", "deep/target"]);
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let root = test_host.workspace_dir();
    symlink(outside.path(), root.join("target")).expect("a link");
    symlink(outside.path(), root.join("deep")).expect("a link");
    let said = run_line(&test_host, "echo x > target/x; mkdir -p deep/target; echo x > other");
    assert_eq!(said.matches("was not written directly").count(), 2, "{said}");
    assert_eq!(fs::read_dir(outside.path()).expect("it is listed").count(), 0, "{said}");
    assert!(has(&test_host, "other"), "{said}");
    let root_link = fs::read_link(root.join("target")).expect("it is still a link");
    assert_eq!(root_link, outside.path());
}

#[test]
fn a_command_cannot_leave_a_link_that_opens_another_directory() {
    let test_host = host_with_direct(&["target"]);
    test_host.write_file("target/x", "x\n");
    test_host.write_file("src/file", "old\n");
    // The directory itself stays, whatever the command tries.
    run_line(&test_host, "rm -rf target; ln -s src target; mv target elsewhere");
    assert!(test_host.workspace_dir().join("target").symlink_metadata().expect("there").is_dir());
    run_line(&test_host, "ln -s ../src target/link; echo new > target/link/file");
    undo(&test_host);
    let text = fs::read_to_string(test_host.workspace_dir().join("src/file")).expect("it is read");
    assert_eq!(text, "old\n", "a link in it leads to the private view");
}

#[test]
fn a_directory_with_a_protected_path_stays_in_the_private_view() {
    let test_host = host_with_direct(&["target", "out"]);
    test_host.write_file("target/.env", "KEY=secret\n");
    let line = "cat target/.env; echo x > target/new; echo x > out/new; exit 3";
    let said = run_line(&test_host, line);
    assert!(said.contains("target (`direct` under [commands]) was not written directly"), "{said}");
    assert!(!said.contains("secret"), "{said}");
    undo(&test_host);
    assert!(!has(&test_host, "target/new") && has(&test_host, "out/new"), "{said}");
}

#[test]
fn a_rule_about_writes_keeps_a_directory_in_the_private_view() {
    let home = home_with_direct(r#"["target", "out"]"#).with_file("target/old", "old\n");
    home.write_file("workspace/.cofferdam/policy.toml", "[write]\ndeny = [\"target/**\"]\n");
    let ran = home.start(call(&home, "echo x > target/new; echo x > out/new")).wait_for_exit();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("target (`direct` under [commands]) was not written"), "{said}");
    assert!(!home.has_file("target/new") && home.has_file("out/new"), "{said}");
    home.write_file("config/cofferdam/policy.toml", "[commands]\ndirect = []\n");
    let ran = home.start(call(&home, "echo y > out/new")).wait_for_exit();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(ran.exit_code == 0 && !said.contains("wrote directly"), "{said}");
    assert_eq!(home.run(&["undo"]).exit_code, 0, "it was a change of the private view");
    let shown = home.run(&["policy", "show"]).stdout;
    assert!(shown.contains("[commands] direct at most: none"), "{shown}");
    assert!(shown.contains("commands.direct = not allowed"), "{shown}");
}

#[test]
fn commands_with_a_direct_directory_take_turns() {
    let home = home_with_direct(r#"["target"]"#);
    let line = "mkdir target/lock && sleep 0.14142 && rmdir target/lock";
    let running = [(); 2].map(|()| home.start(call(&home, line)));
    for running in running {
        let ran = running.wait_for_exit();
        assert_eq!(ran.exit_code, 0, "{ran:?}");
    }
}

#[test]
fn a_killed_host_leaves_no_half_commit_and_no_hook() {
    let home = home_with_direct(r#"["target"]"#).with_file("file", "old\n");
    let made = Command::new("git").args(["init", "-q"]).current_dir(home.workspace()).status();
    assert!(made.expect("git runs").success());
    home.write_file("workspace/.git/hooks/pre-commit", "true\n");
    let before = describe_tree(&home.workspace());
    let line = "git init -q target/x; echo true > target/x/.git/hooks/pre-commit; echo new > file; \
        echo x > other; sleep 31.4159";
    let mut host = call(&home, line)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_for_sleep("31.4159");
    assert!(home.has_file("target/x/.git/hooks/pre-commit"), "it is written directly");
    // The host and the supervisor end at the same moment.
    let supervisors = supervisors_of(host.id());
    assert!(!supervisors.is_empty());
    host.kill().expect("it is ours");
    for supervisor in supervisors {
        let pid = rustix::process::Pid::from_raw(supervisor).expect("an ID");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    host.wait().expect("it is ours");
    wait_until("no process is left", || find_processes("31.4159").is_empty());
    let deadline = Instant::now() + Duration::from_secs(20);
    while home.has_file("target/x/.git/hooks/pre-commit") && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!home.has_file("target/x/.git/hooks/pre-commit"), "the guard removes it");
    let mut after = describe_tree(&home.workspace());
    after.retain(|path, _| path != "target" && !path.starts_with("target/"));
    assert_eq!(after, before);
}

/// The repositories in the workspace. Some entries may vanish meanwhile.
fn repositories_in(home: &TestHome) -> Vec<PathBuf> {
    let (mut found, mut pending) = (Vec::new(), vec![home.workspace()]);
    while let Some(directory) = pending.pop() {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        pending.extend(entries.map(|entry| entry.path()).filter(|path| path.is_dir()));
        if ["HEAD", "objects", "refs"].iter().all(|name| directory.join(name).exists()) {
            found.push(directory);
        }
    }
    found
}

/// Plants a repository that is too large for an archive.
const PLANT: &str = "git init -q target/x; echo true > target/x/.git/hooks/pre-commit; \
    truncate -s 70M target/x/.git/hooks/big; touch target/ended";

#[test]
fn a_repository_that_is_too_large_for_an_archive_leaves_a_direct_directory() {
    let home = home_with_direct(r#"["target"]"#).with_file("target/old", "old\n");
    let ran = home.start(call(&home, PLANT)).wait_for_exit();
    assert!(ran.stdout.contains("it was moved to "), "{ran:?}");
    assert_eq!(repositories_in(&home), [] as [PathBuf; 0], "{ran:?}");
    assert!(home.has_file("target/old") && home.has_file("target/ended"), "{ran:?}");
}

#[test]
fn a_kill_at_any_moment_of_the_end_leaves_no_repository_in_a_direct_directory() {
    // Between its place and the quarantine directory, the repository has a neutral name in the
    // workspace for some milliseconds.
    for microseconds in (0..20_000).step_by(1000) {
        let home = home_with_direct(r#"["target"]"#).with_file("target/old", "old\n");
        let mut host = call(&home, PLANT)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        wait_until("the command ends", || home.has_file("target/ended"));
        let supervisors = supervisors_of(host.id());
        let place = home.workspace().join("target/x/.git");
        while place.exists() {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_micros(microseconds));
        for supervisor in supervisors {
            let pid = rustix::process::Pid::from_raw(supervisor).expect("an ID");
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let _ = host.kill();
        host.wait().expect("it is ours");
        wait_until("no repository is left", || repositories_in(&home).is_empty());
        assert!(home.has_file("target/old"), "{microseconds} µs");
    }
}

/// The processes between the host and its command, except the guard.
fn supervisors_of(host: u32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = fs::read_dir("/proc")
        .expect("it is listed")
        .flatten()
        .filter_map(|entry| {
            let process: i32 = entry.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
            Some((process, parent.trim().parse().ok()?))
        })
        .collect();
    let host = i32::try_from(host).expect("an ID");
    let mut found = Vec::new();
    let mut pending = vec![host];
    while let Some(above) = pending.pop() {
        for (process, _) in parents.iter().filter(|(_, parent)| *parent == above) {
            let line = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
            // The child of the host is the guard.
            if above != host && line.contains("supervise-command") {
                found.push(*process);
            }
            pending.push(*process);
        }
    }
    found
}

#[test]
fn a_new_directory_that_is_too_deep_leaves_a_direct_directory() {
    let home = home_with_direct(r#"["target"]"#).with_file("target/old", "old\n");
    let make = "import os, subprocess\nos.chdir('target'); os.mkdir('deep'); os.chdir('deep')\n\
        for _ in range(20): os.mkdir('d' * 200); os.chdir('d' * 200)\n\
        subprocess.run(['git', 'init', '-q', '.'])\n\
        open('.git/hooks/pre-commit', 'w').write('x')\n";
    home.write_file("workspace/deep.py", make);
    let ran = home.start(call(&home, "PATH=/usr/bin:/bin python3 deep.py")).wait_for_exit();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!home.has_file("target/deep") && home.has_file("target/old"), "{said}");
    assert!(!said.contains("COULD NOT"), "{said}");
}

#[test]
fn instruction_files_that_are_links_into_a_direct_directory_are_named() {
    let home = home_with_direct(r#"["target"]"#).with_file("target/agents.txt", "good\n");
    symlink("target/agents.txt", home.workspace().join("AGENTS.md")).expect("a link");
    let ran = home.start(call(&home, "echo evil > target/agents.txt")).wait_for_exit();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("changed AGENTS.md"), "{said}");
}
