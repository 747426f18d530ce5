//! Tests of changes by other processes during a commit.

use super::*;

#[test]
fn a_path_created_at_the_last_moment_is_not_replaced() {
    let directory = tempfile::tempdir().expect("create a temporary directory");
    let root =
        Dir::open_ambient_dir(directory.path(), cap_std::ambient_authority()).expect("it opens");
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("data"), "ours").expect("write the file");
    std::fs::write(path("old"), "old").expect("write the file");
    let old = FileState::read(&root, "old").expect("read the file");
    for name in ["new", "old"] {
        std::fs::remove_file(path(name)).unwrap_or_default();
        std::fs::write(path(name), "theirs").expect("write the file");
    }
    let digest = hex(&Sha256::digest("ours"));
    let file = CommittedNewFile { data: &path("data"), digest: &digest, rights: None };
    for (name, expected) in [("new", &FileState::Absent), ("old", &old)] {
        assert!(
            matches!(
                write(&root, name, &file, "temporary", expected),
                Err(CommitStepFault::Changed)
            ),
            "{name}"
        );
        assert!(
            matches!(
                create_link(&root, name, "data", "temporary", expected),
                Err(CommitStepFault::Changed)
            ),
            "{name}"
        );
        assert_eq!(std::fs::read_to_string(path(name)).ok().as_deref(), Some("theirs"));
    }
    assert!(matches!(remove(&root, "old", &old), Err(CommitStepFault::Changed)));
    assert!(matches!(create_directory(&root, "new", false), Err(CommitStepFault::Changed)));
    assert!(!path("temporary").exists());
    std::fs::write(path("temporary"), "ours").expect("write the file");
    assert!(matches!(rename_if_absent(&root, "temporary", "new"), Err(CommitStepFault::Changed)));
    rename_if_absent(&root, "temporary", "free").expect("there is nothing");
    assert_eq!(std::fs::read_to_string(path("free")).ok().as_deref(), Some("ours"));
    write(&root, "fresh", &file, "temporary", &FileState::Absent).expect("there is nothing");
    assert_eq!(std::fs::read_to_string(path("fresh")).ok().as_deref(), Some("ours"));
}
