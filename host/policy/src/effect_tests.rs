//! Tests of approved scopes: the effects that they cover, and their descriptions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;
use crate::ContentDigest;

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text, None).expect("a path")
}

fn command(line: &str, directory: &str) -> Effect {
    Effect::Command { line: line.into(), directory: path(directory), background: false }
}

fn fetch(method: &str, host: &str) -> Effect {
    let host = HostAddress::parse(host).expect("a host");
    Effect::Fetch { method: method.into(), url: format!("https://{host}/"), host }
}

fn changes(entries: &[(&str, ChangeKind)]) -> ChangeSet {
    let change = |(at, kind): &(&str, ChangeKind)| FileChange {
        path: path(at),
        kind: kind.clone(),
        diff: None,
    };
    ChangeSet::new(entries.iter().map(change).collect())
}

fn write(entries: &[(&str, ChangeKind)]) -> Effect {
    Effect::Write { changes: changes(entries), confirm: false }
}

fn create() -> ChangeKind {
    ChangeKind::Create { after: ContentDigest { size: 1, digest: "0".into() } }
}

#[test]
fn r039_a_scope_is_about_one_tool_and_one_directory_or_host() {
    let in_sub = command("git status", "sub").scope("bash").expect("a scope");
    let get = fetch("GET", "docs.rs").scope("web").expect("a scope");
    let table = [
        (&in_sub, "bash", command("git status -s", "sub"), true),
        (&in_sub, "bash", command("git status", ""), false),
        (&in_sub, "bash", command("git status", "sub/a"), false),
        (&in_sub, "other", command("git status", "sub"), false),
        (&in_sub, "bash", command("git push", "sub"), false),
        (&in_sub, "bash", Effect::Confirmed, false),
        (&get, "web", fetch("GET", "docs.rs"), true),
        (&get, "web", fetch("POST", "docs.rs"), false),
        (&get, "web", fetch("GET", "docs.rs:8080"), false),
        (&get, "web", fetch("GET", "example.org"), false),
        (&get, "other", fetch("GET", "docs.rs"), false),
        (&get, "web", command("git status", ""), false),
    ];
    for (scope, tool, effect, expected) in table {
        assert_eq!(scope.covers(tool, &effect), expected, "{scope} {tool} {effect:?}");
    }
}

#[test]
fn r039_a_command_in_the_background_needs_an_approval_of_its_own() {
    let run =
        |background| Effect::Command { line: "git status".into(), directory: path(""), background };
    for background in [false, true] {
        let scope = run(background).scope("bash").expect("a scope");
        assert!(scope.covers("bash", &run(background)), "{scope}");
        assert!(!scope.covers("bash", &run(!background)), "{scope}");
        assert_eq!(scope.to_string().ends_with(" in the background"), background, "{scope}");
    }
}

#[test]
fn r039_a_write_scope_covers_its_path_and_the_directories_on_the_way_to_it() {
    let scope = write(&[("src/a/x", create()), ("src/a/y", create())]).scope("edit").expect("one");
    assert_eq!(scope.to_string(), "edit writing src/a");
    let directory = || ChangeKind::CreateDirectory;
    let table = [
        (write(&[("src/a/z", create())]), true),
        (write(&[("src", directory()), ("src/a", directory()), ("src/a/z", create())]), true),
        (write(&[("src/b", directory())]), false),
        (write(&[("src", create())]), false),
        (write(&[("src/a/z", create()), ("src/b", create())]), false),
        (write(&[("src/a/z", ChangeKind::Delete { before: 1 })]), false),
        (write(&[("src/a/z", ChangeKind::Link { to: "/etc".into() })]), false),
    ];
    for (effect, expected) in table {
        assert_eq!(scope.covers("edit", &effect), expected, "{effect:?}");
        assert!(!scope.covers("other", &effect), "{effect:?}");
        let Effect::Write { changes, .. } = effect else { panic!("a write") };
        let confirmed = Effect::Write { changes, confirm: true };
        assert!(!scope.covers("edit", &confirmed), "{confirmed:?}");
    }
}

#[test]
fn r039_changes_without_a_diff_and_confirmed_calls_have_no_scope() {
    let plain = changes(&[("a", create())]);
    let undiffed =
        plain.clone().with_undiffed(BTreeMap::from([(path("a"), PathBuf::from("/staged/1"))]));
    let scope = |changes: &ChangeSet, confirm| {
        Effect::Write { changes: changes.clone(), confirm }.scope("edit").is_some()
    };
    assert!(scope(&plain, false));
    assert!(!scope(&plain, true));
    assert!(!scope(&undiffed, false));
    assert_eq!(Effect::Confirmed.scope("edit"), None);
}

#[test]
fn the_description_of_a_scope_names_the_directory_outside_of_the_root() {
    let text = |effect: Effect| effect.scope("a_tool").expect("a scope").to_string();
    assert_eq!(
        text(command("git status", "")),
        "commands that begin with `git status`, without options that write files or run programs"
    );
    assert_eq!(text(command("make x", "sub")), "exactly `make x` in sub");
    assert_eq!(text(fetch("GET", "docs.rs:80")), "GET requests of a_tool to docs.rs:80");
}
