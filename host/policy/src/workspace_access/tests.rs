use super::*;
use crate::{PolicyLayer, PolicyLevel};

fn policy(layers: &[(PolicyLevel, &str)]) -> Policy {
    let mut policy = Policy::default();
    for (level, text) in layers {
        policy.add_layer(PolicyLayer::parse(*level, "p.toml", text).expect(text));
    }
    policy
}

/// The layers, the line, and whether the workspace is read-only.
type AccessCase = (&'static [(PolicyLevel, &'static str)], &'static str, bool);

const READ_ONLY: &str = r#"[commands]
allow = [{ pattern = "make lint", writes = false }]"#;
const WRITES: &str = r#"[commands]
allow = [{ pattern = "git status *", writes = true }, { pattern = "make *", writes = true }]"#;

#[test]
fn rules_decide_before_the_built_in_list() {
    use PolicyLevel::{Project, User};
    let table: &[AccessCase] = &[
        (&[], "git status", true),
        (&[], "make lint", false),
        (&[(User, READ_ONLY)], "make lint", true),
        (&[(User, READ_ONLY)], "make lint; make", false),
        (&[(User, WRITES)], "git status", false),
        (&[(User, WRITES)], "git diff", true),
        // The stricter rule wins, in any order.
        (&[(User, READ_ONLY), (User, WRITES)], "make lint", true),
        (&[(User, WRITES), (User, READ_ONLY)], "make lint", true),
        // An untrusted project can tighten the access and cannot loosen it.
        (&[(Project, READ_ONLY)], "make lint", true),
        (&[(Project, WRITES)], "git status", true),
    ];
    for (layers, line, expected) in table {
        let access = policy(layers).workspace_access(ToolId::new("bash", ""), line);
        let is_read_only = matches!(access, WorkspaceAccess::ReadOnly(_));
        assert_eq!(is_read_only, *expected, "{layers:?}: {line}");
    }
}

#[test]
fn a_rule_of_another_tool_does_not_count() {
    let text = r#"[commands]
allow = [{ pattern = "make lint", tool = "bash", writes = false }]"#;
    let access = |tool| {
        policy(&[(PolicyLevel::User, text)]).workspace_access(ToolId::new(tool, ""), "make lint")
    };
    assert!(matches!(access("bash"), WorkspaceAccess::ReadOnly(ReadOnlyReason::Rule(_))));
    assert_eq!(access("other"), WorkspaceAccess::ReadWrite);
}

#[test]
fn the_reason_names_the_rule() {
    let access =
        |layers: &[_], line| match policy(layers).workspace_access(ToolId::new("bash", ""), line) {
            WorkspaceAccess::ReadOnly(reason) => reason.to_string(),
            WorkspaceAccess::ReadWrite => panic!("it may write"),
        };
    assert_eq!(
        access(&[(PolicyLevel::User, READ_ONLY)], "make lint"),
        "the rule `make lint` at p.toml:2:10 has `writes = false`"
    );
    assert_eq!(
        access(&[], "ls"),
        "its programs are on the built-in list of programs that only read; to let it write, add \
            `{ pattern = \"…\", writes = true }` to `allow` under [commands]"
    );
}

#[test]
fn only_allow_rules_for_commands_can_set_it() {
    for (text, expected) in [
        ("[commands]\ndeny = [{ pattern = \"x\", writes = false }]", "`writes`"),
        ("[commands]\nask = [{ pattern = \"x\", writes = false }]", "`writes`"),
        ("[write]\nallow = [{ pattern = \"x\", writes = false }]", "`writes`"),
    ] {
        let error = PolicyLayer::parse(PolicyLevel::User, "p.toml", text).expect_err(text);
        assert!(error.to_string().contains(expected), "{error}");
    }
}
