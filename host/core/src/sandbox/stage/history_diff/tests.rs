//! Differences after one and several changes.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;

use super::*;
use crate::sandbox::stage::{MoveAction, MovePlan, PlannedMove, commit_moves};
use crate::sandbox::test_environment::open_workspace;
use cofferdam_confine::view::SeenEntry;

/// A workspace with a history, on one file system.
struct DiffTest {
    directory: tempfile::TempDir,
    workspace: Workspace,
    history: UndoHistory,
}

impl DiffTest {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        let work = directory.path().join("work");
        fs::create_dir(&work).expect("create a directory");
        let workspace = open_workspace(&work);
        let history = UndoHistory::for_workspace(&directory.path().join("undo"), &workspace);
        let test = Self { directory, workspace, history };
        test.write("work/file", "one\ntwo\n");
        test.write("work/gone", "gone\n");
        test.write("work/tree/a/b", "deep\n");
        test.write("work/tree/c", "c\n");
        symlink("file", test.path("work/link")).expect("create a link");
        test
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("create the directory");
        fs::write(path, text).expect("write the file");
    }

    /// Commits moves. A new file of `Create` and `Replace` is named by its path in the layer.
    fn commit(&self, moves: Vec<(&str, MoveAction)>) {
        let probe = tempfile::NamedTempFile::new_in(self.directory.path()).expect("create a file");
        let metadata = probe.path().metadata().expect("read the metadata");
        let since = (metadata.ctime(), metadata.ctime_nsec());
        let moves = moves
            .into_iter()
            .map(|(path, action)| PlannedMove {
                path: path.to_owned(),
                action,
                seen: SeenEntry::AtStart,
            })
            .collect();
        let plan = MovePlan { moves, since };
        commit_moves(&self.workspace, plan, "bash", &self.history).expect("committed");
    }

    fn new_entry(&self, name: &str, text: &str) -> PathBuf {
        self.write(&format!("layer/{name}"), text);
        self.path("layer").join(name.split('/').next().unwrap_or_default())
    }

    /// Returns the differences, one line for each path, with the changed lines of its diff.
    fn differences(&self, count: usize) -> String {
        let diff = self.history.diff(&self.workspace, DiffScope::Newest(count)).expect("compared");
        assert!(diff.is_complete);
        let describe = |change: &crate::policy::FileChange| {
            let lines = change.diff.iter().flat_map(|diff| diff.lines());
            let changed = lines.filter(|line| {
                line.starts_with(['+', '-', 'o', 'n'])
                    && !line.starts_with("+++")
                    && !line.starts_with("---")
            });
            let changed: Vec<&str> = changed.collect();
            format!("{change}: {}\n", changed.join(" "))
        };
        diff.changes.iter().map(describe).collect()
    }
}

#[test]
fn each_kind_of_change_is_a_difference() {
    let test = DiffTest::new();
    let (new, out) = (test.new_entry("0", "one\n2\n"), test.new_entry("1/x", "x\n"));
    let flat = test.new_entry("2", "flat\n");
    symlink("elsewhere", test.path("layer/3")).expect("create a link");
    fs::set_permissions(test.path("work/tree"), fs::Permissions::from_mode(0o755)).expect("set");
    test.commit(vec![
        ("file", MoveAction::Replace { from: new }),
        ("gone", MoveAction::Remove),
        ("link", MoveAction::Replace { from: test.path("layer/3") }),
        ("out", MoveAction::Create { from: out }),
        ("tree", MoveAction::SetMode { mode: 0o750 }),
        ("tree/a", MoveAction::Replace { from: flat }),
    ]);
    insta::assert_snapshot!(test.differences(1), @r"
    change file (8 → 6 bytes): -two +2
    delete gone (5 bytes): -gone
    make link a symbolic link to elsewhere: 
    create the directory out: 
    create out/x (2 bytes): +x
    set permissions of tree (0755 → 0750): 
    remove the directory tree/a: 
    create tree/a (5 bytes): +flat
    delete tree/a/b (5 bytes): -deep
    ");
    assert_eq!(test.differences(0), "");
}

#[test]
fn several_changes_are_one_difference() {
    let test = DiffTest::new();
    let (mid, out) = (test.new_entry("0", "one\nmid\n"), test.new_entry("1/x", "x\n"));
    let deep = test.new_entry("2", "deeper\n");
    test.commit(vec![
        ("file", MoveAction::Replace { from: mid }),
        ("out", MoveAction::Create { from: out }),
        ("tree/a/b", MoveAction::Replace { from: deep }),
    ]);
    let (last, more) = (test.new_entry("0", "one\n2\n"), test.new_entry("1", "y\n"));
    test.commit(vec![
        ("file", MoveAction::Replace { from: last }),
        ("out/y", MoveAction::Create { from: more }),
        ("tree", MoveAction::Remove),
    ]);
    insta::assert_snapshot!(test.differences(1), @r"
    change file (8 → 6 bytes): -mid +2
    create out/y (2 bytes): +y
    remove the directory tree: 
    remove the directory tree/a: 
    delete tree/a/b (7 bytes): -deeper
    delete tree/c (2 bytes): -c
    ");
    insta::assert_snapshot!(test.differences(9), @r"
    change file (8 → 6 bytes): -two +2
    create the directory out: 
    create out/x (2 bytes): +x
    create out/y (2 bytes): +y
    remove the directory tree: 
    remove the directory tree/a: 
    delete tree/a/b (5 bytes): -deep
    delete tree/c (2 bytes): -c
    ");
    // What was written back is no difference.
    test.write("work/file", "one\ntwo\n");
    assert!(!test.differences(2).contains("file"), "{}", test.differences(2));
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    let none = test.history.diff(&test.workspace, DiffScope::Since(later)).expect("compared");
    assert!(none.entries.is_empty() && none.changes.is_empty());
}

#[test]
fn a_large_directory_does_not_hide_other_changes() {
    let test = DiffTest::new();
    for number in 0..300 {
        test.write(&format!("layer/0/f{number:03}"), "x\n");
    }
    let zed = test.new_entry("1", "z\n");
    test.commit(vec![
        ("large", MoveAction::Create { from: test.path("layer/0") }),
        ("zed", MoveAction::Create { from: zed }),
    ]);
    let diff = test.history.diff(&test.workspace, DiffScope::Newest(1)).expect("compared");
    assert!(!diff.is_complete);
    let paths: Vec<&str> = diff.changes.paths().map(|path| path.as_str()).collect();
    assert_eq!((paths.len(), paths.last()), (201, Some(&"zed")), "{paths:?}");
}

#[test]
fn a_link_in_an_old_or_new_directory_is_not_followed() {
    let test = DiffTest::new();
    test.write("outside/secret", "secret\n");
    symlink("../../outside", test.path("work/tree/way")).expect("create a link");
    let out = test.new_entry("0/x", "x\n");
    symlink("/", test.path("layer/0/root")).expect("create a link");
    test.commit(vec![("tree", MoveAction::Replace { from: out })]);
    let shown = test.differences(1);
    assert!(!shown.contains("secret"), "{shown}");
    assert!(shown.contains("remove the symbolic link tree/way"), "{shown}");
    assert!(shown.contains("make tree/root a symbolic link to /"), "{shown}");
}
