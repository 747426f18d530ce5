//! What is written aside: shown as it is, made real as a whole or not at all.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::{Arc, Mutex};

use cofferdam::conversation::ResultStatus;
use cofferdam::policy::{Capability, Changes, Effect, Mode, Question};
use cofferdam::tools::{Answer, Approver};
use cofferdam_tests::guests::{Guest, House, Plan, Scripted, Tool};

use crate::assert_says;

/// A guest that may write and takes these steps.
pub(crate) fn edit(steps: &str) -> Guest {
    Guest::named("edit").with("{{steps}}", steps).asking(&[Capability::WriteFiles])
}

/// A house with it, in which everything is allowed.
pub(crate) fn editing(steps: &str) -> House {
    House::with(&edit(steps))
}

fn content(folder: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(path)).ok()
}

/// What was asked about.
fn changes(question: &Question) -> &Changes {
    match &question.effect {
        Effect::Write { changes, .. } => changes,
        Effect::Command { .. } | Effect::Fetch { .. } | Effect::Confirmed | Effect::Plan { .. } => {
            panic!("something else was asked: {question:?}")
        }
    }
}

/// Every kind of change.
const ALL_KINDS: &str = r#"
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

fn with_files(house: &House) {
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
        house.write(path, text);
    }
    std::fs::create_dir(house.folder().join("empty")).expect("a folder");
}

#[test]
fn r042_what_is_asked_is_what_changes_and_the_guest_sees_it_at_once() {
    let approver = Arc::new(Scripted::with([Answer::Yes]));
    let house = Plan::default().guest(&edit(ALL_KINDS)).asking(&approver).build();
    with_files(&house);
    let text = house.answers("edit", "{}");
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
    let [question] = &approver.asked()[..] else { panic!("not one question") };
    let lines: Vec<String> = changes(question).iter().map(ToString::to_string).collect();
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
    let folder = house.folder();
    let after = ["over", "log", "middle", "long", "to", "new/file", "new/tree/leaf", "link", "untouched"].map(|path| content(folder, path));
    let expected = ["new\n", "line\nappended\n", "abXXef", "0123", "moves\n", "first\nsecond\n", "leaf\n", "new\n", "stays\n"];
    assert_eq!(after, expected.map(|text| Some(text.to_owned())));
    assert!(["old", "from", "tree", "empty"].iter().all(|path| !folder.join(path).exists()));
    assert_eq!(std::fs::read_link(folder.join("link")).ok().as_deref(), Some(Path::new("over")));
    house.assert_is_fine();
}

#[test]
fn r044_a_no_changes_nothing_and_the_model_hears_it() {
    let approver = Arc::new(Scripted::with([Answer::No { guidance: Some("leave it".into()) }]));
    let house = Plan::default().guest(&edit(ALL_KINDS)).asking(&approver).build();
    with_files(&house);
    let before = all_below(house.folder());
    let answered = house.call("edit", "{}");
    assert_eq!(answered.status, ResultStatus::Rejected);
    assert_says(&answered.text, "It was not carried out");
    assert_says(&answered.text, "leave it");
    assert!(!answered.text.contains("create ok"), "what the tool says of itself is not told: {}", answered.text);
    assert_eq!(all_below(house.folder()), before);
}

#[test]
fn r126_plan_mode_changes_nothing_and_a_call_that_changes_nothing_needs_no_leave() {
    let house = Plan::default().guest(&edit(ALL_KINDS)).mode(Mode::Plan).build();
    with_files(&house);
    let before = all_below(house.folder());
    assert_says(&house.fails("edit", "{}"), "denied (mode)");
    assert_eq!(all_below(house.folder()), before);
    let steps = r#"(call $read @"over") (call $overwrite @"over" @"old\n") (call $create @"x" @"x") (call $delete @"x")"#;
    let house = Plan::default().guest(&edit(steps)).mode(Mode::Plan).build();
    with_files(&house);
    assert_says(&house.answers("edit", "{}"), "overwrite ok\ncreate ok\ndelete ok");
    assert_eq!(all_below(house.folder()), before);
}

#[test]
fn a_call_that_fails_changes_nothing() {
    let house = editing(&format!("{ALL_KINDS} unreachable"));
    with_files(&house);
    let before = all_below(house.folder());
    let text = house.fails("edit", "{}");
    assert_says(&text, "the tool crashed");
    assert_says(&text, "Nothing was changed");
    assert_eq!(all_below(house.folder()), before);
    house.assert_is_fine();
}

#[test]
fn r039_dont_ask_again_covers_the_paths_that_really_change() {
    let approver = Arc::new(Scripted::with([Answer::YesForScope]));
    let house = Plan::default().guest(&edit(r#"(call $append @"src/a" {{text}})"#).with("{{text}}", "@\"1\"")).asking(&approver).build();
    house.write("src/a", "0");
    house.answers("edit", r#"{"path":"elsewhere"}"#);
    let asked = approver.asked();
    assert_eq!(asked[0].scope.as_ref().map(ToString::to_string).as_deref(), Some("edit writing src/a"));
    house.answers("edit", "{}");
    assert_eq!(approver.asked().len(), 1);
    assert_eq!(content(house.folder(), "src/a").as_deref(), Some("011"));
}

/// Changes something while the question is open, and says yes.
struct Meddler(Mutex<Box<dyn FnMut() + Send>>);

impl Approver for Meddler {
    fn ask<'a>(&'a self, _: &'a Question) -> std::pin::Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        (self.0.lock().expect("nobody panicked"))();
        Box::pin(async { Answer::Yes })
    }
}

#[test]
fn r119_what_somebody_else_changed_in_the_meantime_is_not_overwritten() {
    let folder = Arc::new(Mutex::new(std::path::PathBuf::new()));
    for (name, meddle) in [
        ("changed", (|folder: &Path| std::fs::write(folder.join("over"), "theirs").expect("written")) as fn(&Path)),
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
        let approver = Arc::new(Meddler(Mutex::new(Box::new(move || meddle(&meddled.lock().expect("nobody panicked"))))));
        let house = Plan::default().guest(&edit(ALL_KINDS)).asking(&approver).build();
        *folder.lock().expect("nobody panicked") = house.folder().to_owned();
        with_files(&house);
        let text = house.fails("edit", "{}");
        assert_says(&text, "was changed by somebody else since this call looked at it, so nothing was changed");
        assert!(content(house.folder(), "old").is_some() && !house.folder().join("to").exists(), "{name}");
        house.assert_is_fine();
    }
}

#[test]
fn r119_what_changed_since_it_was_read_is_neither_overwritten_nor_removed() {
    let tool = |name: &str, steps: &str| edit(steps).tools([Tool::named(name).asking(&[Capability::WriteFiles])]);
    // The first may write too, and does not.
    let house = Plan::default()
        .guest(&tool("look", r#"(call $read @"f")"#))
        .guest(&tool("overwrite", r#"(call $overwrite @"f" @"ours\n")"#))
        .guest(&tool("delete", r#"(call $delete @"f")"#))
        .guest(&tool("rename", r#"(call $rename @"f" @"g")"#))
        .build();
    house.write("f", "one\n");
    house.answers("look", "{}");
    house.write("f", "theirs\n");
    for tool in ["overwrite", "delete", "rename"] {
        assert_says(&house.fails(tool, "{}"), "'f' has changed on disk since it was last read, so nothing was changed. Read it again");
        assert_eq!(content(house.folder(), "f").as_deref(), Some("theirs\n"), "{tool}");
    }
    house.answers("look", "{}");
    for (tool, left) in [("overwrite", Some("ours\n")), ("overwrite", Some("ours\n")), ("delete", None), ("overwrite", Some("ours\n"))] {
        house.answers(tool, "{}");
        assert_eq!(content(house.folder(), "f").as_deref(), left, "{tool}");
    }
}

#[test]
fn permissions_stay_and_set_id_bits_do_not() {
    let steps = r#"
        (call $overwrite @"script" @"new")
        (call $create @".tmp" @"replaced")
        (call $rename @".tmp" @"tool")
        (call $rename @"from" @"to")
        (call $overwrite @"setuid" @"new")
    "#;
    let house = editing(steps);
    let path = |name: &str| house.folder().join(name);
    for (name, mode) in [("script", 0o755), ("tool", 0o750), ("from", 0o700), ("setuid", 0o4755)] {
        house.write(name, "old");
        std::fs::set_permissions(path(name), PermissionsExt::from_mode(mode)).expect("it is set");
    }
    house.answers("edit", "{}");
    let mode = |name: &str| path(name).metadata().expect("it is there").permissions().mode() & 0o7777;
    assert_eq!([mode("script"), mode("tool"), mode("to"), mode("setuid")], [0o755, 0o750, 0o700, 0o755]);
    assert_eq!(content(house.folder(), "tool").as_deref(), Some("replaced"));
}

#[test]
fn r123_a_file_with_another_name_outside_is_not_written() {
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("file"), "theirs").expect("it is written");
    let house = editing(r#"(call $overwrite @"linked" @"mine") (call $rename @"linked" @"x") (call $hardlink @"own" @"second")"#);
    house.write("own", "own");
    std::fs::hard_link(outside.path().join("file"), house.folder().join("linked")).expect("a link");
    let text = house.answers("edit", "{}");
    assert_says(&text, "overwrite error 0\nrename error 0\nhardlink error");
    assert_says(&text, "denied (hard-link): 'linked' has 2 names");
    assert_eq!(content(outside.path(), "file").as_deref(), Some("theirs"));
}

#[test]
fn tricks_with_directories_and_links_are_refused() {
    let steps = r#"
        (call $rmdir @".")
        (call $rename @"." @"x")
        (call $rename @"a" @"a/b")
        (call $rename @"file" @"a")
        (call $rename @"a" @"full")
        (call $rmdir @"full")
        (call $delete @"full")
        (call $mkdir @"full")
        (call $symlink @"/etc" @"etc")
        (call $symlink @"a/../../etc" @"up")
        (call $create @"out/file" @"x")
        (call $create @"file/below" @"x")
    "#;
    let house = editing(steps);
    house.write("file", "file");
    house.write("full/inner", "inner");
    std::fs::create_dir(house.folder().join("a")).expect("a folder");
    symlink("/tmp", house.folder().join("out")).expect("a link");
    let before = all_below(house.folder());
    let text = house.answers("edit", "{}");
    assert_eq!(text.lines().filter(|line| line.contains(" error ")).count(), 12, "{text}");
    assert_eq!(all_below(house.folder()), before);
    house.assert_is_fine();
}

#[test]
fn r123_no_link_leads_out_whatever_way_it_is_brought_to_its_place() {
    for steps in [
        r#"(call $mkdir @"a") (call $mkdir @"a/b") (call $symlink @"../../../etc/passwd" @"a/b/l") "#,
        r#"(call $symlink @"../../in" @"a/b/l") (call $rename @"a/b/l" @"l")"#,
        r#"(call $symlink @"../../in" @"a/b/l") (call $rename @"a/b" @"b")"#,
        r#"(call $symlink @"../.." @"a/b/s") (call $symlink @"a/b/s/../../etc" @"l")"#,
        r#"(call $symlink @"out/x" @"l")"#,
    ] {
        let house = editing(steps);
        house.write("a/b/file", "x");
        symlink("/etc", house.folder().join("out")).expect("a link");
        let text = house.call("edit", "{}").text;
        assert!(text.contains("outside-workspace") || text.contains("leads out of the workspace"), "{steps}: {text}");
        assert!(!["l", "b/l"].iter().any(|path| house.folder().join(path).is_symlink()), "{steps}");
    }
    let house = editing(r#"(call $symlink @"../x" @"a/l") (call $rename @"a/l" @"a/b/l") (call $symlink @"a/missing" @"m")"#);
    house.write("a/b/file", "x");
    assert_says(&house.answers("edit", "{}"), "symlink ok\nrename ok\nsymlink ok");
}

#[test]
fn a_new_file_does_not_take_a_link_for_nothing() {
    let house = editing(r#"(call $create @"l" @"x")"#);
    symlink("target", house.folder().join("l")).expect("a link");
    assert_says(&house.answers("edit", "{}"), "create error 7");
    assert!(!house.folder().join("target").exists());
}

#[test]
fn r098_what_is_replaced_is_kept_and_so_it_is_bounded() {
    let house = editing(r#"(call $delete @"huge")"#);
    std::fs::File::create(house.folder().join("huge")).expect("made").set_len(300 << 20).expect("it is sparse");
    assert_says(&house.fails("edit", "{}"), "replaced or removed more than 256 MiB");
    assert!(house.folder().join("huge").exists());
}

#[test]
fn a_directory_moves_as_a_whole_or_stays() {
    let house = editing(r#"(call $rename @"d" @"e") (call $create @"x" @"x")"#);
    house.write("d/a", "small");
    std::fs::create_dir(house.folder().join("d/z")).expect("a folder");
    std::fs::File::create(house.folder().join("d/large")).expect("made").set_len(65 << 20).expect("it is sparse");
    assert_says(&house.answers("edit", "{}"), "rename error 8\ncreate ok");
    assert!(["d/a", "d/z", "d/large", "x"].iter().all(|path| house.folder().join(path).exists()));
    assert!(!house.folder().join("e").exists());
}

#[test]
fn one_thing_takes_the_place_of_another() {
    let steps = r#"
        (call $delete @"file")
        (call $mkdir @"file")
        (call $create @"file/inner" @"1")
        (call $delete @"dir/inner")
        (call $rmdir @"dir")
        (call $create @"dir" @"2")
        (call $delete @"link")
        (call $mkdir @"link")
        (call $create @"link/inner" @"3")
        (call $delete @"again/inner")
        (call $rmdir @"again")
        (call $mkdir @"again")
        (call $create @"again/inner" @"4")
        (call $delete @"again/inner")
    "#;
    let house = editing(steps);
    house.write("file", "a file");
    house.write("dir/inner", "in a directory");
    house.write("again/inner", "in another");
    symlink("dir", house.folder().join("link")).expect("a link");
    let text = house.answers("edit", "{}");
    assert!(text.lines().all(|line| line.ends_with(" ok")), "{text}");
    let after = ["file/inner", "dir", "link/inner"].map(|path| content(house.folder(), path));
    assert_eq!(after, ["1", "2", "3"].map(|text| Some(text.to_owned())));
    assert!(house.folder().join("again").is_dir() && !house.folder().join("again/inner").exists());
}

#[test]
fn r098_what_a_call_may_write_aside_is_bounded() {
    let house = House::with(&Guest::named("many-creates").asking(&[Capability::WriteFiles]));
    let text = house.answers("many_creates", "{}");
    assert_says(&text, "1000 created, then error ");
    assert_says(&text, "denied (too-much)");
    let house = editing(
        r#"(call $create @"sparse" @"x") (call $resize @"sparse" (i64.const 1099511627776)) (call $write-at @"sparse" @"x" (i64.const 1099511627776))"#,
    );
    assert_says(&house.answers("edit", "{}"), "create ok\nresize error 8\nwrite-at error 8");
    assert_eq!(std::fs::metadata(house.folder().join("sparse")).expect("it is there").len(), 1);
    house.assert_is_fine();
}

#[test]
fn r098_no_file_becomes_larger_than_one_may_be_whatever_way_it_is_written() {
    let house =
        editing(r#"(call $create @"f" @"x") (call $resize @"f" (i64.const 67108863)) (call $append @"f" @"1") (call $append @"f" @"2")"#);
    assert_says(&house.answers("edit", "{}"), "create ok\nresize ok\nappend ok\nappend error");
    assert_eq!(std::fs::metadata(house.folder().join("f")).expect("it is there").len(), 64 << 20);
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
    let house = editing(steps);
    house.write("f", "old");
    let text = house.answers("edit", "{}");
    assert_says(&text, "kept old\nappend ok\nkept old and new\noverwrite ok\nkept newer\ndelete ok\nkept newer");
}

/// Every path with its kind and content.
pub(crate) fn all_below(folder: &Path) -> Vec<String> {
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
            all.push(format!("{} {text:?}", path.strip_prefix(folder).expect("it is below").display()));
        }
    }
    all.sort();
    all
}
