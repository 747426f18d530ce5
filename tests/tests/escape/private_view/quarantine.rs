//! What is moved out of a private view because it must not be in the workspace.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::listed_hosts::{call, home};
use super::super::run_line;
use super::private_host;

/// All paths below a directory whose name has this text in it.
fn find_named(root: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().contains(text) {
            found.push(entry.path());
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(find_named(&entry.path(), text));
        }
    }
    found
}

#[test]
fn a_repository_that_is_too_large_for_an_archive_leaves_the_workspace() {
    for line in [
        "git init --quiet r; git -C r config core.fsmonitor 'touch /tmp/ran; false'; \
            truncate -s 70M r/.git/hooks/big",
        // A repository in a repository in a repository, each with a large file.
        "d=r; for n in 1 2 3 4 5; do git init --quiet $d; git -C $d config core.fsmonitor ran; \
            truncate -s 70M $d/.git/hooks/big; d=$d/.git/hooks/r; done",
        "truncate -s 3G .envrc; mkdir .vscode; truncate -s 70M .vscode/tasks.json",
    ] {
        let home = home("");
        let ran = call(&home, line);
        let workspace = home.workspace();
        for name in ["set-aside", ".git", "HEAD", ".envrc", "tasks.json"] {
            assert_eq!(find_named(&workspace, name), [] as [PathBuf; 0], "{line}: {ran:?}");
        }
        assert!(!ran.stdout.contains("COULD NOT"), "{ran:?}");
        // It is in the quarantine directory, as a whole, and a file tells where.
        let states = home.path().join("state");
        let places: Vec<String> = find_named(&states, ".txt")
            .iter()
            .filter_map(|file| Some(fs::read_to_string(file).ok()?.lines().last()?.to_owned()))
            .filter(|place| Path::new(place).exists())
            .collect();
        assert!(!places.is_empty(), "{line}: {ran:?}");
        assert!(ran.stdout.contains("it was moved to "), "{ran:?}");
    }
}

#[test]
fn two_commands_create_no_repository_that_neither_could_create_alone() {
    let home = home("");
    let control = "mkdir r; printf '[core]\\n\\tfsmonitor = ran\\n' > r/config; mkdir r/hooks; \
        printf '#!/bin/sh\\n' > r/hooks/post-checkout; chmod +x r/hooks/post-checkout; sleep 3";
    let markers = "mkdir -p r/objects r/refs/heads; echo 'ref: refs/heads/main' > r/HEAD";
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| call(&home, control));
        std::thread::sleep(std::time::Duration::from_millis(1200));
        let second = call(&home, markers);
        (first.join().expect("it ran"), second)
    });
    assert_eq!(second.exit_code, 0, "{second:?}");
    assert!(home.has_file("r/HEAD"), "{second:?}");
    assert!(!home.has_file("r/config") && !home.has_file("r/hooks"), "{first:?}");
    assert!(first.stdout.contains("r/config") || first.stderr.contains("r/config"), "{first:?}");
}

#[test]
fn a_workspace_with_paths_too_long_to_be_searched_is_refused() {
    let test_host = private_host();
    let name = "x".repeat(200);
    let make = format!(
        "import os\nfor n in range(25):\n  os.mkdir('{name}')\n  os.chdir('{name}')\n  \
            open('.env', 'w').write('SECRET')\n"
    );
    let made = std::process::Command::new("python3")
        .args(["-c", &make])
        .current_dir(test_host.workspace_dir())
        .status();
    assert!(made.expect("it starts").success());
    let read = format!(
        "PATH=/usr/bin:/bin python3 -c \"import os\nfor n in range(25):\n  os.chdir('{name}')\n  \
            try: print(open('.env').read())\n  except OSError: pass\n\""
    );
    for line in [&read, "true"] {
        let said = run_line(&test_host, line);
        assert!(!said.contains("SECRET"), "{said}");
        assert!(said.contains("is too long to be searched for protected paths"), "{said}");
    }
    // Such a directory of a command leaves its view.
    fs::remove_dir_all(test_host.workspace_dir().join(&name)).expect("removed");
    let said =
        run_line(&test_host, &format!("PATH=/usr/bin:/bin python3 -c \"{make}\"; touch new"));
    assert!(said.contains("it was moved to ") && !said.contains("COULD NOT"), "{said}");
    assert!(!test_host.workspace_dir().join(&name).exists(), "{said}");
    assert!(test_host.workspace_dir().join("new").exists(), "{said}");
}
