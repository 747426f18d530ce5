//! Acceptance of servers: what is pinned, what needs another acceptance, and how it is removed.

use serde_json::{Value, json};

use crate::scripted::ScriptedUser;

const CONFIG: &str = "config/cofferdam/config.toml";
const LOCK: &str = "config/cofferdam/cofferdam.lock";

fn config(user: &ScriptedUser) -> String {
    std::fs::read_to_string(user.home.path().join(CONFIG)).expect("it is there")
}

/// Lets the server run in another mode, as if it had been updated.
fn update_server(user: &ScriptedUser, mode: &str) {
    let script = std::fs::read_to_string(user.script()).expect("it is there");
    let from = "MODE = sys.argv[1] if len(sys.argv) > 1 else \"\"";
    assert!(script.contains(from));
    user.home.write_file("servers/server.py", script.replace(from, &format!("MODE = \"{mode}\"")));
}

#[test]
fn a_server_of_the_configuration_runs_only_after_it_was_accepted() {
    let user = ScriptedUser::with_server(&[]);
    std::fs::remove_file(user.home.path().join(LOCK)).expect("it is there");
    let listed = user.home.run(&["tools", "list"]);
    assert!(listed.stdout.contains("server s: it is not accepted yet"), "{listed:?}");
    let list = user.home.run(&["mcp", "list"]);
    assert!(list.stdout.contains("s  new"), "{list:?}");
    // There is no terminal, so nobody can accept it but with `--yes`.
    let added = user.home.run(&["mcp", "add", "s"]);
    assert_eq!(added.exit_code, 1, "{added:?}");
    assert!(added.stderr.contains("there is no terminal for confirmation"), "{added:?}");
    assert!(added.stderr.contains("s/echo") && added.stderr.contains("sandbox"), "{added:?}");
    let added = user.home.run(&["mcp", "add", "s", "--yes"]);
    assert_eq!(added.exit_code, 0, "{added:?}");
    user.begin("ask").assert_usable();
    let again = user.home.run(&["mcp", "add", "s", "--yes"]);
    assert!(again.stdout.contains("nothing changed"), "{again:?}");
}

#[test]
fn more_permissions_in_the_configuration_need_another_acceptance() {
    let user = ScriptedUser::with_server(&[]);
    user.home.write_file(CONFIG, format!("{}workspace = \"read-write\"\n", config(&user)));
    let listed = user.home.run(&["tools", "list"]);
    let expected = "it now has permission to read and write files of the workspace";
    assert!(listed.stdout.contains(expected), "{listed:?}");
    let run = user.home.run(&["tools", "call", "s/echo", "{\"text\": \"x\"}", "--mode", "auto"]);
    assert_ne!(run.exit_code, 0, "{run:?}");
    let added = user.home.run(&["mcp", "add", "s", "--yes"]);
    assert!(added.stderr.contains(expected), "{added:?}");
    user.begin("auto").assert_usable();
}

#[test]
fn a_changed_definition_is_refused_until_it_is_accepted() {
    let user = ScriptedUser::with_server(&[]);
    update_server(&user, "other-description");
    let mut session = user.begin("ask");
    let problem = session.error("echo", json!({"text": "x"}));
    assert!(problem.contains("changed its description since the user accepted"), "{problem}");
    // A tool that did not change stays accepted.
    assert_eq!(session.text("counter", json!({})), "1");
    drop(session);
    let inspected = user.home.run(&["mcp", "inspect", "s"]);
    assert_eq!(inspected.exit_code, 1, "{inspected:?}");
    let change = "the description of the tool echo changed";
    assert!(inspected.stdout.contains(change), "{inspected:?}");
    let inspected = user.home.run(&["mcp", "inspect", "s", "--json"]);
    let inspected: Value = serde_json::from_str(&inspected.stdout).expect("JSON");
    assert_eq!(inspected["changes"], json!([change]));
    let added = user.home.run(&["mcp", "add", "s", "--yes"]);
    assert!(added.stderr.contains(change), "{added:?}");
    user.begin("ask").assert_usable();
}

#[test]
fn a_new_tool_is_not_offered_until_it_is_accepted() {
    let user = ScriptedUser::with_server(&[]);
    update_server(&user, "more-tools");
    let mut session = user.begin("ask");
    session.assert_usable();
    let answer = session.client.ask("tools/call", json!({"name": "s__new", "arguments": {}}));
    assert!(answer.to_string().contains("s__new"), "{answer}");
    let tools = session.client.ask("tools/list", json!({})).to_string();
    assert!(tools.contains("s__echo") && !tools.contains("s__new\""), "{tools}");
}

#[test]
fn a_session_starts_no_server_before_its_first_call() {
    let user = ScriptedUser::with_server(&[]);
    update_server(&user, "exit");
    // The tools come from the lock file.
    let listed = user.home.run(&["tools", "list"]);
    assert!(listed.stdout.contains("s/echo"), "{listed:?}");
    let mut session = user.begin("ask");
    let problem = session.error("echo", json!({"text": "x"}));
    assert!(problem.contains("it exited with code 7"), "{problem}");
}

#[test]
fn a_lock_file_that_was_changed_by_hand_is_refused() {
    let user = ScriptedUser::with_server(&[]);
    let lock = std::fs::read_to_string(user.home.path().join(LOCK)).expect("it is there");
    user.home.write_file(LOCK, lock.replacen("Repeats a text.", "Obey.", 1));
    let run = user.home.run(&["tools", "call", "s/echo", "{\"text\": \"x\"}"]);
    assert_eq!(run.exit_code, 78, "{run:?}");
    assert!(run.stderr.contains("does not match its digest"), "{run:?}");
}

#[test]
fn a_removed_server_is_gone_from_both_files() {
    let user = ScriptedUser::with_server(&[]);
    let removed = user.home.run(&["mcp", "remove", "s"]);
    assert_eq!(removed.exit_code, 0, "{removed:?}");
    assert!(!config(&user).contains("server.py"));
    let lock = std::fs::read_to_string(user.home.path().join(LOCK)).expect("it is there");
    assert!(!lock.contains("server.py"), "{lock}");
    let again = user.home.run(&["mcp", "remove", "s"]);
    assert_eq!(again.exit_code, 1, "{again:?}");
    assert!(user.home.run(&["mcp", "inspect", "s"]).stderr.contains("there is no MCP server"));
}

#[test]
fn invalid_options_of_a_server_are_errors() {
    let user = ScriptedUser::new();
    let run = |args: &[&str]| user.home.run(&[&["mcp", "add"], args].concat());
    let table: [(&[&str], &str); 4] = [
        (&["a/b", "--", "x"], "the name `a/b` is not 1 to 32 of"),
        (&["x"], "there is no MCP server `x` in the configuration"),
        (&["x", "--network", "a b", "--", "x"], "is not a host pattern"),
        (&["x", "--env", "A=1", "--", "x"], "the name of a variable"),
    ];
    for (args, expected) in table {
        let added = run(args);
        assert_eq!(added.exit_code, 78, "{added:?}");
        assert!(added.stderr.contains(expected), "{expected}: {added:?}");
    }
    // What the configuration could not have is not started either.
    let state = user.home.path().join("state/cofferdam");
    std::fs::create_dir_all(&state).expect("it is made");
    let state = state.to_str().expect("text");
    let own = run(&["x", "--yes", "--read", state, "--", "python3"]);
    assert_eq!(own.exit_code, 78, "{own:?}");
    assert!(own.stderr.contains("would let the server read the files of cofferdam"), "{own:?}");
    user.home.write_file("config/cofferdam/policy.toml", "[commands]\nread = [\"/opt/data\"]\n");
    let denied = run(&["x", "--yes", "--read", "/opt/secrets/a", "--", "python3"]);
    assert_eq!(denied.exit_code, 78, "{denied:?}");
    assert!(denied.stderr.contains("servers may not read /opt/secrets/a"), "{denied:?}");
    let missing = run(&["x", "--yes", "--", "no-such-program"]);
    assert_eq!(missing.exit_code, 1, "{missing:?}");
    assert!(missing.stderr.contains("it exited with code 127"), "{missing:?}");
}
