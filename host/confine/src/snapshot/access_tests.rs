//! Tests with directories that a command closed.

use std::time::Duration;

use super::*;

fn set(root: &Path, path: &str, mode: u32) {
    fs::set_permissions(root.join(path), Permissions::from_mode(mode)).expect("it is set");
}

fn mode(root: &Path, path: &str) -> u32 {
    fs::symlink_metadata(root.join(path)).expect("it is there").mode() & 0o7777
}

fn open_after(root: &Path, before: &ProtectedSnapshot) -> OpenedDirectories {
    OpenedDirectories::open_after(root, before, None, Instant::now() + Duration::from_secs(60))
        .expect("it is looked at")
}

fn before(root: &Path) -> ProtectedSnapshot {
    let opened = OpenedDirectories::open_before(root, &mut || true).expect("it is looked at");
    opened.close(root, &ProtectedSnapshot::default());
    ProtectedSnapshot { closed: opened.into_closed(), ..ProtectedSnapshot::default() }
}

#[test]
fn closed_directories_are_opened_from_the_outside_in() {
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path();
    for closed in (0..8).map(|owner| owner << 6 | 0o055) {
        let name = format!("{closed:o}");
        fs::create_dir_all(root.join(&name).join("in/in")).expect("it is made");
        let known = before(root);
        let inner = format!("{name}/in");
        set(root, &inner, closed);
        set(root, &name, closed);
        set(root, "", closed & 0o700);
        let opened = open_after(root, &known);
        for path in [&inner, &name] {
            assert_eq!(mode(root, path), closed | 0o700, "{path}");
        }
        assert_eq!(mode(root, ""), 0o700, "{name}");
        let notices = opened.notices().concat();
        let is_told = closed & 0o700 != 0o700;
        assert_eq!(notices.contains(&format!("the workspace itself, {name}, {inner};")), is_told);
        opened.close(root, &known);
        assert_eq!(mode(root, &name), closed | 0o700, "{name}");
    }
}

#[test]
fn a_directory_that_was_closed_before_is_open_for_the_look_only() {
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path();
    for name in ["kept", "closed-more", "new"] {
        fs::create_dir_all(root.join(name).join("in")).expect("it is made");
    }
    set(root, "kept", 0o055);
    set(root, "closed-more", 0o500);
    let known = before(root);
    assert_eq!((mode(root, "kept"), mode(root, "closed-more")), (0o055, 0o500));
    set(root, "closed-more", 0);
    let saved = SavedSnapshot::of(&known).restore().expect("it is as it was written");
    for known in [&known, &saved] {
        let opened = open_after(root, known);
        assert_eq!((mode(root, "kept"), mode(root, "closed-more")), (0o755, 0o700));
        assert_eq!(opened.final_mode(Path::new("kept")), Some(0o055));
        assert_eq!(opened.notices(), [""; 0]);
        set(root, "kept", 0o055);
        opened.reopen(root);
        assert_eq!(mode(root, "kept"), 0o755);
        opened.close(root, known);
        assert_eq!((mode(root, "kept"), mode(root, "closed-more")), (0o055, 0o500));
    }
}

#[test]
fn no_link_is_followed_and_time_ends_the_walk() {
    let (place, outside) =
        (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let root = place.path();
    let known = before(root);
    fs::create_dir(outside.path().join("x")).expect("it is made");
    set(outside.path(), "x", 0o500);
    std::os::unix::fs::symlink(outside.path(), root.join("out")).expect("a link");
    std::os::unix::fs::symlink(outside.path().join("x"), root.join("x")).expect("a link");
    open_after(root, &known);
    assert_eq!(mode(outside.path(), "x"), 0o500);
    (0..DIRECTORIES).for_each(|at| fs::create_dir(root.join(at.to_string())).expect("it is made"));
    let ended = OpenedDirectories::open_after(root, &known, None, Instant::now());
    assert!(ended.expect("it is looked at").is_truncated());
}

/// More directories than are visited between two deadline checks.
const DIRECTORIES: usize = 100;
