//! Commands end, and all that they started with them: at their timeout, when they are cancelled,
//! when there are too many of them, and when the host is killed.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cofferdam::agent::ports::RunOutcome;
use cofferdam::policy::{Capability, SandboxLevel};
use cofferdam_tests::guests::{TestGuest, TestHostBuilder, commands};
use cofferdam_tests::program::{ProgramOutput, TestHome, find_processes, wait_until};

use super::{CONFINING_LEVELS, new_host, rules_for_level, run_line};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

fn host_with_timeout(level: SandboxLevel, seconds: &str) -> cofferdam_tests::guests::TestHost {
    let guest = TestGuest::from_file("command")
        .with_replacement("{{directory}}", "")
        .with_replacement("{{timeout}}", seconds)
        .with_requested(&[Capability::RunCommands]);
    TestHostBuilder::default()
        .with_guest(&guest)
        .with_commands(Arc::new(commands(rules_for_level(level))))
        .build()
}

#[test]
fn r120_a_timeout_ends_what_ignores_signals_and_hides_in_another_session() {
    for (level, mark) in CONFINING_LEVELS.into_iter().zip(["86201.71", "86201.72"]) {
        let test_host = host_with_timeout(level, "1");
        let said = run_line(
            &test_host,
            &format!(
                "trap '' TERM HUP INT; setsid sh -c \"trap '' TERM; sleep {mark}\" & sleep \
                    {mark}; sleep {mark}"
            ),
        );
        // 2 is `timed-out`.
        assert!(said.starts_with("ending 2"), "{level}: {said}");
        assert_eq!(find_processes(mark), Vec::<String>::new(), "{level}");
    }
}

#[test]
fn r101_cancelling_ends_a_command_within_a_second() {
    for (level, mark) in CONFINING_LEVELS.into_iter().zip(["86202.71", "86202.72"]) {
        let test_host = host_with_timeout(level, "100");
        run_line(&test_host, "true");
        let line = serde_json::json!({"line": format!("trap '' TERM; setsid sleep {mark} & sleep \
            {mark}")})
        .to_string();
        let report =
            test_host.run_turn_cancelled(&[("command", &line)], Some(Duration::from_millis(500)));
        assert_eq!(report.outcome, RunOutcome::Aborted);
        wait_until("all is ended", || find_processes(mark).is_empty());
    }
}

#[test]
fn a_command_that_ends_well_may_say_so_when_it_is_asked_to() {
    for level in CONFINING_LEVELS {
        let test_host = host_with_timeout(level, "1");
        let said = run_line(
            &test_host,
            "trap 'echo tidied > tidied; exit 0' TERM; while :; do sleep 0.05; done",
        );
        assert!(said.starts_with("ending 2"), "{level}: {said}");
        assert!(
            test_host.workspace_dir().join("tidied").exists(),
            "{level}: it had no time to tidy up"
        );
    }
}

#[test]
fn r120_a_signal_ends_a_command_with_the_same_exit_code_at_every_level() {
    for level in CONFINING_LEVELS {
        for (line, code) in
            [("kill -9 $$", 128 + 9), ("exit 137", 137), ("kill -TERM $$", 128 + 15), ("exit 3", 3)]
        {
            let home = new_home(level);
            let input = serde_json::json!({"command": line}).to_string();
            let said = home.run(&["tools", "call", "bash", &input, "--mode", "auto"]);
            assert!(
                said.stdout.contains(&format!("exit code {code}")),
                "{level}: {line}: {said:?}"
            );
        }
    }
}

#[test]
fn r120_the_limit_of_the_user_ends_a_command_before_its_timeout() {
    for level in CONFINING_LEVELS {
        let home = new_home(level);
        home.write_file(
            "config/cofferdam/config.toml",
            format!("[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\nmax_seconds = 1\n"),
        );
        let call = |timeout: u32| {
            let input = serde_json::json!({"command": "sleep 30", "timeout": timeout}).to_string();
            let said = home.run(&["tools", "call", "bash", &input, "--mode", "auto"]);
            format!("{}{}", said.stdout, said.stderr)
        };
        let said = call(100);
        let told = "the command was killed at its time limit of 1 s (set by `max_seconds` under \
            [commands] in the configuration)";
        assert!(
            said.contains(told)
                && said.contains("killed by signal 9")
                && !said.contains("timed out"),
            "{level}: {said}"
        );
        let said = call(1);
        assert!(
            said.contains("timed out after 1 s") && !said.contains("max_seconds"),
            "its own timeout came first: {level}: {said}"
        );
    }
}

/// A user of the program whose commands run at this level.
fn new_home(level: SandboxLevel) -> TestHome {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    home.write_file(
        "config/cofferdam/config.toml",
        format!("[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\n"),
    );
    home
}

/// A user of the program whose commands write the workspace directly at every level, because the
/// state directory is on another file system.
struct DirectHome {
    home: TestHome,
    state: tempfile::TempDir,
}

impl DirectHome {
    fn new(level: SandboxLevel) -> Self {
        let state = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
        Self { home: new_home(level), state }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.env("XDG_STATE_HOME", self.state.path());
        command
    }

    fn run(&self, args: &[&str]) -> ProgramOutput {
        self.home.start(self.command(args)).wait_for_exit()
    }
}

#[test]
fn a_killed_host_leaves_no_process_and_no_change_of_protected_paths() {
    for (level, mark) in CONFINING_LEVELS.into_iter().zip(["86203.71", "86203.72"]) {
        let direct = DirectHome::new(level);
        let home = &direct.home;
        home.write_file("workspace/file.txt", "text\n");
        home.write_file("workspace/.env", "KEY=env-secret\n");
        let line = format!(
            "mkdir -p .vscode && echo evil > .vscode/tasks.json; touch ready; setsid sleep {mark} \
                & sleep {mark}"
        );
        let input = serde_json::json!({"command": line}).to_string();
        let mut host = direct.command(&["tools", "call", "bash", &input, "--mode", "auto"]);
        let mut host = host
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        wait_until("the command runs", || home.has_file("ready"));
        host.kill().expect("it is killed");
        host.wait().expect("it is dead");
        wait_until("no process is left", || find_processes(mark).is_empty());
        wait_until("the workspace is as it was", || !home.has_file(".vscode"));
        let names = std::fs::read_dir(home.workspace())
            .expect("it is listed")
            .flatten()
            .map(|entry| entry.file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, [".env", "file.txt", "ready"], "{level}: masks are left");
        assert_eq!(
            std::fs::read_to_string(home.workspace().join(".env")).expect("it is there"),
            "KEY=env-secret\n"
        );
    }
}

/// The processes of the program around a command of this host, outer ones first.
fn helpers(host: u32) -> Vec<u32> {
    let text = |pid: u32, name: &str| {
        std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default()
    };
    let all: Vec<u32> = std::fs::read_dir("/proc")
        .expect("it is listed")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    let parent = |pid: u32| {
        let stat = text(pid, "stat");
        stat.rsplit_once(')')
            .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1)?.parse::<u32>().ok())
    };
    let mut found = vec![host];
    loop {
        let more: Vec<u32> = all
            .iter()
            .copied()
            .filter(|pid| {
                !found.contains(pid) && parent(*pid).is_some_and(|outer| found.contains(&outer))
            })
            .collect();
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    // The first process of a command's namespace has a process ID in each of two namespaces. It
    // keeps the command line of the supervisor, whose child it is.
    let is_outside = |pid: u32| {
        let status = text(pid, "status");
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        ids.is_some_and(|ids| ids.split_ascii_whitespace().count() == 1)
    };
    found.retain(|pid| text(*pid, "cmdline").contains("supervise-command"));
    found.retain(|pid| is_outside(*pid));
    // Around the next command, a guard and a supervisor wait for its request. They have no command.
    let runs_command = |outer: u32| {
        let mut inner = vec![outer];
        while let Some(pid) = inner.pop() {
            if !text(pid, "cmdline").contains("supervise-command") {
                return true;
            }
            inner.extend(all.iter().copied().filter(|child| parent(*child) == Some(pid)));
        }
        false
    };
    found.retain(|pid| runs_command(*pid));
    found
}

/// The processes around a command that writes the workspace directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KilledHelpers {
    Supervisor,
    GuardAndSupervisor,
}

/// Kills a host with these helpers, all at once, while a command runs that plants something.
fn kill_all(direct: &DirectHome, mark: &str, killed: KilledHelpers) {
    let line = format!(
        "mkdir -p .vscode && echo evil > .vscode/tasks.json; echo evil > .git/hooks/pre-commit; \
            touch ready; setsid sleep {mark} & sleep {mark}"
    );
    let input = serde_json::json!({"command": line}).to_string();
    let mut host = direct.command(&["tools", "call", "bash", &input, "--mode", "auto"]);
    let mut host = host
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_until("the command runs", || direct.home.has_file("ready"));
    let helpers = helpers(host.id());
    let [guard, supervisor] = helpers[..] else { panic!("{helpers:?}") };
    let all = match killed {
        KilledHelpers::Supervisor => vec![host.id(), supervisor],
        KilledHelpers::GuardAndSupervisor => vec![host.id(), guard, supervisor],
    };
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert!(Command::new("kill").arg("-KILL").args(&all).status().expect("it starts").success());
    host.wait().expect("it is dead");
}

#[test]
fn a_host_and_a_supervisor_that_are_killed_leave_no_process_and_no_change_of_protected_paths() {
    for (level, mark) in CONFINING_LEVELS.into_iter().zip(["86204.71", "86204.72"]) {
        let direct = DirectHome::new(level);
        let home = &direct.home;
        home.write_file("workspace/.git/hooks/pre-commit", "mine");
        home.write_file("workspace/.env", "KEY=env-secret\n");
        kill_all(&direct, mark, KilledHelpers::Supervisor);
        wait_until("no process is left", || find_processes(mark).is_empty());
        wait_until("the workspace is as it was", || !home.has_file(".vscode"));
        let hook = || {
            std::fs::read_to_string(home.workspace().join(".git/hooks/pre-commit"))
                .unwrap_or_default()
        };
        wait_until("the hook is as it was", || hook() == "mine");
        assert_eq!(
            std::fs::read_to_string(home.workspace().join(".env")).expect("it is there"),
            "KEY=env-secret\n"
        );
        let ran =
            direct.run(&["tools", "call", "bash", r#"{"command":"echo next"}"#, "--mode", "auto"]);
        assert!(
            ran.stdout.contains("next")
                && ran.stderr.contains("an earlier command in this workspace was interrupted"),
            "{level}: {ran:?}"
        );
        let ran =
            direct.run(&["tools", "call", "bash", r#"{"command":"echo next"}"#, "--mode", "auto"]);
        assert!(
            !ran.stdout.contains("[sandbox]") && !ran.stderr.contains("was interrupted"),
            "{level}: {ran:?}"
        );
    }
}

#[test]
fn the_next_start_looks_after_a_command_whose_processes_around_it_were_all_killed() {
    for (level, mark) in CONFINING_LEVELS.into_iter().zip(["86205.71", "86205.72"]) {
        let direct = DirectHome::new(level);
        let home = &direct.home;
        home.write_file("workspace/.git/hooks/pre-commit", "mine");
        home.write_file("workspace/file.txt", "text\n");
        kill_all(&direct, mark, KilledHelpers::GuardAndSupervisor);
        assert!(home.has_file(".vscode"), "{level}: nobody is left to look after it");
        let ran = direct.run(&["tools", "call", "read_file", r#"{"path":"file.txt"}"#]);
        assert!(
            ran.stdout.contains("text")
                && ran.stderr.contains("an earlier command in this workspace was interrupted"),
            "{level}: {ran:?}"
        );
        assert!(find_processes(mark).is_empty(), "{level}: {ran:?}");
        assert!(!home.has_file(".vscode"), "{level}: {ran:?}");
        assert_eq!(
            std::fs::read_to_string(home.workspace().join(".git/hooks/pre-commit"))
                .expect("it is there"),
            "mine",
            "{level}"
        );
        let ran =
            direct.run(&["tools", "call", "bash", r#"{"command":"echo next"}"#, "--mode", "auto"]);
        assert!(
            ran.stdout.contains("next")
                && !ran.stdout.contains("[sandbox]")
                && !ran.stderr.contains("was interrupted"),
            "{level}: {ran:?}"
        );
    }
}

#[test]
fn a_killed_host_or_supervisor_of_a_private_view_leaves_no_process_and_no_change() {
    for (kills_supervisor, mark) in [(false, "86206.71"), (true, "86206.72")] {
        let home = new_home(SandboxLevel::Full)
            .with_file("file.txt", "text\n")
            .with_file(".git/hooks/pre-commit", "mine");
        let line = format!(
            "echo new > file.txt; mkdir -p new .vscode; echo evil > .vscode/tasks.json; setsid \
                sleep {mark} & sleep {mark}"
        );
        let input = serde_json::json!({"command": line}).to_string();
        let mut host = home.command(&["tools", "call", "bash", &input, "--mode", "auto"]);
        let host = host.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut host = host.spawn().expect("it starts");
        let is_asleep = |line: &String| *line == format!("sleep {mark} ");
        wait_until("the command runs", || {
            find_processes(mark).iter().filter(|line| is_asleep(line)).count() == 2
        });
        let killed: Vec<String> = std::iter::once(host.id())
            .chain(helpers(host.id()).into_iter().filter(|_| kills_supervisor))
            .map(|pid| pid.to_string())
            .collect();
        let status = Command::new("kill").arg("-KILL").args(&killed).status();
        assert!(status.expect("it starts").success());
        host.wait().expect("it is dead");
        wait_until("no process is left", || find_processes(mark).is_empty());
        let names = std::fs::read_dir(home.workspace()).expect("it is listed").flatten();
        let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        names.sort();
        assert_eq!(names, [".git", "file.txt"], "{kills_supervisor}");
        let text = |path: &str| std::fs::read_to_string(home.workspace().join(path));
        assert_eq!(text("file.txt").expect("it is there"), "text\n");
        assert_eq!(text(".git/hooks/pre-commit").expect("it is there"), "mine");
    }
}

#[test]
fn r095_a_flood_of_output_is_cut_while_it_comes() {
    for level in CONFINING_LEVELS {
        let input =
            serde_json::json!({"command": "echo first; yes | head -c 300000000; echo last"})
                .to_string();
        let said = new_home(level).run(&["tools", "call", "bash", &input, "--mode", "auto"]).stdout;
        assert!(
            said.contains("first") && said.contains("last") && said.contains("bytes omitted"),
            "{level}: {}",
            said.len()
        );
        assert!(said.len() < 1 << 20, "{level}: {}", said.len());
    }
}

#[test]
fn too_many_processes_end_the_command_and_say_so() {
    for level in CONFINING_LEVELS {
        let said = run_line(
            &new_host(level),
            "i=0; while [ $i -lt 280 ]; do sleep 20 & i=$((i+1)); done; wait; echo all of them",
        );
        assert!(!said.contains("all of them"), "{level}: {said}");
    }
}

#[test]
fn commands_do_not_see_the_files_of_others() {
    let name = format!("mine-{}", std::process::id());
    for level in CONFINING_LEVELS {
        let test_host = new_host(level);
        run_line(&test_host, &format!("echo secret > $TMPDIR/{name}"));
        assert!(!run_line(&test_host, "ls -a $TMPDIR").contains(&name), "{level}");
    }
    // The folders themselves are gone, soon after the result.
    let temporary = std::env::temp_dir();
    let find = || {
        Command::new("find")
            .args([temporary.to_str().expect("a path"), "-maxdepth", "3", "-name", &name])
            .output()
    };
    wait_until("nothing of it is left", || find().expect("it runs").stdout.is_empty());
}
