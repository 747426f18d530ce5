//! Commands that cannot change the workspace, because a rule says so or because they only read.

use cofferdam::policy::SandboxLevel;
use cofferdam_tests::program::{ProgramOutput, TestHome, find_processes, wait_until};

use super::CONFINING_LEVELS;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// Each attempt on a line of its own, which says its number if it succeeds.
const ATTEMPTS: &str = "\
(echo x > new) 2>/dev/null && echo done-1
(echo x > file) 2>/dev/null && echo done-2
(echo x >> file) 2>/dev/null && echo done-3
rm -f file 2>/dev/null && echo done-4
mkdir d 2>/dev/null && echo done-5
mv file moved 2>/dev/null && echo done-6
ln file name 2>/dev/null && echo done-7
ln -s file name 2>/dev/null && echo done-8
mkfifo fifo 2>/dev/null && echo done-9
truncate -s 0 file 2>/dev/null && echo done-10
(echo x > .git/hooks/pre-commit) 2>/dev/null && echo done-11
echo x > $TMPDIR/x && cat $TMPDIR/x file
";
/// Landlock does not cover metadata.
const METADATA_ATTEMPTS: &str = "\
chmod 700 file 2>/dev/null && echo done-12
chmod 700 . 2>/dev/null && echo done-13
touch file 2>/dev/null && echo done-14
for at in .git .git/HEAD .git/hooks .hg .hg/store sub/.git sub/.git/HEAD .config; do
    chmod 700 $at 2>/dev/null && echo done-15 $at
    touch $at 2>/dev/null && echo done-16 $at
done
";

fn home(level: SandboxLevel) -> TestHome {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    let config = format!("[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\n");
    home.write_file("config/cofferdam/config.toml", config);
    home.with_file("file", "text\n").with_file(".git/hooks/sample", "")
}

fn home_with_rules(level: SandboxLevel) -> TestHome {
    let home = home(level);
    home.write_file(
        "config/cofferdam/policy.toml",
        "[commands]\nallow = [\n    { pattern = \"sh *\", writes = false },\n    { pattern = \
            \"sed *\", writes = true },\n]\n",
    );
    home
}

fn call(home: &TestHome, line: &str) -> ProgramOutput {
    let input = serde_json::json!({"command": line}).to_string();
    home.run(&["tools", "call", "bash", &input, "--mode", "auto"])
}

#[test]
fn a_rule_with_writes_false_makes_the_workspace_read_only() {
    for level in CONFINING_LEVELS {
        let home = home_with_rules(level);
        for path in [".git/HEAD", ".hg/hgrc", ".hg/store/data", "sub/.git/HEAD", ".config/x"] {
            home.write_file(&format!("workspace/{path}"), "");
        }
        let metadata = if level == SandboxLevel::Full { METADATA_ATTEMPTS } else { "" };
        home.write_file("workspace/probe.sh", format!("{ATTEMPTS}{metadata}exit 0"));
        let ran = call(&home, "sh probe.sh");
        assert_eq!((ran.exit_code, ran.stdout.as_str()), (0, "x\ntext\n"), "{level}: {ran:?}");
        assert!(!home.has_file("new") && !home.has_file(".git/hooks/pre-commit"), "{level}");
    }
}

/// Configured directories that commands write do not lead into a workspace that they only read.
#[test]
fn a_directory_that_commands_write_is_no_way_into_a_read_only_workspace() {
    for level in CONFINING_LEVELS {
        let home = home_with_rules(level);
        let at = home.path().canonicalize().expect("it exists");
        let at = at.to_str().expect("it is text");
        for path in ["workspace/kept/x", "w/x"] {
            home.write_file(path, "");
        }
        std::os::unix::fs::symlink(home.workspace().join("kept"), home.path().join("into"))
            .expect("a link");
        for (paths, attempts, expected) in [
            (vec!["w", "into"], "touch ~/into/x ~/into/new", "wrote\n"),
            (vec!["w", "workspace"], "touch ~/workspace/new", "wrote\n"),
        ] {
            let paths: Vec<String> = paths.iter().map(|path| format!("{at}/{path}")).collect();
            let config = format!(
                "[commands]\nminimum = \"{level}\"\nat_most = \"{level}\"\nwrite = {paths:?}\n"
            );
            home.write_file("config/cofferdam/config.toml", config);
            let attempts = attempts.replace('~', at);
            home.write_file(
                "workspace/probe.sh",
                format!(
                    "{attempts} 2>/dev/null && echo done; touch {at}/w/new && echo wrote; exit 0"
                ),
            );
            let ran = call(&home, "sh probe.sh");
            assert_eq!(ran.stdout, expected, "{level} {paths:?}: {ran:?}");
            assert!(!home.has_file("kept/new") && !home.has_file("new"), "{level} {paths:?}");
        }
    }
}

#[test]
fn the_result_of_a_command_that_tried_to_write_names_the_reason() {
    for level in CONFINING_LEVELS {
        let with_rules = home_with_rules(level);
        with_rules.write_file("workspace/fail.sh", "echo x > new");
        let said = |ran: ProgramOutput| ran.stdout + &ran.stderr;
        let text = said(call(&with_rules, "sh fail.sh"));
        let expected = "[sandbox] the workspace was read-only for this command, because the rule \
            `sh *` at ";
        assert!(text.contains(expected), "{level}: {text}");
        // The built-in list covers `sed`, and the user's rule lets it write.
        let text = said(call(&with_rules, "sed -n wcopy file"));
        assert!(with_rules.has_file("copy"), "{level}: {text}");
        let home = home(level);
        let text = said(call(&home, "sed -n wcopy file"));
        let expected = "because its programs are on the built-in list of programs that only read";
        assert!(text.contains(expected) && !home.has_file("copy"), "{level}: {text}");
        let text = said(call(&home, "ls missing"));
        assert!(!text.contains("read-only"), "{level}: it did not try to write: {text}");
    }
}

#[test]
fn readers_work_and_hidden_files_stay_hidden() {
    for level in CONFINING_LEVELS {
        let home = home(level).with_file(".env", "KEY=env-secret\n").with_file("src/a.rs", "a\n");
        let git = |arguments: &[&str]| {
            let ran = std::process::Command::new("git")
                .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
                .args(arguments)
                .current_dir(home.workspace())
                .output()
                .expect("git starts");
            assert!(ran.status.success(), "git {arguments:?}: {ran:?}");
        };
        git(&["init", "--quiet"]);
        git(&["add", "src"]);
        git(&["commit", "--quiet", "-m", "First"]);
        home.write_file("workspace/src/a.rs", "b\n");
        for (line, expected) in [
            ("git status --short", " M src/a.rs"),
            ("git --no-pager log --oneline | head -3", "First"),
            ("git diff -- src", "+b"),
            ("cd src && grep -n b a.rs", "1:b"),
            ("find . -name '*.rs' | sort", "./src/a.rs"),
            ("ls -a", "src"),
        ] {
            let ran = call(&home, line);
            let is_fine = ran.exit_code == 0 && !ran.stderr.contains("[sandbox]");
            assert!(is_fine && ran.stdout.contains(expected), "{level}: {line}: {ran:?}");
        }
        if level == SandboxLevel::Full {
            let ran = call(&home, "cat .env");
            assert!(!format!("{ran:?}").contains("env-secret"), "{ran:?}");
        }
    }
}

#[test]
fn a_reader_does_not_wait_for_a_command_that_writes_the_workspace_directly() {
    // With its state on another file system, commands have no private view.
    let state = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
    let home = home(SandboxLevel::Full);
    let command = |line: &str| {
        let input = serde_json::json!({"command": line}).to_string();
        let mut command = home.command(&["tools", "call", "bash", &input, "--mode", "auto"]);
        command.env("XDG_STATE_HOME", state.path());
        command
    };
    let writer = home.start(command("touch begun; sleep 86208.25"));
    wait_until("the writer runs", || home.has_file("begun"));
    let ran = home.start(command("cat file")).wait_for_exit();
    assert_eq!((ran.exit_code, ran.stdout.as_str()), (0, "text\n"), "{ran:?}");
    assert!(!find_processes("86208.25").is_empty(), "the writer still runs");
    drop(writer);
}
