//! Secrets and files that other programs run, by every way that leads to them.

use std::os::unix::fs::symlink;

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{Guest, House};

use crate::assert_says;
use crate::staged::editing;

#[test]
fn a_hidden_file_is_seen_and_not_read_whatever_way_leads_to_it() {
    let house = House::with(&Guest::named("open-path").asking(&[Capability::ReadFiles]));
    house.write(".env", "KEY=1");
    house.write("deep/er/.env.local", "KEY=2");
    house.write("keys/id_ed25519", "KEY=3");
    house.write(".env.example", "KEY=");
    symlink(".env", house.folder().join("harmless")).expect("a link");
    symlink("deep/er", house.folder().join("short")).expect("a link");
    symlink(house.folder().join("keys"), house.folder().join("absolute")).expect("a link");
    let ways = [".env", "./deep/../.env", "harmless", "deep/er/.env.local", "short/.env.local", "keys/id_ed25519", "absolute/id_ed25519"];
    for path in ways {
        let text = house.answers("open_path", &serde_json::json!({ "path": path }).to_string());
        assert!(text.starts_with("error 0\n") && !text.contains("KEY"), "{path}: {text}");
        assert_says(&text, "[host: denied (hidden): '");
    }
    assert_eq!(house.answers("open_path", r#"{"path":".env.example"}"#), "read KEY=");
    house.assert_is_fine();
}

#[test]
fn a_walk_names_hidden_files_and_does_not_read_them() {
    let house = House::with(&Guest::named("walk-files").asking(&[Capability::ReadFiles]));
    house.write(".env", "KEY=1");
    house.write(".aws/credentials", "KEY=2");
    house.write("file", "content");
    symlink(".aws", house.folder().join("clouds")).expect("a link");
    assert_eq!(house.answers("walk_files", r#"{"root":""}"#), "file file\ncontent");
    for root in [".aws", "clouds", ".env"] {
        let text = house.answers("walk_files", &format!(r#"{{"root":"{root}"}}"#));
        assert!(!text.contains("KEY"), "{root}: {text}");
    }
}

#[test]
fn a_plugin_that_may_write_plants_no_hook() {
    let steps = r#"
        (call $create @".git/hooks/pre-commit" @"evil")
        (call $overwrite @".git/config" @"[core]\nfsmonitor=evil")
        (call $rename @".git" @".git2")
        (call $mkdir @"sub/.git")
        (call $create @"sub/.git/config" @"evil")
        (call $mkdir @"sub/.git/hooks")
        (call $mkdir @"innocent")
        (call $mkdir @"innocent/hooks")
        (call $create @"innocent/hooks/pre-commit" @"evil")
        (call $rename @"innocent" @"other/.git")
        (call $symlink @"innocent" @"sub2.git")
        (call $symlink @"innocent" @".git/modules")
        (call $create @".GIT/HOOKS/x" @"evil")
        (call $mkdir @".vscode")
        (call $create @".vscode/tasks.json" @"evil")
        (call $rename @"innocent/hooks/pre-commit" @".bashrc")
        (call $create @".git" @"gitdir: innocent")
        (call $delete @".git/config")
        (call $rmdir @".git")
    "#;
    let house = editing(steps);
    house.write(".git/config", "mine");
    house.write(".git/hooks/pre-push", "mine");
    house.write("other/file", "");
    house.write("sub/file", "");
    let text = house.answers("edit", "{}");
    let refused: Vec<&str> = text.lines().filter(|line| line.contains(" error ")).collect();
    assert_eq!(refused.len(), 14, "{text}");
    assert_says(&text, "denied (protected): '.git/hooks/pre-commit' is run or obeyed by other programs");
    let content = |path: &str| std::fs::read_to_string(house.folder().join(path)).expect("it is there");
    assert_eq!((content(".git/config"), content(".git/hooks/pre-push")), ("mine".into(), "mine".into()));
    for path in [".git2", ".git/hooks/pre-commit", "other/.git", "sub/.git/config", "sub/.git/hooks", ".GIT", ".vscode", ".bashrc"] {
        assert!(!house.folder().join(path).exists(), "{path} was made");
    }
    house.assert_is_fine();
}

#[test]
fn what_is_hidden_does_not_move_to_where_it_could_be_read() {
    let steps = r#"
        (call $rename @".env" @"plain")
        (call $rename @"dir" @"dir2")
        (call $read @"plain")
        (call $read @"dir2/.env")
        (call $overwrite @".env" @"gone")
    "#;
    let house = editing(steps);
    house.write(".env", "KEY=1");
    house.write("dir/.env", "KEY=2");
    let text = house.answers("edit", "{}");
    assert!(!text.contains("KEY") && text.lines().filter(|line| line.contains(" error ")).count() == 5, "{text}");
    assert_eq!(std::fs::read_to_string(house.folder().join(".env")).expect("it is there"), "KEY=1");
}
