//! Many clients over HTTP at once, and sides that are killed at random moments.

use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use cofferdam_tests::program::{find_processes, wait_until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::client::{new_home, ok_text};
use crate::endings::{RandomMoments, assert_files_are_whole};
use crate::http_client::{HttpConnection, HttpServer};
use crate::http_hostile::memory_of;

const CLIENTS: usize = 50;
const CALLS: usize = 20;

/// Lets this process and its children have as many connections as a test needs.
fn allow_connections() {
    let now = getrlimit(Resource::Nofile);
    let enough = Rlimit { current: now.maximum, maximum: now.maximum };
    setrlimit(Resource::Nofile, enough).expect("the limit can be raised");
}

/// The text of the file that only one call reads.
fn text_of_call(round: usize, client: usize, call: usize) -> String {
    format!("the text of {round}/{client}/{call}\n")
}

/// All calls of one round at the same time. Returns the number of right answers.
fn run_round(server: &HttpServer, round: usize) -> usize {
    let start = Arc::new(Barrier::new(CLIENTS));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let start = Arc::clone(&start);
            let mut client = server.client();
            // The last round has no sessions.
            let is_stateless = round == 3;
            std::thread::spawn(move || {
                if !is_stateless {
                    client.initialize(json!({}));
                }
                let mut calls: Vec<(Value, usize, HttpConnection)> = Vec::new();
                start.wait();
                for call in 0..CALLS {
                    let path = format!("f-{round}-{number}-{call}.txt");
                    let mut params = json!({"name": "read_file", "arguments": {"path": path}});
                    let mut more = String::new();
                    if is_stateless {
                        params["_meta"] = json!({
                            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                            "io.modelcontextprotocol/clientCapabilities": {},
                        });
                        more.push_str("mcp-protocol-version: 2026-07-28\r\n");
                        more.push_str("mcp-method: tools/call\r\nmcp-name: read_file\r\n");
                    }
                    let request = client.request("tools/call", params);
                    let mut connection = client.connect();
                    connection.write_all(&client.post_bytes(&request.to_string(), &more));
                    calls.push((request, call, connection));
                }
                let right = calls.into_iter().filter_map(|(request, call, mut connection)| {
                    let answer = connection.read_reply()?.message();
                    assert_eq!(answer["id"], request["id"], "{answer}");
                    let text = ok_text(&answer["result"]);
                    assert!(text.contains(&text_of_call(round, number, call)), "{text}");
                    Some(())
                });
                let right = right.count();
                if !is_stateless {
                    client.end();
                }
                right
            })
        })
        .collect();
    clients.into_iter().map(|client| client.join().expect("each answer is right")).sum()
}

#[test]
fn a_thousand_calls_of_fifty_clients_are_neither_lost_nor_mixed_up() {
    allow_connections();
    let home = new_home();
    for round in 0..4 {
        for client in 0..CLIENTS {
            for call in 0..CALLS {
                let path = format!("workspace/f-{round}-{client}-{call}.txt");
                home.write_file(&path, text_of_call(round, client, call));
            }
        }
    }
    let server = HttpServer::start(&home, &[]);
    let before = memory_of(server.id(), "VmRSS:");
    assert_eq!(run_round(&server, 0), CLIENTS * CALLS);
    let first = memory_of(server.id(), "VmRSS:");
    for round in 1..4 {
        assert_eq!(run_round(&server, round), CLIENTS * CALLS);
    }
    let last = memory_of(server.id(), "VmRSS:");
    println!(
        "{} MiB before, {} after 1,000 calls, {} after 4,000",
        before >> 20,
        first >> 20,
        last >> 20
    );
    assert!(first.saturating_sub(before) < 400 << 20, "{} MiB more", (first - before) >> 20);
    assert!(last.saturating_sub(first) < 64 << 20, "{} MiB more", (last - first) >> 20);
    server.assert_healthy();
}

#[test]
fn a_client_with_many_calls_does_not_delay_the_others() {
    let home = new_home();
    let server = HttpServer::start(&home, &["--mode", "auto"]);
    let (mut busy, mut other) = (server.begin(), server.begin());
    ok_text(&other.call("bash", json!({"command": "true"})));
    let waiting: Vec<_> =
        (0..40).map(|_| busy.start_call("bash", json!({"command": "sleep 0.2"})).1).collect();
    let started = Instant::now();
    ok_text(&other.call("write_file", json!({"path": "other", "content": "x"})));
    let waited = started.elapsed();
    assert!(waited < Duration::from_secs(3), "{waited:?}");
    busy.end();
    drop(waiting);
}

/// Kills the server at random moments while clients write files. Each file is whole.
#[test]
fn an_http_server_that_is_killed_at_any_moment_leaves_whole_files() {
    let old = "old line\n".repeat(20_000);
    let home = new_home().with_file("a.txt", &old);
    let mut moments = RandomMoments::new(54321);
    for round in 0..75 {
        let new = format!("new line {round}\n").repeat(20_000);
        home.write_file("workspace/a.txt", &old);
        let mut server = HttpServer::start(&home, &["--mode", "auto"]);
        let mut streams = Vec::new();
        for _ in 0..2 {
            let mut client = server.begin();
            let write = json!({"path": format!("f-{}", round % 5), "content": new});
            streams.push(client.start_call("write_file", write));
            let script = format!("printf x >> log; cp a.txt copy-{}.txt", round % 5);
            streams.push(client.start_call("bash", json!({"command": script})));
        }
        std::thread::sleep(moments.next_within(Duration::from_millis(80)));
        server.kill();
        assert_files_are_whole(&home, &[&old, &new]);
    }
    HttpServer::start(&home, &[]).assert_healthy();
    let verified = home.run(&["audit", "verify"]);
    assert_eq!(verified.exit_code, 0, "{verified:?}");
}

/// A client process: begins a session or none, sends calls, and reads until it is killed.
const CLIENT: &str = r#"
import json, socket, sys
host, port, number = "127.0.0.1", int(sys.argv[1]), int(sys.argv[2])
def post(message, *more):
    s = socket.create_connection((host, port))
    body = json.dumps(message).encode()
    head = ["POST /mcp HTTP/1.1", f"host: {host}:{port}", "content-type: application/json",
        "accept: application/json, text/event-stream", f"content-length: {len(body)}", *more,
        "", ""]
    s.sendall("\r\n".join(head).encode() + body)
    return s
def call(id, name, arguments, meta={}):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": name, "arguments": arguments, **meta}}
content = f"new line {number}\n" * 20000
calls = [("write_file", {"path": f"f-{number % 5}", "content": content}),
    ("bash", {"command": f"cp a.txt copy-{number % 5}.txt; sleep 2131.5"})]
streams = []
if number % 2:
    s = post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}}})
    head = s.recv(4096).decode()
    session = next(line for line in head.split("\r\n") if line.lower().startswith("mcp-session-id"))
    for id, (name, arguments) in enumerate(calls, 1):
        streams.append(post(call(id, name, arguments), session, "mcp-protocol-version: 2025-11-25"))
else:
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}}
    for id, (name, arguments) in enumerate(calls, 1):
        streams.append(post(call(id, name, arguments, meta), "mcp-protocol-version: 2026-07-28",
            "mcp-method: tools/call", f"mcp-name: {name}"))
for s in streams:
    while s.recv(4096): pass
"#;

/// Kills clients at random moments. Their calls end, and other clients are served.
#[test]
fn an_http_client_that_is_killed_at_any_moment_leaves_nothing() {
    let old = "old line\n".repeat(20_000);
    let home = new_home().with_file("a.txt", &old);
    let server = HttpServer::start(&home, &["--mode", "auto"]);
    let port = server.address.port().to_string();
    let mut moments = RandomMoments::new(98765);
    for round in 0..75_u32 {
        let mut client = Command::new("python3");
        home.configure(&mut client);
        client.args(["-S", "-c", CLIENT, &port, &round.to_string()]).stdin(Stdio::null());
        let mut client = client.stderr(Stdio::null()).spawn().expect("Python starts");
        std::thread::sleep(moments.next_within(Duration::from_millis(160)));
        client.kill().expect("it runs");
        client.wait().expect("it is a child");
        let new = format!("new line {round}\n").repeat(20_000);
        assert_files_are_whole(&home, &[&old, &new]);
    }
    let killed = Instant::now();
    wait_until("all commands are over", || find_processes("sleep 2131.5").is_empty());
    assert!(killed.elapsed() < Duration::from_secs(20), "{:?}", killed.elapsed());
    server.assert_healthy();
    let mut client = server.begin();
    ok_text(&client.call("write_file", json!({"path": "last", "content": "x"})));
}
