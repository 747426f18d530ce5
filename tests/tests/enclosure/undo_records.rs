//! Records of changes that others can have written.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use cofferdam_tests::guests::TestHost;

use crate::assert_contains;
use crate::overlay::edit_host;
use crate::undo::undo_record;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

fn host_with_change() -> TestHost {
    let test_host = edit_host(r#"(call $delete @"gone")"#);
    test_host.write_file("gone", "old");
    test_host.call_ok("edit", "{}");
    test_host
}

#[test]
fn a_history_that_others_can_write_is_not_used() {
    let test_host = host_with_change();
    let record = undo_record(&test_host);
    let project = record.ancestors().nth(2).expect("a project").to_owned();
    for directory in [test_host.state_dir().to_owned(), project.clone()] {
        set_mode(&directory, 0o777);
        let problem =
            test_host.history().undo(test_host.workspace(), false).unwrap_err().to_string();
        assert_contains(&problem, "is writable by other users");
        assert_contains(&problem, "\nhint: ");
        assert!(test_host.history().list().is_err());
        assert!(test_host.history().recover(test_host.workspace()).is_err());
        test_host.write_file("gone", "new");
        assert_contains(&test_host.call_error("edit", "{}"), "is writable by other users");
        std::fs::remove_file(test_host.workspace_dir().join("gone")).expect("it was not deleted");
        set_mode(&directory, 0o700);
    }
    let moved = test_host.state_dir().join("moved");
    std::fs::rename(&project, &moved).expect("it is moved");
    symlink(&moved, &project).expect("a link");
    let problem = test_host.history().undo(test_host.workspace(), false).unwrap_err().to_string();
    assert_contains(&problem, "is a link");
}

#[test]
fn a_record_that_is_not_the_users_own_file_is_not_read() {
    let test_host = host_with_change();
    let record = undo_record(&test_host);
    let text = std::fs::read(&record).expect("it is there");
    let unreadable = |expected: &str| {
        assert!(test_host.history().list().expect("it lists").is_empty(), "{expected}");
        let found = test_host.history().unreadable().expect("it lists");
        assert_eq!(found.len(), 1, "{expected}");
        assert_contains(&found[0].1.to_string(), expected);
        assert!(test_host.history().undo(test_host.workspace(), false).is_err());
    };
    set_mode(&record, 0o666);
    unreadable("is writable by other users");
    std::fs::remove_file(&record).expect("it is there");
    symlink("/dev/zero", &record).expect("a link");
    unreadable("it is a link");
    std::fs::remove_file(&record).expect("it is there");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &record, kind, rustix::fs::Mode::RWXU, 0).expect("a FIFO");
    unreadable("it is not a regular file");
    std::fs::remove_file(&record).expect("it is there");
    std::fs::write(&record, text).expect("it is written");
    set_mode(&record, 0o600);
    assert_eq!(test_host.history().list().expect("it lists").len(), 1);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&record, Some(65_534), None).expect("root can");
        unreadable("it belongs to another user");
    }
}

#[test]
fn a_record_makes_no_file_that_runs_as_its_owner() {
    let test_host = host_with_change();
    let record = undo_record(&test_host);
    let text = std::fs::read_to_string(&record).expect("it is there");
    let me = test_host.workspace_dir().metadata().expect("it is there");
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let kept = &mut value["places"][0]["before"]["kept"];
    kept["mode"] = 0o6755.into();
    kept["owner"] = serde_json::json!([me.uid() + 7, me.gid()]);
    std::fs::write(&record, value.to_string()).expect("it is written");
    test_host.history().undo(test_host.workspace(), false).expect("it is taken back");
    let back = test_host.workspace_dir().join("gone").metadata().expect("it is there");
    assert_eq!((back.mode() & 0o7777, back.uid()), (0o755, me.uid()));
}

#[test]
fn the_old_content_is_a_file_of_the_record() {
    let test_host = host_with_change();
    let record = undo_record(&test_host);
    let text = std::fs::read_to_string(&record).expect("it is there");
    let kept = record.with_file_name("0");
    let outside = test_host.state_dir().join("outside");
    std::fs::copy(&kept, &outside).expect("it is copied");
    std::fs::write(&record, text.replace(r#""name":"0""#, r#""name":"../../outside""#))
        .expect("it is written");
    assert!(test_host.history().undo(test_host.workspace(), false).is_err());
    std::fs::write(&record, text).expect("it is written");
    std::fs::remove_file(&kept).expect("it is there");
    symlink(&outside, &kept).expect("a link");
    let problem = test_host.history().undo(test_host.workspace(), false).unwrap_err().to_string();
    assert_contains(&problem, "it is a link");
    assert!(!test_host.workspace_dir().join("gone").exists());
}
