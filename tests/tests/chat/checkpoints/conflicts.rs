//! What others change between the checkpoints of a background command.

use std::fs;

use super::{JobChat, write};
use crate::new_home;

#[test]
fn a_file_that_the_user_edits_after_a_checkpoint_is_kept_also_at_the_end() {
    let script = "step 1; echo 1 > file; echo 1 > other; did 1\n\
        step 2; echo 2 > file; echo 2 > other; did 2\n\
        step 3; did 3\n";
    let mut chat = JobChat::start(new_home().with_file("file", "0\n"), script);
    chat.run_step(1);
    chat.commit();
    write(&chat.home, "file", "mine\n");
    chat.run_step(2);
    for _ in 0..2 {
        let shown = chat.ask("/jobs commit 1");
        assert!(shown.contains("cannot commit") && shown.contains("file"), "{shown}");
        assert_eq!((chat.text("file"), chat.text("other")), ("mine\n".into(), "1\n".into()));
    }
    chat.run_step(3);
    let end = chat.wait_for_end();
    assert!(end.contains("all changes of the command were discarded"), "{end}");
    assert_eq!((chat.text("file"), chat.text("other")), ("mine\n".into(), "1\n".into()));
    chat.leave();
}

#[test]
fn what_others_put_into_a_committed_directory_is_never_removed() {
    let script = "step 1; mkdir -p new/sub; echo 1 > new/a; echo 1 > new/b; did 1\n\
        step 2; rm new/b; echo 2 > new/a; echo c > new/sub/c; did 2\n\
        step 3; rm -r new/sub; did 3\n\
        step 4; did 4\n";
    let mut chat = JobChat::start(new_home(), script);
    chat.run_step(1);
    chat.commit();
    write(&chat.home, "new/theirs", "theirs\n");
    write(&chat.home, "new/tree/theirs", "theirs\n");
    chat.run_step(2);
    // The command has never seen the new entries, so that they are no conflict.
    chat.commit();
    assert_eq!((chat.text("new/a"), chat.text("new/sub/c")), ("2\n".into(), "c\n".into()));
    assert!(!chat.home.has_file("new/b"));
    for path in ["new/theirs", "new/tree/theirs"] {
        assert_eq!(chat.text(path), "theirs\n");
    }
    // A directory that the command removes is another matter if somebody else uses it.
    write(&chat.home, "new/sub/theirs", "theirs\n");
    chat.run_step(3);
    let shown = chat.ask("/jobs commit 1");
    assert!(shown.contains("cannot commit") && shown.contains("new/sub"), "{shown}");
    chat.run_step(4);
    let end = chat.wait_for_end();
    assert!(end.contains("were discarded") && end.contains("new/sub"), "{end}");
    for path in ["new/theirs", "new/tree/theirs", "new/sub/theirs"] {
        assert_eq!(chat.text(path), "theirs\n");
    }
    chat.leave();
}

#[test]
fn a_file_that_others_remove_or_create_is_not_overwritten() {
    for name in ["removed", "created"] {
        let script = "step 1; mkdir new; echo 1 > new/removed; did 1\n\
            step 2; echo 2 > new/removed; echo 2 > new/created; did 2\n";
        let mut chat = JobChat::start(new_home(), script);
        chat.run_step(1);
        chat.commit();
        match name {
            "removed" => {
                fs::remove_file(chat.home.workspace().join("new/removed")).expect("it is removed");
            }
            _ => write(&chat.home, "new/created", "theirs\n"),
        }
        chat.run_step(2);
        let end = chat.wait_for_end();
        assert!(end.contains("were discarded") && end.contains(name), "{end}");
        match name {
            "removed" => assert!(!chat.home.has_file("new/removed")),
            _ => assert_eq!(chat.text("new/created"), "theirs\n"),
        }
        chat.leave();
    }
}

#[test]
fn an_undo_between_checkpoints_is_the_change_of_somebody_else() {
    let script = "step 1; echo 1 > file; mkdir new; echo 1 > new/a; did 1\n\
        step 2; echo 2 > second; did 2\n\
        step 3; did 3\n";
    let mut chat = JobChat::start(new_home().with_file("file", "0\n"), script);
    chat.run_step(1);
    chat.commit();
    assert_eq!(chat.text("file"), "1\n");
    let undone = chat.home.run(&["undo"]);
    assert_eq!(undone.exit_code, 0, "{undone:?}");
    assert_eq!(chat.text("file"), "0\n");
    assert!(!chat.home.has_file("new"));
    chat.run_step(2);
    let shown = chat.ask("/jobs commit 1");
    assert!(shown.contains("cannot commit") && shown.contains("`file`"), "{shown}");
    chat.run_step(3);
    let end = chat.wait_for_end();
    assert!(end.contains("all changes of the command were discarded"), "{end}");
    assert_eq!(chat.text("file"), "0\n", "what was undone stays undone");
    assert!(!chat.home.has_file("new") && !chat.home.has_file("second"));
    chat.leave();
}

#[test]
fn a_file_that_others_remove_while_a_background_command_appends_to_it_stays_removed() {
    let script = "step 1; echo 1 >> log; echo 1 > other; did 1\n\
        step 2; did 2\n";
    let mut chat = JobChat::start(new_home().with_file("log", "0\n"), script);
    chat.run_step(1);
    fs::remove_file(chat.home.workspace().join("log")).expect("it is removed");
    let shown = chat.ask("/jobs commit 1");
    assert!(shown.contains("cannot commit") && shown.contains("`log`"), "{shown}");
    chat.run_step(2);
    let end = chat.wait_for_end();
    assert!(end.contains("all changes of the command were discarded"), "{end}");
    assert!(!chat.home.has_file("log") && !chat.home.has_file("other"));
    chat.leave();
}

#[test]
fn a_background_command_renames_files_of_the_workspace_between_checkpoints() {
    let script = "step 1; echo 1 >> log; did 1\n\
        step 2; mv log log.1; echo 2 > log; mv a b; did 2\n\
        step 3; mv log.1 log.2; mv b c; echo 3 >> c; did 3\n\
        step 4; did 4\n";
    let home = new_home().with_file("log", "0\n").with_file("a", "a\n");
    let mut chat = JobChat::start(home, script);
    for (step, old) in [(1, "log"), (2, "log.1"), (3, "log.2")] {
        chat.run_step(step);
        write(&chat.home, "theirs", "theirs\n");
        let shown = chat.ask("/jobs commit 1");
        assert!(shown.contains("committed"), "{shown}");
        assert_eq!(chat.text(old), "0\n1\n", "{shown}");
    }
    chat.run_step(4);
    let end = chat.wait_for_end();
    assert!(!end.contains("were discarded"), "{end}");
    assert_eq!((chat.text("log"), chat.text("c")), ("2\n".into(), "a\n3\n".into()));
    assert!(!chat.home.has_file("log.1") && !chat.home.has_file("a") && !chat.home.has_file("b"));
    chat.leave();
}
