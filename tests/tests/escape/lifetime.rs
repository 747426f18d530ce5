//! Commands end, and all that they started with them: at their timeout, when they are cancelled, when there are too many of
//! them, and when the host is killed.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cofferdam::agent::ports::Ran;
use cofferdam::policy::{Capability, SandboxLevel};
use cofferdam_tests::guests::{Guest, Plan, commands};
use cofferdam_tests::program::{Home, processes_with, wait_until};

use super::{LEVELS, house, rules, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

fn house_with_timeout(level: SandboxLevel, seconds: &str) -> cofferdam_tests::guests::House {
    let guest = Guest::named("command").with("{{directory}}", "").with("{{timeout}}", seconds).asking(&[Capability::RunCommands]);
    Plan::default().guest(&guest).commands(Arc::new(commands(rules(level)))).build()
}

#[test]
fn r120_a_timeout_ends_what_ignores_signals_and_hides_in_another_session() {
    for (level, mark) in LEVELS.into_iter().zip(["86201.71", "86201.72"]) {
        let house = house_with_timeout(level, "1");
        let said = run(&house, &format!("trap '' TERM HUP INT; setsid sh -c \"trap '' TERM; sleep {mark}\" & sleep {mark}; sleep {mark}"));
        // 2 is `timed-out`.
        assert!(said.starts_with("ending 2"), "{level}: {said}");
        assert_eq!(processes_with(mark), Vec::<String>::new(), "{level}");
    }
}

#[test]
fn r101_cancelling_ends_a_command_within_a_second() {
    for (level, mark) in LEVELS.into_iter().zip(["86202.71", "86202.72"]) {
        let house = house_with_timeout(level, "100");
        run(&house, "true");
        let line = serde_json::json!({"line": format!("trap '' TERM; setsid sleep {mark} & sleep {mark}")}).to_string();
        let report = house.turn_cancelled(&[("command", &line)], Some(Duration::from_millis(500)));
        assert_eq!(report.ran, Ran::Aborted);
        wait_until("all is ended", || processes_with(mark).is_empty());
    }
}

#[test]
fn a_command_that_ends_well_may_say_so_when_it_is_asked_to() {
    for level in LEVELS {
        let house = house_with_timeout(level, "1");
        let said = run(&house, "trap 'echo tidied > tidied; exit 0' TERM; while :; do sleep 0.05; done");
        assert!(said.starts_with("ending 2"), "{level}: {said}");
        assert!(house.folder().join("tidied").exists(), "{level}: it had no time to tidy up");
    }
}

#[test]
fn r120_a_signal_ends_a_command_with_the_same_exit_code_at_every_level() {
    for level in LEVELS {
        for (line, code) in [("kill -9 $$", 128 + 9), ("exit 137", 137), ("kill -TERM $$", 128 + 15), ("exit 3", 3)] {
            let home = home(level);
            let input = serde_json::json!({"command": line}).to_string();
            let said = home.run(&["tools", "call", "bash", &input, "--mode", "auto"]);
            assert!(said.stdout.contains(&format!("exit code {code}")), "{level}: {line}: {said:?}");
        }
    }
}

#[test]
fn r120_the_limit_of_the_user_ends_a_command_before_its_timeout() {
    for level in LEVELS {
        let home = home(level);
        home.write("config/cofferdam/config.toml", format!("[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\nmax_seconds = 1\n"));
        let call = |timeout: u32| {
            let input = serde_json::json!({"command": "sleep 30", "timeout": timeout}).to_string();
            let said = home.run(&["tools", "call", "bash", &input, "--mode", "auto"]);
            format!("{}{}", said.stdout, said.stderr)
        };
        let said = call(100);
        let told = "the command was killed after 1 s, the limit of commands here (`max_seconds` under [commands] in the configuration)";
        assert!(said.contains(told) && said.contains("killed by signal 9") && !said.contains("timed out"), "{level}: {said}");
        let said = call(1);
        assert!(said.contains("timed out after 1 s") && !said.contains("max_seconds"), "its own timeout came first: {level}: {said}");
    }
}

/// A user of the program whose commands run at this level.
fn home(level: SandboxLevel) -> Home {
    let home = Home::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    home.write("config/cofferdam/config.toml", format!("[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\n"));
    home
}

#[test]
fn a_killed_host_leaves_no_process_and_no_change_of_protected_paths() {
    for (level, mark) in LEVELS.into_iter().zip(["86203.71", "86203.72"]) {
        let home = home(level).with("file.txt", "text\n").with(".env", "KEY=env-secret\n");
        let line = format!("mkdir -p .vscode && echo evil > .vscode/tasks.json; touch ready; setsid sleep {mark} & sleep {mark}");
        let input = serde_json::json!({"command": line}).to_string();
        let mut host = home.command(&["tools", "call", "bash", &input, "--mode", "auto"]);
        let mut host = host.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        wait_until("the command runs", || home.has("ready"));
        host.kill().expect("it is killed");
        host.wait().expect("it is dead");
        wait_until("no process is left", || processes_with(mark).is_empty());
        wait_until("the workspace is as it was", || !home.has(".vscode"));
        let names = std::fs::read_dir(home.workspace()).expect("it is listed").flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, [".env", "file.txt", "ready"], "{level}: masks are left");
        assert_eq!(std::fs::read_to_string(home.workspace().join(".env")).expect("it is there"), "KEY=env-secret\n");
    }
}

#[test]
fn r095_a_flood_of_output_is_cut_while_it_comes() {
    for level in LEVELS {
        let input = serde_json::json!({"command": "echo first; yes | head -c 300000000; echo last"}).to_string();
        let said = home(level).run(&["tools", "call", "bash", &input, "--mode", "auto"]).stdout;
        assert!(said.contains("first") && said.contains("last") && said.contains("bytes left out"), "{level}: {}", said.len());
        assert!(said.len() < 1 << 20, "{level}: {}", said.len());
    }
}

#[test]
fn too_many_processes_end_the_command_and_say_so() {
    for level in LEVELS {
        let said = run(&house(level), "i=0; while [ $i -lt 280 ]; do sleep 20 & i=$((i+1)); done; wait; echo all of them");
        assert!(!said.contains("all of them"), "{level}: {said}");
    }
}

#[test]
fn commands_do_not_see_the_files_of_others() {
    for level in LEVELS {
        let house = house(level);
        run(&house, "echo secret > $TMPDIR/mine");
        assert!(!run(&house, "ls -a $TMPDIR").contains("mine"), "{level}");
    }
    // The folders themselves are gone, soon after the result.
    let temporary = std::env::temp_dir();
    let find = || Command::new("find").args([temporary.to_str().expect("a path"), "-maxdepth", "3", "-name", "mine"]).output();
    wait_until("nothing of it is left", || find().expect("it runs").stdout.is_empty());
}
