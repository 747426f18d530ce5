//! Checkpoints of background commands: `/jobs commit` while the command goes on.

mod conflicts;
mod processes;
mod random_operations;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use cofferdam_tests::program::{TestHome, wait_until};
use cofferdam_tests::terminal::{TestTerminal, WindowSize};
use cofferdam_tests::wire::{ProviderServer, both_providers, call_reply, text_reply};
use serde_json::json;

use super::new_home;

/// The directory that shows a command which steps it may take.
const STEPS: &str = "steps";

/// A chat with one background command, which waits for the test before each step.
struct JobChat {
    home: TestHome,
    terminal: TestTerminal,
    _server: ProviderServer,
}

impl JobChat {
    /// Starts a shell script in the background. `step N` in it waits for [`Self::run_step`], and
    /// `did N` ends the step.
    fn start(home: TestHome, script: &str) -> Self {
        let functions = "step() { until ls steps | grep -qx \"$1\"; do sleep 0.02; done; }\n\
            did() { echo \"did $1\"; }\n";
        write(&home, "script.sh", format!("{functions}{script}"));
        Self::start_line(home, json!({"command": "exec sh script.sh", "background": true}))
    }

    fn start_line(home: TestHome, call: serde_json::Value) -> Self {
        write(&home, &format!("{STEPS}/0"), "");
        let [provider, _] = both_providers();
        let server = provider.serve([call_reply("bash", call), text_reply("Started.")]);
        let mut command = home.command(&[
            "chat",
            "--model",
            server.provider().model(),
            "--base-url",
            &server.base_url(),
            "--mode",
            "auto",
        ]);
        command.env(server.provider().key_variable(), server.key()).env("TERM", "dumb");
        let window = WindowSize { rows: 40, columns: 250 };
        let mut terminal = TestTerminal::start_with_size(&command, None, window);
        terminal.wait_for_output("\n› ");
        let mut chat = Self { home, terminal, _server: server };
        assert!(chat.ask("Go.").contains("Started."));
        chat
    }

    /// Types a line, and returns what is shown until the next prompt.
    #[track_caller]
    fn ask(&mut self, line: &str) -> String {
        self.terminal.type_keys(&format!("{line}\n"));
        self.terminal.wait_for_output(&format!("{line}\r\n"));
        let start = self.terminal.raw_output().rfind(&format!("{line}\r\n")).expect("it is shown");
        self.terminal.wait_for_output("\n› ");
        self.terminal.raw_output()[start..].replace('\r', "")
    }

    /// Lets the command take its next step, and waits until it has.
    #[track_caller]
    fn run_step(&mut self, number: usize) {
        write(&self.home, &format!("{STEPS}/{number}"), "");
        self.wait_for(&format!("did {number}\n"));
    }

    /// Waits until the last output of the command has this text.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            let shown = self.ask("/jobs 1");
            if shown.contains(text) {
                return;
            }
            assert!(shown.contains("): running after"), "{shown}");
            assert!(std::time::Instant::now() < until, "{text:?} is not in {shown}");
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
    }

    /// Commits, and returns the notices.
    #[track_caller]
    fn commit(&mut self) -> String {
        let shown = self.ask("/jobs commit 1");
        assert!(shown.contains("committed") || shown.contains("nothing to commit"), "{shown}");
        assert!(!shown.contains("cannot commit"), "{shown}");
        shown
    }

    /// Waits for the end of the command, and returns its notices.
    #[track_caller]
    fn wait_for_end(&mut self) -> String {
        let mut shown = String::new();
        for _ in 0..400 {
            shown = self.ask("/jobs 1");
            if !shown.contains("): running after") {
                return shown;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("it goes on: {shown}");
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.home.workspace().join(path)).expect(path)
    }

    fn leave(mut self) -> TestHome {
        self.terminal.type_keys("/quit\n");
        assert_eq!(self.terminal.wait_for_exit(), 0, "{}", self.terminal.raw_output());
        self.home
    }
}

/// Writes a file of the workspace.
fn write(home: &TestHome, path: &str, text: impl AsRef<[u8]>) {
    let path = home.workspace().join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("it is created");
    fs::write(path, text).expect("it is written");
}

/// Describes everything in a directory: kinds, permissions, contents, and files with several names.
fn describe_tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut first_names: BTreeMap<u64, String> = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    let mut all = Vec::new();
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).expect("it is listed").flatten() {
            let metadata = entry.path().symlink_metadata().expect("it exists");
            if metadata.is_dir() {
                pending.push(entry.path());
            }
            let path = entry.path().strip_prefix(root).expect("below").to_owned();
            all.push((path.to_string_lossy().into_owned(), metadata));
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    for (path, metadata) in all {
        if path.split('/').any(|part| [STEPS, "script.sh", "script.py"].contains(&part)) {
            continue;
        }
        let at = root.join(&path);
        let mode = metadata.permissions().mode() & 0o7777;
        let text = if metadata.is_dir() {
            format!("directory {mode:o}")
        } else if metadata.is_symlink() {
            format!("link to {}", fs::read_link(at).expect("it is read").display())
        } else if metadata.is_file() {
            let content = fs::read(at).expect("it is read");
            let content = String::from_utf8_lossy(&content).into_owned();
            let first = first_names.entry(metadata.ino()).or_insert_with(|| path.clone()).clone();
            // The number of names includes those in the undo history.
            format!("file {mode:o} {first}: {content:?}")
        } else {
            format!("special {mode:o}")
        };
        found.insert(path, text);
    }
    found
}

#[test]
fn a_server_goes_on_over_checkpoints_and_each_shows_what_it_has_written() {
    let home = new_home();
    let script = "i=0; trap 'echo end >> log; exit 3' TERM; mkdir out\n\
        while :; do i=$((i+1)); echo $i >> log; echo $i > out/last; sleep 0.02; done\n";
    let mut chat = JobChat::start(home, script);
    let mut lines = 0;
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let before = lines;
        chat.commit();
        let log = chat.text("log");
        let numbers: Vec<usize> = log.lines().map(|line| line.parse().expect(line)).collect();
        assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>());
        lines = numbers.len();
        assert!(lines > before, "it went on after the checkpoint before: {lines} {before}");
        // A program that is paused while it writes has written a part.
        let last = chat.text("out/last");
        let last = last.trim().parse().unwrap_or(lines);
        assert!(last + 1 >= lines && last <= lines, "{last} {lines}");
    }
    let end = chat.ask("/jobs stop 1");
    assert!(end.contains("stopped on request") && !end.contains("discarded"), "{end}");
    let log = chat.text("log");
    assert!(log.ends_with("end\n") && log.lines().count() > lines, "{log}");
    let diff = chat.ask("/diff");
    assert!(diff.contains("log") && diff.contains("out/last"), "{diff}");
    let home = chat.leave();
    let log = home.run(&["audit", "show", "--json"]).stdout;
    let kinds = |kind: &str| log.lines().filter(|line| line.contains(kind)).count();
    assert_eq!(kinds("\"background-checkpoint\""), 3, "{log}");
    assert_eq!(kinds("\"background-ended\""), 1, "{log}");
    let first = log.lines().find(|line| line.contains("\"background-checkpoint\"")).expect("one");
    assert!(first.contains("\"path\":\"log\"") && first.contains("\"ending\":null"), "{first}");
    assert_eq!(home.run(&["audit", "verify"]).exit_code, 0);
    let text = home.run(&["audit", "show"]).stdout;
    assert!(text.contains("checkpoint of a background command"), "{text}");
    // Each checkpoint is a change of its own, and all can be undone.
    for _ in 0..4 {
        let undone = home.run(&["undo"]);
        assert_eq!(undone.exit_code, 0, "{undone:?}");
    }
    assert!(!home.has_file("log") && !home.has_file("out"));
}

#[test]
fn directories_grow_and_shrink_over_checkpoints_as_in_the_command() {
    let home = new_home().with_file("old/kept", "kept\n").with_file("old/gone", "gone\n");
    let script = "step 1; mkdir -p new/sub old/inner; echo a > new/a; echo b > new/sub/b\n\
        echo c > old/inner/c; rm old/gone; ln -s a new/link; mkfifo new/fifo; did 1\n\
        step 2; echo more > new/more; echo aa >> new/a; rm -r new/sub; did 2\n\
        step 3; did 3\n\
        step 4; rm new/a; mkdir new/deep; echo d > new/deep/d; chmod 700 new; did 4\n\
        step 5; rm -r new; mkdir new; echo e > new/e; mv old/inner moved; did 5\n\
        step 6; echo last > new/last; rm -r old; did 6\n";
    let mut chat = JobChat::start(home, script);
    let expected = chat.home.path().join("expected");
    let has_file = |chat: &JobChat, path: &str| chat.home.has_file(path);
    chat.run_step(1);
    assert!(!has_file(&chat, "new"));
    let committed = chat.commit();
    assert!(committed.contains("3 changes were committed; the command continues"), "{committed}");
    let names = |chat: &JobChat, path: &str| {
        let entries = fs::read_dir(chat.home.workspace().join(path)).expect("it is listed");
        let mut names: Vec<String> =
            entries.flatten().map(|one| one.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(names(&chat, "new"), "a fifo link sub");
    assert_eq!(
        (names(&chat, "old"), chat.text("old/inner/c")),
        ("inner kept".into(), "c\n".into())
    );
    chat.run_step(2);
    assert_eq!(names(&chat, "new"), "a fifo link sub", "nothing is visible before a checkpoint");
    let committed = chat.commit();
    assert!(committed.contains("3 changes were committed"), "{committed}");
    assert_eq!(
        (names(&chat, "new"), chat.text("new/a")),
        ("a fifo link more".into(), "a\naa\n".into())
    );
    chat.run_step(3);
    assert!(chat.commit().contains("there was nothing to commit"));
    chat.run_step(4);
    chat.commit();
    assert_eq!(names(&chat, "new"), "deep fifo link more");
    let mode = chat.home.workspace().join("new").metadata().expect("it exists").mode();
    assert_eq!(mode & 0o7777, 0o700);
    chat.run_step(5);
    chat.commit();
    assert_eq!(names(&chat, "new"), "e");
    assert_eq!((names(&chat, "old"), chat.text("moved/c")), ("kept".into(), "c\n".into()));
    write(&chat.home, &format!("{STEPS}/6"), "");
    let end = chat.wait_for_end();
    assert!(end.contains("exit code 0") && !end.contains("discarded"), "{end}");
    assert_eq!(names(&chat, "new"), "e last");
    assert!(!has_file(&chat, "old") && !expected.exists());
    let layers = chat.home.path().join("state/cofferdam");
    let home = chat.leave();
    wait_until("no layer is left", || {
        let mut pending = vec![layers.clone()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with("layer-") {
                    return false;
                }
                if entry.path().is_dir() {
                    pending.push(entry.path());
                }
            }
        }
        true
    });
    drop(home);
}

#[test]
fn what_is_protected_or_needs_approval_is_never_committed_and_is_judged_again() {
    let home = new_home().with_file("kept", "");
    let script = "step 1; mkdir -p .git/hooks sub; echo x > .git/hooks/post-commit\n\
        echo x > AGENTS.md; echo x > sub/AGENTS.md; echo x > sub/file; did 1\n\
        step 2; test -e AGENTS.md && test -e sub/AGENTS.md && test ! -e .git/hooks/post-commit && \
            echo y > sub/file; did 2\n";
    let mut chat = JobChat::start(home, script);
    chat.run_step(1);
    for round in 0..2 {
        let shown = chat.commit();
        assert!(shown.contains("the changes of AGENTS.md, sub/AGENTS.md were not"), "{shown}");
        // This one is not in the view of the command any more, either.
        assert_eq!(shown.contains(".git/hooks/post-commit was created"), round == 0, "{shown}");
        assert!(!shown.contains("discarded"), "they stay in the view of the command: {shown}");
        assert_eq!(chat.text("sub/file"), "x\n");
        for path in [".git/hooks/post-commit", "AGENTS.md", "sub/AGENTS.md"] {
            assert!(!chat.home.has_file(path), "{path}");
        }
    }
    chat.run_step(2);
    let end = chat.wait_for_end();
    assert!(end.contains("AGENTS.md") && end.contains("discarded"), "{end}");
    assert_eq!(chat.text("sub/file"), "y\n", "the command still saw what was refused");
    for path in [".git/hooks/post-commit", "AGENTS.md", "sub/AGENTS.md"] {
        assert!(!chat.home.has_file(path), "{path}");
    }
    chat.leave();
}

#[test]
fn the_mode_plan_and_an_unknown_or_ended_command_allow_no_checkpoint() {
    let mut chat = JobChat::start(new_home(), "step 1; echo x > file; did 1; step 2; did 2\n");
    chat.run_step(1);
    chat.ask("/mode plan");
    let shown = chat.ask("/jobs commit 1");
    assert!(shown.contains("cannot commit") && shown.contains("mode `plan`"), "{shown}");
    assert!(!chat.home.has_file("file"));
    let shown = chat.ask("/jobs commit 2");
    assert!(shown.contains("no background command has the number 2"), "{shown}");
    chat.ask("/mode ask");
    chat.commit();
    assert!(chat.home.has_file("file"));
    chat.run_step(2);
    chat.wait_for_end();
    let shown = chat.ask("/jobs commit 1");
    assert!(shown.contains("cannot commit") && shown.contains("has ended"), "{shown}");
    chat.leave();
}

#[test]
fn repositories_are_whole_after_each_checkpoint() {
    let home = new_home().with_file("file", "0\n");
    let git = |home: &TestHome, directory: &str, args: &[&str]| {
        let output = std::process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
            .args(args)
            // Otherwise it would write the index, which the command changes, too.
            .env("GIT_OPTIONAL_LOCKS", "0")
            .current_dir(home.workspace().join(directory))
            .output()
            .expect("git runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for args in [&["init", "-q"][..], &["add", "file"], &["commit", "-qm", "0"]] {
        git(&home, "", args);
    }
    let script = "export PATH=/usr/bin:/bin\n\
        git() { command git -c user.name=a -c user.email=a@b -c gc.auto=0 \"$@\"; }\n\
        save() { echo $1 >> $2/file; git -C $2 add file; git -C $2 commit -qm $1; }\n\
        step 1; git init -q new; save 1 .; save 1 new; did 1\n\
        step 2; save 2 .; save 2 new; did 2\n\
        step 3; git -C new repack -qad; git repack -qad; save 3 .; save 3 new; did 3\n";
    let mut chat = JobChat::start(home, script);
    for number in 1..=3 {
        chat.run_step(number);
        if number == 3 {
            let end = chat.wait_for_end();
            assert!(end.contains("exit code 0") && !end.contains("discarded"), "{end}");
        } else {
            chat.commit();
        }
        for (directory, count) in [("", number + 1), ("new", number)] {
            let log = git(&chat.home, directory, &["log", "--oneline"]);
            assert_eq!(log.lines().count(), count, "{directory}: {log}");
            git(&chat.home, directory, &["fsck", "--strict"]);
            let changed = git(&chat.home, directory, &["status", "--short", "-uno"]);
            assert_eq!(changed, "", "{directory}");
        }
    }
    chat.leave();
}
