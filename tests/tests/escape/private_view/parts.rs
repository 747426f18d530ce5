//! Directories that a command removed or replaced, with some paths that must not change.

use std::fs;

use cofferdam_tests::program::{ProgramOutput, TestHome, wait_for_sleep};

use super::commits::{call, home};
use super::describe_tree;

/// A workspace with an instruction file at two depths. Nobody can be asked about a change of it.
fn home_with_docs() -> TestHome {
    home()
        .with_file("docs/AGENTS.md", "g\n")
        .with_file("docs/x", "s\n")
        .with_file("docs/y", "y\n")
        .with_file("docs/same", "same\n")
        .with_file("docs/deep/AGENTS.md", "d\n")
        .with_file("docs/deep/old", "old\n")
        .with_file("docs/other/z", "z\n")
}

fn run(home: &TestHome, line: &str) -> (ProgramOutput, String) {
    let ran = home.start(call(home, line)).wait_for_exit();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    (ran, said)
}

/// The files of the workspace with their contents.
fn files(home: &TestHome) -> Vec<String> {
    let tree = describe_tree(&home.workspace()).into_iter();
    let files = tree
        .filter(|(path, text)| !text.starts_with("directory") && !path.starts_with(".cofferdam"));
    files.map(|(path, text)| format!("{path} {}", text.replace("file 644 ", ""))).collect()
}

#[test]
fn a_rebuilt_directory_keeps_only_the_paths_that_must_not_change() {
    let home = home_with_docs();
    let before = describe_tree(&home.workspace());
    let line = "rm -rf docs; mkdir -p docs/deep docs/new; echo new > docs/y; echo n > docs/n
        echo same > docs/same; echo new > docs/AGENTS.md; echo new > docs/deep/n; chmod 750 docs
        echo obey > docs/new/AGENTS.md; echo in > docs/new/in; echo file > docs/other
        echo same > top";
    let (ran, said) = run(&home, line);
    assert_eq!(ran.exit_code, 0, "{said}");
    for named in ["docs/AGENTS.md", "docs/deep/AGENTS.md", "docs/new/AGENTS.md"] {
        assert!(said.contains(named), "{named}: {said}");
    }
    assert!(!said.contains("of docs,") && !said.contains("docs/x"), "{said}");
    assert_eq!(
        files(&home),
        [
            r#"docs/AGENTS.md "g\n""#,
            r#"docs/deep/AGENTS.md "d\n""#,
            r#"docs/deep/n "new\n""#,
            r#"docs/n "n\n""#,
            r#"docs/new/in "in\n""#,
            r#"docs/other "file\n""#,
            r#"docs/same "same\n""#,
            r#"docs/y "new\n""#,
            r#"top "same\n""#,
        ],
        "{said}"
    );
    assert_eq!(describe_tree(&home.workspace())["docs"], "directory 750");
    assert_eq!(home.run(&["undo"]).exit_code, 0);
    assert_eq!(describe_tree(&home.workspace()), before);
}

#[test]
fn a_rebuilt_directory_keeps_what_a_rule_denies() {
    let policy = "[write]\ndeny = [\"src/generated/**\"]\n";
    let home = home()
        .with_file(".cofferdam/policy.toml", policy)
        .with_file("src/generated/a", "a\n")
        .with_file("src/b", "b\n");
    let line = "rm -rf src; mkdir -p src/generated; echo A > src/generated/a; echo c > src/c
        echo new > src/generated/new";
    let (ran, said) = run(&home, line);
    assert_eq!(ran.exit_code, 0, "{said}");
    assert_eq!(files(&home), [r#"src/c "c\n""#, r#"src/generated/a "a\n""#], "{said}");
    for named in ["src/generated/a", "policy.toml:2"] {
        assert!(said.contains(named), "{named}: {said}");
    }
}

#[test]
fn a_moved_directory_leaves_only_the_paths_that_must_not_change() {
    let home = home_with_docs();
    let (ran, said) = run(&home, "mv docs manual");
    assert_eq!(ran.exit_code, 0, "{said}");
    assert_eq!(
        files(&home),
        [
            r#"docs/AGENTS.md "g\n""#,
            r#"docs/deep/AGENTS.md "d\n""#,
            r#"manual/deep/old "old\n""#,
            r#"manual/other/z "z\n""#,
            r#"manual/same "same\n""#,
            r#"manual/x "s\n""#,
            r#"manual/y "y\n""#,
        ],
        "{said}"
    );
    for named in ["docs/AGENTS.md", "docs/deep/AGENTS.md", "manual/AGENTS.md"] {
        assert!(said.contains(named), "{named}: {said}");
    }
}

#[test]
fn a_directory_that_cannot_be_kept_in_part_is_kept_and_named() {
    let home = home_with_docs();
    let before = describe_tree(&home.workspace());
    let (_, said) = run(&home, "rm -rf docs; echo file > docs");
    assert_eq!(describe_tree(&home.workspace()), before, "{said}");
    assert!(
        said.contains("the changes of docs/AGENTS.md, docs/deep/AGENTS.md, docs were"),
        "{said}"
    );
    // Deeper, the rest of the directory above is not affected.
    let (_, said) =
        run(&home, "rm -rf docs/deep docs/x; mv docs d; mkdir docs; echo f > docs/deep");
    assert!(said.contains("docs/deep ") || said.contains("docs/deep,"), "{said}");
    assert!(home.has_file("docs/deep/old") && home.has_file("docs/AGENTS.md"), "{said}");
    assert!(!home.has_file("docs/x") && !home.has_file("docs/y") && home.has_file("d/y"), "{said}");
}

#[test]
fn an_instruction_file_that_stays_the_same_needs_no_approval() {
    let home = home_with_docs();
    let (ran, said) = run(&home, "cp -a docs d; rm -r docs; mv d docs; echo new > docs/new");
    assert!(ran.exit_code == 0 && !said.contains("[sandbox]"), "{said}");
    assert!(home.has_file("docs/new") && home.has_file("docs/deep/AGENTS.md"), "{said}");
}

#[test]
fn a_name_that_is_not_utf_8_stays_in_a_directory_that_must_stay() {
    use std::os::unix::ffi::OsStrExt as _;
    let home = home_with_docs();
    let odd = home.workspace().join("docs").join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::write(&odd, "odd").expect("it is written");
    let (_, said) = run(&home, "rm -rf docs");
    assert!(said.contains("its name is not UTF-8"), "{said}");
    assert!(odd.exists() && home.has_file("docs/AGENTS.md") && !home.has_file("docs/x"), "{said}");
}

#[test]
fn somebody_elses_change_in_a_split_directory_is_a_conflict() {
    let home = home_with_docs();
    let running =
        home.start(call(&home, "rm -rf docs; mkdir docs; echo n > docs/n; sleep 0.52631"));
    wait_for_sleep("0.52631");
    home.write_file("workspace/docs/x", "theirs\n");
    let expected = describe_tree(&home.workspace());
    let ran = running.wait_for_exit();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("`docs/x` was changed by another process"), "{said}");
    assert_eq!(describe_tree(&home.workspace()), expected);
}
