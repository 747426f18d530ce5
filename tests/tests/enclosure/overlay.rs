//! What is written aside: shown as it is, made real as a whole or not at all.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex};

use cofferdam::conversation::ResultStatus;
use cofferdam::policy::{ApprovalMode, ApprovalQuestion, Capability, ChangeSet, Effect};
use cofferdam::tools::{ApprovalAnswer, Approver};
use cofferdam_tests::guests::{GuestTool, ScriptedApprover, TestGuest, TestHost, TestHostBuilder};

use crate::assert_contains;

/// A guest that may write and takes these steps.
pub(crate) fn edit_guest(steps: &str) -> TestGuest {
    TestGuest::from_file("edit")
        .with_replacement("{{steps}}", steps)
        .with_requested(&[Capability::WriteFiles])
}

/// A test host with it, in which everything is allowed.
pub(crate) fn edit_host(steps: &str) -> TestHost {
    TestHost::with_guest(&edit_guest(steps))
}

pub(crate) fn read_content(folder: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(path)).ok()
}

/// What was asked about.
fn proposed_changes(question: &ApprovalQuestion) -> &ChangeSet {
    match &question.effect {
        Effect::Write { changes, .. } => changes,
        Effect::Command { .. }
        | Effect::Input { .. }
        | Effect::Fetch { .. }
        | Effect::Connect { .. }
        | Effect::Confirmed
        | Effect::Plan { .. } => panic!("something else was asked: {question:?}"),
    }
}

/// Every kind of change.
const ALL_CHANGE_KINDS: &str = r#"
    (call $create @"new/file" @"x")
    (call $mkdir @"new")
    (call $create @"new/file" @"first\nsecond\n")
    (call $overwrite @"over" @"new\n")
    (call $append @"log" @"appended\n")
    (call $write-at @"middle" @"XX" (i64.const 2))
    (call $resize @"long" (i64.const 4))
    (call $delete @"old")
    (call $rename @"from" @"to")
    (call $rename @"tree" @"new/tree")
    (call $symlink @"over" @"link")
    (call $rmdir @"empty")
    (call $read @"new/file")
    (call $read @"new/tree/leaf")
    (call $read @"old")
    (call $list)
"#;

fn write_files(test_host: &TestHost) {
    for (path, text) in [
        ("over", "old\n"),
        ("log", "line\n"),
        ("middle", "abcdef"),
        ("long", "0123456789"),
        ("old", "gone\n"),
        ("from", "moves\n"),
        ("tree/leaf", "leaf\n"),
        ("untouched", "stays\n"),
    ] {
        test_host.write_file(path, text);
    }
    std::fs::create_dir(test_host.workspace_dir().join("empty")).expect("a folder");
}

#[test]
fn r042_what_is_asked_is_what_changes_and_the_guest_sees_it_at_once() {
    let approver = Arc::new(ScriptedApprover::with_answers([ApprovalAnswer::Yes]));
    let test_host = TestHostBuilder::default()
        .with_guest(&edit_guest(ALL_CHANGE_KINDS))
        .with_approver(&approver)
        .build();
    write_files(&test_host);
    let text = test_host.call_ok("edit", "{}");
    insta::assert_snapshot!(text, @r"
    create error 20
    mkdir ok
    create ok
    overwrite ok
    append ok
    write-at ok
    resize ok
    delete ok
    rename ok
    rename ok
    symlink ok
    rmdir ok
    read first
    second

    read leaf

    read error 20
    list link log long middle new over to untouched
    ");
    let [question] = &approver.questions()[..] else { panic!("not one question") };
    let lines: Vec<String> = proposed_changes(question).iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    remove the directory empty
    make link a symbolic link to over
    change log (5 → 14 bytes)
    change long (10 → 4 bytes)
    change middle (6 → 6 bytes)
    create the directory new
    create new/file (13 bytes)
    create the directory new/tree
    move tree/leaf to new/tree/leaf (5 bytes)
    delete old (5 bytes)
    change over (4 → 4 bytes)
    move from to to (6 bytes)
    remove the directory tree
    ");
    let folder = test_host.workspace_dir();
    let after =
        ["over", "log", "middle", "long", "to", "new/file", "new/tree/leaf", "link", "untouched"]
            .map(|path| read_content(folder, path));
    let expected = [
        "new\n",
        "line\nappended\n",
        "abXXef",
        "0123",
        "moves\n",
        "first\nsecond\n",
        "leaf\n",
        "new\n",
        "stays\n",
    ];
    assert_eq!(after, expected.map(|text| Some(text.to_owned())));
    assert!(["old", "from", "tree", "empty"].iter().all(|path| !folder.join(path).exists()));
    assert_eq!(std::fs::read_link(folder.join("link")).ok().as_deref(), Some(Path::new("over")));
    test_host.assert_healthy();
}

#[test]
fn r044_a_no_changes_nothing_and_the_model_hears_it() {
    let approver = Arc::new(ScriptedApprover::with_answers([ApprovalAnswer::No {
        guidance: Some("leave it".into()),
    }]));
    let test_host = TestHostBuilder::default()
        .with_guest(&edit_guest(ALL_CHANGE_KINDS))
        .with_approver(&approver)
        .build();
    write_files(&test_host);
    let before = directory_snapshot(test_host.workspace_dir());
    let answered = test_host.call("edit", "{}");
    assert_eq!(answered.status, ResultStatus::Rejected);
    assert_contains(&answered.text, "It was not carried out");
    assert_contains(&answered.text, "leave it");
    assert!(
        !answered.text.contains("create ok"),
        "what the tool says of itself is not told: {}",
        answered.text
    );
    assert_eq!(directory_snapshot(test_host.workspace_dir()), before);
}

#[test]
fn r126_plan_mode_changes_nothing_and_a_call_that_changes_nothing_needs_no_leave() {
    let test_host = TestHostBuilder::default()
        .with_guest(&edit_guest(ALL_CHANGE_KINDS))
        .with_mode(ApprovalMode::Plan)
        .build();
    write_files(&test_host);
    let before = directory_snapshot(test_host.workspace_dir());
    assert_contains(&test_host.call_error("edit", "{}"), "denied (mode)");
    assert_eq!(directory_snapshot(test_host.workspace_dir()), before);
    let steps = r#"(call $read @"over") (call $overwrite @"over" @"old\n")
        (call $create @"x" @"x") (call $delete @"x")"#;
    let test_host = TestHostBuilder::default()
        .with_guest(&edit_guest(steps))
        .with_mode(ApprovalMode::Plan)
        .build();
    write_files(&test_host);
    assert_contains(&test_host.call_ok("edit", "{}"), "overwrite ok\ncreate ok\ndelete ok");
    assert_eq!(directory_snapshot(test_host.workspace_dir()), before);
}

#[test]
fn a_call_that_fails_changes_nothing() {
    let test_host = edit_host(&format!("{ALL_CHANGE_KINDS} unreachable"));
    write_files(&test_host);
    let before = directory_snapshot(test_host.workspace_dir());
    let text = test_host.call_error("edit", "{}");
    assert_contains(&text, "the tool crashed");
    assert_contains(&text, "Nothing was changed");
    assert_eq!(directory_snapshot(test_host.workspace_dir()), before);
    test_host.assert_healthy();
}

#[test]
fn r039_dont_ask_again_covers_the_paths_that_really_change() {
    let approver = Arc::new(ScriptedApprover::with_answers([ApprovalAnswer::YesForScope]));
    let test_host = TestHostBuilder::default()
        .with_guest(
            &edit_guest(r#"(call $append @"src/a" {{text}})"#)
                .with_replacement("{{text}}", "@\"1\""),
        )
        .with_approver(&approver)
        .build();
    test_host.write_file("src/a", "0");
    test_host.call_ok("edit", r#"{"path":"elsewhere"}"#);
    let asked = approver.questions();
    assert_eq!(
        asked[0].scope.as_ref().map(ToString::to_string).as_deref(),
        Some("edit writing src/a")
    );
    test_host.call_ok("edit", "{}");
    assert_eq!(approver.questions().len(), 1);
    assert_eq!(read_content(test_host.workspace_dir(), "src/a").as_deref(), Some("011"));
}

/// Changes something while the question is open, and says yes.
struct InterferingApprover(Mutex<Box<dyn FnMut() + Send>>);

impl Approver for InterferingApprover {
    fn ask_pages<'a>(
        &'a self,
        _: &'a ApprovalQuestion,
    ) -> std::pin::Pin<Box<dyn Future<Output = ApprovalAnswer> + Send + 'a>> {
        (self.0.lock().expect("nobody panicked"))();
        Box::pin(async { ApprovalAnswer::Yes })
    }
}

#[test]
fn r119_what_somebody_else_changed_in_the_meantime_is_not_overwritten() {
    let folder = Arc::new(Mutex::new(std::path::PathBuf::new()));
    for (name, meddle) in [
        (
            "changed",
            (|folder: &Path| std::fs::write(folder.join("over"), "theirs").expect("written"))
                as fn(&Path),
        ),
        ("created", |folder| std::fs::create_dir_all(folder.join("new/file")).expect("made")),
        ("deleted", |folder| std::fs::remove_file(folder.join("from")).expect("removed")),
        ("replaced by a link", |folder| {
            std::fs::remove_file(folder.join("log")).expect("removed");
            symlink("untouched", folder.join("log")).expect("a link");
        }),
        ("a directory replaced by a link", |folder| {
            std::fs::rename(folder.join("tree"), folder.join("moved")).expect("moved");
            symlink("moved", folder.join("tree")).expect("a link");
        }),
    ] {
        let meddled = Arc::clone(&folder);
        let approver = Arc::new(InterferingApprover(Mutex::new(Box::new(move || {
            meddle(&meddled.lock().expect("nobody panicked"))
        }))));
        let test_host = TestHostBuilder::default()
            .with_guest(&edit_guest(ALL_CHANGE_KINDS))
            .with_approver(&approver)
            .build();
        *folder.lock().expect("nobody panicked") = test_host.workspace_dir().to_owned();
        write_files(&test_host);
        let text = test_host.call_error("edit", "{}");
        assert_contains(
            &text,
            "was changed by another process during this call; nothing was changed",
        );
        assert!(
            read_content(test_host.workspace_dir(), "old").is_some()
                && !test_host.workspace_dir().join("to").exists(),
            "{name}"
        );
        test_host.assert_healthy();
    }
}

#[test]
fn r119_what_changed_since_it_was_read_is_neither_overwritten_nor_removed() {
    let tool = |name: &str, steps: &str| {
        edit_guest(steps)
            .with_tools([GuestTool::new(name).with_requested(&[Capability::WriteFiles])])
    };
    // The first may write too, and does not.
    let test_host = TestHostBuilder::default()
        .with_guest(&tool("look", r#"(call $read @"f")"#))
        .with_guest(&tool("overwrite", r#"(call $overwrite @"f" @"ours\n")"#))
        .with_guest(&tool("delete", r#"(call $delete @"f")"#))
        .with_guest(&tool("rename", r#"(call $rename @"f" @"g")"#))
        .build();
    test_host.write_file("f", "one\n");
    test_host.call_ok("look", "{}");
    test_host.write_file("f", "theirs\n");
    for tool in ["overwrite", "delete", "rename"] {
        assert_contains(
            &test_host.call_error(tool, "{}"),
            "`f` has changed on disk since it was last read; nothing was changed. Read it again",
        );
        assert_eq!(
            read_content(test_host.workspace_dir(), "f").as_deref(),
            Some("theirs\n"),
            "{tool}"
        );
    }
    test_host.call_ok("look", "{}");
    for (tool, left) in [
        ("overwrite", Some("ours\n")),
        ("overwrite", Some("ours\n")),
        ("delete", None),
        ("overwrite", Some("ours\n")),
    ] {
        test_host.call_ok(tool, "{}");
        assert_eq!(read_content(test_host.workspace_dir(), "f").as_deref(), left, "{tool}");
    }
}

#[test]
fn a_file_that_is_open_is_the_one_that_is_written() {
    let steps = r#"
        (call $keep-open @"f")
        (call $read-kept)
        (call $append @"f" @" and new")
        (call $read-kept)
        (call $overwrite @"f" @"newer")
        (call $read-kept)
        (call $delete @"f")
        (call $read-kept)
    "#;
    let test_host = edit_host(steps);
    test_host.write_file("f", "old");
    let text = test_host.call_ok("edit", "{}");
    assert_contains(
        &text,
        "kept old\nappend ok\nkept old and new\noverwrite ok\nkept newer\ndelete ok\nkept newer",
    );
}

/// Every path with its kind and content.
pub(crate) fn directory_snapshot(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut ahead = vec![folder.to_owned()];
    while let Some(directory) = ahead.pop() {
        for entry in std::fs::read_dir(directory).expect("it lists") {
            let path = entry.expect("it is there").path();
            let kind = path.symlink_metadata().expect("it is there").file_type();
            if kind.is_dir() {
                ahead.push(path.clone());
            }
            let text = if kind.is_symlink() {
                std::fs::read_link(&path).ok().map(|to| to.display().to_string())
            } else {
                std::fs::read_to_string(&path).ok()
            };
            all.push(format!(
                "{} {text:?}",
                path.strip_prefix(folder).expect("it is below").display()
            ));
        }
    }
    all.sort();
    all
}
