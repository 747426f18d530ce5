//! Tests of what a walk through directories needs: exact matches, paths below a directory, names
//! for a quick check, links, and the paths of Cofferdam itself.

use super::*;
use crate::{Policy, PolicyLayer, PolicyLevel};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text, None).expect("a path")
}

fn under(text: &str) -> ProtectedPaths {
    let mut policy = Policy::default();
    policy.add_layer(PolicyLayer::parse(PolicyLevel::User, "p.toml", text).expect(text));
    policy.protected_paths()
}

fn exact(paths: &ProtectedPaths, path: &str) -> Option<PathProtection> {
    paths.find_exact(path.split('/')).map(|(how, _)| how)
}

#[test]
fn an_exact_match_ignores_the_directories_above() {
    let paths = ProtectedPaths::default();
    let table = [
        (".git/hooks", Some(PathProtection::ReadOnly)),
        (".git/hooks/pre-commit", None),
        ("a/.ssh", Some(PathProtection::Hidden)),
        ("a/.ssh/config", None),
        (".git", Some(PathProtection::Pinned)),
        ("src", None),
    ];
    for (text, expected) in table {
        assert_eq!(exact(&paths, text), expected, "{text}");
    }
}

#[test]
fn a_path_behind_a_link_gets_the_protection_of_the_link() {
    for (how, below) in [
        (PathProtection::ReadOnly, Some(PathProtection::ReadOnly)),
        (PathProtection::Hidden, Some(PathProtection::Hidden)),
        (PathProtection::Pinned, None),
    ] {
        let paths = ProtectedPaths::default().with_path(&path("tools/hooks"), how);
        assert_eq!(paths.protection(&path("Tools/Hooks")), Some(how));
        assert_eq!(paths.protection(&path("tools/hooks/x")), below);
        assert_eq!(paths.protection(&path("a/tools/hooks")), None);
        assert_eq!(paths.protection(&path(".git/hooks")), Some(PathProtection::ReadOnly));
    }
}

#[test]
fn a_link_to_a_protected_path_is_pinned_and_nothing_below_it() {
    let paths = ProtectedPaths::default().and_on_the_way(&path("links/to"));
    for (text, expected) in [
        ("links/to", true),
        ("Links/TO", true),
        ("links", false),
        ("links/to/x", false),
        (".git/hooks", false),
    ] {
        assert_eq!(paths.is_on_the_way(text.split('/')), expected, "{text}");
        let pinned = paths.protection(&path(text)) == Some(PathProtection::Pinned);
        assert_eq!(pinned, expected, "{text}");
    }
    assert!(paths.names().may_match("to"), "the quick check finds it");
}

#[test]
fn the_read_only_paths_below_a_directory_are_relative_to_it() {
    let below = |text: &str, directory: &str| {
        let mut found = under(text).read_only_below(directory.split('/'));
        found.sort();
        found
    };
    let own = "[protected]\nread_only = [\"infra/eu/*.tf\", \"infra/us/main.tf\", \"docs/x\"]";
    assert_eq!(below(own, "infra"), ["eu", "us/main.tf"]);
    assert_eq!(below(own, "a/infra/us"), ["main.tf"]);
    assert_eq!(below(own, "docs"), ["x"]);
    assert_eq!(below(own, "src"), [""; 0]);
    let hooks = "[protected]\nread_only = [\"conf/a\"]";
    assert!(below(hooks, ".hg").contains(&"hgrc".to_owned()));
    let writable = "[protected]\nwritable = [\".hg/hgrc\"]";
    assert!(!below(writable, ".hg").contains(&"hgrc".to_owned()));
}

#[test]
fn the_quick_check_by_name_finds_every_protected_name() {
    let names = under("[protected]\nhidden = [\"*.sqlite\", \"secrets/?*\"]").names();
    for name in [
        ".env",
        ".ENV",
        "hooks",
        "x.sqlite",
        ".sqlite",
        "secrets",
        "GIT~1",
        ".git.",
        ".git ",
        ".git::$DATA",
        ".g\u{ad}it",
    ] {
        assert!(names.may_match(name), "{name:?}");
    }
    for name in ["main.rs", "src", "sqlite", "x.sqlite3", "environment", "README.md"] {
        assert!(!names.may_match(name), "{name:?}");
    }
    for name in [".git", ".GIT", "modules", "secrets", "a~1", "a:b", "a.", "a ", "\u{e4}", "*"] {
        assert!(names.may_be_above(name), "{name:?}");
    }
    for name in ["main.rs", "src", ".env"] {
        assert!(!names.may_be_above(name), "{name:?}");
    }
}

#[test]
fn a_pattern_without_a_name_can_match_every_name() {
    let names = under("[read]\ndeny = [\"**\"]").names();
    assert!(names.may_match("main.rs"));
}

#[test]
fn the_author_with_the_most_authority_is_named() {
    let layer = |level: PolicyLevel| {
        let text = "[protected]\nhidden = [\"keys\"]";
        PolicyLayer::parse(level, &format!("{level}.toml"), text).expect("it parses")
    };
    let author = |paths: &ProtectedPaths, text: &str| {
        paths.find(text.split('/')).map(|(_, author)| author.to_string())
    };
    let mut policy = Policy::default();
    for level in [PolicyLevel::Project, PolicyLevel::User, PolicyLevel::System] {
        policy.add_layer(layer(level));
        let expected = format!("the pattern `keys` at {level}.toml:2:11");
        assert_eq!(author(&policy.protected_paths(), "a/keys"), Some(expected));
    }
    let own = policy.protected_paths().with_own_path(&path("a/keys"));
    let cofferdam = "cofferdam, which keeps its own files there";
    assert_eq!(author(&own, "a/keys/x").as_deref(), Some(cofferdam));
    let text = "[protected]\nhidden = [\".env\"]";
    let twice = "the pattern `.env` at p.toml:2:11";
    assert_eq!(author(&under(text), ".env").as_deref(), Some(twice), "a file before the program");
    let built_in = "the built-in list of protected paths";
    assert_eq!(author(&under(""), ".env").as_deref(), Some(built_in));
}
