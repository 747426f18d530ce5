//! Links that lead over other links to where nothing exists yet: what is written at their end is
//! what the first link names.

use std::fs;
use std::os::unix::fs::symlink;

use cofferdam::policy::SandboxLevel;
use cofferdam_tests::guests::TestHost;
use cofferdam_tests::program::TestHome;

use super::{CONFINING_LEVELS, new_host, run_line};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// The links of the user, a command, and a path at which nothing may be left.
type Chain = (&'static [(&'static str, &'static str)], &'static str, &'static str);

const CHAINS: &[Chain] = &[
    (
        &[("d1/vs", ".vscode"), ("d2", "d1")],
        "mkdir -p d2/vs; echo evil > d2/vs/tasks.json",
        ".vscode/tasks.json",
    ),
    (
        &[("d1/vs", ".vscode"), ("d2", "d1")],
        "mkdir d2 d3; ln -s ../d3 d2/vs; echo evil > d3/tasks.json",
        ".vscode/tasks.json",
    ),
    (
        &[("d1/vs", ".vscode"), ("d2", "d1")],
        "ln -s d3 d2; mkdir -p d3/vs; echo evil > d3/vs/tasks.json",
        ".vscode/tasks.json",
    ),
    (
        &[("d1/vs", ".vscode")],
        "ln -s d2 d1; mkdir -p d2/vs; echo evil > d2/vs/tasks.json",
        ".vscode/tasks.json",
    ),
    (
        &[("d1/vs", ".vscode"), ("d2", "d1")],
        "ln -sfn d3 d1; mkdir -p d3/vs; echo evil > d3/vs/tasks.json",
        ".vscode/tasks.json",
    ),
    (
        &[("d1/vs", ".vscode"), ("d2", "d1")],
        "rm d1; mkdir -p d1/vs; echo evil > d1/vs/tasks.json",
        ".vscode/tasks.json",
    ),
    (
        &[("a", ".vscode"), ("b", "a"), ("c/d", "b")],
        "mkdir -p c/d; echo evil > c/d/tasks.json",
        ".vscode/tasks.json",
    ),
    (
        &[("../d1/s.json", ".claude/settings.json"), ("d2", "d1")],
        "mkdir d2; echo evil > d2/s.json",
        ".claude/settings.json",
    ),
    (
        &[("../d1/hooks", ".git/hooks"), ("d2", "d1")],
        "mkdir -p d2/hooks; echo evil > d2/hooks/pre-commit",
        ".git/hooks/pre-commit",
    ),
    (
        &[("d1/mcp", ".mcp.json"), ("d2/../d3", "d1")],
        "mkdir d2 d3; echo evil > d3/mcp",
        ".mcp.json",
    ),
    // In place of a directory that holds protected files.
    (
        &[("d1/c", ".config"), ("d2", "d1")],
        "mkdir -p d2/c/fish; echo evil > d2/c/fish/config.fish",
        ".config/fish/config.fish",
    ),
    (
        &[],
        "mkdir -p d2/fish; ln -s d2 .config; echo evil > d2/fish/config.fish",
        ".config/fish/config.fish",
    ),
    (&[("../d1", ".git/info")], "mkdir d1; echo evil > d1/attributes", ".git/info/attributes"),
    (&[], "mkdir d1; ln -s ../d1 .git/info; echo evil > d1/attributes", ".git/info/attributes"),
];

fn with_links(test_host: &TestHost, links: &[(&str, &str)]) {
    for directory in [".claude", ".git"] {
        fs::create_dir_all(test_host.workspace_dir().join(directory)).expect("it is made");
    }
    for (target, link) in links {
        symlink(target, test_host.workspace_dir().join(link)).expect("it is made");
    }
}

#[test]
fn without_a_sandbox_what_is_written_at_the_end_of_a_chain_is_at_its_beginning() {
    for (links, line, path) in CHAINS {
        let test_host = new_host(SandboxLevel::None);
        with_links(&test_host, links);
        run_line(&test_host, line);
        assert!(test_host.workspace_dir().join(path).exists(), "{line}");
    }
}

#[test]
fn nothing_is_left_at_the_end_of_a_chain_of_links() {
    let mut left = Vec::new();
    for level in CONFINING_LEVELS {
        for (links, line, path) in CHAINS {
            for is_there in [false, true] {
                let test_host = new_host(level);
                with_links(&test_host, links);
                if is_there && !line.contains("-s d3 d2") {
                    fs::create_dir_all(test_host.workspace_dir().join("d2")).expect("it is made");
                }
                let said = run_line(&test_host, &line.replace("mkdir ", "mkdir -p "));
                let is_kept = links.iter().all(|(target, link)| {
                    fs::read_link(test_host.workspace_dir().join(link))
                        .is_ok_and(|now| now == std::path::Path::new(target))
                });
                if test_host.workspace_dir().join(path).exists() || !is_kept {
                    left.push(format!("`{level}`: {links:?}: {line}\n    said: {said}"));
                }
            }
        }
    }
    assert!(left.is_empty(), "{}", left.join("\n"));
}

#[test]
fn a_directory_behind_a_link_on_the_way_can_be_written() {
    for level in CONFINING_LEVELS {
        let test_host = new_host(level);
        test_host.write_file("releases/5/vs/tasks.json", "mine");
        with_links(&test_host, &[("current/vs", ".vscode"), ("releases/5", "current")]);
        let said = run_line(
            &test_host,
            "echo text > current/new; echo more > releases/5/other; mkdir current/sub && echo done",
        );
        assert!(said.contains("done") && !said.contains("[sandbox]"), "{level}: {said}");
        assert!(
            test_host.workspace_dir().join("releases/5/new").exists()
                && test_host.workspace_dir().join("releases/5/other").exists(),
            "{level}: {said}"
        );
        run_line(&test_host, "echo evil > current/vs/tasks.json");
        assert_eq!(
            fs::read_to_string(test_host.workspace_dir().join(".vscode/tasks.json"))
                .expect("it is there"),
            "mine",
            "{level}"
        );
    }
}

#[test]
fn a_directory_that_other_programs_obey_is_no_workspace() {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"))
        .with_file("repo/.git/hooks/x", "")
        .with_file("repo/.vscode/y", "");
    for (directory, refused) in
        [("repo/.git/hooks", true), ("repo/.git", true), ("repo/.vscode", true), ("repo", false)]
    {
        let input = serde_json::json!({"command": "echo ran; echo evil > pre-commit"}).to_string();
        let ran = home.run(&["-C", directory, "tools", "call", "bash", &input, "--mode", "auto"]);
        assert_eq!(ran.stdout.contains("ran"), !refused, "{directory}: {ran:?}");
        assert_eq!(
            ran.stderr.contains("as the workspace: other programs run or use the files in"),
            refused,
            "{directory}: {ran:?}"
        );
    }
    assert!(!home.has_file("repo/.git/hooks/pre-commit"));
}
