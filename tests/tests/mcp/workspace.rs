//! The workspace of a server: chosen with `-C`, or the root of the client.

use serde_json::{Value, json};

use crate::client::{McpClient, error_text, new_home, ok_text};

/// A client with these roots and a server without `-C`; returns the result of a call.
fn call_with_roots(roots: &[&str]) -> (cofferdam_tests::program::TestHome, Value) {
    let home = new_home().with_file("a.txt", "in the current directory\n");
    home.write_file("other/a.txt", "in the root\n");
    let mut client = McpClient::start(&home, &[]);
    client.initialize("2025-11-25", json!({"roots": {"listChanged": true}}));
    let call = client.start_call("read_file", json!({"path": "a.txt"}));
    let asked = client.wait_for_method("roots/list");
    let roots: Vec<Value> = roots
        .iter()
        .map(|root| json!({"uri": root.replace("HOME", &home.path().display().to_string())}))
        .collect();
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots}}));
    let result = client.result_of(call);
    (home, result)
}

#[test]
fn the_only_root_of_the_client_is_the_workspace() {
    let (_home, result) = call_with_roots(&["file://HOME/other"]);
    assert!(ok_text(&result).contains("in the root"), "{result}");
}

#[test]
fn several_roots_or_none_are_not_chosen_from() {
    for roots in [&[][..], &["file://HOME/other", "file://HOME/workspace"]] {
        let (_home, result) = call_with_roots(roots);
        assert!(ok_text(&result).contains("in the current directory"), "{result}");
    }
}

#[test]
fn a_root_that_is_no_project_is_refused_with_a_hint() {
    for (root, reason) in [
        ("file:///", "root of the file system"),
        ("file://HOME", "your home directory"),
        ("file://HOME/workspace/..", "not a local file"),
        ("file://HOME/state/cofferdam", "stores its own files"),
        ("https://example.org/", "not a local file"),
        ("file://HOME/missing", "No such file"),
    ] {
        let (_home, result) = call_with_roots(&[root]);
        let text = error_text(&result);
        assert!(text.contains(reason), "{root}: {text}");
    }
}

#[test]
fn a_chosen_workspace_counts_more_than_a_root() {
    let home = new_home().with_file("a.txt", "chosen\n");
    let mut client = McpClient::begin_with(&home, &[], json!({"roots": {}}));
    assert!(ok_text(&client.call("read_file", json!({"path": "a.txt"}))).contains("chosen"));
    let mut client = McpClient::start(&home, &[]);
    client.initialize("2025-11-25", json!({}));
    assert!(ok_text(&client.call("read_file", json!({"path": "a.txt"}))).contains("chosen"));
}

#[test]
fn a_current_directory_that_is_no_project_is_refused() {
    let home = new_home();
    let mut command = home.command(&["mcp", "serve"]);
    command.current_dir(home.path());
    let mut client = McpClient::start_command(command);
    client.initialize("2025-11-25", json!({}));
    let text = error_text(&client.call("list_dir", json!({"path": "."})));
    assert!(text.contains("your home directory") && text.contains("-C"), "{text}");
    let listed = client.ask("tools/list", json!({}));
    assert!(
        listed["error"]["message"].as_str().is_some_and(|text| text.contains("-C")),
        "{listed}"
    );
}
