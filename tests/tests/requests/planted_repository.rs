//! Tools create no repository whose settings name programs, in any mode and in any order of its
//! files.

use std::process::Command;

use cofferdam_tests::program::TestHome;
use serde_json::json;

use super::new_home;

fn write(home: &TestHome, path: &str) -> (i32, String) {
    let input = json!({"path": path, "content": "text"}).to_string();
    let ran = home.run(&["tools", "call", "write_file", &input, "--mode", "auto"]);
    (ran.exit_code, ran.stdout + &ran.stderr)
}

#[test]
fn the_last_part_of_a_repository_is_denied_whatever_it_is() {
    let parts = ["HEAD", "objects/x", "refs/x", "config"];
    for directory in ["n/", ""] {
        // Without its settings, the rest is a repository already.
        for last in 0..3 {
            let home = new_home();
            let earlier = parts.iter().enumerate().filter(|(at, _)| *at != last);
            for (_, part) in earlier {
                let (code, said) = write(&home, &format!("{directory}{part}"));
                assert_eq!(code, 0, "{part}: {said}");
            }
            let (code, said) = write(&home, &format!("{directory}{}", parts[last]));
            assert!(code != 0 && said.contains("denied (protected)"), "{last}: {said}");
            assert!(said.contains("part of a git repository"), "{last}: {said}");
            assert!(!home.has_file(&format!("{directory}{}", parts[last])), "{last}");
        }
    }
}

#[test]
fn settings_and_hooks_of_an_existing_repository_cannot_be_changed_and_its_data_can() {
    let home = new_home();
    let made = Command::new("git")
        .args(["init", "--quiet", "--bare", "remote.git"])
        .current_dir(home.workspace())
        .status();
    assert!(made.expect("git starts").success());
    for path in ["remote.git/hooks/post-update", "remote.git/config.worktree"] {
        let (code, said) = write(&home, path);
        assert!(code != 0 && said.contains("denied (protected)"), "{path}: {said}");
        assert!(!home.has_file(path), "{path}");
    }
    for path in ["remote.git/description2", "docs/config", "HEAD", "src/hooks/use.ts"] {
        let (code, said) = write(&home, path);
        assert_eq!(code, 0, "{path}: {said}");
    }
}

#[test]
fn undo_restores_no_settings_into_a_directory_that_became_a_repository() {
    let home = new_home();
    let (code, said) = write(&home, "d/config");
    assert_eq!(code, 0, "{said}");
    let input = json!({"command": "rm d/config"}).to_string();
    let ran = home.run(&["tools", "call", "bash", &input, "--mode", "auto"]);
    assert!(ran.exit_code == 0 && !home.has_file("d/config"), "{ran:?}");
    for part in ["d/HEAD", "d/objects/x", "d/refs/x"] {
        home.write_file(&format!("workspace/{part}"), "");
    }
    let ran = home.run(&["undo"]);
    assert!(ran.exit_code != 0 && ran.stderr.contains("part of a git repository"), "{ran:?}");
    assert!(!home.has_file("d/config"));
    let ran = home.run(&["undo", "--force"]);
    assert!(ran.exit_code == 0 && home.has_file("d/config"), "{ran:?}");
}
