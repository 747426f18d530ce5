//! Having back what was there.

use std::path::PathBuf;

use cofferdam::sandbox::HistoryError;
use cofferdam_tests::guests::House;

use crate::staged::{all_below, editing};

const STEPS: &str = r#"
    (call $overwrite @"over" @"new")
    (call $mkdir @"dir")
    (call $create @"dir/file" @"created")
    (call $delete @"old")
    (call $rename @"from" @"dir/to")
    (call $rmdir @"empty")
    (call $delete @"link")
"#;

fn house() -> House {
    let house = editing(STEPS);
    for (path, text) in [("over", "over"), ("old", "old"), ("from", "from")] {
        house.write(path, text);
    }
    std::fs::create_dir(house.folder().join("empty")).expect("a folder");
    std::os::unix::fs::symlink("over", house.folder().join("link")).expect("a link");
    house
}

/// The record of the only change.
fn record(house: &House) -> PathBuf {
    let project = std::fs::read_dir(house.state()).expect("it lists").next().expect("one project").expect("it is there").path();
    let change = std::fs::read_dir(project).expect("it lists").flatten().find(|entry| entry.path().is_dir()).expect("one change");
    change.path().join("record.json")
}

/// As a crash in the middle of the change would have left it.
fn make_pending(house: &House) {
    let record = record(house);
    let text = std::fs::read_to_string(&record).expect("it is there");
    assert!(text.contains(r#""pending":false"#), "{text}");
    std::fs::write(record, text.replace(r#""pending":false"#, r#""pending":true"#)).expect("it is written");
}

#[test]
fn a_change_is_taken_back_as_a_whole_and_once() {
    let house = house();
    let before = all_below(house.folder());
    house.answers("edit", "{}");
    assert_ne!(all_below(house.folder()), before);
    let entries = house.history().list().expect("it lists");
    assert_eq!((entries.len(), entries[0].tool.as_str()), (1, "edit"));
    house.history().undo(house.workspace(), false).expect("it is taken back");
    assert_eq!(all_below(house.folder()), before);
    assert!(matches!(house.history().undo(house.workspace(), false), Err(HistoryError::Empty)));
    // Whoever made the change knows nothing of that, and has to look first.
    assert!(house.fails("edit", "{}").contains("Read it again"));
    assert_eq!(all_below(house.folder()), before);
}

#[test]
fn what_was_changed_since_is_not_lost_without_a_word() {
    let house = house();
    let before = all_below(house.folder());
    house.answers("edit", "{}");
    house.write("over", "mine");
    let after = all_below(house.folder());
    let error = house.history().undo(house.workspace(), false).expect_err("it is refused").to_string();
    assert_eq!(
        error,
        "changed since then, so nothing was undone: over. With --force what was there before is put back all the same, and these changes are lost"
    );
    assert_eq!(all_below(house.folder()), after);
    house.history().undo(house.workspace(), true).expect("it is taken back");
    assert_eq!(all_below(house.folder()), before);
}

#[test]
fn a_change_that_a_crash_cut_short_is_taken_back_at_the_next_start() {
    let house = house();
    let before = all_below(house.folder());
    house.answers("edit", "{}");
    make_pending(&house);
    // Some of it had not happened yet, and a new content was not in its place.
    house.write("over", "over");
    std::fs::remove_file(house.folder().join("dir/to")).expect("it is removed");
    let id = record(&house).parent().and_then(|folder| folder.file_name()).expect("a name").to_string_lossy().into_owned();
    let steps = ["dir", "dir/file", "dir/to"].len();
    house.write(&format!("dir/.cofferdam-{id}-{}.tmp", steps - 1), "half of");
    assert!(house.history().list().expect("it lists").is_empty());
    let recovered = house.history().recover(house.workspace()).expect("it recovers");
    assert!(recovered.len() == 1 && recovered[0].ends_with("was interrupted and has been taken back"), "{recovered:?}");
    assert_eq!(all_below(house.folder()), before);
    assert_eq!(house.history().recover(house.workspace()).expect("it recovers"), Vec::<String>::new());
}

#[test]
fn recovering_leaves_what_is_somebody_elses() {
    let house = house();
    house.answers("edit", "{}");
    make_pending(&house);
    house.write("over", "mine");
    let recovered = house.history().recover(house.workspace()).expect("it recovers");
    assert!(recovered[0].contains("cannot be taken back ('over' was changed by somebody else); what was there is in "), "{recovered:?}");
    assert_eq!(std::fs::read_to_string(house.folder().join("over")).expect("it is there"), "mine");
    assert!(house.folder().join("old").exists());
}

#[test]
fn the_history_is_bounded_and_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = editing(r#"(call $append @"log" @"x")"#);
    house.write("log", "");
    for _ in 0..25 {
        house.answers("edit", "{}");
    }
    assert_eq!(house.history().list().expect("it lists").len(), 20);
    let mode = |path: &std::path::Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    let record = record(&house);
    assert_eq!((mode(&record), mode(record.parent().expect("a folder"))), (0o600, 0o700));
    for n in (5..25).rev() {
        house.history().undo(house.workspace(), false).expect("it is taken back");
        assert_eq!(std::fs::read_to_string(house.folder().join("log")).expect("it is there").len(), n);
    }
}
