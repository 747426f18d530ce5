//! Approval through the client, and what happens without it.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{McpClient, error_text, new_home, ok_text};

#[test]
fn the_user_sees_the_real_diff_and_the_real_command() {
    let home = new_home().with_file("a.txt", "one\ntwo\n");
    let mut client = McpClient::begin(&home, &[]);
    ok_text(&client.call("read_file", json!({"path": "a.txt"})));
    let edit = client
        .start_call("update_file", json!({"path": "a.txt", "old_text": "two", "new_text": "2"}));
    let question = client.answer_question(json!({"decision": "once"}));
    let message = question["params"]["message"].as_str().expect("a text");
    assert!(message.contains("-two") && message.contains("+2"), "{message}");
    ok_text(&client.result_of(edit));
    let command = "printf 'a\u{202e}b' # \u{1b}[2J";
    let run = client.start_call("bash", json!({"command": command}));
    let question = client.answer_question(json!({"decision": "once"}));
    let message = question["params"]["message"].as_str().expect("a text");
    assert!(message.contains(r"printf 'a\u{202e}b' # \u{1b}[2J"), "{message}");
    assert!(message.contains("in the sandbox"), "{message}");
    ok_text(&client.result_of(run));
    // A client that shows the first rows shows the end of such a command, too.
    let command = format!("true{}\necho{}two", "\n".repeat(60), " ".repeat(500));
    let run = client.start_call("bash", json!({"command": command}));
    let question = client.answer_question(json!({"decision": "once"}));
    let message = question["params"]["message"].as_str().expect("a text");
    let shown =
        "    true\n    ⋮ 60 empty lines\n    echo\n    ⋮ 500 spaces or tabs omitted\n    two\n";
    assert!(message.contains(shown), "{message}");
    ok_text(&client.result_of(run));
    let text = format!("start{}end\n", "\n".repeat(61));
    let write = client.start_call("write_file", json!({"path": "blank", "content": text}));
    let question = client.answer_question(json!({"decision": "once"}));
    let message = question["params"]["message"].as_str().expect("a text");
    assert!(message.contains("+start\n    ⋮ 60 empty lines added\n    +end"), "{message}");
    ok_text(&client.result_of(write));
}

#[test]
fn an_approval_for_the_session_covers_its_scope_and_no_more() {
    let home = new_home();
    let mut client = McpClient::begin(&home, &[]);
    let first = client.start_call("bash", json!({"command": "echo one"}));
    let question = client.answer_question(json!({"decision": "session"}));
    let message = question["params"]["message"].as_str().expect("a text");
    assert!(message.contains("The choice `session` covers exactly `echo one`"), "{message}");
    ok_text(&client.result_of(first));
    assert_eq!(ok_text(&client.call("bash", json!({"command": "echo one"}))).trim(), "one");
    let other = client.start_call("bash", json!({"command": "touch x"}));
    client.answer_question(json!({"decision": "reject", "reason": "Use write_file."}));
    let result = client.result_of(other);
    assert!(error_text(&result).contains("Use write_file."), "{result}");
    assert_eq!(result["_meta"]["cofferdam/denied"]["code"], "rejected-by-user");
    assert!(!home.has_file("x"));
    // Another client has approved nothing.
    let mut second = McpClient::begin(&home, &[]);
    second.start_call("bash", json!({"command": "echo one"}));
    second.wait_for_method("elicitation/create");
}

#[test]
fn anything_but_an_offered_choice_denies() {
    let home = new_home();
    let mut client = McpClient::begin(&home, &[]);
    let answers = [
        json!({"result": {"action": "decline"}}),
        json!({"result": {"action": "cancel"}}),
        json!({"result": {"action": "accept", "content": {"decision": "always"}}}),
        json!({"result": {"action": "accept", "content": {}}}),
        json!({"result": {"action": "accept"}}),
        json!({"result": {"action": "yes"}}),
        json!({"result": {}}),
        json!({"error": {"code": -1, "message": "no\u{1b}[2J"}}),
    ];
    for mut answer in answers {
        let call = client.start_call("write_file", json!({"path": "a", "content": "a"}));
        let question = client.wait_for_method("elicitation/create");
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = question["id"].clone();
        client.send(&answer);
        let result = client.result_of(call);
        error_text(&result);
        assert!(!result.to_string().contains('\u{1b}'), "{result}");
        assert!(!home.has_file("a"), "{answer}");
    }
    client.assert_healthy();
}

#[test]
fn a_client_that_cannot_ask_gets_a_denial_with_the_rule() {
    let home = new_home();
    for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
        let mut client = McpClient::begin_with(&home, &[], capabilities);
        let result = client.call("bash", json!({"command": "touch x"}));
        let text = error_text(&result);
        assert!(text.contains("nobody-to-ask") && text.contains("cannot ask the user"), "{text}");
        let rule = "`allow = [\"touch x\"]` under [commands]";
        assert!(text.contains(rule), "{text}");
        assert!(text.contains("config/cofferdam/policy.toml"), "{text}");
        assert_eq!(result["_meta"]["cofferdam/denied"]["code"], "nobody-to-ask");
    }
    // The rule is the real one.
    home.write_file("config/cofferdam/policy.toml", "[commands]\nallow = [\"touch x\"]\n");
    let mut client = McpClient::begin_with(&home, &[], json!({}));
    ok_text(&client.call("bash", json!({"command": "touch x"})));
    assert!(home.has_file("x"));
}

#[test]
fn a_question_without_an_answer_ends() {
    let home = new_home();
    let mut client = McpClient::begin(&home, &["--approval-timeout", "1"]);
    let started = Instant::now();
    let call = client.start_call("write_file", json!({"path": "a", "content": "a"}));
    let question = client.wait_for_method("elicitation/create");
    let text = error_text(&client.result_of(call));
    assert!(text.contains("did not answer within 1 seconds"), "{text}");
    assert!(started.elapsed() < Duration::from_secs(20));
    let over = client.wait_for_method("notifications/cancelled");
    assert_eq!(over["params"]["requestId"], question["id"]);
    // An answer that comes too late changes nothing.
    let result = json!({"action": "accept", "content": {"decision": "once"}});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
    client.assert_healthy();
    assert!(!home.has_file("a"));
}

#[test]
fn a_cancelled_call_withdraws_its_question() {
    let home = new_home();
    let mut client = McpClient::begin(&home, &[]);
    let call = client.start_call("write_file", json!({"path": "a", "content": "a"}));
    let question = client.wait_for_method("elicitation/create");
    client.notify("notifications/cancelled", json!({"requestId": call}));
    let over = client.wait_for_method("notifications/cancelled");
    assert_eq!(over["params"]["requestId"], question["id"]);
    let result = json!({"action": "accept", "content": {"decision": "once"}});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
    client.assert_healthy();
    assert!(!home.has_file("a"));
    // The next question is asked as usual.
    let call = client.start_call("write_file", json!({"path": "b", "content": "b"}));
    client.answer_question(json!({"decision": "once"}));
    ok_text(&client.result_of(call));
    assert!(home.has_file("b"));
}

#[test]
fn a_content_that_the_question_cannot_show_is_denied() {
    let home = new_home().with_file("old.bin", b"\x00old");
    let mut client = McpClient::begin(&home, &[]);
    let contents = [
        ("zero.bin", "a\0b".to_owned()),
        ("large.txt", "line\n".repeat(900_000)),
        ("long.txt", "x".repeat(3 << 20)),
    ];
    for (path, content) in contents {
        let result = client.call("write_file", json!({"path": path, "content": content}));
        let text = error_text(&result);
        assert!(text.contains("nobody-to-ask"), "{path}: {text}");
        assert_eq!(result["_meta"]["cofferdam/denied"]["code"], "nobody-to-ask");
        let reason = result["_meta"]["cofferdam/denied"]["reason"].as_str().expect("a reason");
        let expected = format!("{path} has no diff (not text, or too large for a diff)");
        assert!(reason.contains(&expected), "{reason}");
        assert!(!home.has_file(path), "{path}");
        let asked = client.collect_for(Duration::from_millis(50));
        assert!(asked.iter().all(|message| message["method"] != "elicitation/create"), "{asked:?}");
    }
    // What the question shows can be approved as before.
    let call = client.start_call("write_file", json!({"path": "a.txt", "content": "text\n"}));
    let question = client.answer_question(json!({"decision": "once"}));
    assert!(question["params"]["message"].as_str().is_some_and(|text| text.contains("+text")));
    ok_text(&client.result_of(call));
}

#[test]
fn a_denied_input_stays_denied_if_it_is_sent_in_parts() {
    let home = new_home().with_file("kept", "");
    home.write_file("config/cofferdam/policy.toml", "[commands]\ndeny = [\"rm *\"]\n");
    let mut client = McpClient::begin(&home, &["--mode", "auto"]);
    ok_text(&client.call("bash", json!({"command": "sh", "background": true})));
    let write = |text: &str| json!({"action": "write", "id": 1, "text": text});
    for part in ["alias x=ls\n", "r"] {
        let call = client.start_call("jobs", write(part));
        let question = client.answer_question(json!({"decision": "once"}));
        let message = question["params"]["message"].as_str().expect("a text");
        assert!(message.contains(part.trim_end()), "{message}");
        ok_text(&client.result_of(call));
    }
    let denied = client.call("jobs", write("m kept\n"));
    assert_eq!(denied["_meta"]["cofferdam/denied"]["code"], "policy", "{denied}");
    assert!(home.has_file("kept"));
}

#[test]
fn the_mode_is_bounded_by_the_policy() {
    let home = new_home();
    let mut client = McpClient::begin_with(&home, &["--mode", "auto"], json!({}));
    ok_text(&client.call("write_file", json!({"path": "a", "content": "a"})));
    let mut planning = McpClient::begin(&home, &["--mode", "plan"]);
    let text = error_text(&planning.call("write_file", json!({"path": "b", "content": "b"})));
    assert!(text.contains("mode"), "{text}");
    home.write_file("config/cofferdam/policy.toml", "modes = [\"plan\", \"ask\"]\n");
    let ran = home.run(&["mcp", "serve", "-C", ".", "--mode", "auto"]);
    assert_eq!(ran.exit_code, 78, "{ran:?}");
    assert!(ran.stdout.is_empty() && ran.stderr.contains("not allowed by this policy"), "{ran:?}");
    assert!(!home.has_file("b"));
}
