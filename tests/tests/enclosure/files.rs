//! Paths, links, FIFOs, and writing with a grant to read.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{GuestTool, TestGuest, TestHost};

use crate::{assert_contains, create_fifo};

/// What is in a folder, for comparing.
fn list_directory(folder: &Path) -> Vec<String> {
    let mut all: Vec<String> = std::fs::read_dir(folder)
        .expect("it is there")
        .map(|entry| entry.expect("it is there"))
        .map(|entry| {
            format!(
                "{} {:?}",
                entry.file_name().display(),
                std::fs::read_to_string(entry.path()).ok()
            )
        })
        .collect();
    all.sort();
    all
}

/// A folder next to the workspaces, with a secret in it.
fn outside_directory() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("secret"), "secret").expect("it can be written");
    folder
}

/// What the guest itself says.
fn guest_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with("[host: "))
}

fn open_guest() -> TestGuest {
    TestGuest::from_file("open-path").with_requested(&[Capability::ReadFiles])
}

fn open_in_guest(test_host: &TestHost, path: &str) -> String {
    test_host.call_ok("open_path", &serde_json::json!({ "path": path }).to_string())
}

#[test]
fn r014_a_grant_to_read_changes_nothing() {
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("write-with-a-read-grant").with_requested(&[Capability::ReadFiles]),
    );
    test_host.write_file("file", "content");
    std::fs::create_dir(test_host.workspace_dir().join("dir")).expect("a folder");
    let before = list_directory(test_host.workspace_dir());
    let text = test_host.call_ok("write_with_a_read_grant", "{}");
    assert_eq!(guest_lines(&text).count(), 13, "{text}");
    assert_contains(
        &text,
        "[host: denied (not-granted): this tool has no permission to change \
        files.",
    );
    // `open-to-mutate` may hand out a directory, with which nothing can be done either.
    for line in guest_lines(&text).filter(|line| !line.starts_with("open-to-mutate")) {
        assert!(line.contains(" error "), "{line}\n{text}");
    }
    assert_eq!(list_directory(test_host.workspace_dir()), before);
    test_host.assert_healthy();
}

#[test]
fn r123_no_path_leads_out_through_wasi() {
    let outside = outside_directory();
    let test_host = TestHost::with_guest(&open_guest());
    test_host.write_file("inside/file", "content");
    let name = outside.path().file_name().expect("it has one").to_string_lossy().into_owned();
    symlink(outside.path(), test_host.workspace_dir().join("absolute")).expect("a link");
    symlink(format!("../{name}"), test_host.workspace_dir().join("relative")).expect("a link");
    symlink("../absolute", test_host.workspace_dir().join("inside/twice")).expect("a link");
    symlink("/proc/self/root", test_host.workspace_dir().join("root")).expect("a link");
    symlink("loop", test_host.workspace_dir().join("loop")).expect("a link");
    symlink("inside/file", test_host.workspace_dir().join("good")).expect("a link");
    assert_eq!(open_in_guest(&test_host, "inside/file"), "read content");
    assert_eq!(open_in_guest(&test_host, "good"), "read content");
    assert_eq!(open_in_guest(&test_host, "./inside/../good"), "read content");
    let climbing = format!("../{name}/secret");
    let deep = format!("inside/{}etc/passwd", "../".repeat(40));
    let absolute = outside.path().join("secret").display().to_string();
    let paths = [
        "..",
        "../",
        &climbing,
        &deep,
        &absolute,
        "/etc/passwd",
        "/proc/self/root/etc/passwd",
        "//etc/passwd",
        "absolute/secret",
        "absolute",
        "relative/secret",
        "inside/twice/secret",
        "root/etc/passwd",
        "loop",
        "inside/file/",
        "inside/file/..",
        "",
        "absolute/../inside/file/../../..",
        "inside/../../x",
    ];
    for path in paths {
        let text = open_in_guest(&test_host, path);
        assert!(text.starts_with("error "), "{path}: {text}");
    }
    test_host.assert_healthy();
}

#[test]
fn r123_odd_paths_are_errors() {
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("odd-paths").with_requested(&[Capability::ReadFiles]),
    );
    test_host.write_file("file", "content");
    let text = test_host.call_ok("odd_paths", "{}");
    assert!(
        text.lines().count() == 2 && text.lines().all(|line| line.contains(" error ")),
        "{text}"
    );
    test_host.assert_healthy();
}

#[test]
fn r123_a_path_that_leads_out_is_refused_before_the_call_where_the_schema_marks_it() {
    let schema =
        r#"{"type":"object","properties":{"path":{"type":"string","format":"workspace-path"}}}"#;
    let outside = outside_directory();
    let test_host =
        TestHost::with_guest(
            &TestGuest::from_file("open-path").with_tools([GuestTool::new("open_path")
                .with_schema(schema)
                .with_requested(&[Capability::ReadFiles])]),
        );
    symlink(outside.path(), test_host.workspace_dir().join("link")).expect("a link");
    for (path, says) in [
        ("../x", "is outside the workspace"),
        ("/etc/passwd", "absolute path"),
        ("link/secret", "symbolic link to a path outside"),
        ("a\\u0000b", "NUL"),
    ] {
        let text = test_host.call_error("open_path", &format!(r#"{{"path":"{path}"}}"#));
        assert_contains(&text, "denied (outside-workspace)");
        assert_contains(&text, says);
    }
}

#[test]
fn r123_writing_stays_inside() {
    let outside = outside_directory();
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("break-out").with_requested(&[Capability::WriteFiles]),
    );
    test_host.write_file("file", "content");
    symlink(outside.path(), test_host.workspace_dir().join("out")).expect("a link");
    let beside = |name: &str| test_host.workspace_dir().with_file_name(name);
    // Whatever else lies in the directory of temporary files.
    let before =
        ["new", "file"].map(|name| beside(name).symlink_metadata().ok().map(|there| there.ctime()));
    let text = test_host.call_ok("break_out", "{}");
    assert_eq!(guest_lines(&text).count(), 8, "{text}");
    assert_contains(
        &text,
        "[host: denied (outside-workspace): `out/new` is, or passes through, a symbolic link to a \
            path outside",
    );
    for line in guest_lines(&text) {
        assert!(line.contains(" error "), "{line}\n{text}");
    }
    assert_eq!(list_directory(outside.path()), ["secret Some(\"secret\")"]);
    assert_eq!(
        ["new", "file"].map(|name| beside(name).symlink_metadata().ok().map(|there| there.ctime())),
        before
    );
    test_host.assert_healthy();
}

#[test]
fn r123_a_link_that_a_guest_makes_leads_nowhere() {
    let outside = outside_directory();
    let name = outside.path().file_name().expect("it has one").to_string_lossy().into_owned();
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("link-out")
            .with_replacement("{{outside}}", &name)
            .with_requested(&[Capability::WriteFiles]),
    );
    let text = test_host.call_ok("link_out", "{}");
    assert_contains(&text, "\nread error ");
    assert_contains(&text, "\nwrite error ");
    assert_eq!(list_directory(outside.path()), ["secret Some(\"secret\")"]);
    test_host.assert_healthy();
}

#[test]
fn a_hard_link_to_an_outside_file_reads_as_an_inside_file() {
    // Nobody can tell the two apart; only somebody outside of the enclosure can make one.
    let test_host = TestHost::with_guest(&open_guest());
    let beside = tempfile::tempdir().expect("a folder");
    std::fs::write(beside.path().join("file"), "linked").expect("it can be written");
    std::fs::hard_link(beside.path().join("file"), test_host.workspace_dir().join("linked"))
        .expect("a link");
    assert_eq!(open_in_guest(&test_host, "linked"), "read linked");
}

#[test]
fn r098_a_fifo_is_refused_before_anything_waits_for_it() {
    let test_host = TestHost::with_guest(&open_guest());
    create_fifo(&test_host.workspace_dir().join("fifo"));
    symlink("fifo", test_host.workspace_dir().join("link")).expect("a link");
    let _socket = std::os::unix::net::UnixListener::bind(test_host.workspace_dir().join("socket"))
        .expect("it is bound");
    for path in ["fifo", "link", "socket"] {
        let text = open_in_guest(&test_host, path);
        assert!(text.starts_with("error "), "{path}: {text}");
        assert_contains(&text, "denied (special-file)");
    }
    // Nobody waits for a writer: one that does not wait for a reader finds none.
    let writer = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
    let opened =
        rustix::fs::open(test_host.workspace_dir().join("fifo"), writer, rustix::fs::Mode::empty());
    assert_eq!(opened.err(), Some(rustix::io::Errno::NXIO));
    test_host.assert_healthy();
}

#[test]
fn a_folder_and_a_device_are_no_files() {
    let test_host = TestHost::with_guest(&open_guest());
    std::fs::create_dir(test_host.workspace_dir().join("dir")).expect("a folder");
    symlink("/dev/zero", test_host.workspace_dir().join("zero")).expect("a link");
    assert!(open_in_guest(&test_host, "dir").starts_with("error "));
    assert!(open_in_guest(&test_host, "zero").starts_with("error "));
    test_host.assert_healthy();
}
