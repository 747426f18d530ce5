//! The server over HTTP: sessions, streams, approval, and how everything ends.

use std::time::{Duration, Instant};

use cofferdam_tests::program::{find_processes, wait_for_sleep, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::client::{error_text, new_home, ok_text};
use crate::http_client::{HttpClient, HttpServer};

fn assert_over_within(time: Duration, sleep: &str) {
    let since = Instant::now();
    wait_until("the command is over", || find_processes(&format!("sleep {sleep}")).is_empty());
    assert!(since.elapsed() < time, "{:?}", since.elapsed());
}

/// The parameters of a request without a session.
fn stateless(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "t", "version": "1"});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    params
}

/// Sends a request without a session and returns the answer.
#[track_caller]
fn ask_stateless(client: &mut HttpClient, method: &str, params: Value, form: &Value) -> Value {
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let request = client.request(method, stateless(params, form));
    let more = format!(
        "mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{}",
        if name.is_empty() { String::new() } else { format!("mcp-name: {name}\r\n") }
    );
    let bytes = client.post_bytes(&request.to_string(), &more);
    let reply = client.post_raw(&bytes);
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.message()
}

#[test]
fn a_session_has_tools_resources_and_an_end() {
    let home = new_home().with_file("a.txt", "one\n");
    let server = HttpServer::start(&home, &[]);
    assert!(server.log().contains("(authentication: none)"), "{}", server.log());
    wait_until("it warns", || server.log().contains("every user and program of this machine"));
    for (asked, negotiated) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2099-01-01", "2025-11-25"),
    ] {
        let mut client = server.client();
        client.version = asked.to_owned();
        let begun = client.initialize(json!({}));
        assert_eq!(begun["protocolVersion"], negotiated);
        assert_eq!(begun["serverInfo"]["name"], "cofferdam");
        let listed = client.ask("tools/list", json!({}))["result"]["tools"].clone();
        assert!(listed.as_array().is_some_and(|tools| tools.len() > 5), "{listed}");
        assert!(ok_text(&client.call("read_file", json!({"path": "a.txt"}))).contains("one"));
        let files = client.ask("resources/list", json!({}))["result"]["resources"].clone();
        let read = client.ask("resources/read", json!({"uri": files[0]["uri"]}));
        assert_eq!(read["result"]["contents"][0]["text"], "one\n", "{read}");
        assert_eq!(client.end(), 204);
        let request = client.request("ping", json!({}));
        assert_eq!(client.post(&request).status, 404, "the session has ended");
        assert_eq!(client.end(), 404);
    }
}

#[test]
fn a_session_may_begin_with_the_header_of_its_version() {
    let home = new_home();
    let server = HttpServer::start(&home, &[]);
    let mut client = server.client().with_header("mcp-protocol-version", "2025-11-25");
    let reply = client.try_initialize(json!({}));
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.message()["result"]["protocolVersion"], "2025-11-25");
    let mut client = server.client().with_header("mcp-protocol-version", "2025-06-18");
    assert_eq!(client.try_initialize(json!({})).status, 400, "the header contradicts the request");
}

#[test]
fn methods_of_sessions_do_not_exist_without_one() {
    let home = new_home();
    let server = HttpServer::start(&home, &[]);
    let mut client = server.client();
    for (method, params) in [
        ("logging/setLevel", json!({"level": "debug"})),
        ("logging/setLevel", json!({})),
        ("initialize", json!({})),
        ("prompts/list", json!({})),
    ] {
        let request = client.request(method, stateless(params, &json!({})));
        let more = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n");
        let bytes = client.post_bytes(&request.to_string(), &more);
        let reply = client.post_raw(&bytes);
        assert_eq!(
            (reply.status, &reply.message()["error"]["code"]),
            (404, &json!(-32601)),
            "{method}: {reply:?}"
        );
    }
}

#[test]
fn requests_without_a_session_are_served_and_approved_one_by_one() {
    let home = new_home().with_file("a.txt", "one\n");
    let server = HttpServer::start(&home, &[]);
    let mut client = server.client();
    let form = json!({"elicitation": {"form": {}}});
    let found = ask_stateless(&mut client, "server/discover", json!({}), &form);
    let versions = found["result"]["supportedVersions"].as_array().expect("versions").clone();
    assert!(versions.contains(&json!("2026-07-28")), "{found}");
    let read = json!({"name": "read_file", "arguments": {"path": "a.txt"}});
    let read = ask_stateless(&mut client, "tools/call", read, &form);
    assert!(ok_text(&read["result"]).contains("one"), "{read}");
    // State is that of the principal.
    let list = json!({"name": "todo", "arguments": {"items": [{"text": "x", "state": "open"}]}});
    ask_stateless(&mut client, "tools/call", list, &form);
    // An approval counts once: nothing tells two clients of a principal apart.
    let call = json!({"name": "bash", "arguments": {"command": "echo hello"}});
    for _ in 0..2 {
        let asked = ask_stateless(&mut client, "tools/call", call.clone(), &form);
        let question = &asked["result"]["inputRequests"]["approval"]["params"];
        let choices = &question["requestedSchema"]["properties"]["decision"]["enum"];
        assert_eq!(choices, &json!(["once", "reject"]), "{asked}");
        let mut again = call.clone();
        again["requestState"] = asked["result"]["requestState"].clone();
        let yes = json!({"action": "accept", "content": {"decision": "once"}});
        again["inputResponses"] = json!({"approval": yes});
        let done = ask_stateless(&mut server.client(), "tools/call", again, &form);
        assert_eq!(ok_text(&done["result"]).trim(), "hello");
    }
}

#[test]
fn a_question_arrives_on_the_stream_of_its_call() {
    let home = new_home();
    let server = HttpServer::start(&home, &[]);
    let mut client = server.begin();
    let other = client.get_stream(None);
    let (request, mut stream) =
        client.start_call("write_file", json!({"path": "a", "content": "a"}));
    let question = stream.next_message().expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    // Another session cannot answer it.
    let mut stranger = server.begin();
    stranger.answer(&question, json!({"decision": "once"}));
    std::thread::sleep(Duration::from_millis(100));
    assert!(!home.has_file("a"));
    client.answer(&question, json!({"decision": "once"}));
    let answer = stream.next_message().expect("an answer");
    assert_eq!(answer["id"], request["id"]);
    ok_text(&answer["result"]);
    assert!(stream.next_event().is_none(), "the stream ends with the answer");
    assert!(home.has_file("a"));
    drop(other);
}

#[test]
fn an_approval_for_the_session_counts_in_no_other_session() {
    let home = new_home();
    let server = HttpServer::start(&home, &[]);
    let mut client = server.begin();
    let (_, mut stream) = client.start_call("bash", json!({"command": "echo one"}));
    let question = stream.next_message().expect("a question");
    client.answer(&question, json!({"decision": "session"}));
    ok_text(&stream.answer()["result"]);
    ok_text(&client.call("bash", json!({"command": "echo one"})));
    let mut second = server.begin();
    let (_, mut stream) = second.start_call("bash", json!({"command": "echo one"}));
    assert_eq!(stream.next_message().expect("a question")["method"], "elicitation/create");
}

#[test]
fn a_lost_stream_can_be_resumed() {
    let home = new_home();
    let server = HttpServer::start(&home, &["--mode", "auto"]);
    let mut client = server.begin();
    let (request, mut stream) = client.start_call("bash", json!({"command": "sleep 1; echo done"}));
    let first = stream.next_event().expect("an event that names the stream");
    let id = first.id.expect("a name");
    assert!(first.message.is_none());
    stream.connection.close();
    drop(stream);
    let mut resumed = client.get_stream(Some(&id));
    let answer = resumed.next_message().expect("the answer");
    assert_eq!(answer["id"], request["id"]);
    assert!(ok_text(&answer["result"]).contains("done"));
    assert!(resumed.next_event().is_none());
    // A stream that has ended, one of another session, and nonsense have no events.
    let stranger = server.begin();
    for (client, id) in
        [(&client, id.as_str()), (&stranger, &id), (&stranger, "\"'"), (&client, "9-9")]
    {
        assert!(client.get_stream(Some(id)).next_event().is_none(), "{id}");
    }
}

#[test]
fn the_stream_of_a_session_has_one_reader() {
    let home = new_home();
    let server = HttpServer::start(&home, &[]);
    let client = server.begin();
    let stream = client.get_stream(None);
    let reply = server.exchange(client.head("GET", "").as_bytes());
    assert_eq!(reply.status, 409, "{reply:?}");
    stream.connection.close();
    drop(stream);
    wait_until("the place is free", || {
        let mut connection = server.connect();
        connection.write_all(client.head("GET", "").as_bytes());
        connection.read_head() == Some(200)
    });
}

#[test]
fn a_cancelled_call_ends_and_its_stream_too() {
    let home = new_home();
    let server = HttpServer::start(&home, &["--mode", "auto"]);
    let mut client = server.begin();
    let (request, mut stream) = client.start_call("bash", json!({"command": "sleep 2101.5"}));
    wait_for_sleep("2101.5");
    client.notify("notifications/cancelled", json!({"requestId": request["id"]}));
    assert_over_within(Duration::from_secs(1), "2101.5");
    assert!(stream.next_message().is_none(), "a cancelled request has no answer");
}

#[test]
fn a_client_that_vanishes_in_mid_call_leaves_nothing_running() {
    let home = new_home();
    let server = HttpServer::start(&home, &["--mode", "auto"]);
    // With a session, the client has a moment to come back.
    let mut client = server.begin();
    let (_, stream) = client.start_call("bash", json!({"command": "sleep 2102.5"}));
    wait_for_sleep("2102.5");
    stream.connection.close();
    drop((stream, client));
    // Without one, the end of the connection is the end of the call.
    let mut client = server.client();
    let call = json!({"name": "bash", "arguments": {"command": "sleep 2103.5"}});
    let request = client.request("tools/call", stateless(call, &json!({})));
    let more = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: bash\r\n";
    let mut connection = server.connect();
    connection.write_all(&client.post_bytes(&request.to_string(), more));
    wait_for_sleep("2103.5");
    connection.close();
    drop(connection);
    assert_over_within(Duration::from_secs(2), "2103.5");
    assert_over_within(Duration::from_secs(13), "2102.5");
    server.assert_healthy();
}

#[test]
fn the_end_of_a_session_ends_its_commands_and_no_others() {
    let home = new_home();
    let server = HttpServer::start(&home, &["--mode", "auto"]);
    let (mut client, mut other) = (server.begin(), server.begin());
    for (client, time) in [(&mut client, "2104.5"), (&mut other, "2105.5")] {
        let command = json!({"command": format!("sleep {time}"), "background": true});
        ok_text(&client.call("bash", command));
        wait_for_sleep(time);
    }
    let (_, mut stream) = client.start_call("bash", json!({"command": "sleep 2106.5"}));
    wait_for_sleep("2106.5");
    assert_eq!(client.end(), 204);
    assert_over_within(Duration::from_secs(3), "2104.5");
    assert_over_within(Duration::from_secs(3), "2106.5");
    assert!(stream.next_message().is_none());
    assert!(!find_processes("sleep 2105.5").is_empty(), "another session goes on");
    ok_text(&other.call("list_dir", json!({"path": "."})));
}

#[test]
fn an_idle_session_ends_and_one_with_an_open_stream_does_not() {
    let home = new_home();
    let server = HttpServer::start(&home, &["--mode", "auto", "--idle-timeout", "2"]);
    let mut idle = server.begin();
    ok_text(&idle.call("bash", json!({"command": "sleep 2107.5", "background": true})));
    wait_for_sleep("2107.5");
    let mut listening = server.begin();
    let stream = listening.get_stream(None);
    assert_over_within(Duration::from_secs(6), "2107.5");
    let request = idle.request("ping", json!({}));
    assert_eq!(idle.post(&request).status, 404);
    assert_eq!(listening.ask("ping", json!({}))["result"], json!({}));
    drop(stream);
}

#[test]
fn a_signal_ends_everything_within_seconds() {
    for (signal, times) in
        [(Signal::TERM, ["2108.5", "2109.5"]), (Signal::INT, ["2110.5", "2111.5"])]
    {
        let home = new_home();
        let mut server = HttpServer::start(&home, &["--mode", "auto"]);
        let mut client = server.begin();
        let background = json!({"command": format!("sleep {}", times[0]), "background": true});
        ok_text(&client.call("bash", background));
        let command = format!("sleep {}", times[1]);
        let (_, mut stream) = client.start_call("bash", json!({"command": command}));
        wait_for_sleep(times[0]);
        wait_for_sleep(times[1]);
        let own = client.get_stream(None);
        let waiting = server.connect();
        server.send_signal(signal);
        assert_eq!(server.wait_for_exit(Duration::from_secs(5)), Some(0), "{signal:?}");
        for time in times {
            assert_over_within(Duration::from_secs(1), time);
        }
        while stream.next_event().is_some() {}
        drop((own, waiting));
    }
}

#[test]
fn a_killed_server_leaves_no_command() {
    let home = new_home();
    let mut server = HttpServer::start(&home, &["--mode", "auto"]);
    let mut client = server.begin();
    ok_text(&client.call("bash", json!({"command": "sleep 2112.5", "background": true})));
    let (_, stream) = client.start_call("bash", json!({"command": "sleep 2113.5"}));
    for time in ["2112.5", "2113.5"] {
        wait_for_sleep(time);
    }
    server.kill();
    for time in ["2112.5", "2113.5"] {
        assert_over_within(Duration::from_secs(3), time);
    }
    drop(stream);
}

#[test]
fn a_server_does_not_listen_publicly_without_authentication() {
    let home = new_home();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8000", "[::ffff:192.0.2.1]:0"] {
        let ran = home.run(&["mcp", "serve", "-C", ".", "--http", address]);
        assert_eq!(ran.exit_code, 78, "{ran:?}");
        assert!(ran.stderr.contains("without authentication"), "{ran:?}");
        assert!(ran.stderr.contains("hint: set `--token-file FILE`"), "{ran:?}");
    }
    let ran = home.run(&["mcp", "serve", "-C", ".", "--http", "127.0.0.1"]);
    assert_eq!(ran.exit_code, 2, "{ran:?}");
    let ran = home.run(&["mcp", "serve", "-C", ".", "--token-env", "TOKEN"]);
    assert_eq!(ran.exit_code, 2, "{ran:?}");
    // An address in use.
    let server = HttpServer::start(&home, &[]);
    let address = server.address.to_string();
    let ran = home.run(&["mcp", "serve", "-C", ".", "--http", &address]);
    assert!(ran.exit_code == 1 && ran.stderr.contains("cannot listen on"), "{ran:?}");
}

#[test]
fn the_workspace_never_comes_from_a_client() {
    let home = new_home().with_file("a.txt", "chosen\n");
    home.write_file("other/a.txt", "of the client\n");
    let server = HttpServer::start(&home, &[]);
    let mut client = server.client();
    client.initialize(json!({"roots": {"listChanged": true}}));
    assert!(ok_text(&client.call("read_file", json!({"path": "a.txt"}))).contains("chosen"));
    let outside = client.call("read_file", json!({"path": "../other/a.txt"}));
    error_text(&outside);
    let mut command = home.command(&["mcp", "serve", "--http", "127.0.0.1:0"]);
    command.current_dir(home.path());
    let ran = home.start(command).wait_for_exit();
    assert!(ran.exit_code == 78 && ran.stderr.contains("your home directory"), "{ran:?}");
}
