//! Hostile clients, as raw bytes.

use std::io::Write as _;
use std::time::{Duration, Instant};

use cofferdam_tests::program::TestHome;
use serde_json::{Value, json};

use crate::client::{McpClient, new_home, ok_text};

/// Sends bytes and returns the error that answers them.
#[track_caller]
fn refusal(client: &mut McpClient, bytes: &[u8]) -> Value {
    client.send_bytes(bytes);
    client.wait_for("a refusal", |message| message["error"].is_object())["error"].clone()
}

/// A call with these parameters, as a line.
fn call_line(params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":90,\"method\":\"tools/call\",\"params\":{params}}}\n")
}

#[test]
fn lines_that_are_no_messages_are_refused_one_by_one() {
    let home = new_home();
    let mut client = McpClient::begin(&home, &[]);
    let deep = format!("{{\"a\":{}{}}}\n", "[".repeat(100_000), "]".repeat(100_000));
    let deep_arguments = call_line(&format!(
        "{{\"name\":\"submit\",\"arguments\":{{\"a\":{}{}}}}}",
        "[".repeat(200),
        "]".repeat(200)
    ));
    let calls = [
        r#"{"name":7}"#,
        r#"{"name":"submit","arguments":[1]}"#,
        r#"{"name":"no such tool"}"#,
        "{}",
    ]
    .map(call_line);
    let cursor = br#"{"jsonrpc":"2.0","id":103,"method":"tools/list","params":{"cursor":"AAAA"}}"#;
    let cursor = [&cursor[..], b"\n"].concat();
    let lines: Vec<(&[u8], i64)> = vec![
        (b"{\n", -32700),
        (b"\xff\xfe\n", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":91,\"method\":\"ping\xc3\x28\"}\n", -32700),
        (deep.as_bytes(), -32700),
        (deep_arguments.as_bytes(), -32700),
        (b"null\n", -32600),
        (b"12\n", -32600),
        (b"\"ping\"\n", -32600),
        (b"[]\n", -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":92,\"method\":\"ping\"}]\n", -32600),
        (b"{}\n", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":93,\"method\":\"ping\"}\n", -32600),
        (b"{\"id\":94,\"method\":\"ping\"}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{\"a\":1},\"method\":\"ping\"}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":95,\"method\":\"ping\",\"result\":{}}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":96,\"method\":7}\n", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":97,\"method\":\"no/such/method\"}\n", -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":98,\"method\":\"prompts/list\"}\n", -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":100,\"method\":\"tools/call\",\"params\":[]}\n", -32600),
        (calls[0].as_bytes(), -32602),
        (calls[1].as_bytes(), -32602),
        (calls[2].as_bytes(), -32602),
        (calls[3].as_bytes(), -32602),
        (&cursor, -32602),
    ];
    for (line, code) in lines {
        let error = refusal(&mut client, line);
        let shown = String::from_utf8_lossy(&line[..line.len().min(120)]).into_owned();
        assert_eq!(error["code"], code, "{shown}: {error}");
        client.assert_healthy();
    }
    // Empty lines, carriage returns and foreign notifications are no error.
    client.send_bytes(
        b"\n\r\n  \n{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{}}\r\n",
    );
    client.assert_healthy();
    assert_eq!(client.collect_for(Duration::from_millis(100)), Vec::<Value>::new());
}

#[test]
fn a_huge_line_is_dropped_in_constant_memory() {
    let home = new_home();
    let mut client = McpClient::begin(&home, &[]);
    let before = peak_memory(client.id());
    client.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"params\":{\"a\":\"");
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        client.send_bytes(&chunk);
    }
    client.send_bytes(b"\"}}\n");
    let refused = client.wait_for("a refusal", |message| message["error"].is_object());
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &Value::Null));
    client.assert_healthy();
    let grown = peak_memory(client.id()).saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");
}

/// The most memory that a process had in use, in bytes.
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is there");
    peak.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") << 10
}

#[test]
fn an_open_id_cannot_be_used_twice() {
    let home = new_home();
    let mut client = McpClient::begin(&home, &[]);
    let call = client.start_call("write_file", json!({"path": "a", "content": "a"}));
    let question = client.wait_for_method("elicitation/create");
    for method in ["ping", "tools/list", "tools/call"] {
        let twice = json!({"jsonrpc": "2.0", "id": call, "method": method,
            "params": {"name": "submit", "arguments": {}}});
        let error = refusal(&mut client, format!("{twice}\n").as_bytes());
        assert!(error["message"].as_str().is_some_and(|text| text.contains("ID")), "{error}");
    }
    // Answers to questions that were never asked, and cancellations of unknown requests.
    for id in [json!(77), json!("0"), json!(-1), Value::Null] {
        client.send(&json!({"jsonrpc": "2.0", "id": id,
            "result": {"action": "accept", "content": {"decision": "once"}}}));
        client.notify("notifications/cancelled", json!({"requestId": id}));
    }
    client.notify("notifications/cancelled", json!({}));
    client.assert_healthy();
    assert!(!home.has_file("a"));
    let accept = json!({"action": "accept", "content": {"decision": "once"}});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": accept}));
    ok_text(&client.result_of(call));
    // The ID is free again.
    client.send(&json!({"jsonrpc": "2.0", "id": call, "method": "ping"}));
    assert_eq!(client.answer_of(call)["result"], json!({}));
}

#[test]
fn a_client_that_does_not_read_costs_little_memory() {
    let text = format!("{}\n", "x".repeat(999)).repeat(1_000);
    let home = new_home().with_file("big.txt", text);
    let place = home.workspace().join("big.txt");
    let call = json!({"name": "read_file", "arguments": {"path": "big.txt"}});
    let read = json!({"uri": format!("file://{}", place.display())});
    for (method, params) in [("tools/call", call), ("resources/read", read)] {
        assert_unread_answers_are_few(&home, method, &params);
        // Whoever reads gets all of them.
        let mut client = McpClient::begin(&home, &[]);
        let asked: Vec<i64> = (0..150).map(|_| client.request(method, params.clone())).collect();
        for id in asked {
            client.result_of(id);
        }
    }
}

/// Sends many requests to a server without reading an answer.
#[track_caller]
fn assert_unread_answers_are_few(home: &TestHome, method: &str, params: &Value) {
    let (method, params) = (method.to_owned(), params.clone());
    let mut command = home.command(&["mcp", "serve", "-C", "."]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("it is piped");
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}}});
    writeln!(input, "{begin}").expect("the server reads");
    let id = child.id();
    let writer = std::thread::spawn(move || {
        for n in 1..200_000_u32 {
            let call = json!({"jsonrpc": "2.0", "id": n, "method": method, "params": params});
            if writeln!(input, "{call}").is_err() {
                return n;
            }
        }
        u32::MAX
    });
    std::thread::sleep(Duration::from_secs(4));
    let peak = peak_memory(id);
    child.kill().expect("it runs");
    child.wait().expect("it is a child");
    let sent = writer.join().expect("it ends");
    assert!(sent < 200_000, "the server has stopped reading");
    assert!(peak < 250 << 20, "{} MiB", peak >> 20);
}

#[test]
fn a_request_that_waits_for_room_can_be_cancelled() {
    let home = new_home();
    let mut client = McpClient::begin(&home, &[]);
    let write = |client: &mut McpClient, n: usize| {
        client.start_call("write_file", json!({"path": format!("f{n}"), "content": "x"}))
    };
    // Each waits for an approval, and keeps the room of its answer.
    let asked: Vec<i64> = (0..64).map(|n| write(&mut client, n)).collect();
    let waiting = [write(&mut client, 64), write(&mut client, 65)];
    client.assert_healthy();
    client.notify("notifications/cancelled", json!({"requestId": waiting[0]}));
    for id in &asked {
        client.notify("notifications/cancelled", json!({"requestId": id}));
    }
    // The last one starts when there is room, and asks.
    let is_last = |message: &Value| {
        message["method"] == "elicitation/create"
            && message["params"]["message"].as_str().is_some_and(|text| text.contains("f65"))
    };
    let question = client.wait_for("the question of the last request", is_last);
    let accept = json!({"action": "accept", "content": {"decision": "once"}});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": accept}));
    ok_text(&client.result_of(waiting[1]));
    let written: Vec<usize> = (0..66).filter(|n| home.has_file(&format!("f{n}"))).collect();
    assert_eq!(written, [65]);
}

#[test]
fn bytes_that_arrive_slowly_are_a_message_all_the_same() {
    let home = new_home();
    let mut client = McpClient::begin(&home, &[]);
    for byte in b"{\"jsonrpc\":\"2.0\",\"id\":500,\"method\":\"ping\"}\n" {
        client.send_bytes(&[*byte]);
        std::thread::sleep(Duration::from_millis(3));
    }
    assert_eq!(client.answer_of(500)["result"], json!({}));
}

#[test]
fn a_session_that_begins_with_anything_else_does_not_run_tools() {
    let home = new_home().with_file("a.txt", "one\n");
    let mut client = McpClient::start(&home, &["--mode", "auto"]);
    client.notify("notifications/initialized", json!({}));
    client.notify("notifications/cancelled", json!({"requestId": 1}));
    client.send(&json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
    client.assert_healthy();
    let early =
        client.ask("tools/call", json!({"name": "read_file", "arguments": {"path": "a.txt"}}));
    assert!(early["error"].is_object(), "{early}");
    client.initialize("2025-11-25", json!({}));
    ok_text(&client.call("read_file", json!({"path": "a.txt"})));
}

#[test]
fn a_program_that_is_no_client_gets_an_error() {
    let home = new_home();
    let started = Instant::now();
    let ran = home.run(&["mcp", "serve"]);
    assert_eq!((ran.exit_code, ran.stdout.as_str()), (0, ""), "an empty input is the end: {ran:?}");
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_line_with_millions_of_values_is_refused_before_it_is_parsed() {
    let home = new_home();
    let mut client = McpClient::begin(&home, &[]);
    let values = vec!["0"; 7_000_000].join(",");
    let line =
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{{\"x\":[{values}]}}}}\n");
    client.send_bytes(line.as_bytes());
    let refused = client.wait_for("an error", |message| message["error"].is_object());
    let text = refused["error"]["message"].to_string();
    assert!(text.contains("more than 200000 values"), "{refused}");
    client.assert_healthy();
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.id()));
    let status = status.expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kib < 300 << 10, "{kib} KiB");
}
