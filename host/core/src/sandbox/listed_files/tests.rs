//! Tests of the scan for listed files and of the links that lead to them.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::sandbox::files::FileAccess;
use crate::sandbox::test_environment::open_workspace;

fn workspace_with(files: &[(&str, &str)]) -> (tempfile::TempDir, Arc<Workspace>) {
    let directory = tempfile::tempdir().expect("create a temporary directory");
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().expect("get the parent")).expect("create the directory");
        fs::write(path, text).expect("write the file");
    }
    let workspace = Arc::new(open_workspace(directory.path()));
    (directory, workspace)
}

fn paths(found: &ListedFiles) -> Vec<&str> {
    found.iter().map(|(path, _)| path).collect()
}

#[test]
fn listed_files_are_found_at_any_depth_and_nothing_else() {
    let (_directory, workspace) = workspace_with(&[
        ("AGENTS.md", "a"),
        ("a/b/c/CLAUDE.md", "b"),
        (".github/workflows/ci.yml", "c"),
        (".git/rebase-merge/git-rebase-todo", "exec x"),
        (".git/rebase-apply/apply-opt", "x"),
        (".git/rebase-apply/0001", "x"),
        (".git/sequencer/opts", "x"),
        (".git/sequencer/todo", "x"),
        (".git/AGENTS.md", "d"),
        ("node_modules/x/AGENTS.md", "e"),
        ("src/agents.rs", "f"),
        ("Makefile", "g"),
    ]);
    let found = workspace.scan_listed_files();
    let listed = [
        ".git/rebase-apply/apply-opt",
        ".git/rebase-merge/git-rebase-todo",
        ".git/sequencer/opts",
        ".git/sequencer/todo",
        ".github/workflows/ci.yml",
        "AGENTS.md",
        "a/b/c/CLAUDE.md",
    ];
    assert_eq!(paths(&found), listed);
    assert!(!found.is_truncated());
}

#[test]
fn only_a_change_of_content_counts() {
    let (directory, workspace) =
        workspace_with(&[("AGENTS.md", "a"), ("CLAUDE.md", "b"), ("GEMINI.md", "c")]);
    let before = workspace.scan_listed_files();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("AGENTS.md"), "a").expect("the same again");
    assert_eq!(workspace.scan_listed_files().changes_since(&before), []);
    fs::write(at("AGENTS.md"), "other").expect("write the file");
    fs::remove_file(at("CLAUDE.md")).expect("remove the file");
    fs::write(at("QWEN.md"), "new").expect("write the file");
    let changes = workspace.scan_listed_files().changes_since(&before);
    let actual: Vec<_> = changes
        .iter()
        .map(|change| (change.path.as_str(), change.existed, change.version.is_some()))
        .collect();
    assert_eq!(
        actual,
        [("AGENTS.md", true, true), ("QWEN.md", false, true), ("CLAUDE.md", true, false)]
    );
}

#[test]
fn the_target_of_a_link_is_listed_under_the_name_of_the_link() {
    let (directory, workspace) =
        workspace_with(&[("docs/guide.md", "a"), ("ci/workflows/x.yml", "b"), ("plain/y", "c")]);
    symlink("docs/middle", directory.path().join("AGENTS.md")).expect("create the link");
    symlink("guide.md", directory.path().join("docs/middle")).expect("create the link");
    symlink("ci", directory.path().join(".github")).expect("create the link");
    symlink("/etc/passwd", directory.path().join("CLAUDE.md")).expect("create the link");
    symlink(".", directory.path().join("GEMINI.md")).expect("create the link");
    let found = workspace.scan_listed_files();
    let mut policy = crate::policy::Policy::default();
    found.aliases().for_each(|(real, link)| policy.add_alias(real, link));
    let of = |path: &str| {
        policy
            .approval_paths()
            .find(&workspace.parse(path).expect("parse the value"))
            .map(|listed| listed.path)
    };
    assert_eq!(of("docs/guide.md").as_deref(), Some("AGENTS.md"));
    assert_eq!(of("docs/middle").as_deref(), Some("AGENTS.md"));
    assert_eq!(of("ci/workflows/x.yml").as_deref(), Some(".github/workflows/x.yml"));
    assert_eq!((of("ci/other.yml"), of("plain/y")), (None, None));
    let before = found;
    fs::write(directory.path().join("docs/guide.md"), "other").expect("write the file");
    let changes = workspace.scan_listed_files().changes_since(&before);
    assert_eq!(
        changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(),
        ["AGENTS.md"]
    );
}

#[test]
fn the_target_of_a_protected_link_is_protected_like_the_link() {
    let (directory, workspace) = workspace_with(&[("editor/tasks.json", "a"), ("keys", "b")]);
    symlink("editor", directory.path().join(".vscode")).expect("create the link");
    symlink("keys", directory.path().join(".env")).expect("create the link");
    let found = workspace.scan_listed_files();
    let paths = found
        .protected_targets()
        .fold(crate::policy::ProtectedPaths::default(), |paths, (path, protection)| {
            paths.with_path(path, protection)
        });
    let of = |path: &str| paths.protection(&workspace.parse(path).expect("parse the value"));
    assert_eq!(
        (of("editor/tasks.json"), of("keys"), of("other")),
        (Some(PathProtection::ReadOnly), Some(PathProtection::Hidden), None)
    );
}

#[test]
fn too_many_files_truncate_the_scan() {
    let (directory, workspace) = workspace_with(&[("AGENTS.md", "a")]);
    fs::create_dir_all(directory.path().join("x/.clinerules")).expect("create the directory");
    for number in 0..=MAX_FILES {
        fs::write(directory.path().join(format!("x/.clinerules/{number}")), "")
            .expect("write the file");
    }
    let found = workspace.scan_listed_files();
    assert!(
        found.is_truncated() && paths(&found).contains(&"AGENTS.md"),
        "what lies on top comes first"
    );
}

#[test]
fn a_chain_of_links_is_followed_to_its_missing_target() {
    let (directory, workspace) = workspace_with(&[("x", "")]);
    let link = |target: &str, name: &str| {
        symlink(target, directory.path().join(name)).expect("create the link")
    };
    link("d1/ag.md", "AGENTS.md");
    link("d2", "d1");
    link("d1/vs", ".vscode");
    link("e/f/ci", ".github");
    let found = workspace.scan_listed_files();
    let mut policy = crate::policy::Policy::default();
    policy.learn_aliases(found.aliases(), true);
    let path = |path: &str| workspace.parse(path).expect("parse the value");
    let of = |name: &str| policy.approval_paths().find(&path(name)).map(|listed| listed.path);
    assert_eq!(of("d2/ag.md").as_deref(), Some("AGENTS.md"));
    assert_eq!(of("d1").as_deref(), Some("AGENTS.md"), "another link in its place leads elsewhere");
    assert_eq!(of("e/f/ci/workflows/x.yml").as_deref(), Some(".github/workflows/x.yml"));
    let of_link =
        |name: &str| policy.approval_paths().find_link(&path(name)).map(|listed| listed.path);
    assert_eq!(
        (of_link("d2").as_deref(), of_link("e").as_deref(), of_link("x")),
        (Some("AGENTS.md"), Some(".github"), None)
    );
    let paths = found
        .protected_targets()
        .fold(crate::policy::ProtectedPaths::default(), |paths, (path, protection)| {
            paths.with_path(path, protection)
        });
    let paths = found.on_the_way().fold(paths, |paths, path| paths.and_on_the_way(path));
    let of = |name: &str| paths.protection(&path(name));
    assert_eq!(of("d2/vs/tasks.json"), Some(PathProtection::ReadOnly));
    assert_eq!(
        (of("d1"), of("d2"), of("d2/other"), of("e")),
        (
            Some(PathProtection::Pinned),
            Some(PathProtection::Pinned),
            None,
            Some(PathProtection::Pinned)
        ),
        "`.github/copilot` is protected, so the way to its target is too"
    );
}

#[test]
fn the_target_of_a_link_inherits_the_protection_of_the_directory_it_replaces() {
    let (directory, workspace) = workspace_with(&[(".git/HEAD", ""), ("x", "")]);
    let link = |target: &str, name: &str| {
        symlink(target, directory.path().join(name)).expect("create the link")
    };
    link("d1/c", ".config");
    link("d2", "d1");
    link("../info", ".git/info");
    let found = workspace.scan_listed_files();
    let paths = found
        .protected_targets()
        .fold(crate::policy::ProtectedPaths::default(), |paths, (path, protection)| {
            paths.with_path(path, protection)
        });
    let of = |name: &str| paths.protection(&workspace.parse(name).expect("parse the value"));
    assert_eq!(
        (of("d2/c/fish/config.fish"), of("d2/c/other"), of("info/attributes")),
        (Some(PathProtection::ReadOnly), None, Some(PathProtection::ReadOnly))
    );
    let linking = |place: &str| {
        workspace.guard().check_change(place, FileAccess::MakeLink).map_err(|denial| denial.code)
    };
    assert_eq!(
        (linking("sub/.config"), linking("plain")),
        (Err(crate::policy::DenialCode::Protected), Ok(()))
    );
}

#[test]
fn a_repository_with_too_many_settings_is_protected_as_a_whole() {
    let aliases: String = (0..30_000).map(|n| format!("a{n} = \"!a{n}/b c/d\"\n")).collect();
    let settings = format!("[alias]\n{aliases}");
    let (directory, workspace) = workspace_with(&[
        ("r/HEAD", ""),
        ("r/objects/x", ""),
        ("r/refs/x", ""),
        ("r/config", &settings),
        ("src/x", ""),
    ]);
    let protected = |found: &ListedFiles, name: &str| {
        let paths = found
            .protected_targets()
            .fold(crate::policy::ProtectedPaths::default(), |paths, (path, protection)| {
                paths.with_path(path, protection)
            });
        paths.protection(&workspace.parse(name).expect("parse the value"))
    };
    let found = workspace.scan_listed_files();
    assert!(
        found
            .not_analysed()
            .is_some_and(|problem| problem.contains("/r/config") && problem.contains("\nhint: "))
    );
    assert!(!found.is_truncated());
    assert_eq!(
        (protected(&found, "r/a5/b"), protected(&found, "src/x")),
        (Some(PathProtection::ReadOnly), None)
    );
    fs::create_dir(directory.path().join(".git")).expect("create the directory");
    fs::rename(directory.path().join("r/config"), directory.path().join(".git/config"))
        .expect("rename the file");
    let found = workspace.scan_listed_files();
    assert_eq!(
        protected(&found, "src/x"),
        Some(PathProtection::ReadOnly),
        "of the workspace itself"
    );
}
