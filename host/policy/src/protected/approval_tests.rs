//! Tests of the paths whose changes always need approval, also behind links.

use super::*;
use crate::{Policy, PolicyLayer, PolicyLevel};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text, None).expect("a path")
}

/// Returns the paths with this link: its target, and the path of the link.
fn with_link(real: &str, link: &str) -> ApprovalPaths {
    let mut paths = ApprovalPaths::default();
    paths.add_alias(&path(real), &path(link));
    paths
}

#[test]
fn the_target_of_a_link_needs_the_approval_of_the_link() {
    let paths = with_link("shared/agents", ".github/agents");
    let table = [
        ("shared/agents", Some(".github/agents")),
        ("Shared/AGENTS", Some(".github/agents")),
        ("shared/agents/a.md", Some(".github/agents/a.md")),
        ("shared", None),
        ("shared/other", None),
        ("other/agents", None),
        ("AGENTS.md", Some("AGENTS.md")),
    ];
    for (text, expected) in table {
        let found = paths.find(&path(text)).map(|found| found.path);
        assert_eq!(found.as_deref(), expected, "{text}");
    }
    assert_eq!(ApprovalPaths::default().find(&path("shared/agents")), None);
    // The workspace itself is no target.
    assert_eq!(with_link("", ".github/agents").find(&path("src")), None);
}

#[test]
fn a_link_in_place_of_a_directory_above_a_listed_path_needs_approval() {
    let table = [
        (".github", Some(".github")),
        ("AGENTS.md", Some("AGENTS.md")),
        ("src", None),
        // Links that lead through a directory below it: `lib/real` is known as `.github`.
        ("lib/real", Some(".github")),
        ("lib", Some(".github")),
        ("LIB", Some(".github")),
        ("lib/other", None),
        ("lib/real/deeper", None),
    ];
    let paths = with_link("lib/real", ".github");
    for (text, expected) in table {
        let found = paths.find_link(&path(text)).map(|found| found.path);
        assert_eq!(found.as_deref(), expected, "{text}");
    }
}

#[test]
fn an_exempted_pattern_needs_no_approval_and_is_still_listed() {
    let text = "[protected]\nwritable = [\".github/workflows\", \"AGENTS.md\"]";
    let mut policy = Policy::default();
    policy.add_layer(PolicyLayer::parse(PolicyLevel::User, "p.toml", text).expect(text));
    let paths = policy.approval_paths();
    for text in [".github/workflows/ci.yml", "a/AGENTS.md"] {
        assert_eq!(paths.find(&path(text)), None, "{text}");
        let listed = paths.find_built_in(&path(text)).map(|found| found.path);
        assert_eq!(listed.as_deref(), Some(text));
    }
    assert_eq!(paths.find_link(&path("AGENTS.md")), None);
    assert!(paths.find(&path(".github/agents/a.md")).is_some());
    assert_eq!(paths.find_built_in(&path("src/main.rs")), None);
}

#[test]
fn a_complete_search_replaces_the_known_links_and_an_incomplete_one_adds_to_them() {
    let (one, other) = ((path("one"), path("AGENTS.md")), (path("other"), path("CLAUDE.md")));
    let known = |policy: &Policy| {
        ["one", "other"].map(|text| policy.approval_paths().find(&path(text)).is_some())
    };
    let mut policy = Policy::default();
    policy.add_alias(&one.0, &one.1);
    assert_eq!(known(&policy), [true, false]);
    policy.learn_aliases([(&other.0, &other.1)].into_iter(), false);
    assert_eq!(known(&policy), [true, true]);
    policy.learn_aliases([(&other.0, &other.1)].into_iter(), true);
    assert_eq!(known(&policy), [false, true]);
}

#[test]
fn at_most_4096_links_are_known() {
    let mut paths = ApprovalPaths::default();
    for number in 0..=MAX_ALIASES {
        paths.add_alias(&path(&format!("t{number}")), &path("AGENTS.md"));
    }
    assert!(paths.find(&path("t4095")).is_some());
    assert_eq!(paths.find(&path("t4096")), None);
}

#[test]
fn the_quick_checks_find_the_names_of_listed_paths() {
    for name in ["AGENTS.md", "agents.MD", "workflows", ".eslintrc.json", "a~1"] {
        assert!(ApprovalPaths::may_match(name), "{name}");
        assert!(ApprovalPaths::may_match_link(name), "{name}");
    }
    // A link `.github` can give its target the path `.github/workflows`.
    assert!(!ApprovalPaths::may_match(".github") && ApprovalPaths::may_match_link(".GitHub"));
    for name in ["main.rs", "src"] {
        assert!(!ApprovalPaths::may_match(name) && !ApprovalPaths::may_match_link(name), "{name}");
    }
}

#[test]
fn each_list_has_a_title_that_begins_with_its_name() {
    for (list, name) in [
        (BuiltInList::Hidden, "hidden: "),
        (BuiltInList::Protected, "protected: "),
        (BuiltInList::Instructions, "instructions: "),
        (BuiltInList::RunsCode, "runs code: "),
        (BuiltInList::Ordinary, "ordinary: "),
    ] {
        assert!(list.title().starts_with(name), "{}", list.title());
    }
}
