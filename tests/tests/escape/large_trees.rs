//! More than anybody can look at: a crowd of files, a deep tree, a great many protected paths. What
//! was protected is put back first, nothing survives unseen, and the next command runs.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam::policy::{Capability, SandboxLevel};
use cofferdam_tests::guests::{TestGuest, TestHostBuilder, commands};
use cofferdam_tests::program::{TestHome, wait_until};

use super::{CONFINING_LEVELS, new_host, rules_for_level, run_line};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// More hard links than a workspace can have files, in the folder of the place.
fn hard_links_command(folder: &str) -> String {
    format!(
        "PATH=/usr/bin:/bin python3 -c 'import os\nos.makedirs(\"{folder}\", exist_ok=True)\nfor \
            n in range(21):\n s=\"{folder}/f%d\" % n; open(s, \"w\").close()\n \
         for i in range(50000): os.link(s, \"{folder}/%d-%d\" % (n, i))' && mkdir -p z/z/.vscode \
         && echo evil > z/z/.vscode/tasks.json && echo made"
    )
}

#[test]
fn a_crowd_hides_nothing_and_blocks_no_later_command() {
    // The one in a folder of its own is removed with it, and the one beside the user's files is
    // picked out.
    for (level, folder) in CONFINING_LEVELS.into_iter().zip([".", "a/b"]) {
        let guest = TestGuest::from_file("command")
            .with_replacement("{{directory}}", "")
            .with_replacement("{{timeout}}", "300")
            .with_requested(&[Capability::RunCommands]);
        let test_host = TestHostBuilder::default()
            .with_guest(&guest)
            .with_commands(Arc::new(commands(rules_for_level(level))))
            .build();
        test_host.write_file("mine/file", "mine");
        let said = run_line(&test_host, &hard_links_command(folder));
        assert!(said.contains("made") && said.contains("[sandbox]"), "{level}: {said}");
        assert!(!test_host.workspace_dir().join("z/z/.vscode").exists(), "{level}: {said}");
        let said = run_line(&test_host, "cat mine/file; echo runs");
        assert!(
            said.contains("mine") && said.contains("runs") && !said.contains("[sandbox]"),
            "{level}: {said}"
        );
    }
}

#[test]
fn a_folder_of_hooks_that_is_filled_is_put_back_as_it_was() {
    let test_host = new_host(SandboxLevel::Kernel);
    for path in [".git/HEAD", ".git/hooks/mine", ".git/hooks/sub/mine", ".git/config"] {
        test_host.write_file(path, "mine");
    }
    let said = run_line(
        &test_host,
        "cd .git/hooks; echo evil > mine; for i in $(seq 3000); do : > $i; done",
    );
    assert!(said.contains("was filled with too many files"), "{said}");
    for path in [".git/hooks/mine", ".git/hooks/sub/mine"] {
        assert_eq!(
            fs::read_to_string(test_host.workspace_dir().join(path)).expect("it is there"),
            "mine",
            "{said}"
        );
    }
    assert_eq!(
        fs::read_dir(test_host.workspace_dir().join(".git/hooks")).expect("it is there").count(),
        2,
        "{said}"
    );
}

#[test]
fn too_much_to_protect_is_not_left_to_the_next_command() {
    let deep = "/usr/bin/python3 -c 'import os\nfor n in range(15): os.mkdir(\"d\" * 255); \
        os.chdir(\"d\" * 255)\n\
        p=os.getcwd(); q=\"e\" * (4080 - len(p)); os.mkdir(q); os.chdir(q)\nopen(\"x.pem\", \
        \"w\").close()'";
    let many: [(&str, &str); 5] = [
        ("repositories", "for i in $(seq 700); do mkdir -p r$i/.git; : > r$i/.git/config; done"),
        (
            "repositories by their shape",
            "for i in $(seq 1200); do mkdir -p r$i/objects r$i/refs; echo ref: refs/heads/m > \
                r$i/HEAD; done",
        ),
        (
            "secrets in folders of their own",
            "for i in $(seq 300); do mkdir -p $i/a/b/c/d/e/f; : > $i/a/b/c/d/e/f/x.pem; done",
        ),
        (
            "secrets with long names",
            "p=$(printf 'n%.0s' $(seq 250)); for i in $(seq 200); do \
                d=$i$p/$p/$p/$p/$p/$p/$p/$p/$p; mkdir -p $d; : > $d/x.pem; done",
        ),
        ("a secret at the end of the longest path", deep),
    ];
    for level in CONFINING_LEVELS {
        for (name, line) in many {
            let test_host = new_host(level);
            let said = run_line(&test_host, line);
            assert!(said.contains("[sandbox]"), "{level}: {name}: {said}");
            let said = run_line(&test_host, "echo runs");
            assert!(said.contains("runs"), "{level}: {name}: {said}");
        }
    }
}

#[test]
fn a_tree_that_several_commands_moved_together_too_deep_is_set_aside() {
    let make = |name: &str| {
        format!(
            "PATH=/usr/bin:/bin python3 -c 'import os\nos.mkdir(\"{name}\"); \
                os.chdir(\"{name}\")\nfor n in range(12): os.mkdir(\"d\" * 250); os.chdir(\"d\" * \
                250)'"
        )
    };
    let join = "PATH=/usr/bin:/bin python3 -c 'import os\nw=os.getcwd()\ndef down(n):\n for i in \
        range(n): os.chdir(\"d\" * 250)\n\
        os.chdir(\"one\"); down(12); os.rename(w + \"/two\", \"two\"); os.chdir(\"two\"); \
        down(12)\n\
        os.rename(w + \"/three\", \"three\"); os.chdir(\"three\"); down(12)\n\
        os.mkdir(\".vscode\"); open(\".vscode/tasks.json\", \"w\").close(); print(\"joined\")'";
    let other_disk = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
    for level in CONFINING_LEVELS {
        for is_on_other_disk in [false, true] {
            // In a private view, old directories cannot be renamed.
            if level == SandboxLevel::Full && !is_on_other_disk {
                continue;
            }
            let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
            home.write_file(
                "config/cofferdam/config.toml",
                format!("[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\n"),
            );
            let call = |line: &str| {
                let input = serde_json::json!({"command": line}).to_string();
                let mut command =
                    home.command(&["tools", "call", "bash", &input, "--mode", "auto"]);
                if is_on_other_disk {
                    command.env("XDG_STATE_HOME", other_disk.path());
                }
                home.start(command).wait_for_exit()
            };
            for name in ["one", "two", "three"] {
                let ran = call(&make(name));
                assert!(!ran.stdout.contains("[sandbox]"), "{level}: {ran:?}");
            }
            let ran = call(join);
            assert!(
                ran.stdout.contains("joined")
                    && ran.stdout.contains("too deep to be searched; it was "),
                "{level}: {ran:?}"
            );
            assert!(!ran.stdout.contains("COULD NOT"), "{level}: {ran:?}");
            let mut find = std::process::Command::new("find");
            let found = find
                .args([".", "-name", ".vscode"])
                .current_dir(home.workspace())
                .output()
                .expect("it runs")
                .stdout;
            assert_eq!(String::from_utf8_lossy(&found), "", "{level}: {ran:?}");
            let ran = call("echo runs");
            assert!(
                ran.stdout.contains("runs") && !ran.stdout.contains("[sandbox]"),
                "{level}: {ran:?}"
            );
        }
    }
}

/// Changes to a folder and makes a deep one in it, as no shell can.
fn deep_tree_command(folder: &str, levels: usize) -> String {
    format!(
        "PATH=/usr/bin:/bin python3 -c 'import os\nos.makedirs(\"{folder}\"); \
            os.chdir(\"{folder}\")\nfor n in range({levels}): os.mkdir(\"d\"); \
            os.chdir(\"d\")\nos.mkdir(\".vscode\"); print(\"as deep as can be\")'"
    )
}

#[test]
fn a_deep_tree_on_another_disk_delays_nothing() {
    let other_disk = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
    for level in CONFINING_LEVELS {
        let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"))
            .with_file(".git/hooks/pre-commit", "mine")
            .with_file(".git/HEAD", "");
        home.write_file(
            "config/cofferdam/config.toml",
            format!("[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\n"),
        );
        let call = |line: &str| {
            let input = serde_json::json!({"command": line}).to_string();
            let mut command = home.command(&["tools", "call", "bash", &input, "--mode", "auto"]);
            command.env("XDG_STATE_HOME", other_disk.path());
            home.start(command).wait_for_exit()
        };
        let line = format!(
            "{}; {}; echo evil > .git/hooks/pre-commit; echo made",
            deep_tree_command(".idea", 2000),
            deep_tree_command("b", 2500)
        );
        let begun = Instant::now();
        let ran = call(&line);
        assert!(
            begun.elapsed() < Duration::from_secs(45),
            "{level}: {:?}: {ran:?}",
            begun.elapsed()
        );
        assert!(
            ran.stdout.contains("made") && ran.stdout.contains("[sandbox]"),
            "{level}: {ran:?}"
        );
        assert_eq!(
            fs::read_to_string(home.workspace().join(".git/hooks/pre-commit"))
                .expect("it is there"),
            "mine",
            "{level}"
        );
        for gone in [".idea", "b"] {
            assert!(!home.has_file(gone), "{level}: {gone}: {ran:?}");
        }
        let ran = call("echo runs");
        assert!(ran.stdout.contains("runs"), "{level}: {ran:?}");
    }
}

#[test]
fn a_temporary_folder_of_any_depth_is_removed() {
    let temporary = tempfile::tempdir().expect("a folder");
    for level in CONFINING_LEVELS {
        let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
        home.write_file(
            "config/cofferdam/config.toml",
            format!("[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\n"),
        );
        let line = deep_tree_command("$TMPDIR/deep", 3000)
            .replace("\"$TMPDIR/deep\"", "os.environ[\"TMPDIR\"] + \"/deep\"");
        let input = serde_json::json!({"command": line}).to_string();
        let mut command = home.command(&["tools", "call", "bash", &input, "--mode", "auto"]);
        command.env("TMPDIR", temporary.path());
        let ran = home.start(command).wait_for_exit();
        assert!(ran.exit_code == 0 && ran.stdout.contains("as deep as can be"), "{level}: {ran:?}");
        let names = || fs::read_dir(temporary.path()).expect("it is listed").count();
        wait_until("all of it is removed", || names() == 0);
    }
}
