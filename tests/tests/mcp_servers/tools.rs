//! Calls of well-behaved servers, and how their tools look.

use serde_json::{Value, json};

use crate::client::{McpClient, error_text, ok_text, text_of};
use crate::scripted::ScriptedUser;

#[test]
fn a_tool_of_a_server_is_called_by_the_model_and_answers() {
    let user = ScriptedUser::with_server(&[]);
    let mut session = user.begin("ask");
    assert_eq!(session.text("echo", json!({"text": "one"})), "one");
    let result = session.call("add", json!({"a": 1, "b": 2}));
    assert_eq!(
        (ok_text(&result).as_str(), &result["structuredContent"]),
        ("3", &json!({"sum": 3}))
    );
    let problem = session.error("add", json!({"a": 1}));
    assert!(problem.contains("do not match the input schema"), "{problem}");
    let problem = session.error("bad_sum", json!({}));
    assert!(problem.contains("does not match its output schema"), "{problem}");
    // One process answers all calls.
    assert_eq!(session.text("counter", json!({})), "1");
    assert_eq!(session.text("counter", json!({})), "2");
}

#[test]
fn each_kind_of_content_arrives() {
    let user = ScriptedUser::with_server(&[]);
    let mut session = user.begin("ask");
    let result = session.call("picture", json!({}));
    assert_eq!(result["content"][0]["mimeType"], "image/png", "{result}");
    let text = text_of(&result);
    assert!(text.contains("[resource a: file:///a]") && text.contains("x:b\ninside"), "{text}");
    let problem = session.error("false_picture", json!({}));
    assert!(problem.contains("not an image"), "{problem}");
    assert_eq!(session.error("fail", json!({})), "no such thing");
}

#[test]
fn versions_and_pages_of_servers_are_handled() {
    for mode in ["old", "pages", "greeting", "fragile"] {
        let user = ScriptedUser::new();
        let added = user.add(&[], mode);
        assert_eq!(added.exit_code, 0, "{mode}: {added:?}");
        user.begin("ask").assert_usable();
    }
}

#[test]
fn tools_are_listed_with_their_permissions_and_tier() {
    let user = ScriptedUser::with_server(&["--files", "read"]);
    let table = user.home.run(&["tools", "list"]);
    let line = |text: &str, name: &str| {
        let mut lines = text.lines();
        lines.find(|line| line.split_whitespace().next() == Some(name)).map(str::to_owned)
    };
    let echo = line(&table.stdout, "s/echo").expect("it is listed");
    assert!(echo.contains("read-only") && echo.contains("read files of the workspace"), "{echo}");
    assert!(echo.ends_with("server s"), "{echo}");
    // What the server says can only make a tool stricter.
    let strict = line(&table.stdout, "s/strict").expect("it is listed");
    assert!(strict.contains("  write  "), "{strict}");
    let shown = user.home.run(&["tools", "show", "s/echo"]);
    assert!(shown.stdout.contains("for models  s__echo"), "{shown:?}");
    assert!(shown.stdout.contains("its permissions cannot change anything"), "{shown:?}");
    let list = user.home.run(&["mcp", "list"]);
    assert!(list.stdout.contains("s  pinned  read-only"), "{list:?}");
    let list = user.home.run(&["mcp", "list", "--json"]);
    let list: Value = serde_json::from_str(&list.stdout).expect("JSON");
    assert_eq!(
        (&list["servers"][0]["state"], &list["sandbox"]),
        (&json!("pinned"), &json!("full"))
    );
    let explained = user.home.run(&["policy", "explain", "s/strict"]);
    assert!(explained.stdout.starts_with("s/strict: run: ask"), "{explained:?}");
}

#[test]
fn a_server_that_can_change_something_is_asked_about_unless_a_rule_allows_it() {
    let user = ScriptedUser::with_server(&["--files", "read-write"]);
    let mut client = McpClient::begin(&user.home, &["--mode", "ask"]);
    let id = client.start_call("s__echo", json!({"text": "one"}));
    let question = client.answer_question(json!({"decision": "reject"}));
    let message = question["params"]["message"].as_str().expect("a text");
    assert!(message.contains("s/echo") && message.contains("one"), "{message}");
    let result = client.result_of(id);
    assert!(error_text(&result).contains("rejected"), "{result}");
    let id = client.start_call("s__echo", json!({"text": "two"}));
    client.answer_question(json!({"decision": "once"}));
    assert_eq!(ok_text(&client.result_of(id)), "two");
    drop(client);
    user.home.write_file("config/cofferdam/policy.toml", "[tools.\"s/*\"]\nuse = \"allow\"\n");
    let mut session = user.begin("ask");
    assert_eq!(session.text("echo", json!({"text": "three"})), "three");
    drop(session);
    user.home.write_file("config/cofferdam/policy.toml", "[tools.\"s/echo\"]\nuse = \"deny\"\n");
    let mut session = user.begin("auto");
    let answer = session.client.ask("tools/call", json!({"name": "s__echo", "arguments": {}}));
    assert_eq!(answer["error"]["message"], "unknown tool: s__echo");
    assert_eq!(session.text("counter", json!({})), "1");
}

#[test]
fn plan_mode_calls_no_tool_of_a_server_that_can_write() {
    let user = ScriptedUser::with_server(&["--files", "read-write"]);
    user.home.write_file("config/cofferdam/policy.toml", "[tools.\"s/*\"]\nuse = \"allow\"\n");
    let mut session = user.begin("plan");
    let problem = session.error("write_path", json!({"path": "a.txt"}));
    assert!(problem.contains("mode `plan` denies changes"), "{problem}");
}

#[test]
fn progress_arrives_escaped_and_not_too_often() {
    let user = ScriptedUser::with_server(&[]);
    let mut session = user.begin("ask");
    let params = json!({
        "name": "s__progress", "arguments": {"count": 5000}, "_meta": {"progressToken": "p"},
    });
    let id = session.client.request("tools/call", params);
    assert_eq!(ok_text(&session.client.result_of(id)), "done");
    let seen = session.client.collect_for(std::time::Duration::from_millis(200));
    let steps: Vec<&Value> =
        seen.iter().filter(|message| message["method"] == "notifications/progress").collect();
    assert!(!steps.is_empty() && steps.len() < 200, "{} steps", steps.len());
    let message = steps[0]["params"]["message"].as_str().expect("a text");
    assert!(message.starts_with("step \\u{1b}[1m"), "{message}");
    assert_eq!(session.text("foreign_progress", json!({})), "done");
}
