//! `cofferdam policy explain`: what it says, and that it is what happens.

use serde_json::{Value, json};

use super::policy::{USER_POLICY, home_with_policy, normalize_paths};

pub(crate) const EXPLAIN_CASES: &str = r#"
modes = ["plan", "ask", "auto-edit"]
[commands]
allow = ["git status *", "cargo test *"]
ask = ["cargo test --release *"]
deny = ["git push *"]
[read]
deny = ["secrets/**"]
[write]
allow = ["src/**"]
[tools.submit]
use = "deny"
"#;

#[test]
fn explain_tells_rule_file_and_line_and_what_would_change_it() {
    let home = home_with_policy(USER_POLICY, EXPLAIN_CASES);
    let explain = |args: &[&str]| {
        let ran = home.run(&[&["policy", "explain"], args].concat());
        assert!(ran.stderr.is_empty(), "{ran:?}");
        format!("{}exit {}", normalize_paths(&home, &ran.stdout), ran.exit_code)
    };
    insta::assert_snapshot!(explain(&["bash", "--command", "git status -s"]));
    insta::assert_snapshot!(explain(&["bash", "--command", "cargo test --release"]));
    insta::assert_snapshot!(explain(&[
        "bash",
        "--command",
        "git push -f",
        "--command",
        "true; git push",
        "--command",
        "env git push"
    ]));
    insta::assert_snapshot!(explain(&["bash", "--command", "git status; x", "--command", "make"]));
    insta::assert_snapshot!(explain(&[
        "write_file",
        "--write",
        "src/x.rs",
        "--write",
        "docs/x.md",
        "--write",
        ".vscode/tasks.json"
    ]));
    insta::assert_snapshot!(explain(&[
        "grep",
        "--read",
        "secrets/key",
        "--read",
        ".env",
        "--read",
        "src/x.rs"
    ]));
    insta::assert_snapshot!(explain(&[
        "grep",
        "--write",
        "src/x.rs",
        "--command",
        "ls",
        "--fetch",
        "docs.rs"
    ]));
    insta::assert_snapshot!(explain(&["submit"]));
}

#[test]
fn explain_says_what_a_call_would_meet() {
    let home = home_with_policy(
        USER_POLICY,
        "[tools.grep]\nuse = \"ask\"\n[write]\ndeny = [\"vendor/**\"]\n",
    );
    std::fs::create_dir(home.workspace().join("vendor")).expect("it can be made");
    std::os::unix::fs::symlink("vendor", home.workspace().join("v")).expect("a link");
    let explain = |args: &[&str]| {
        let ran = home.run(&[&["policy", "explain"], args].concat());
        format!("{}exit {}", normalize_paths(&home, &ran.stdout), ran.exit_code)
    };
    // A tool that is confirmed is so before it reads.
    let asked = explain(&["grep", "--read", "src"]);
    assert!(
        asked.contains("grep: read src: ask")
            && asked.contains("the rule ask `grep` of [tools] at"),
        "{asked}"
    );
    // This program's own files, where they lie in the workspace.
    let root = home.path().display().to_string();
    let own = explain(&["read_file", "-C", &root, "--read", USER_POLICY]);
    assert!(own.contains("deny") && own.contains("hidden"), "{own}");
    let own = explain(&[
        "write_file",
        "-C",
        &root,
        "--mode",
        "auto",
        "--write",
        "state/cofferdam/trust.json",
    ]);
    assert!(own.contains("deny") && own.contains("cofferdam stores its own files there"), "{own}");
    // Where links lead.
    let linked = explain(&["write_file", "--mode", "auto", "--write", "v/x"]);
    assert!(
        linked.contains("write v/x: deny")
            && linked.contains("the path resolves to write vendor/x"),
        "{linked}"
    );
    assert!(explain(&["write_file", "--mode", "auto", "--write", "w/x"]).contains("allow"));
    // What needs nobody's word.
    let runs = explain(&["read_file"]);
    assert!(runs.contains("read_file: run: allow") && runs.ends_with("exit 0"), "{runs}");
    let pinned = explain(&["write_file", "--mode", "auto", "--write", ".git"]);
    assert!(pinned.contains("to change  This cannot be allowed"), "{pinned}");
}

#[test]
fn explain_says_that_parts_of_a_repository_are_looked_at() {
    let home = home_with_policy(USER_POLICY, "[write]\nallow = [\"**\"]\n");
    for (path, expected) in [
        ("remote.git/config", true),
        ("lib/hooks/pre-commit", true),
        ("src/main.rs", false),
        ("docs/config.md", false),
    ] {
        let ran = home.run(&["policy", "explain", "write_file", "--write", path]);
        assert_eq!(ran.stdout.contains("makes it a git repository"), expected, "{path}: {ran:?}");
    }
}

#[test]
fn r036_what_explain_says_is_what_happens() {
    let policies = [
        "",
        "[commands]\ndeny = [\"true push *\"]",
        "[commands]\nallow = [\"true *\"]",
        "[tools.bash]\nuse = \"ask\"",
        "[tools.bash]\nuse = \"allow\"",
        "[tools.\"*\"]\ndeny = [\"run-commands\"]",
        "[tools.write_file]\nuse = \"ask\"\n[tools.read_file]\nuse = \"ask\"",
        "[write]\ndeny = [\"a/**\"]\n[read]\ndeny = [\"there.txt\"]",
        "[write]\nallow = [\"a/**\"]",
    ];
    let mut written = 0;
    let mut seen = std::collections::BTreeMap::new();
    for policy in policies {
        let home = home_with_policy(USER_POLICY, policy).with_file("there.txt", "there\n");
        for mode in ["ask", "plan", "auto"] {
            written += 1;
            let path = format!("a/{written}");
            let acts = [
                ("bash", "--command", "true push", json!({"command": "true push"})),
                ("bash", "--command", "true -C . push", json!({"command": "true -C . push"})),
                ("bash", "--command", "env true push", json!({"command": "env true push"})),
                ("write_file", "--write", path.as_str(), json!({"path": path, "content": "x"})),
                (
                    "write_file",
                    "--write",
                    ".git/config",
                    json!({"path": ".git/config", "content": "x"}),
                ),
                ("read_file", "--read", "there.txt", json!({"path": "there.txt"})),
            ];
            for (tool, what, act, input) in acts {
                let explained =
                    home.run(&["policy", "explain", tool, what, act, "--mode", mode, "--json"]);
                let happens =
                    home.run(&["tools", "call", tool, &input.to_string(), "--mode", mode]);
                assert_eq!(
                    explained.exit_code == 0,
                    happens.exit_code == 0,
                    "{policy}: {mode}: {tool} {act}: {explained:?} and {happens:?}"
                );
                let told = &explained.json_lines()[0];
                *seen.entry(told["verdict"].to_string()).or_insert(0) += 1;
                // What the decision rests on is the last check, and the only one with a finding.
                if let Some((last, before)) =
                    told["steps"].as_array().and_then(|steps| steps.split_last())
                {
                    assert!(
                        last["finding"].is_object()
                            && before.iter().all(|step| step["finding"].is_null()),
                        "{told}"
                    );
                }
            }
        }
    }
    assert!(
        seen.len() == 3 && seen.values().all(|count| *count > 10),
        "each verdict is among them: {seen:?}"
    );
}

#[test]
fn explain_can_be_read_by_a_program() {
    let home = home_with_policy(USER_POLICY, EXPLAIN_CASES);
    let ran = home.run(&["policy", "explain", "bash", "--command", "git push", "--json"]);
    let told: &Value = &ran.json_lines()[0];
    assert_eq!(
        (&told["verdict"], &told["place"]["line"], ran.exit_code),
        (&json!("deny"), &json!(6), 1),
        "{told}"
    );
    let ran = home.run(&["policy", "explain", "no_such_tool", "--command", "ls"]);
    assert!(ran.exit_code == 1 && ran.stderr.contains("unknown tool"), "{ran:?}");
}
