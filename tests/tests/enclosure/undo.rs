//! Having back what was there.

use std::path::PathBuf;

use cofferdam::sandbox::{HistoryError, UndoHistory, UndoOutcome, Workspace};
use cofferdam_tests::guests::TestHost;

use crate::assert_contains;
use crate::overlay::{directory_snapshot, edit_host};

const STEPS: &str = r#"
    (call $overwrite @"over" @"new")
    (call $mkdir @"dir")
    (call $create @"dir/file" @"created")
    (call $delete @"old")
    (call $rename @"from" @"dir/to")
    (call $rmdir @"empty")
    (call $delete @"link")
"#;

fn edited_host() -> TestHost {
    let test_host = edit_host(STEPS);
    for (path, text) in [("over", "over"), ("old", "old"), ("from", "from")] {
        test_host.write_file(path, text);
    }
    std::fs::create_dir(test_host.workspace_dir().join("empty")).expect("a folder");
    std::os::unix::fs::symlink("over", test_host.workspace_dir().join("link")).expect("a link");
    test_host
}

/// The record of the only change.
pub(crate) fn undo_record(test_host: &TestHost) -> PathBuf {
    let project = std::fs::read_dir(test_host.state_dir())
        .expect("it lists")
        .next()
        .expect("one project")
        .expect("it is there")
        .path();
    let change = std::fs::read_dir(project)
        .expect("it lists")
        .flatten()
        .find(|entry| entry.path().is_dir())
        .expect("one change");
    change.path().join("record.json")
}

/// As a crash in the middle of the change would have left it.
fn make_pending(test_host: &TestHost) {
    let record = undo_record(test_host);
    let text = std::fs::read_to_string(&record).expect("it is there");
    assert!(text.contains(r#""state":"made""#), "{text}");
    std::fs::write(record, text.replace(r#""state":"made""#, r#""state":"pending""#))
        .expect("it is written");
}

#[test]
fn a_change_is_taken_back_as_a_whole_and_once() {
    let test_host = edited_host();
    let before = directory_snapshot(test_host.workspace_dir());
    test_host.call_ok("edit", "{}");
    assert_ne!(directory_snapshot(test_host.workspace_dir()), before);
    let entries = test_host.history().list().expect("it lists");
    assert_eq!((entries.len(), entries[0].tool.as_str()), (1, "edit"));
    test_host.history().undo(test_host.workspace(), false).expect("it is taken back");
    assert_eq!(directory_snapshot(test_host.workspace_dir()), before);
    assert!(matches!(
        test_host.history().undo(test_host.workspace(), false),
        Err(HistoryError::Empty)
    ));
    // Whoever made the change knows nothing of that, and has to look first.
    assert!(test_host.call_error("edit", "{}").contains("Read it again"));
    assert_eq!(directory_snapshot(test_host.workspace_dir()), before);
}

#[test]
fn what_was_changed_since_is_not_lost_without_a_word() {
    let test_host = edited_host();
    let before = directory_snapshot(test_host.workspace_dir());
    test_host.call_ok("edit", "{}");
    test_host.write_file("over", "mine");
    let after = directory_snapshot(test_host.workspace_dir());
    let error = test_host
        .history()
        .undo(test_host.workspace(), false)
        .expect_err("it is refused")
        .to_string();
    assert_eq!(
        error,
        "nothing was undone, because these files have changed since: over\n\
            hint: --force restores the old files; the later changes are lost"
    );
    assert_eq!(directory_snapshot(test_host.workspace_dir()), after);
    test_host.history().undo(test_host.workspace(), true).expect("it is taken back");
    assert_eq!(directory_snapshot(test_host.workspace_dir()), before);
}

#[test]
fn a_change_that_a_crash_cut_short_is_taken_back_at_the_next_start() {
    let test_host = edited_host();
    let before = directory_snapshot(test_host.workspace_dir());
    test_host.call_ok("edit", "{}");
    make_pending(&test_host);
    // Some of it had not happened yet, and a new content was not in its place.
    test_host.write_file("over", "over");
    std::fs::remove_file(test_host.workspace_dir().join("dir/to")).expect("it is removed");
    let id = undo_record(&test_host)
        .parent()
        .and_then(|folder| folder.file_name())
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let steps = ["dir", "dir/file", "dir/to"].len();
    test_host.write_file(&format!("dir/.cofferdam-{id}-{}.tmp", steps - 1), "half of");
    assert!(test_host.history().list().expect("it lists").is_empty());
    let recovered = test_host.history().recover(test_host.workspace()).expect("it recovers");
    assert!(
        recovered.len() == 1 && recovered[0].ends_with("was interrupted and has been undone"),
        "{recovered:?}"
    );
    assert_eq!(directory_snapshot(test_host.workspace_dir()), before);
    assert_eq!(
        test_host.history().recover(test_host.workspace()).expect("it recovers"),
        Vec::<String>::new()
    );
}

#[test]
fn recovering_leaves_what_is_somebody_elses() {
    let test_host = edited_host();
    test_host.call_ok("edit", "{}");
    make_pending(&test_host);
    test_host.write_file("over", "mine");
    let recovered = test_host.history().recover(test_host.workspace()).expect("it recovers");
    assert!(
        recovered[0].contains(
            "was undone only in part (`over` was changed by another process); the old files are in "
        ),
        "{recovered:?}"
    );
    assert_eq!(
        std::fs::read_to_string(test_host.workspace_dir().join("over")).expect("it is there"),
        "mine"
    );
    assert!(test_host.workspace_dir().join("old").exists());
}

#[test]
fn what_cannot_be_taken_back_is_left_to_the_user_and_not_tried_again() {
    let test_host = edited_host();
    test_host.call_ok("edit", "{}");
    make_pending(&test_host);
    test_host.write_file("over", "mine");
    assert_eq!(test_host.history().recover(test_host.workspace()).expect("it recovers").len(), 1);
    let [(entry, kept)] = &test_host.history().abandoned().expect("it lists")[..] else {
        panic!("not one")
    };
    assert_eq!(entry.paths, ["over"]);
    assert!(kept.join("record.json").exists());
    // What is made of the file later is safe, even if it looks like what the change has left there.
    test_host.write_file("over", "new");
    assert!(test_host.history().recover(test_host.workspace()).expect("it recovers").is_empty());
    assert!(matches!(
        test_host.history().undo(test_host.workspace(), false),
        Err(HistoryError::Empty)
    ));
    assert_eq!(
        std::fs::read_to_string(test_host.workspace_dir().join("over")).expect("it is there"),
        "new"
    );
    assert!(kept.exists());
}

#[test]
fn a_directory_that_somebody_uses_stays_and_everything_else_goes_back() {
    let test_host =
        edit_host(r#"(call $overwrite @"a" @"new") (call $mkdir @"d") (call $create @"d/x" @"x")"#);
    test_host.write_file("a", "old");
    test_host.call_ok("edit", "{}");
    test_host.write_file("d/y", "theirs");
    let undone = test_host.history().undo(test_host.workspace(), false).expect("it is taken back");
    let UndoOutcome::Change { remaining: stays, .. } = undone else {
        panic!("nothing was interrupted")
    };
    assert_eq!(stays, ["d"]);
    assert_eq!(
        directory_snapshot(test_host.workspace_dir()),
        [r#"a Some("old")"#, "d None", r#"d/y Some("theirs")"#]
    );
    assert!(matches!(
        test_host.history().undo(test_host.workspace(), false),
        Err(HistoryError::Empty)
    ));
}

#[test]
fn what_is_in_the_way_is_told_before_anything_is_touched_and_force_does_what_can_be_done() {
    let test_host =
        edit_host(r#"(call $delete @"d/gone") (call $overwrite @"a" @"new") (call $delete @"b")"#);
    for path in ["d/gone", "a", "b"] {
        test_host.write_file(path, "old");
    }
    test_host.call_ok("edit", "{}");
    std::fs::remove_dir(test_host.workspace_dir().join("d")).expect("it is empty");
    let error = test_host
        .history()
        .undo(test_host.workspace(), false)
        .expect_err("it is refused")
        .to_string();
    assert_eq!(
        error,
        "nothing was undone: `d/gone` cannot be restored, because `d` is no longer a directory"
    );
    assert_eq!(directory_snapshot(test_host.workspace_dir()), [r#"a Some("new")"#]);
    // A directory with something in it takes the place of nothing.
    test_host.write_file("b/mine", "mine");
    let error = test_host
        .history()
        .undo(test_host.workspace(), true)
        .expect_err("not all of it can be")
        .to_string();
    assert!(
        error.starts_with("undone only in part: `b` is not empty; the old files are in "),
        "{error}"
    );
    assert_eq!(
        directory_snapshot(test_host.workspace_dir()),
        [r#"a Some("old")"#, "b None", r#"b/mine Some("mine")"#, "d None", r#"d/gone Some("old")"#]
    );
    // It is not in the way of older changes.
    assert!(matches!(
        test_host.history().undo(test_host.workspace(), false),
        Err(HistoryError::Empty)
    ));
    assert_eq!(test_host.history().abandoned().expect("it lists").len(), 1);
}

#[test]
fn undo_says_so_if_a_change_was_interrupted_and_takes_nothing_else_back() {
    let test_host = edit_host(r#"(call $append @"log" @"x")"#);
    test_host.write_file("log", "");
    test_host.call_ok("edit", "{}");
    test_host.call_ok("edit", "{}");
    // The newer of the two.
    let project = std::fs::read_dir(test_host.state_dir())
        .expect("it lists")
        .next()
        .expect("one project")
        .expect("it is there")
        .path();
    let mut changes: Vec<_> =
        std::fs::read_dir(project).expect("it lists").flatten().map(|entry| entry.path()).collect();
    changes.retain(|path| path.is_dir());
    changes.sort();
    let newest = changes.pop().expect("two changes").join("record.json");
    let text = std::fs::read_to_string(&newest).expect("it is there");
    std::fs::write(newest, text.replace(r#""state":"made""#, r#""state":"pending""#))
        .expect("it is written");
    let undone = test_host.history().undo(test_host.workspace(), false).expect("it is seen to");
    assert!(matches!(&undone, UndoOutcome::Interrupted(lines) if lines.len() == 1), "{undone:?}");
    assert_eq!(
        std::fs::read_to_string(test_host.workspace_dir().join("log")).expect("it is there"),
        "x"
    );
    let undone = test_host.history().undo(test_host.workspace(), false).expect("it is taken back");
    assert!(matches!(undone, UndoOutcome::Change { .. }));
    assert_eq!(
        std::fs::read_to_string(test_host.workspace_dir().join("log")).expect("it is there"),
        ""
    );
}

#[test]
fn directories_keep_their_modes_when_they_move_and_when_they_come_back() {
    use std::os::unix::fs::PermissionsExt as _;
    let test_host = edit_host(r#"(call $rename @"from" @"to") (call $rmdir @"empty")"#);
    test_host.write_file("from/deep/file", "x");
    std::fs::create_dir(test_host.workspace_dir().join("empty")).expect("a folder");
    let path = |name: &str| test_host.workspace_dir().join(name);
    for (name, mode) in [("from", 0o750), ("from/deep", 0o700), ("empty", 0o711)] {
        std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode))
            .expect("it is set");
    }
    let mode =
        |name: &str| path(name).metadata().expect("it is there").permissions().mode() & 0o7777;
    test_host.call_ok("edit", "{}");
    assert_eq!([mode("to"), mode("to/deep")], [0o750, 0o700]);
    test_host.history().undo(test_host.workspace(), false).expect("it is taken back");
    assert_eq!([mode("from"), mode("from/deep"), mode("empty")], [0o750, 0o700, 0o711]);
}

#[test]
fn the_history_is_bounded_and_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let test_host = edit_host(r#"(call $append @"log" @"x")"#);
    test_host.write_file("log", "");
    for _ in 0..25 {
        test_host.call_ok("edit", "{}");
    }
    assert_eq!(test_host.history().list().expect("it lists").len(), 20);
    let mode =
        |path: &std::path::Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    let record = undo_record(&test_host);
    assert_eq!((mode(&record), mode(record.parent().expect("a folder"))), (0o600, 0o700));
    for n in (5..25).rev() {
        test_host.history().undo(test_host.workspace(), false).expect("it is taken back");
        assert_eq!(
            std::fs::read_to_string(test_host.workspace_dir().join("log"))
                .expect("it is there")
                .len(),
            n
        );
    }
}

#[test]
fn what_the_user_lets_others_do_with_a_file_stays_when_it_goes_back() {
    use std::os::unix::fs::PermissionsExt as _;
    let test_host = edit_host(r#"(call $overwrite @"script" @"new") (call $delete @"gone")"#);
    let path = |name: &str| test_host.workspace_dir().join(name);
    let set = |name: &str, mode| {
        std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode))
            .expect("it is set")
    };
    for name in ["script", "gone"] {
        test_host.write_file(name, "old");
        set(name, 0o640);
    }
    test_host.call_ok("edit", "{}");
    set("script", 0o755);
    test_host.history().undo(test_host.workspace(), false).expect("it is taken back");
    let mode =
        |name: &str| path(name).metadata().expect("it is there").permissions().mode() & 0o7777;
    assert_eq!([mode("script"), mode("gone")], [0o755, 0o640]);
    assert_eq!(std::fs::read_to_string(path("script")).expect("it is there"), "old");
}

#[test]
fn directories_get_their_rights_back_also_if_that_was_cut_short() {
    use std::os::unix::fs::PermissionsExt as _;
    let test_host = edit_host(r#"(call $rmdir @"d/e") (call $rmdir @"d")"#);
    let path = |name: &str| test_host.workspace_dir().join(name);
    std::fs::create_dir_all(path("d/e")).expect("folders");
    let set = |name: &str, mode| {
        std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode))
            .expect("it is set")
    };
    set("d/e", 0o755);
    set("d", 0o2750);
    test_host.call_ok("edit", "{}");
    assert!(!path("d").exists());
    // They came back, each for its owner alone at first, and then the power went.
    make_pending(&test_host);
    std::fs::create_dir_all(path("d/e")).expect("folders");
    set("d/e", 0o700);
    set("d", 0o700);
    assert_eq!(test_host.history().recover(test_host.workspace()).expect("it recovers").len(), 1);
    let mode =
        |name: &str| path(name).metadata().expect("it is there").permissions().mode() & 0o7777;
    assert_eq!([mode("d"), mode("d/e")], [0o2750, 0o755]);
}

#[test]
fn what_moves_and_what_comes_back_belongs_to_whom_it_belonged() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let test_host = edit_host(
        r#"(call $rename @"from" @"to") (call $overwrite @"file" @"new") (call $rmdir @"empty")"#,
    );
    let path = |name: &str| test_host.workspace_dir().join(name);
    test_host.write_file("from/leaf", "x");
    test_host.write_file("file", "old");
    std::fs::create_dir(path("empty")).expect("a folder");
    let owner = |name: &str| {
        path(name).metadata().map(|metadata| (metadata.uid(), metadata.gid())).expect("it is there")
    };
    let (user, groups) =
        (rustix::process::geteuid(), rustix::process::getgroups().expect("they are known"));
    let given = |number: u32| {
        if user.is_root() {
            return (number, number + 10);
        }
        // Only root gives files away. Others can choose among their groups, of which each has at
        // least one.
        let at = usize::try_from(number).expect("it is small") % groups.len().max(1);
        (user.as_raw(), groups.get(at).copied().unwrap_or_else(rustix::process::getegid).as_raw())
    };
    for (name, number) in [("from", 1), ("from/leaf", 2), ("file", 3), ("empty", 4)] {
        chown(path(name), Some(given(number).0), Some(given(number).1)).expect("it is given away");
        assert_eq!(owner(name), given(number), "{name}");
    }
    test_host.call_ok("edit", "{}");
    assert_eq!([owner("to"), owner("to/leaf"), owner("file")], [1, 2, 3].map(given));
    test_host.history().undo(test_host.workspace(), false).expect("it is taken back");
    // What has gone comes back to the user who takes it back, and only what is there keeps its own.
    let back = |number: u32| (user.as_raw(), given(number).1);
    assert_eq!(
        [owner("from"), owner("from/leaf"), owner("file"), owner("empty")],
        [back(1), back(2), given(3), back(4)]
    );
}

#[test]
fn a_change_that_finds_another_one_interrupted_takes_that_back_and_says_so() {
    let test_host = edit_host(r#"(call $append @"log" @"x")"#);
    test_host.write_file("log", "");
    test_host.call_ok("edit", "{}");
    make_pending(&test_host);
    let text = test_host.call_error("edit", "{}");
    assert_contains(
        &text,
        "a change by edit to log was interrupted and has been undone. This call changed nothing",
    );
    assert_eq!(
        std::fs::read_to_string(test_host.workspace_dir().join("log")).expect("it is there"),
        ""
    );
}

#[test]
fn what_never_began_is_removed_and_what_cannot_be_read_is_told() {
    let test_host = edited_host();
    test_host.call_ok("edit", "{}");
    let change = undo_record(&test_host).parent().expect("a folder").to_owned();
    let project = change.parent().expect("a folder");
    let (rubbish, newer) =
        (project.join("00000000000000000001"), project.join("00000000000000000002"));
    for folder in [&rubbish, &newer] {
        std::fs::create_dir(folder).expect("a folder");
        std::fs::write(folder.join("0"), "old").expect("it is written");
    }
    std::fs::write(newer.join("record.json"), r#"{"version":99}"#).expect("it is written");
    assert!(test_host.history().recover(test_host.workspace()).expect("it recovers").is_empty());
    assert!(!rubbish.exists() && newer.exists() && change.exists());
    let unreadable = test_host.history().unreadable().expect("it lists");
    assert!(unreadable.len() == 1 && unreadable[0].0 == newer, "{unreadable:?}");
}

#[test]
fn a_project_with_the_longest_name_has_a_history() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("ü".repeat(127));
    std::fs::create_dir(&root).expect("a folder");
    let workspace = Workspace::open(&root, &cofferdam_cli::host_environment()).expect("it opens");
    let history = UndoHistory::for_workspace(&folder.path().join("undo"), &workspace);
    assert!(matches!(history.undo(&workspace, false), Err(HistoryError::Empty)));
}
