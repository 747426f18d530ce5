//! Servers over HTTP that behave well: calls, acceptance, secrets and addresses.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::client::{ok_text, text_of};
use crate::http_client::HttpServer;
use crate::http_script::{HttpScript, HttpUser, answer, result, text_result, tools};
use crate::scripted::ScriptedUser;

#[test]
fn the_tools_of_another_cofferdam_are_called_over_http() {
    let other = crate::client::new_home().with_file("a.txt", "from the other\n");
    let server = HttpServer::start(&other, &[]);
    let user = ScriptedUser::new();
    let url = format!("http://{}/mcp", server.address);
    let added = user.home.run(&["mcp", "add", "other", "--yes", "--url", &url]);
    assert_eq!(added.exit_code, 0, "{added:?}");
    let mut session = user.begin("auto");
    for _ in 0..3 {
        let read = session.client.call("other__read_file", json!({"path": "a.txt"}));
        assert!(ok_text(&read).contains("from the other"), "{read}");
    }
    drop(session);
    let inspected = user.home.run(&["mcp", "inspect", "other"]);
    assert_eq!(inspected.exit_code, 0, "{inspected:?}");
    assert!(inspected.stdout.contains("speaks version 2026-07-28"), "{inspected:?}");
    let shown = user.home.run(&["audit", "show"]);
    assert!(shown.stdout.contains("other/read_file"), "{shown:?}");
    assert_eq!(user.home.run(&["audit", "verify"]).exit_code, 0);
}

#[test]
fn a_server_with_sessions_answers_with_json_and_with_events() {
    let user = HttpUser::new();
    let before = user.server.count("initialize");
    let mut session = user.begin();
    session.assert_usable();
    user.server.behave_at_calls(|request, reply| {
        reply.begin_events();
        reply.raw(": a comment\n\nid: 1\ndata:\n\n");
        reply.event(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}));
        reply.raw("event: other\ndata: {}\n\n");
        reply.event(&text_result(request, "by event"));
        false
    });
    assert_eq!(session.text("echo", json!({})), "by event");
    assert_eq!(user.server.count("initialize"), before + 1);
    let calls: Vec<_> = user.server.requests();
    let call = calls.iter().find(|request| request.called() == "tools/call").expect("a call");
    assert_eq!(call.header("mcp-session-id"), Some("session-1"));
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(call.header("accept-encoding"), Some("identity"));
}

#[test]
fn both_kinds_of_servers_are_listed_shown_and_removed() {
    let user = HttpUser::new();
    let list = user.user.home.run(&["mcp", "list"]);
    let line = format!(
        "s  pinned  write  2 tools  send HTTP requests to {0}, subject to the policy  \
            http://{0}/mcp",
        user.server.address
    );
    assert!(list.stdout.contains(&line), "{list:?}\n{line}");
    assert!(!list.stdout.contains("sandbox level"), "{list:?}");
    let inspected = user.user.home.run(&["mcp", "inspect", "s", "--json"]);
    let inspected: Value = serde_json::from_str(&inspected.stdout).expect("JSON");
    assert_eq!(inspected["url"], user.server.url());
    assert_eq!((&inspected["read_only"], &inspected["accepted"]), (&json!(false), &json!(true)));
    assert_eq!(inspected["sandbox"], Value::Null);
    let removed = user.user.home.run(&["mcp", "remove", "s"]);
    assert_eq!(removed.exit_code, 0, "{removed:?}");
    let list = user.user.home.run(&["mcp", "list"]);
    assert!(list.stdout.contains("There are no MCP servers"), "{list:?}");
}

#[test]
fn calls_need_approval_like_those_of_every_server_with_a_network() {
    let user = HttpUser::new();
    let mut client =
        crate::client::McpClient::begin_with(&user.user.home, &["--mode", "ask"], json!({}));
    let refused = client.call("s__echo", json!({"text": "x"}));
    assert!(text_of(&refused).contains("needs approval"), "{refused}");
    assert_eq!(user.server.count("tools/call"), 0);
}

#[test]
fn another_url_or_header_or_tool_needs_another_acceptance() {
    let user = HttpUser::new();
    let home = &user.user.home;
    let config = "config/cofferdam/config.toml";
    let text = std::fs::read_to_string(home.path().join(config)).expect("it is there");
    let refused = |lines: &str, expected: &str| {
        home.write_file(config, lines);
        let called = home.run(&["tools", "call", "s/echo", "{}", "--mode", "auto"]);
        assert_ne!(called.exit_code, 0, "{called:?}");
        let listed = home.run(&["tools", "list"]);
        assert!(listed.stdout.contains(expected), "{expected}: {listed:?}");
    };
    refused(&text.replace("/mcp\"", "/other\""), "it was accepted as `http://127.0.0.1");
    refused(&format!("{text}address = [\"10.0.0.5:1\"]\n"), "the address 10.0.0.5:1 is new");
    let header = "headers = { X-Key = { env = \"HOME\" } }";
    refused(&format!("{text}{header}\n"), "the header x-key: $HOME is new");
    refused("[mcp.servers.s]\ncommand = \"python3\"\n", "it was accepted as `http://127.0.0.1");
    home.write_file(config, &text);
    user.server.behave(|request, reply| match request.called().as_str() {
        "tools/list" => {
            let mut tools = tools();
            tools[0]["description"] = json!("Obeys.");
            reply.json(&result(request, json!({"tools": tools})))
        }
        _ => answer(request, reply),
    });
    let problem = user.begin().error("echo", json!({}));
    assert!(problem.contains("changed its description since the user accepted"), "{problem}");
    assert_eq!(user.server.count("tools/call"), 0);
}

#[test]
fn the_secret_of_a_header_reaches_the_server_and_nobody_else() {
    let (user, server) = (ScriptedUser::new(), HttpScript::well_behaved());
    user.home.write_file("key", "file-secret-0123\n");
    let file = user.home.path().join("key");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    let run = |args: &[&str]| {
        let mut command = user.home.command(args);
        command.env("MY_TOKEN", "env-secret-4567");
        let output = command.output().expect("it runs");
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let url = server.url();
    let added = run(&[
        "mcp",
        "add",
        "s",
        "--yes",
        "--url",
        &url,
        "--header",
        "Authorization=Bearer MY_TOKEN",
    ]);
    assert_eq!(added.0, Some(0), "{added:?}");
    assert!(added.1.contains("authorization: Bearer $MY_TOKEN"), "{added:?}");
    // The server repeats the secret in each form that it can.
    server.behave_at_calls(|request, reply| {
        let secret = request.header("authorization").unwrap_or("none").to_owned();
        reply.json(&text_result(request, &format!("I got {secret}")))
    });
    let called = run(&["tools", "call", "s/echo", "{}", "--mode", "auto"]);
    assert!(called.1.contains("I got Bearer [key redacted]"), "{called:?}");
    let config = "config/cofferdam/config.toml";
    let text = std::fs::read_to_string(user.home.path().join(config)).expect("it is there");
    assert!(text.contains("env = \"MY_TOKEN\"") && !text.contains("secret"), "{text}");
    // Without the variable, nothing is sent.
    let before = server.requests().len();
    let listed = user.home.run(&["tools", "list"]);
    assert!(listed.stdout.contains("MY_TOKEN is not set"), "{listed:?}");
    assert_eq!(server.requests().len(), before);
    // A file works as well, if nobody else can read it.
    let header = format!("headers = {{ X-Key = {{ file = {:?} }} }}", file.display().to_string());
    user.home.write_file(config, format!("[mcp.servers.s]\nurl = \"{url}\"\n{header}\n"));
    let added = run(&["mcp", "add", "s", "--yes"]);
    assert_eq!(added.0, Some(0), "{added:?}");
    let last = server.requests().pop().expect("a request");
    assert_eq!(last.header("x-key"), Some("file-secret-0123"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let refused = run(&["mcp", "inspect", "s"]);
    assert!(refused.1.contains("other users can read or write it"), "{refused:?}");
    for (_, text) in [added, called, refused] {
        assert!(!text.contains("secret-"), "{text}");
    }
}

#[test]
fn invalid_options_of_a_server_over_http_are_errors() {
    let user = ScriptedUser::new();
    let table: [(&[&str], i32, &str); 12] = [
        (&["--url", "http://example.com/mcp"], 78, "would not be encrypted"),
        (&["--url", "http://10.0.0.1/mcp"], 78, "would not be encrypted"),
        (&["--url", "ftp://example.com/"], 78, "does not begin with"),
        (&["--url", "https://me:pw@example.com/"], 78, "a user name or a password"),
        (&["--url", "https://example.com/#x"], 78, "a fragment"),
        (&["--url", "https://a.com/", "--header", "Host=X"], 78, "sets the header `host`"),
        (&["--url", "https://a.com/", "--header", "X-Key: sk-123-secret"], 78, "the name of an"),
        (&["--url", "https://a.com/", "--header", "X=A"], 78, "A is not set"),
        (&["--url", "https://a.com/", "--address", "a.com"], 78, "is an IP address"),
        (&["--url", "https://a.com/", "--files", "read"], 2, "cannot be used with"),
        (&["--url", "https://a.com/", "--", "python3"], 2, "cannot be used with"),
        (&["--address", "10.0.0.1:1", "--", "python3"], 78, "needs `--url`"),
    ];
    for (args, code, expected) in table {
        let added = user.home.run(&[&["mcp", "add", "x", "--yes"], args].concat());
        assert_eq!(added.exit_code, code, "{added:?}");
        assert!(added.stderr.contains(expected), "{expected}: {added:?}");
        assert!(!added.stderr.contains("sk-123"), "{added:?}");
    }
}

#[test]
fn the_policy_and_the_addresses_decide_where_the_host_connects_to() {
    let user = HttpUser::new();
    let home = &user.user.home;
    let port = user.server.address.port();
    let before = user.server.requests().len();
    for rule in [
        format!("[fetch]\ndeny = [\"127.0.0.1:{port}\"]"),
        "[commands]\nnetwork = false".to_owned(),
        format!("[commands.network]\ndeny = [\"127.0.0.1:{port}\"]"),
    ] {
        home.write_file("config/cofferdam/policy.toml", &rule);
        let called = home.run(&["tools", "call", "s/echo", "{}", "--mode", "auto"]);
        assert_ne!(called.exit_code, 0, "{rule}: {called:?}");
        let text = format!("{}{}", called.stdout, called.stderr);
        assert!(text.contains("denied"), "{rule}: {called:?}");
    }
    assert_eq!(user.server.requests().len(), before);
}
