//! Versions of the protocol, and what the server says about itself and its tools.

use serde_json::{Value, json};

use crate::client::{McpClient, error_text, new_home, ok_text};

/// The metadata of a request without a session.
fn stateless(mut params: Value, capabilities: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

#[test]
fn each_version_with_sessions_is_spoken_and_others_fall_back() {
    let home = new_home();
    let versions = [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ];
    for (requested, expected) in versions {
        let mut client = McpClient::start(&home, &[]);
        let begun = client.initialize(requested, json!({}));
        assert_eq!(begun["protocolVersion"], expected, "{requested}");
        assert_eq!(begun["serverInfo"]["name"], "cofferdam");
        assert_eq!(
            begun["capabilities"],
            json!({"logging": {}, "resources": {}, "tools": {}}),
            "no list changes, no subscriptions and no prompts"
        );
        assert!(begun["instructions"].as_str().is_some_and(|text| text.contains("denied")));
        client.assert_healthy();
        assert!(!ok_text(&client.call("todo", json!({}))).is_empty());
    }
}

#[test]
fn a_second_initialization_does_not_change_the_session() {
    let home = new_home();
    let mut client = McpClient::begin_with(&home, &[], json!({}));
    let again = client.ask(
        "initialize",
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        }),
    );
    assert_eq!(again["error"]["code"], -32600, "{again}");
    let result = client.call("write_file", json!({"path": "a", "content": "a"}));
    assert!(error_text(&result).contains("cannot ask the user"), "{result}");
}

#[test]
fn a_version_without_sessions_needs_no_initialization() {
    let home = new_home().with_file("a.txt", "one\n");
    let mut client = McpClient::start(&home, &[]);
    let found = client.ask("server/discover", stateless(json!({}), json!({})));
    let versions = found["result"]["supportedVersions"].as_array().expect("a list");
    assert!(versions.contains(&json!("2026-07-28")), "{found}");
    let listed = client.ask("tools/list", stateless(json!({}), json!({})));
    assert!(listed["result"]["tools"].as_array().is_some_and(|tools| tools.len() > 8), "{listed}");
    assert_eq!(listed["result"]["resultType"], "complete");
    let params = stateless(json!({"name": "read_file", "arguments": {"path": "a.txt"}}), json!({}));
    let called = client.ask("tools/call", params);
    assert!(ok_text(&called["result"]).contains("one"));
}

#[test]
fn without_sessions_the_client_repeats_the_call_with_the_answer() {
    let home = new_home();
    let mut client = McpClient::start(&home, &[]);
    let form = json!({"elicitation": {"form": {}}});
    let call = json!({"name": "write_file", "arguments": {"path": "a", "content": "one"}});
    let asked = client.ask("tools/call", stateless(call.clone(), form.clone()))["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["approval"];
    assert_eq!(question["method"], "elicitation/create");
    let message = question["params"]["message"].as_str().expect("a text");
    assert!(message.contains("+one"), "{message}");
    assert!(!home.has_file("a"));
    let answer = |call: &Value, state: &Value, answer: Value| {
        let mut call = call.clone();
        call["requestState"] = state.clone();
        call["inputResponses"] = json!({"approval": answer});
        stateless(call, form.clone())
    };
    let yes = json!({"action": "accept", "content": {"decision": "once"}});
    // The answer counts for this call only.
    let mut other = call.clone();
    other["arguments"]["content"] = json!("two");
    let forged = [
        answer(&other, &asked["requestState"], yes.clone()),
        answer(&call, &json!("0123456789abcdef"), yes.clone()),
        answer(&call, &json!(""), yes.clone()),
        answer(&call, &asked["requestState"], json!("yes")),
    ];
    for forged in forged {
        let refused = client.ask("tools/call", forged);
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert!(!home.has_file("a"));
    // Without an answer, the question is asked again.
    let mut unanswered = call.clone();
    unanswered["requestState"] = asked["requestState"].clone();
    let again = client.ask("tools/call", stateless(unanswered, form.clone()));
    assert_eq!(again["result"]["requestState"], asked["requestState"], "{again}");
    let done = client.ask("tools/call", answer(&call, &asked["requestState"], yes.clone()));
    assert!(ok_text(&done["result"]).contains("wrote"), "{done}");
    assert!(home.has_file("a"));
    let late = client.ask("tools/call", answer(&call, &asked["requestState"], yes));
    assert_eq!(late["error"]["code"], -32602, "an answer counts once: {late}");
}

#[test]
fn the_tools_have_titles_schemas_and_true_hints() {
    let home = new_home();
    let mut client = McpClient::begin(&home, &[]);
    let listed = client.ask("tools/list", json!({}))["result"].clone();
    assert!(listed.get("nextCursor").is_none());
    let listed = listed["tools"].as_array().expect("a list").clone();
    let shown = home.run(&["tools", "list", "--json"]).stdout;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let shown = shown["tools"].as_array().expect("a list").clone();
    let names: Vec<&Value> = listed.iter().map(|tool| &tool["name"]).collect();
    let expected: Vec<&Value> = shown
        .iter()
        .filter(|tool| tool["grants"]["agents"] == false && tool["grants"]["plans"] == false)
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, expected);
    for tool in &listed {
        let grants = &shown
            .iter()
            .find(|shown| shown["name"] == tool["name"])
            .expect("it is shown")["grants"];
        let hints = &tool["annotations"];
        assert!(tool["title"].is_string() && tool["inputSchema"]["type"] == "object", "{tool}");
        let writes = grants["files"] == "read-write" || grants["commands"] == true;
        let fetches = grants["fetch"].as_array().is_some_and(|hosts| !hosts.is_empty());
        assert_eq!(hints["readOnlyHint"], !(writes || fetches), "{tool}");
        assert_eq!(hints["destructiveHint"], writes, "{tool}");
        assert_eq!(hints["openWorldHint"], fetches, "{tool}");
    }
    let unknown = client.ask("tools/call", json!({"name": "research_codebase", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "it is not offered: {unknown}");
    let forged = client.ask("tools/list", json!({"cursor": "1"}));
    assert_eq!(forged["error"]["code"], -32602, "{forged}");
}
