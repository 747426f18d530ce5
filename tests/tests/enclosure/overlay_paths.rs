//! Links, directories and permissions of files that are written aside.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::assert_contains;
use crate::overlay::{directory_snapshot, edit_host, read_content};

#[test]
fn permissions_stay_and_set_id_bits_do_not() {
    let steps = r#"
        (call $overwrite @"script" @"new")
        (call $create @".tmp" @"replaced")
        (call $rename @".tmp" @"tool")
        (call $rename @"from" @"to")
        (call $overwrite @"setuid" @"new")
    "#;
    let test_host = edit_host(steps);
    let path = |name: &str| test_host.workspace_dir().join(name);
    for (name, mode) in [("script", 0o755), ("tool", 0o750), ("from", 0o700), ("setuid", 0o4755)] {
        test_host.write_file(name, "old");
        std::fs::set_permissions(path(name), PermissionsExt::from_mode(mode)).expect("it is set");
    }
    test_host.call_ok("edit", "{}");
    let mode =
        |name: &str| path(name).metadata().expect("it is there").permissions().mode() & 0o7777;
    assert_eq!(
        [mode("script"), mode("tool"), mode("to"), mode("setuid")],
        [0o755, 0o750, 0o700, 0o755]
    );
    assert_eq!(read_content(test_host.workspace_dir(), "tool").as_deref(), Some("replaced"));
}

#[test]
fn r123_a_file_with_another_name_outside_is_not_written() {
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("file"), "theirs").expect("it is written");
    let test_host = edit_host(
        r#"(call $overwrite @"linked" @"mine") (call $rename @"linked" @"x")
            (call $hardlink @"own" @"second")"#,
    );
    test_host.write_file("own", "own");
    std::fs::hard_link(outside.path().join("file"), test_host.workspace_dir().join("linked"))
        .expect("a link");
    let text = test_host.call_ok("edit", "{}");
    assert_contains(&text, "overwrite error 0\nrename error 0\nhardlink error");
    assert_contains(&text, "denied (hard-link): `linked` has 2 hard links");
    assert_eq!(read_content(outside.path(), "file").as_deref(), Some("theirs"));
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
    let test_host = edit_host(steps);
    test_host.write_file("file", "file");
    test_host.write_file("full/inner", "inner");
    std::fs::create_dir(test_host.workspace_dir().join("a")).expect("a folder");
    symlink("/tmp", test_host.workspace_dir().join("out")).expect("a link");
    let before = directory_snapshot(test_host.workspace_dir());
    let text = test_host.call_ok("edit", "{}");
    assert_eq!(text.lines().filter(|line| line.contains(" error ")).count(), 12, "{text}");
    assert_eq!(directory_snapshot(test_host.workspace_dir()), before);
    test_host.assert_healthy();
}

#[test]
fn r123_no_link_leads_out_whatever_way_it_is_brought_to_its_place() {
    for steps in [
        r#"(call $mkdir @"a") (call $mkdir @"a/b")
            (call $symlink @"../../../etc/passwd" @"a/b/l")"#,
        r#"(call $symlink @"../../in" @"a/b/l") (call $rename @"a/b/l" @"l")"#,
        r#"(call $symlink @"../../in" @"a/b/l") (call $rename @"a/b" @"b")"#,
        r#"(call $symlink @"../.." @"a/b/s") (call $symlink @"a/b/s/../../etc" @"l")"#,
        r#"(call $symlink @"out/x" @"l")"#,
    ] {
        let test_host = edit_host(steps);
        test_host.write_file("a/b/file", "x");
        symlink("/etc", test_host.workspace_dir().join("out")).expect("a link");
        let text = test_host.call("edit", "{}").text;
        assert!(
            text.contains("outside-workspace") || text.contains("points outside the workspace"),
            "{steps}: {text}"
        );
        assert!(
            !["l", "b/l"].iter().any(|path| test_host.workspace_dir().join(path).is_symlink()),
            "{steps}"
        );
    }
    let test_host = edit_host(
        r#"(call $symlink @"../x" @"a/l") (call $rename @"a/l" @"a/b/l")
            (call $symlink @"a/missing" @"m")"#,
    );
    test_host.write_file("a/b/file", "x");
    assert_contains(&test_host.call_ok("edit", "{}"), "symlink ok\nrename ok\nsymlink ok");
}

#[test]
fn a_new_file_does_not_take_a_link_for_nothing() {
    let test_host = edit_host(r#"(call $create @"l" @"x")"#);
    symlink("target", test_host.workspace_dir().join("l")).expect("a link");
    assert_contains(&test_host.call_ok("edit", "{}"), "create error 7");
    assert!(!test_host.workspace_dir().join("target").exists());
}

#[test]
fn a_directory_moves_as_a_whole_or_stays() {
    let test_host = edit_host(r#"(call $rename @"d" @"e") (call $create @"x" @"x")"#);
    test_host.write_file("d/a", "small");
    std::fs::create_dir(test_host.workspace_dir().join("d/z")).expect("a folder");
    std::fs::File::create(test_host.workspace_dir().join("d/large"))
        .expect("made")
        .set_len(65 << 20)
        .expect("it is sparse");
    assert_contains(&test_host.call_ok("edit", "{}"), "rename error 8\ncreate ok");
    assert!(
        ["d/a", "d/z", "d/large", "x"]
            .iter()
            .all(|path| test_host.workspace_dir().join(path).exists())
    );
    assert!(!test_host.workspace_dir().join("e").exists());
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
    let test_host = edit_host(steps);
    test_host.write_file("file", "a file");
    test_host.write_file("dir/inner", "in a directory");
    test_host.write_file("again/inner", "in another");
    symlink("dir", test_host.workspace_dir().join("link")).expect("a link");
    let text = test_host.call_ok("edit", "{}");
    assert!(text.lines().all(|line| line.ends_with(" ok")), "{text}");
    let after = ["file/inner", "dir", "link/inner"]
        .map(|path| read_content(test_host.workspace_dir(), path));
    assert_eq!(after, ["1", "2", "3"].map(|text| Some(text.to_owned())));
    assert!(
        test_host.workspace_dir().join("again").is_dir()
            && !test_host.workspace_dir().join("again/inner").exists()
    );
}
