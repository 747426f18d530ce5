//! Kinds of entries that need care.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};

use super::{describe_tree, differences, private_host, run_ok, undo};
use crate::run_line;

#[test]
fn each_kind_of_change_is_committed_and_undone() {
    let test_host = private_host();
    let root = test_host.workspace_dir();
    for (name, text) in [("changed", "old\n"), ("removed", "gone\n"), ("d/inner", "inner\n")] {
        test_host.write_file(name, text);
    }
    for name in ["becomes-directory", "tree/a/b", "opaque/old", "mode/file"] {
        test_host.write_file(name, "old\n");
    }
    std::os::unix::fs::symlink("changed", root.join("link")).expect("a link");
    let before = describe_tree(root);
    run_ok(
        &test_host,
        "echo new > changed; rm removed; echo more >> d/inner; echo n > d/new; mkdir -p new/a/b
         echo deep > new/a/b/c; rm becomes-directory; mkdir becomes-directory
         echo x > becomes-directory/x; rm -r tree; echo file > tree; rm -r opaque; mkdir opaque
         echo n > opaque/new; chmod 750 mode; chmod 600 mode/file; ln -sfn d link
         mkfifo fifo; ln -s nowhere dangling; truncate -s 1G sparse",
    );
    let after = describe_tree(root);
    let text = |path: &str| fs::read_to_string(root.join(path)).expect("it is read");
    assert_eq!(text("changed"), "new\n");
    assert_eq!(text("d/inner"), "inner\nmore\n");
    assert_eq!(text("new/a/b/c"), "deep\n");
    assert_eq!(text("tree"), "file\n");
    assert_eq!(fs::read_dir(root.join("opaque")).expect("it is listed").count(), 1);
    assert_eq!(after["mode"], "directory 750");
    assert_eq!(after["mode/file"], "file 600 \"old\\n\"");
    assert_eq!(after["link"], "link to d");
    assert!(!after.contains_key("removed"));
    let sparse = root.join("sparse").metadata().expect("it is there");
    assert!((sparse.len(), sparse.blocks()) == (1 << 30, 0), "{sparse:?}");
    assert!(root.join("fifo").metadata().expect("it is there").file_type().is_fifo());
    undo(&test_host);
    assert_eq!(differences(&before, &describe_tree(root)), [""; 0]);
}

#[test]
fn a_file_that_was_only_opened_for_writing_is_no_change() {
    let test_host = private_host();
    test_host.write_file("file", "text\n");
    let before = test_host.workspace_dir().join("file").metadata().expect("it is there").ino();
    run_ok(&test_host, ": >> file; flock file true");
    let after = test_host.workspace_dir().join("file").metadata().expect("it is there").ino();
    assert_eq!(before, after);
    assert!(test_host.history().list().expect("it is listed").is_empty());
    // The same size and time do not hide another content.
    run_ok(&test_host, "touch -r file time; echo TEXT > file; touch -r time file; rm time");
    let text = fs::read_to_string(test_host.workspace_dir().join("file")).expect("it is read");
    assert_eq!(text, "TEXT\n");
}

#[test]
fn times_of_files_survive() {
    let test_host = private_host();
    test_host.write_file("old", "old\n");
    run_ok(
        &test_host,
        "touch -d 2001-02-03T04:05:06Z old new; mkdir d; touch -d 2002-02-03T04:05:06Z d/inner d",
    );
    let time =
        |path: &str| test_host.workspace_dir().join(path).metadata().expect("it is there").mtime();
    assert_eq!((time("old"), time("new")), (981_173_106, 981_173_106));
    assert_eq!((time("d/inner"), time("d")), (1_012_709_106, 1_012_709_106));
}

#[test]
fn links_between_new_files_stay_and_a_new_name_of_an_old_file_is_the_same_file() {
    let test_host = private_host();
    test_host.write_file("old", "old\n");
    run_ok(&test_host, "echo x > one; ln one two; mkdir d; ln one d/three; ln old name");
    let inode =
        |path: &str| test_host.workspace_dir().join(path).metadata().expect("it is there").ino();
    assert_eq!(inode("one"), inode("two"));
    assert_eq!(inode("one"), inode("d/three"));
    assert_eq!(inode("old"), inode("name"));
    let text = fs::read_to_string(test_host.workspace_dir().join("name")).expect("it is read");
    assert_eq!(text, "old\n");
}

#[test]
fn a_hard_link_to_an_old_file_is_separated_when_a_command_writes_it() {
    let test_host = private_host();
    test_host.write_file("one", "old\n");
    let root = test_host.workspace_dir();
    fs::hard_link(root.join("one"), root.join("other")).expect("it is linked");
    run_ok(&test_host, "echo new > one");
    let text = |path: &str| fs::read_to_string(root.join(path)).expect("it is read");
    assert_eq!((text("one"), text("other")), ("new\n".into(), "old\n".into()));
}

#[test]
fn writes_through_a_memory_map_and_by_a_background_process_are_committed_to_the_end() {
    let test_host = private_host();
    test_host.write_file("mapped", "0123456789\n");
    run_ok(
        &test_host,
        "PATH=/usr/bin:/bin python3 -c 'import mmap\nwith open(\"mapped\", \"r+b\") as f:\n m = \
            mmap.mmap(f.fileno(), 0)\n m[0:3] = b\"abc\"'",
    );
    let text =
        |path: &str| fs::read_to_string(test_host.workspace_dir().join(path)).expect("it is read");
    assert_eq!(text("mapped"), "abc3456789\n");
    // The process ends with its command, and with it all writing.
    run_ok(&test_host, "(i=0; while :; do i=$((i+1)); echo $i > count; done) & sleep 0.2");
    let count = text("count");
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(text("count"), count);
}

#[test]
fn attributes_of_files_survive_and_those_of_overlays_do_not_stay() {
    let test_host = private_host();
    test_host.write_file("old", "old\n");
    test_host.write_file("d/old", "old\n");
    run_ok(
        &test_host,
        "PATH=/usr/bin:/bin python3 -c 'import os\nos.setxattr(\"old\", \"user.mine\", b\"1\")\n\
            os.mkdir(\"new\"); os.setxattr(\"new\", \"user.mine\", b\"2\")'
         echo x >> d/old; mv d/old new/moved; rm -r d; mkdir d; echo y > d/new",
    );
    for path in ["old", "new", "new/moved", "d", "d/new"] {
        let mut names = [0; 256];
        let path = test_host.workspace_dir().join(path);
        let length = rustix::fs::llistxattr(&path, &mut names).expect("they are listed");
        let names = String::from_utf8_lossy(&names[..length]).into_owned();
        assert!(!names.contains("overlay"), "{}: {names:?}", path.display());
    }
    let mut value = [0; 8];
    let of = |path: &str, value: &mut [u8]| {
        rustix::fs::lgetxattr(test_host.workspace_dir().join(path), "user.mine", value)
            .expect("it is read")
    };
    assert_eq!((of("old", &mut value), value[0]), (1, b'1'));
    assert_eq!((of("new", &mut value), value[0]), (1, b'2'));
}

#[test]
fn device_files_cannot_be_created_and_hide_nothing() {
    let test_host = private_host();
    test_host.write_file("kept", "kept\n");
    // A device with the number 0 is how overlayfs hides a file.
    let said = run_line(&test_host, "mknod null c 1 3; mknod none c 0 0; mkdir d; mknod d/x b 0 0");
    assert!(said.contains("mknod: d/x: Permission denied"), "{said}");
    let tree = describe_tree(test_host.workspace_dir());
    assert_eq!(tree.keys().collect::<Vec<_>>(), ["d", "kept"]);
}

#[test]
fn closed_and_read_only_directories_are_committed_and_undone() {
    let test_host = private_host();
    test_host.write_file("old/file", "old\n");
    let root = test_host.workspace_dir();
    fs::set_permissions(root.join("old"), fs::Permissions::from_mode(0o555)).expect("it is set");
    let before = describe_tree(root);
    run_ok(
        &test_host,
        "mkdir -p module/inner; echo x > module/inner/file; chmod -R g-w,o-rwx module; chmod u+w old
         rm -r old",
    );
    let after = describe_tree(root);
    assert_eq!(after["module"], "directory 750");
    assert_eq!(after["module/inner"], "directory 750");
    assert!(!after.contains_key("old"));
    undo(&test_host);
    assert_eq!(differences(&before, &describe_tree(root)), [""; 0]);
}

#[test]
fn a_name_that_is_not_utf_8_is_reported_and_one_in_a_new_directory_stays() {
    use std::os::unix::ffi::OsStrExt as _;
    let test_host = private_host();
    let said = run_line(
        &test_host,
        "PATH=/usr/bin:/bin python3 -c 'import os\nopen(b\"a\\xffb\", \"w\").close()\n\
            os.mkdir(\"d\"); open(b\"d/\\xff\", \"w\").close()'",
    );
    assert!(said.contains("was discarded, because its name is not UTF-8"), "{said}");
    let root = test_host.workspace_dir();
    assert!(root.join("d").join(std::ffi::OsStr::from_bytes(b"\xff")).exists());
    assert_eq!(fs::read_dir(root).expect("it is listed").count(), 1);
}

#[test]
fn a_change_of_permissions_keeps_the_file() {
    let test_host = private_host();
    test_host.write_file("script", "echo hello\n");
    let path = test_host.workspace_dir().join("script");
    let inode = || path.metadata().expect("it is there").ino();
    let before = (inode(), describe_tree(test_host.workspace_dir()));
    run_ok(&test_host, "chmod 750 script");
    assert_eq!(describe_tree(test_host.workspace_dir())["script"], "file 750 \"echo hello\\n\"");
    assert_eq!(inode(), before.0);
    undo(&test_host);
    assert_eq!((inode(), describe_tree(test_host.workspace_dir())), before);
}
