//! Hostile clients over HTTP. After each attack the server serves other clients as before.

use std::time::{Duration, Instant};

use cofferdam_tests::program::{TestHome, wait_until};
use serde_json::{Value, json};

use crate::client::{new_home, ok_text};
use crate::http_client::{HttpClient, HttpServer};

/// The memory that a process has in use, in bytes.
pub(crate) fn memory_of(process: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("it is there");
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().expect("a number") << 10
}

fn start() -> (TestHome, HttpServer) {
    let home = new_home().with_file("a.txt", "one\n");
    let server = HttpServer::start(&home, &[]);
    (home, server)
}

/// The status of a request with these bytes; 0 if the connection was closed without a response.
fn status_of(server: &HttpServer, bytes: &[u8]) -> u16 {
    let mut connection = server.connect();
    connection.try_write_all(bytes);
    connection.read_head().unwrap_or(0)
}

/// The head of an `initialize` request with another Host and more headers.
fn begin_as(host: &str, more: &str) -> Vec<u8> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}}})
    .to_string();
    format!(
        "POST /mcp HTTP/1.1\r\n{host}accept: application/json, text/event-stream\r\n\
        content-type: application/json\r\ncontent-length: {}\r\n{more}\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[test]
fn names_of_other_servers_do_not_lead_here() {
    let (_home, server) = start();
    let port = server.address.port();
    let good = format!("host: {}\r\n", server.address);
    assert_eq!(status_of(&server, &begin_as(&good, "")), 200);
    for host in [
        format!("evil.example:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{}", port ^ 1),
        format!("localhost.evil.example:{port}"),
        format!("localhost.:{port}"),
        format!("2130706433:{port}"),
        format!("0x7f.1:{port}"),
        format!("0177.0.0.1:{port}"),
        format!("127.1:{port}"),
        format!("0.0.0.0:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("localhost:{port}@evil.example"),
        format!("evil.example#@localhost:{port}"),
        format!("localhost:{port}, evil.example"),
        format!("localhost\u{0}.evil.example:{port}"),
        format!("l\u{f6}calhost:{port}"),
        String::new(),
        " ".to_owned(),
    ] {
        let status = status_of(&server, &begin_as(&format!("host: {host}\r\n"), ""));
        assert!(matches!(status, 400 | 403), "{host:?}: {status}");
    }
    // None, two, and a target that names another server than the header.
    assert_eq!(status_of(&server, &begin_as("", "")), 400);
    assert_eq!(status_of(&server, &begin_as(&good, "host: evil.example\r\n")), 400);
    assert_eq!(status_of(&server, &begin_as(&good, &good)), 400);
    for target in [
        format!("http://evil.example:{port}/mcp"),
        format!("http://{}/mcp", server.address),
        "//evil.example/mcp".to_owned(),
        "*".to_owned(),
    ] {
        let bytes = String::from_utf8(begin_as(&good, "")).expect("text");
        let status = status_of(&server, bytes.replace("/mcp", &target).as_bytes());
        assert!(matches!(status, 400 | 404), "{target}: {status}");
    }
    server.assert_healthy();
}

#[test]
fn pages_of_other_origins_are_refused() {
    let (_home, server) = start();
    let port = server.address.port();
    let good = format!("host: {}\r\n", server.address);
    let status =
        |origin: &str| status_of(&server, &begin_as(&good, &format!("origin: {origin}\r\n")));
    assert_eq!(status(&format!("http://localhost:{port}")), 200);
    for origin in [
        "null".to_owned(),
        "http://evil.example".to_owned(),
        "http://localhost".to_owned(),
        format!("http://localhost:{}", port ^ 1),
        format!("https://localhost:{port}"),
        format!("http://localhost:{port}.evil.example"),
        format!("http://localhost:{port}@evil.example"),
        format!("http://evil.example:{port}"),
        format!("http://localhost:{port}/"),
        format!("http://localhost:{port} http://evil.example"),
        format!("http://localhost:{port}\r\norigin: http://evil.example"),
        "chrome-extension://abc".to_owned(),
        "file://".to_owned(),
        String::new(),
    ] {
        assert_eq!(status(&origin), 403, "{origin:?}");
    }
    // Also on the other methods, and before anything else is looked at.
    for method in ["GET", "DELETE", "OPTIONS"] {
        let request =
            format!("{method} /mcp HTTP/1.1\r\n{good}origin: http://evil.example\r\n\r\n");
        assert_eq!(status_of(&server, request.as_bytes()), 403, "{method}");
    }
    let allowed = "https://app.example.com";
    let home = new_home();
    let open =
        HttpServer::start(&home, &["--allow-origin", allowed, "--allow-host", "tools.example.com"]);
    let more = format!("origin: {allowed}\r\n");
    assert_eq!(status_of(&open, &begin_as("host: tools.example.com\r\n", &more)), 200);
    for wrong in ["*", "https://app.example.com/x", "app.example.com"] {
        let ran = home.run(&[
            "mcp",
            "serve",
            "-C",
            ".",
            "--http",
            "127.0.0.1:0",
            "--allow-origin",
            wrong,
        ]);
        assert!(ran.exit_code == 78 && ran.stderr.contains("hint: a host is"), "{ran:?}");
    }
}

#[test]
fn a_session_id_that_the_server_did_not_make_opens_nothing() {
    let (_home, server) = start();
    let real = server.begin();
    let id = real.session.clone().expect("an ID");
    assert_eq!(id.len(), 64, "256 random bits");
    let mut client = server.client();
    for forged in [
        "0".repeat(64),
        id.to_uppercase(),
        id[..63].to_owned(),
        format!("{id}0"),
        format!("{id},{id}"),
        "../../etc/passwd".to_owned(),
        "x".repeat(10_000),
        String::new(),
    ] {
        if forged == id {
            continue;
        }
        client.session = Some(forged.clone());
        let request = client.request("tools/list", json!({}));
        let reply = client.post(&request);
        assert_eq!(reply.status, 404, "{forged:.80}: {reply:?}");
        assert_eq!(status_of(&server, client.head("GET", "").as_bytes()), 404);
        assert_eq!(status_of(&server, client.head("DELETE", "").as_bytes()), 404);
    }
    // Without an ID only `initialize` is a session.
    client.session = None;
    let request = client.request("tools/list", json!({}));
    assert_eq!(client.post(&request).status, 400);
    assert_eq!(status_of(&server, client.head("GET", "").as_bytes()), 400);
    assert_eq!(status_of(&server, client.head("DELETE", "").as_bytes()), 400);
    // Two IDs.
    client.session = Some(id.clone());
    let twice = client.head("GET", &format!("mcp-session-id: {id}\r\n"));
    assert_eq!(status_of(&server, twice.as_bytes()), 400);
}

#[test]
fn bodies_that_are_no_messages_are_refused_one_by_one() {
    let (_home, server) = start();
    let mut client = server.begin();
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let flood =
        format!("[{}]", vec![r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#; 10_000].join(","));
    let bodies: Vec<(&[u8], i64)> = vec![
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\xc3\x28\"}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}{}", -32700),
        (deep.as_bytes(), -32700),
        (b"null", -32600),
        (b"[]", -32600),
        (flood.as_bytes(), -32600),
        (b"{}", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":93,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{\"a\":1},\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":96,\"method\":7}", -32600),
    ];
    for (body, code) in bodies {
        let head = client.head(
            "POST",
            &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()),
        );
        let reply = client.post_raw(&[head.as_bytes(), body].concat());
        let shown = String::from_utf8_lossy(&body[..body.len().min(100)]).into_owned();
        assert_eq!(reply.status, 400, "{shown}: {reply:?}");
        assert_eq!(reply.message()["error"]["code"], code, "{shown}: {reply:?}");
        assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    }
    // Valid requests with wrong parameters get their answers.
    let wrong = client.ask("tools/call", json!({"name": 7}));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    let unknown = client.ask("no/such/method", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
}

#[test]
fn an_open_id_cannot_be_used_twice_and_forged_answers_change_nothing() {
    let (home, server) = start();
    let mut client = server.begin();
    let (request, mut stream) =
        client.start_call("write_file", json!({"path": "b", "content": "b"}));
    let question = stream.next_message().expect("a question");
    for method in ["ping", "tools/list", "tools/call"] {
        let twice = json!({"jsonrpc": "2.0", "id": request["id"], "method": method,
            "params": {"name": "submit", "arguments": {}}});
        let refused = client.post(&twice).message();
        assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("ID")));
        assert!(refused.get("id").is_none_or(Value::is_null), "{refused}");
    }
    let yes = json!({"action": "accept", "content": {"decision": "once"}});
    for id in [json!(77), json!("0"), json!(-1), json!(i64::MAX), json!("x".repeat(1000))] {
        if id == question["id"] {
            continue;
        }
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": yes});
        assert_eq!(client.post(&answer).status, 202);
        client.notify("notifications/cancelled", json!({"requestId": id}));
    }
    let second = client.request(
        "initialize",
        json!({"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "other", "version": "1"}}),
    );
    assert!(client.post(&second).message()["error"].is_object(), "a session begins once");
    assert!(!home.has_file("b"));
    client.answer(&question, json!({"decision": "once"}));
    let answer = stream.answer();
    assert_eq!(answer["id"], request["id"]);
    ok_text(&answer["result"]);
    // The answer counts once, and the ID is free again.
    client.answer(&question, json!({"decision": "once"}));
    let again = json!({"jsonrpc": "2.0", "id": request["id"], "method": "ping"});
    assert_eq!(client.post(&again).message()["result"], json!({}));
}

#[test]
fn a_huge_body_is_refused_in_constant_memory() {
    let (_home, server) = start();
    let client = server.begin();
    let before = memory_of(server.id(), "VmHWM:");
    // Declared.
    let head =
        client.head("POST", "content-type: application/json\r\ncontent-length: 104857600\r\n");
    let mut connection = server.connect();
    connection.write_all(head.as_bytes());
    assert_eq!(connection.read_head(), Some(413));
    // Not declared.
    let head =
        client.head("POST", "content-type: application/json\r\ntransfer-encoding: chunked\r\n");
    let mut connection = server.connect();
    connection.write_all(head.as_bytes());
    let chunk = [b"100000\r\n".to_vec(), vec![b' '; 1 << 20], b"\r\n".to_vec()].concat();
    let sent = (0..100).take_while(|_| connection.try_write_all(&chunk)).count();
    assert!(sent < 40, "the server stops reading: {sent} MiB");
    // Lengths that are none.
    for length in ["-1", "+5", "0x10", "5, 6", "18446744073709551616", "5 ", "a", ""] {
        let more = format!("content-type: application/json\r\ncontent-length: {length}\r\n");
        let status = status_of(&server, client.head("POST", &more).as_bytes());
        assert!(matches!(status, 400 | 413 | 408) || length == "5 ", "{length:?}: {status}");
    }
    let grown = memory_of(server.id(), "VmHWM:").saturating_sub(before);
    assert!(grown < 64 << 20, "{} MiB more", grown >> 20);
    server.assert_healthy();
}

#[test]
fn bodies_of_many_clients_share_a_bounded_memory() {
    let (_home, server) = start();
    let client = server.begin();
    let before = memory_of(server.id(), "VmHWM:");
    let length = 15 << 20;
    let head = client
        .head("POST", &format!("content-type: application/json\r\ncontent-length: {length}\r\n"));
    // Twenty bodies, each without its last byte.
    let attackers: Vec<_> = (0..20)
        .map(|_| {
            let (mut connection, head) = (server.connect(), head.clone());
            std::thread::spawn(move || {
                connection.write_all(head.as_bytes());
                let all = connection.try_write_all(&vec![b' '; length - 1]);
                (connection, all)
            })
        })
        .collect();
    let connections: Vec<_> =
        attackers.into_iter().map(|attacker| attacker.join().expect("it ends")).collect();
    server.assert_healthy();
    let grown = memory_of(server.id(), "VmHWM:").saturating_sub(before);
    assert!(grown < 200 << 20, "{} MiB more", grown >> 20);
    drop(connections);
    wait_until("the memory is free again", || {
        let mut client = server.begin();
        let text = "x".repeat(8 << 20);
        let request = client.request("ping", json!({"a": text}));
        let reply = client.post(&request);
        client.end();
        reply.status == 200
    });
}

#[test]
fn headers_and_bodies_that_arrive_slowly_have_a_deadline() {
    let (_home, server) = start();
    let client = server.begin();
    let started = Instant::now();
    let mut slow: Vec<_> = (0..50)
        .map(|_| {
            let mut connection = server.connect();
            connection.write_all(b"POST /mcp HTTP/1.1\r\n");
            connection
        })
        .collect();
    let mut silent: Vec<_> = (0..50).map(|_| server.connect()).collect();
    let head = client.head("POST", "content-type: application/json\r\ncontent-length: 100\r\n");
    let mut slow_body = server.connect();
    slow_body.write_all(head.as_bytes());
    while started.elapsed() < Duration::from_secs(9) {
        for (number, connection) in slow.iter_mut().enumerate() {
            connection.try_write_all(format!("x-{number}: y\r\n").as_bytes());
        }
        slow_body.try_write_all(b" ");
        server.assert_healthy();
        std::thread::sleep(Duration::from_millis(700));
    }
    for connection in slow.iter_mut().chain(&mut silent) {
        assert!(connection.is_closed_within(Duration::from_secs(5)));
    }
    assert_eq!(slow_body.read_head(), Some(408), "the body");
    assert!(started.elapsed() < Duration::from_secs(26), "{:?}", started.elapsed());
    server.assert_healthy();
}

#[test]
fn what_two_readers_could_read_differently_is_one_request() {
    let (home, server) = start();
    let client = server.begin();
    let hidden = String::from_utf8(client.post_bytes(
        r#"{"jsonrpc":"2.0","id":66,"method":"tools/call","params":{"name":"todo"}}"#,
        "",
    ))
    .expect("text");
    let ping = r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#;
    let chunked = format!("{:x}\r\n{ping}\r\n0\r\n\r\n", ping.len());
    let json = "content-type: application/json\r\n";
    for (what, head, body) in [
        (
            "both lengths",
            format!(
                "{json}content-length: {}\r\ntransfer-encoding: chunked\r\n",
                chunked.len() + hidden.len()
            ),
            &chunked,
        ),
        (
            "both lengths, the other order",
            format!("{json}transfer-encoding: chunked\r\ncontent-length: 3\r\n"),
            &chunked,
        ),
        (
            "two lengths",
            format!("{json}content-length: {}\r\ncontent-length: 0\r\n", ping.len()),
            &ping.to_owned(),
        ),
        ("a foreign encoding", format!("{json}transfer-encoding: gzip, chunked\r\n"), &chunked),
        ("an unknown encoding", format!("{json}transfer-encoding: xchunked\r\n"), &chunked),
        (
            "chunked twice",
            format!("{json}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n"),
            &chunked,
        ),
        ("a blank before the colon", format!("{json}transfer-encoding : chunked\r\n"), &chunked),
        ("a folded header", format!("{json}transfer-encoding:\r\n chunked\r\n"), &chunked),
        ("chunked", format!("{json}transfer-encoding: chunked\r\n"), &chunked),
    ] {
        let mut connection = server.connect();
        let head = client.head("POST", &head);
        connection.try_write_all(format!("{head}{body}{hidden}").as_bytes());
        let mut answers = Vec::new();
        while let Some(reply) = connection.read_reply() {
            answers.push(reply.text());
        }
        assert!(answers.len() <= 1, "{what}: {answers:?}");
        assert!(!answers.concat().contains("\"id\":66"), "{what}: {answers:?}");
    }
    let foreign = client.head("POST", &format!("{json}transfer-encoding: gzip, chunked\r\n"));
    assert_eq!(status_of(&server, format!("{foreign}{chunked}").as_bytes()), 400);
    // A body on a method without one is no second request either.
    let mut connection = server.connect();
    let head = client.head("DELETE", &format!("content-length: {}\r\n", hidden.len()));
    connection.try_write_all(format!("{head}{hidden}").as_bytes());
    assert_eq!(connection.read_reply().map(|reply| reply.status), Some(400));
    assert!(connection.read_reply().is_none());
    // Several requests at once are several requests.
    let bytes = String::from_utf8(client.post_bytes(ping, "")).expect("text");
    let mut connection = server.connect();
    connection.write_all(bytes.repeat(2).as_bytes());
    for _ in 0..2 {
        assert_eq!(connection.read_reply().expect("a response").message()["id"], 5);
    }
    assert!(home.has_file("a.txt"));
}

#[test]
fn wrong_types_methods_and_paths_are_refused() {
    let (_home, server) = start();
    let client = server.begin();
    let ping = r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#;
    let post = |more: &str| {
        let length = ping.len();
        let head = client.head("POST", &format!("content-length: {length}\r\n{more}"));
        status_of(&server, format!("{head}{ping}").as_bytes())
    };
    assert_eq!(post("content-type: application/json\r\n"), 200);
    assert_eq!(post("content-type: Application/JSON; charset=utf-8\r\n"), 200);
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "application/json; charset=utf-16",
        "application/json;x=1; CharSet = \"utf-7\"",
        "text/plain; application/json",
        "",
    ] {
        assert_eq!(post(&format!("content-type: {kind}\r\n")), 415, "{kind}");
    }
    assert_eq!(post(""), 415);
    assert_eq!(post("content-type: application/json\r\ncontent-type: text/plain\r\n"), 400);
    assert_eq!(post("content-type: application/json\r\ncontent-encoding: gzip\r\n"), 415);
    for accept in [
        "text/html",
        "application/json",
        "text/event-stream",
        "application/json;q=0, text/event-stream",
    ] {
        let bytes = String::from_utf8(client.post_bytes(ping, "")).expect("text");
        let bytes = bytes.replace("application/json, text/event-stream", accept);
        assert_eq!(status_of(&server, bytes.as_bytes()), 406, "{accept}");
    }
    for method in ["PUT", "PATCH", "OPTIONS", "TRACE", "HEAD", "CONNECT", "PROPFIND", "post", "X"] {
        let status = status_of(&server, client.head(method, "").as_bytes());
        assert!(matches!(status, 400 | 405), "{method}: {status}");
    }
    let tricks = "x-http-method-override: DELETE\r\nx-method-override: DELETE\r\n";
    assert_eq!(post(&format!("content-type: application/json\r\n{tricks}")), 200);
    for path in [
        "/",
        "/mcp/",
        "/MCP",
        "/mcp/..",
        "/x/../mcp",
        "/%6dcp",
        "/mcp%00",
        "/mcp;a",
        "/mcp?x=1",
        "/mcp?",
        "/.well-known/x",
    ] {
        let head = client.head("GET", "").replace("/mcp ", &format!("{path} "));
        assert_eq!(status_of(&server, head.as_bytes()), 404, "{path}");
    }
    for version in ["2024-01-01", "9999", "2025-11-25, 2026-07-28", "\u{e9}", "x"] {
        let head = client.head("GET", "").replace(
            "mcp-protocol-version: 2025-11-25",
            &format!("mcp-protocol-version: {version}"),
        );
        assert_eq!(status_of(&server, head.as_bytes()), 400, "{version}");
    }
    server.assert_healthy();
}

#[test]
fn huge_and_malformed_heads_are_refused() {
    let (_home, server) = start();
    let host = format!("host: {}\r\n", server.address);
    let heads = [
        format!("GET /mcp HTTP/1.1\r\n{host}x: {}\r\n\r\n", "y".repeat(1 << 20)),
        format!("GET /mcp HTTP/1.1\r\n{host}{}\r\n", "x: y\r\n".repeat(1000)),
        format!("GET /{} HTTP/1.1\r\n{host}\r\n", "a".repeat(1 << 20)),
        format!("GET /mcp HTTP/1.1\r\n{host}{}: y\r\n\r\n", "x".repeat(1 << 20)),
        format!("GET /mcp HTTP/9.9\r\n{host}\r\n"),
        format!("GET  /mcp  HTTP/1.1\r\n{host}\r\n"),
        format!("GET /mcp\r\n{host}\r\n"),
        format!("GET /mcp HTTP/1.1\r\n{host}no colon\r\n\r\n"),
        format!("GET /mcp HTTP/1.1\r\n{host}x\u{0}: y\r\n\r\n"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}".to_owned() + &"\u{0}".repeat(600),
        "\r\n\r\n\r\n\r\nx\r\n\r\n".to_owned(),
    ];
    for head in heads {
        let status = status_of(&server, head.as_bytes());
        assert!(matches!(status, 0 | 400 | 404 | 414 | 431 | 505), "{:.60}: {status}", head);
    }
    server.assert_healthy();
}

#[test]
fn sessions_are_limited_and_ended_ones_make_room() {
    let home = new_home();
    let server = HttpServer::start(&home, &["--max-sessions", "20"]);
    let mut sessions: Vec<HttpClient> = (0..20).map(|_| server.begin()).collect();
    for _ in 0..50 {
        let reply = server.client().try_initialize(json!({}));
        assert_eq!(reply.status, 503, "{reply:?}");
        assert!(reply.header("retry-after").is_some(), "{reply:?}");
    }
    for client in &mut sessions {
        assert_eq!(client.ask("ping", json!({}))["result"], json!({}), "the others go on");
    }
    sessions[7].end();
    server.begin();
}

#[test]
fn requests_of_a_session_without_an_answer_are_limited() {
    let home = new_home();
    let server = HttpServer::start(&home, &["--mode", "auto"]);
    let mut client = server.begin();
    let call =
        |client: &mut HttpClient| client.start_call("bash", json!({"command": "sleep 2121.5"})).1;
    let open: Vec<_> = (0..256).map(|_| call(&mut client)).collect();
    let refused = call(&mut client).answer();
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    // Another session is not affected.
    server.assert_healthy();
    client.end();
    drop(open);
    server.assert_healthy();
}

#[test]
fn a_stream_that_nobody_reads_costs_nobody_else_anything() {
    let home = new_home().with_file("big.txt", "x".repeat(90_000));
    let server = HttpServer::start(&home, &[]);
    let before = memory_of(server.id(), "VmRSS:");
    let mut client = server.begin();
    // Results of 90 KB each, none of which is read.
    let mut unread = Vec::new();
    for _ in 0..200 {
        let request = client
            .request("tools/call", json!({"name": "read_file", "arguments": {"path": "big.txt"}}));
        let mut connection = server.connect();
        connection.write_all(&client.post_bytes(&request.to_string(), ""));
        unread.push(connection);
    }
    let own = client.get_stream(None);
    let started = Instant::now();
    let mut other = server.begin();
    for _ in 0..20 {
        ok_text(&other.call("read_file", json!({"path": "big.txt", "limit": 1})));
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let grown = memory_of(server.id(), "VmRSS:").saturating_sub(before);
    assert!(grown < 300 << 20, "{} MiB more", grown >> 20);
    // The same session works, too.
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    drop((unread, own));
    server.assert_healthy();
}

#[test]
fn connections_are_limited_and_come_free_again() {
    let (_home, server) = start();
    let connect = |count: usize| (0..count).map(|_| server.connect());
    let idle = std::cell::RefCell::new(connect(2048).collect::<Vec<_>>());
    wait_until("a connection too many is refused", || {
        let status = status_of(&server, &begin_as(&format!("host: {}\r\n", server.address), ""));
        if status != 503 {
            // The first ones are closed if it takes long to open the last ones.
            idle.borrow_mut().extend(connect(100));
        }
        status == 503
    });
    idle.borrow_mut().truncate(100);
    wait_until("there is a place again", || {
        status_of(&server, &begin_as(&format!("host: {}\r\n", server.address), "")) == 200
    });
}
