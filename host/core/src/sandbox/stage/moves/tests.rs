//! Commits, undo, and everything that interrupts them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::*;
use crate::sandbox::stage::{HistoryError, UndoOutcome};
use crate::sandbox::test_environment::open_workspace;

thread_local! {
    /// The number of steps until the process "crashes"; `None` for never.
    static STEPS_LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// What somebody else does after the first step of a commit.
type MeanwhileAction = Box<dyn FnOnce()>;

thread_local! {
    static MEANWHILE: RefCell<Option<MeanwhileAction>> = const { RefCell::new(None) };
}

/// Called after each step. A panic leaves everything as it is, as a crash does.
pub(super) fn interrupt_here() {
    if let Some(action) = MEANWHILE.with(|action| action.borrow_mut().take()) {
        action();
    }
    STEPS_LEFT.with(|left| match left.get() {
        Some(0) => {
            left.set(None);
            panic!("interrupted");
        }
        Some(steps) => left.set(Some(steps - 1)),
        None => {}
    });
}

/// A path, and what somebody else does to it.
type PathChange = (&'static str, fn(&MoveTest));

/// A workspace with a history and a layer, all on one file system.
struct MoveTest {
    directory: tempfile::TempDir,
    workspace: Workspace,
    history: UndoHistory,
}

impl MoveTest {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        for name in ["work", "layer"] {
            fs::create_dir(directory.path().join(name)).expect("create a directory");
        }
        let workspace = open_workspace(&directory.path().join("work"));
        let history = UndoHistory::for_workspace(&directory.path().join("undo"), &workspace);
        let test = Self { directory, workspace, history };
        test.write("work/file", "old");
        test.write("work/gone", "gone");
        test.write("work/d/inner", "inner");
        test.write("work/tree/a/b", "deep");
        symlink("file", test.path("work/link")).expect("create a link");
        test
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.directory.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("create the directory");
        fs::write(path, text).expect("write the file");
    }

    /// A plan with one move of each kind.
    fn plan(&self) -> MovePlan {
        for (name, text) in [("0", "new"), ("1/inner/x", "x"), ("2", "was a directory")] {
            self.write(&format!("layer/{name}"), text);
        }
        symlink("elsewhere", self.path("layer/3")).expect("create a link");
        let from = |name: &str| self.path("layer").join(name);
        let moves = [
            ("d", MoveAction::SetMode { mode: 0o750 }),
            ("d/new", MoveAction::Create { from: from("1") }),
            ("file", MoveAction::Replace { from: from("0") }),
            ("gone", MoveAction::Remove),
            ("link", MoveAction::Replace { from: from("3") }),
            ("tree", MoveAction::Replace { from: from("2") }),
        ];
        let moves = moves.map(|(path, action)| PlannedMove {
            path: path.to_owned(),
            action,
            seen: SeenEntry::AtStart,
        });
        MovePlan { moves: moves.into(), since: self.now() }
    }

    /// The clock of the file system.
    fn now(&self) -> (i64, i64) {
        let file = tempfile::NamedTempFile::new_in(self.directory.path()).expect("create a file");
        let metadata = file.path().metadata().expect("read the metadata");
        (metadata.ctime(), metadata.ctime_nsec())
    }

    fn commit(&self, plan: MovePlan) -> Result<CommitUndo, CommitError> {
        commit_moves(&self.workspace, plan, "bash", &self.history)
    }

    fn undo(&self, force: bool) -> Result<UndoOutcome, HistoryError> {
        self.history.undo(&self.workspace, force)
    }

    fn tree(&self) -> BTreeMap<String, String> {
        describe(self.workspace.root())
    }

    fn expected(&self) -> BTreeMap<String, String> {
        let mut tree = self.tree();
        tree.insert("d".into(), "directory 750".into());
        for (path, text) in [
            ("d/new", "directory 755"),
            ("d/new/inner", "directory 755"),
            ("d/new/inner/x", "644 x"),
            ("file", "644 new"),
            ("link", "link elsewhere"),
            ("tree", "644 was a directory"),
        ] {
            tree.insert(path.into(), text.into());
        }
        for path in ["gone", "tree/a", "tree/a/b"] {
            tree.remove(path);
        }
        tree
    }
}

fn describe(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).expect("list the directory").flatten() {
            let path = entry.path();
            let metadata = path.symlink_metadata().expect("read the metadata");
            let mode = metadata.mode() & 0o7777;
            let text = if metadata.is_dir() {
                format!("directory {mode:o}")
            } else if metadata.is_symlink() {
                format!("link {}", fs::read_link(&path).expect("read the link").display())
            } else {
                format!("{mode:o} {}", fs::read_to_string(&path).expect("read the file"))
            };
            let name = path.strip_prefix(root).expect("it is below").to_string_lossy();
            found.insert(name.into_owned(), text);
            if metadata.is_dir() {
                pending.push(path);
            }
        }
    }
    found
}

#[test]
fn each_kind_of_move_is_committed_and_undone() {
    let test = MoveTest::new();
    let (before, expected) = (test.tree(), test.expected());
    assert_eq!(test.commit(test.plan()).expect("it is committed"), CommitUndo::Possible);
    assert_eq!(test.tree(), expected);
    let entry = test.history.list().expect("it is listed").pop().expect("one change");
    assert_eq!(entry.paths, ["d", "d/new", "file", "gone", "link", "tree"]);
    assert_eq!(entry.tool, "bash");
    let undone = test.undo(false).expect("it is undone");
    assert!(matches!(undone, UndoOutcome::Change { .. }), "{undone:?}");
    assert_eq!(test.tree(), before);
    assert!(matches!(test.undo(false), Err(HistoryError::Empty)));
}

#[test]
fn a_crash_at_any_step_of_a_commit_leaves_the_old_tree() {
    for steps in 0..20 {
        let test = MoveTest::new();
        let (before, expected) = (test.tree(), test.expected());
        let plan = test.plan();
        STEPS_LEFT.with(|left| left.set(Some(steps)));
        let ended = catch_unwind(AssertUnwindSafe(|| test.commit(plan)));
        let was_interrupted = STEPS_LEFT.with(|left| left.replace(None)).is_none();
        if !was_interrupted {
            assert_eq!(test.tree(), expected);
            assert_eq!(steps, 6, "one step for each move");
            return;
        }
        assert!(ended.is_err());
        let told = test.history.recover(&test.workspace).expect("it is recovered");
        assert!(told[0].ends_with("was interrupted and has been undone"), "{told:?}");
        assert_eq!(test.tree(), before, "after {steps} steps");
    }
    panic!("the commit never ends");
}

#[test]
fn a_crash_at_any_step_of_an_undo_is_completed() {
    for steps in 0..20 {
        let test = MoveTest::new();
        let before = test.tree();
        test.commit(test.plan()).expect("it is committed");
        STEPS_LEFT.with(|left| left.set(Some(steps)));
        let ended = catch_unwind(AssertUnwindSafe(|| test.undo(false)));
        let was_interrupted = STEPS_LEFT.with(|left| left.replace(None)).is_none();
        if was_interrupted {
            assert!(ended.is_err());
            test.history.recover(&test.workspace).expect("it is recovered");
        }
        assert_eq!(test.tree(), before, "after {steps} steps");
        if !was_interrupted {
            return;
        }
    }
    panic!("the undo never ends");
}

#[test]
fn a_crash_while_a_read_only_directory_is_renamed_does_not_leave_it_writable() {
    let test = MoveTest::new();
    let set = |mode| {
        fs::set_permissions(test.path("work/tree"), fs::Permissions::from_mode(mode))
            .expect("set the mode");
    };
    set(0o555);
    let before = test.tree();
    let plan = test.plan();
    STEPS_LEFT.with(|left| left.set(Some(0)));
    catch_unwind(AssertUnwindSafe(|| test.commit(plan))).expect_err("it is interrupted");
    // The permissions that an ordinary user needs to rename the directory.
    set(0o755);
    test.history.recover(&test.workspace).expect("it is recovered");
    assert_eq!(test.tree(), before);
}

#[test]
fn a_crash_before_the_first_move_loses_the_layer_only() {
    let test = MoveTest::new();
    let before = test.tree();
    let mut plan = test.plan();
    // The second new entry cannot be taken, as if the process had ended there.
    plan.moves[2].action = MoveAction::Replace { from: test.path("layer/missing") };
    let error = test.commit(plan).expect_err("an entry is missing").to_string();
    assert!(error.contains("nothing was changed"), "{error}");
    assert_eq!(test.tree(), before);
    assert!(test.history.list().expect("it is listed").is_empty());
}

#[test]
fn what_somebody_else_changed_is_a_conflict() {
    let changes: &[PathChange] = &[
        ("file", |test| test.write("work/file", "editor")),
        ("gone", |test| fs::remove_file(test.path("work/gone")).expect("remove the file")),
        ("d/new", |test| test.write("work/d/new", "editor")),
        ("d", |test| {
            fs::remove_dir_all(test.path("work/d")).expect("remove the directory");
            test.write("work/d", "editor");
        }),
        ("tree/a/b", |test| test.write("work/tree/a/b", "editor")),
        ("tree/a", |test| test.write("work/tree/a/c", "editor")),
    ];
    for &(path, change) in changes {
        let test = MoveTest::new();
        let plan = test.plan();
        // The clock of the file system moves in steps of some milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(20));
        change(&test);
        let before = test.tree();
        match test.commit(plan) {
            Err(CommitError::Changed(changed)) => assert!(changed.starts_with(path), "{changed}"),
            other => panic!("{path}: {other:?}"),
        }
        assert_eq!(test.tree(), before, "{path}");
        assert!(test.history.list().expect("it is listed").is_empty());
    }
}

#[test]
fn a_change_after_the_check_is_a_conflict_too() {
    let changes: &[PathChange] = &[
        ("file", |test| test.write("work/file", "editor")),
        ("gone", |test| {
            fs::remove_file(test.path("work/gone")).expect("remove the file");
            test.write("work/gone", "editor");
        }),
        ("link", |test| fs::remove_file(test.path("work/link")).expect("remove the link")),
    ];
    for &(path, change) in changes {
        let test = std::rc::Rc::new(MoveTest::new());
        let mut expected = test.tree();
        expected.remove(path);
        if path != "link" {
            expected.insert(path.to_owned(), "644 editor".to_owned());
        }
        let plan = test.plan();
        let meanwhile = std::rc::Rc::clone(&test);
        // `d/new` is created first.
        let action = move || {
            assert!(meanwhile.path("work/d/new").exists(), "the commit has begun");
            change(&meanwhile);
        };
        MEANWHILE.with(|slot| slot.replace(Some(Box::new(action))));
        match test.commit(plan) {
            Err(CommitError::Changed(changed)) => assert_eq!(changed, path),
            other => panic!("{path}: {other:?}"),
        }
        assert_eq!(test.tree(), expected, "{path}: the moves before it are undone");
        assert!(test.history.list().expect("it is listed").is_empty());
    }
}

#[test]
fn a_change_in_a_replaced_directory_after_the_check_is_in_the_history() {
    let test = std::rc::Rc::new(MoveTest::new());
    let plan = test.plan();
    let meanwhile = std::rc::Rc::clone(&test);
    let action = move || meanwhile.write("work/tree/a/b", "editor");
    MEANWHILE.with(|slot| slot.replace(Some(Box::new(action))));
    test.commit(plan).expect("it is committed");
    assert_eq!(test.tree()["tree"], "644 was a directory");
    test.undo(false).expect("it is undone");
    assert_eq!(test.tree()["tree/a/b"], "644 editor", "nothing is lost");
}

#[test]
fn newer_work_stops_an_undo_unless_it_is_forced() {
    let changes: &[PathChange] = &[
        ("file", |test| test.write("work/file", "editor")),
        ("gone", |test| test.write("work/gone", "editor")),
        ("d/new/inner/x", |test| test.write("work/d/new/inner/x", "editor")),
        ("d/new", |test| test.write("work/d/new/y", "editor")),
        ("d", |test| {
            fs::set_permissions(test.path("work/d"), fs::Permissions::from_mode(0o700))
                .expect("set the mode");
        }),
        ("link", |test| {
            fs::remove_file(test.path("work/link")).expect("remove the link");
            test.write("work/link", "editor");
        }),
        ("d", |test| fs::remove_dir_all(test.path("work/d")).expect("remove the directory")),
    ];
    for &(path, change) in changes {
        let test = MoveTest::new();
        let before = test.tree();
        test.commit(test.plan()).expect("it is committed");
        std::thread::sleep(std::time::Duration::from_millis(20));
        change(&test);
        let newer = test.tree();
        match test.undo(false) {
            Err(HistoryError::ChangedSince(changed)) => {
                assert!(changed[0].starts_with(path), "{path}: {changed:?}");
            }
            other => panic!("{path}: {other:?}"),
        }
        assert_eq!(test.tree(), newer, "{path}");
        test.undo(true).expect("it is undone");
        let mut after = test.tree();
        // Of the removed directory, only the parents of restored entries come back.
        if !after.contains_key("d/inner") {
            after.extend(
                before
                    .iter()
                    .filter(|(path, _)| path.starts_with('d'))
                    .map(|(path, text)| (path.clone(), text.clone())),
            );
        }
        assert_eq!(after, before, "{path}");
    }
}

#[test]
fn an_interrupted_commit_does_not_destroy_later_work_in_its_files() {
    let test = MoveTest::new();
    let plan = test.plan();
    STEPS_LEFT.with(|left| left.set(Some(4)));
    catch_unwind(AssertUnwindSafe(|| test.commit(plan))).expect_err("it is interrupted");
    assert_eq!(test.tree()["file"], "644 new", "it is committed already");
    std::thread::sleep(std::time::Duration::from_millis(20));
    // The same inode.
    test.write("work/file", "newer");
    let told = test.history.recover(&test.workspace).expect("it is recovered");
    assert!(told[0].contains("undone only in part"), "{told:?}");
    assert_eq!(test.tree()["file"], "644 newer");
    assert_eq!(test.tree()["tree/a/b"], "644 deep", "the rest is undone");
}

#[test]
fn an_interrupted_commit_does_not_destroy_what_others_put_in_its_way() {
    let test = MoveTest::new();
    let plan = test.plan();
    STEPS_LEFT.with(|left| left.set(Some(4)));
    catch_unwind(AssertUnwindSafe(|| test.commit(plan))).expect_err("it is interrupted");
    fs::remove_file(test.path("work/file")).expect("remove the file");
    test.write("work/file", "editor");
    let told = test.history.recover(&test.workspace).expect("it is recovered");
    assert!(told[0].contains("undone only in part"), "{told:?}");
    assert_eq!(test.tree()["file"], "644 editor");
    assert_eq!(test.tree()["tree/a/b"], "644 deep", "the rest is undone");
    assert_eq!(test.history.abandoned().expect("it is listed").len(), 1);
}

#[test]
fn an_undo_after_an_undo_of_later_changes_needs_no_force() {
    let test = MoveTest::new();
    let mut states = vec![test.tree()];
    let commit = |moves: Vec<(&str, MoveAction)>| {
        let moves = moves
            .into_iter()
            .map(|(path, action)| PlannedMove {
                path: path.to_owned(),
                action,
                seen: SeenEntry::AtStart,
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(10));
        test.commit(MovePlan { moves, since: test.now() }).expect("it is committed");
    };
    let from = |name: &str, text: &str| {
        test.write(&format!("layer/{name}"), text);
        test.path("layer").join(name)
    };
    test.write("layer/dir/f", "1");
    commit(vec![
        ("file", MoveAction::Replace { from: from("a", "1") }),
        ("made", MoveAction::Create { from: test.path("layer/dir") }),
    ]);
    states.push(test.tree());
    commit(vec![
        ("file", MoveAction::Replace { from: from("b", "2") }),
        ("made/f", MoveAction::Replace { from: from("c", "2") }),
        ("made/g", MoveAction::Create { from: from("d", "2") }),
    ]);
    states.push(test.tree());
    commit(vec![("made", MoveAction::Remove)]);
    while let Some(state) = states.pop() {
        test.undo(false).expect("it is undone");
        assert_eq!(test.tree(), state);
    }
}

#[test]
fn old_contents_beyond_the_limit_are_not_kept() {
    let test = MoveTest::new();
    let large = fs::File::create(test.path("work/large")).expect("create the file");
    large.set_len(MAX_UNDO_BYTES + 1).expect("a sparse file");
    let moves = vec![PlannedMove {
        path: "large".into(),
        action: MoveAction::Remove,
        seen: SeenEntry::AtStart,
    }];
    let since = test.now();
    match test.commit(MovePlan { moves, since }).expect("it is committed") {
        CommitUndo::TooLarge(bytes) => assert!(bytes > MAX_UNDO_BYTES),
        CommitUndo::Possible => panic!("it is too large"),
    }
    assert!(!test.path("work/large").exists());
    // There is no earlier change.
    assert!(matches!(test.undo(false), Err(HistoryError::Unkept { .. })));
    assert!(matches!(test.undo(true), Err(HistoryError::Empty)));
    assert!(matches!(test.undo(false), Err(HistoryError::Empty)));
}

#[test]
fn an_undo_does_not_pass_over_a_change_whose_old_contents_were_not_kept() {
    let test = MoveTest::new();
    test.write("work/file", "old");
    let large = fs::File::create(test.path("work/large")).expect("create the file");
    large.set_len(MAX_UNDO_BYTES + 1).expect("a sparse file");
    let remove = |path: &str| {
        let action = MoveAction::Remove;
        let moves = vec![PlannedMove { path: path.into(), action, seen: SeenEntry::AtStart }];
        test.commit(MovePlan { moves, since: test.now() }).expect("it is committed")
    };
    assert_eq!(remove("file"), CommitUndo::Possible);
    assert!(matches!(remove("large"), CommitUndo::TooLarge(_)));
    let problem = test.undo(false).expect_err("the newest change cannot be undone").to_string();
    assert!(problem.contains("large") && problem.contains("--force"), "{problem}");
    assert!(!test.path("work/file").exists());
    test.undo(true).expect("the change before it is undone");
    assert_eq!(fs::read_to_string(test.path("work/file")).expect("it is back"), "old");
    assert!(matches!(test.undo(false), Err(HistoryError::Empty)));
}

#[test]
fn what_a_checkpoint_committed_is_no_change_of_somebody_else_until_it_changes() {
    for (path, kind) in [("file", "a file"), ("tree", "a directory")] {
        let test = MoveTest::new();
        let started = test.now();
        // The entry that a checkpoint committed after the start of the command.
        let inner = if path == "tree" { "work/tree/a/b" } else { "work/file" };
        std::thread::sleep(std::time::Duration::from_millis(20));
        test.write(inner, "committed");
        let status = |path: &str| {
            let metadata = fs::symlink_metadata(test.path(path)).expect("it exists");
            (metadata.ctime(), metadata.ctime_nsec())
        };
        let committed = status(inner);
        let remove = |seen| {
            let moves = vec![PlannedMove { path: path.into(), action: MoveAction::Remove, seen }];
            test.commit(MovePlan { moves, since: started })
        };
        for seen in [SeenEntry::AtStart, SeenEntry::Lost] {
            let problem = remove(seen).expect_err("somebody else changed it");
            assert!(matches!(problem, CommitError::Changed(_)), "{kind}, {seen:?}: {problem:?}");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        test.write(inner, "newer work");
        let problem = remove(SeenEntry::AtCheckpoint(committed)).expect_err("it is newer");
        assert!(matches!(problem, CommitError::Changed(_)), "{kind}: {problem:?}");
        assert_eq!(fs::read_to_string(test.path(inner)).expect("it is kept"), "newer work");
        remove(SeenEntry::AtCheckpoint(status(inner))).expect("it is as the command has seen it");
        assert!(!test.path("work").join(path).exists());
    }
}
