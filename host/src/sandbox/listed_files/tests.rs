//! Listed files, and the links that lead to them.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::sandbox::files::FileAccess;

fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, Arc<Workspace>) {
    let folder = tempfile::tempdir().expect("a directory");
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("directories");
        fs::write(path, text).expect("it is written");
    }
    let workspace = Arc::new(Workspace::open(folder.path()).expect("it opens"));
    (folder, workspace)
}

fn paths(found: &ListedFiles) -> Vec<&str> {
    found.iter().map(|(path, _)| path).collect()
}

#[test]
fn listed_files_are_found_at_any_depth_and_nothing_else() {
    let (_folder, workspace) = folder(&[
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
fn changes_are_told_by_content_and_by_no_other_sign() {
    let (folder, workspace) = folder(&[("AGENTS.md", "a"), ("CLAUDE.md", "b"), ("GEMINI.md", "c")]);
    let before = workspace.scan_listed_files();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("AGENTS.md"), "a").expect("the same again");
    assert_eq!(workspace.scan_listed_files().changes_since(&before), []);
    fs::write(at("AGENTS.md"), "other").expect("it is written");
    fs::remove_file(at("CLAUDE.md")).expect("it is removed");
    fs::write(at("QWEN.md"), "new").expect("it is written");
    let changes = workspace.scan_listed_files().changes_since(&before);
    let told: Vec<_> = changes
        .iter()
        .map(|change| (change.path.as_str(), change.existed, change.version.is_some()))
        .collect();
    assert_eq!(
        told,
        [("AGENTS.md", true, true), ("QWEN.md", false, true), ("CLAUDE.md", true, false)]
    );
}

#[test]
fn what_links_lead_to_is_known_by_the_name_of_the_link() {
    let (folder, workspace) =
        folder(&[("docs/guide.md", "a"), ("ci/workflows/x.yml", "b"), ("plain/y", "c")]);
    symlink("docs/middle", folder.path().join("AGENTS.md")).expect("a link");
    symlink("guide.md", folder.path().join("docs/middle")).expect("a link");
    symlink("ci", folder.path().join(".github")).expect("a link");
    symlink("/etc/passwd", folder.path().join("CLAUDE.md")).expect("a link");
    symlink(".", folder.path().join("GEMINI.md")).expect("a link");
    let found = workspace.scan_listed_files();
    let mut policy = crate::policy::Policy::default();
    found.aliases().for_each(|(real, link)| policy.add_alias(real, link));
    let of = |path: &str| {
        policy
            .approval_paths()
            .find(&workspace.parse(path).expect("a path"))
            .map(|listed| listed.path)
    };
    assert_eq!(of("docs/guide.md").as_deref(), Some("AGENTS.md"));
    assert_eq!(of("docs/middle").as_deref(), Some("AGENTS.md"));
    assert_eq!(of("ci/workflows/x.yml").as_deref(), Some(".github/workflows/x.yml"));
    assert_eq!((of("ci/other.yml"), of("plain/y")), (None, None));
    let before = found;
    fs::write(folder.path().join("docs/guide.md"), "other").expect("it is written");
    let changes = workspace.scan_listed_files().changes_since(&before);
    assert_eq!(
        changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(),
        ["AGENTS.md"]
    );
}

#[test]
fn what_a_protected_link_leads_to_is_protected_like_it() {
    let (folder, workspace) = folder(&[("editor/tasks.json", "a"), ("keys", "b")]);
    symlink("editor", folder.path().join(".vscode")).expect("a link");
    symlink("keys", folder.path().join(".env")).expect("a link");
    let found = workspace.scan_listed_files();
    let paths = found
        .protected_targets()
        .fold(crate::policy::ProtectedPaths::default(), |paths, (path, how)| {
            paths.with_path(path, how)
        });
    let of = |path: &str| paths.protection(&workspace.parse(path).expect("a path"));
    assert_eq!(
        (of("editor/tasks.json"), of("keys"), of("other")),
        (Some(PathProtection::ReadOnly), Some(PathProtection::Hidden), None)
    );
}

#[test]
fn a_crowd_of_files_ends_the_look_and_is_told() {
    let (folder, workspace) = folder(&[("AGENTS.md", "a")]);
    fs::create_dir_all(folder.path().join("x/.clinerules")).expect("directories");
    for number in 0..=MAX_FILES {
        fs::write(folder.path().join(format!("x/.clinerules/{number}")), "")
            .expect("it is written");
    }
    let found = workspace.scan_listed_files();
    assert!(
        found.is_truncated() && paths(&found).contains(&"AGENTS.md"),
        "what lies on top comes first"
    );
}

#[test]
fn a_chain_of_links_is_known_to_its_missing_end() {
    let (folder, workspace) = folder(&[("x", "")]);
    let link =
        |target: &str, name: &str| symlink(target, folder.path().join(name)).expect("a link");
    link("d1/ag.md", "AGENTS.md");
    link("d2", "d1");
    link("d1/vs", ".vscode");
    link("e/f/ci", ".github");
    let found = workspace.scan_listed_files();
    let mut policy = crate::policy::Policy::default();
    policy.learn_aliases(found.aliases(), true);
    let path = |path: &str| workspace.parse(path).expect("a path");
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
        .fold(crate::policy::ProtectedPaths::default(), |paths, (path, how)| {
            paths.with_path(path, how)
        });
    let paths = found.on_the_way().fold(paths, |paths, path| paths.and_on_the_way(path));
    let of = |name: &str| paths.protection(&path(name));
    assert_eq!(of("d2/vs/tasks.json"), Some(PathProtection::ReadOnly));
    assert_eq!(
        (of("d1"), of("d2"), of("d2/other"), of("e")),
        (Some(PathProtection::Pinned), Some(PathProtection::Pinned), None, None)
    );
}

#[test]
fn a_link_in_place_of_a_directory_gives_what_it_leads_to_the_protection_of_that_directory() {
    let (folder, workspace) = folder(&[(".git/HEAD", ""), ("x", "")]);
    let link =
        |target: &str, name: &str| symlink(target, folder.path().join(name)).expect("a link");
    link("d1/c", ".config");
    link("d2", "d1");
    link("../info", ".git/info");
    let found = workspace.scan_listed_files();
    let paths = found
        .protected_targets()
        .fold(crate::policy::ProtectedPaths::default(), |paths, (path, how)| {
            paths.with_path(path, how)
        });
    let of = |name: &str| paths.protection(&workspace.parse(name).expect("a path"));
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
    let (folder, workspace) = folder(&[
        ("r/HEAD", ""),
        ("r/objects/x", ""),
        ("r/refs/x", ""),
        ("r/config", &settings),
        ("src/x", ""),
    ]);
    let protected = |found: &ListedFiles, name: &str| {
        let paths = found
            .protected_targets()
            .fold(crate::policy::ProtectedPaths::default(), |paths, (path, how)| {
                paths.with_path(path, how)
            });
        paths.protection(&workspace.parse(name).expect("a path"))
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
    fs::create_dir(folder.path().join(".git")).expect("a directory");
    fs::rename(folder.path().join("r/config"), folder.path().join(".git/config"))
        .expect("it is moved");
    let found = workspace.scan_listed_files();
    assert_eq!(
        protected(&found, "src/x"),
        Some(PathProtection::ReadOnly),
        "of the workspace itself"
    );
}
