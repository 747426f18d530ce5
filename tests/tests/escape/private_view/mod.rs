//! Commands as transactions: a command changes a private view of the workspace, and its changes are
//! committed when it has ended.

mod approvals;
mod commits;
mod direct;
mod entries;
mod fallback;
mod hidden;
mod kills;
mod kinds;
mod limits;
mod parts;
mod quarantine;
mod removals;
mod review;
mod scripts;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use cofferdam::policy::SandboxLevel;
use cofferdam::sandbox::UndoOutcome;
use cofferdam_tests::guests::TestHost;

use super::{new_host, run_line};

/// A host whose commands have a private view of their workspace.
fn private_host() -> TestHost {
    let test_host = new_host(SandboxLevel::Full);
    let view = super::commands(super::rules_for_level(SandboxLevel::Full));
    view.private_view(test_host.workspace_dir()).expect("this machine has private views");
    test_host
}

/// Runs a line that has to succeed without a notice; what it said.
fn run_ok(test_host: &TestHost, line: &str) -> String {
    let said = run_line(test_host, &format!("set -e\n{line}"));
    assert!(said.starts_with("ending 0 code 0:"), "{line}: {said}");
    assert!(!said.contains("[sandbox]"), "{line}: {said}");
    said
}

/// Undoes the last change.
fn undo(test_host: &TestHost) {
    match test_host.history().undo(test_host.workspace(), false) {
        Ok(UndoOutcome::Change { remaining, .. }) if remaining.is_empty() => {}
        other => panic!("{other:?}"),
    }
}

/// Every entry of a directory: its kind, permissions and content.
fn describe_tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).expect("it is listed") {
            let path = entry.expect("it is listed").path();
            let name = path.strip_prefix(root).expect("it is below").to_string_lossy().into_owned();
            let metadata = path.symlink_metadata().expect("it is there");
            let mode = metadata.mode() & 0o7777;
            let kind = metadata.file_type();
            let text = if kind.is_dir() {
                pending.push(path);
                format!("directory {mode:o}")
            } else if kind.is_symlink() {
                format!("link to {}", fs::read_link(&path).expect("it is read").display())
            } else if kind.is_fifo() {
                format!("FIFO {mode:o}")
            } else if kind.is_socket() {
                format!("socket {mode:o}")
            } else {
                let content = fs::read(&path).expect("it is read");
                format!("file {mode:o} {:?}", String::from_utf8_lossy(&content))
            };
            found.insert(name, text);
        }
    }
    found
}

/// The differences between two trees.
fn differences(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let paths: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    paths
        .into_iter()
        .filter(|path| one.get(*path) != other.get(*path))
        .map(|path| format!("{path}: {:?} and {:?}", one.get(path), other.get(path)))
        .collect()
}
