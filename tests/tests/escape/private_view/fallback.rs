//! Private views that cannot be mounted although the machine has them.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cofferdam::policy::{CommandRules, SandboxLevel};
use cofferdam::tools::ApprovalAnswer;
use cofferdam_tests::guests::{ScriptedApprover, TestHost};

use crate::{commands, host_builder_with, rules_for_level, run_line};

/// Removes a part of each new layer until the value is dropped, so that no overlay can be mounted.
struct LayerBreaker {
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl LayerBreaker {
    fn start(layers: &Path) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (layers, ended) = (layers.to_owned(), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                for entry in fs::read_dir(&layers).into_iter().flatten().flatten() {
                    if entry.file_name().to_string_lossy().starts_with("layer-") {
                        let _ = fs::remove_dir(entry.path().join("work"));
                    }
                }
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for LayerBreaker {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// A host whose private views pass the self-test, and cannot be mounted afterwards.
fn broken_host(
    rules: CommandRules,
    approver: Option<&Arc<ScriptedApprover>>,
) -> (TestHost, LayerBreaker, tempfile::TempDir) {
    // On the file system of the workspace, which is a temporary directory.
    let state = tempfile::tempdir().expect("a directory");
    let layers = state.path().join("layers");
    let sandbox = commands(rules).with_layers(Some(layers.clone()));
    let builder = host_builder_with({
        let probe = tempfile::tempdir().expect("a directory");
        sandbox.private_view(probe.path()).expect("this machine has private views");
        sandbox
    });
    let test_host = match approver {
        Some(approver) => builder.with_approver(approver).build(),
        None => builder.build(),
    };
    (test_host, LayerBreaker::start(&layers), state)
}

#[test]
fn a_command_whose_view_cannot_be_mounted_is_checked_as_one_without() {
    let (test_host, _breaker, _state) = broken_host(rules_for_level(SandboxLevel::Full), None);
    test_host.write_file("AGENTS.md", "be kind\n");
    let line = "echo obey > AGENTS.md; echo x > file; mkdir .vscode; echo x > .vscode/tasks.json";
    let said = run_line(&test_host, line);
    assert!(said.contains("the command wrote the workspace directly: "), "{said}");
    assert!(said.contains("the command changed AGENTS.md, one of the files"), "{said}");
    let root = test_host.workspace_dir();
    assert!(root.join("file").exists(), "{said}");
    assert!(!root.join(".vscode/tasks.json").exists(), "{said}");
    assert!(test_host.history().list().expect("it is listed").is_empty());
}

#[test]
fn a_command_that_must_be_reviewed_does_not_run_without_its_view() {
    let rules = CommandRules { review_changes: true, ..rules_for_level(SandboxLevel::Full) };
    let approver = Arc::new(ScriptedApprover::with_answers([ApprovalAnswer::Yes]));
    let (test_host, _breaker, _state) = broken_host(rules, Some(&approver));
    let said = run_line(&test_host, "echo x > file");
    assert!(said.contains("`review_changes`") && said.contains("private view"), "{said}");
    assert!(!test_host.workspace_dir().join("file").exists());
}
