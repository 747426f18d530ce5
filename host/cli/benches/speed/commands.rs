//! Benchmarks of the command sandbox: each kind of command against the same command without a
//! sandbox.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cofferdam::policy::SandboxLevel;
use cofferdam::sandbox::InstanceAllocation;
use tokio::runtime::Runtime;

use crate::calls::Bench;
use crate::daily;
use crate::folders;
use crate::measure::{self, Line};

/// The files of the large tree, in directories of 100.
const TREE_FILES: usize = 100_000;
/// The files that a command creates in one new directory.
const NEW_FILES: usize = 10_000;

/// A part of the benchmark, with its name.
type BenchPart = (&'static str, fn(&Runtime));

/// Runs the parts with these names, or all if none is selected.
pub(crate) fn run(runtime: &Runtime, is_selected: &dyn Fn(&str) -> bool) {
    let parts: [BenchPart; 5] = [
        ("start", start),
        ("files", new_files),
        ("build", build),
        ("tree", tree),
        ("daily", daily::run),
    ];
    let has_selection = parts.iter().any(|(name, _)| is_selected(name));
    for (_, part) in parts.iter().filter(|(name, _)| !has_selection || is_selected(name)) {
        part(runtime);
    }
}

/// The time between two commands of an agent. A model takes longer for its next response, and the
/// host uses the time to prepare the next sandbox.
const AGENT_PAUSE: Duration = Duration::from_millis(50);

/// The shortest commands. `true` is on the list of programs that only read; `:` is not.
fn start(runtime: &Runtime) {
    let directory = tempfile::tempdir().expect("a folder");
    for (pause, when) in [(AGENT_PAUSE, "after a pause"), (Duration::ZERO, "at once")] {
        for (level, line, target) in [
            (SandboxLevel::None, "true", ""),
            (SandboxLevel::Kernel, "true", "≤ 3 ms"),
            (SandboxLevel::Full, "true", "≤ 8 ms"),
            (SandboxLevel::Full, ":", "≤ 8 ms"),
        ] {
            let bench = bench(level, directory.path());
            let name = format!("`{line}`, {level}, {when}");
            let ours = || call(&bench, runtime, line);
            measure::against_after(pause, &Line { name: &name, target }, 30, ours, || {
                native(directory.path(), line)
            });
        }
    }
}

fn new_files(runtime: &Runtime) {
    let [ours, theirs] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let bench = bench(SandboxLevel::Full, ours.path());
    let line = format!("rm -rf new; mkdir new; cd new; seq {NEW_FILES} | xargs touch");
    let name = format!("{NEW_FILES} new files, committed");
    measure::against(
        &Line { name: &name, target: "" },
        5,
        || call(&bench, runtime, &line),
        || native(theirs.path(), &line),
    );
}

/// A small project of five crates, built from nothing and after a change.
fn build(runtime: &Runtime) {
    let [ours, theirs] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    for directory in [&ours, &theirs] {
        daily::grow_packages(directory.path());
    }
    let bench = bench(SandboxLevel::Full, ours.path());
    for (name, target, line) in [
        ("cargo build of five crates, from nothing", "≤ 1.1×", "rm -rf target"),
        ("cargo build of five crates, one changed", "", "touch one/src/lib.rs"),
    ] {
        let line = format!("cd rust; {line}; cargo build --offline --quiet");
        measure::against(
            &Line { name, target },
            5,
            || call(&bench, runtime, &line),
            || native(theirs.path(), &line),
        );
    }
}

/// `git status` in a large tree, in a read-only workspace and in a private view.
fn tree(runtime: &Runtime) {
    let directory = tempfile::tempdir().expect("a folder");
    for number in 0..TREE_FILES / 100 {
        let below = directory.path().join(format!("d{}/e{number}", number / 50));
        fs::create_dir_all(&below).expect("it is made");
        for file in 0..100 {
            fs::write(below.join(format!("f{file}")), "text\n").expect("it is written");
        }
    }
    native(
        directory.path(),
        "git init --quiet; git add .; git -c user.name=A -c user.email=a@example.org commit \
            --quiet -m First; sleep 1; git status",
    );
    let bench = bench(SandboxLevel::Full, directory.path());
    for (line, view) in [("git status", "read-only"), ("git status; :", "private view")] {
        let name = format!("git status, {TREE_FILES} files, {view}");
        let ours = || call(&bench, runtime, line);
        measure::against(&Line { name: &name, target: "" }, 5, ours, || {
            native(directory.path(), line);
        });
    }
}

pub(crate) fn bench(level: SandboxLevel, directory: &Path) -> Bench {
    Bench::new(InstanceAllocation::Pooled, directory).with_commands(folders::commands(level))
}

pub(crate) fn call(bench: &Bench, runtime: &Runtime, line: &str) {
    let input = serde_json::json!({"command": line}).to_string();
    let said = bench.call(runtime, "bash", &input);
    assert!(!said.contains("exit code") && !said.contains("[sandbox]"), "{line}: {said}");
}

pub(crate) fn native(directory: &Path, line: &str) {
    let ran = Command::new("sh").args(["-c", line]).current_dir(directory).output();
    assert!(ran.expect("it starts").status.success(), "{line}");
}
