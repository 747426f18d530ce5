//! What a server cannot reach: files, variables, the network and other processes.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use cofferdam_tests::program::{find_processes, wait_until};
use serde_json::{Value, json};

use crate::client::{McpClient, ok_text};
use crate::scripted::{ScriptedSession, ScriptedUser};

#[test]
fn a_server_without_permissions_sees_no_file_of_the_workspace_and_of_the_home() {
    let user = ScriptedUser::with_server(&[]);
    user.home.write_file("workspace/a.txt", "inside\n");
    user.home.write_file(".ssh/id_ed25519", "SECRET\n");
    let mut session = user.begin("ask");
    let workspace = user.home.workspace();
    let secret = user.home.path().join(".ssh/id_ed25519");
    for path in [workspace.join("a.txt"), secret, "/etc/shadow".into(), "/proc/1/environ".into()] {
        let problem = session.error("read_path", json!({"path": path}));
        assert!(problem.contains("cannot: "), "{problem}");
    }
    assert_eq!(session.text("list_path", json!({"path": "."})), "[]");
    let roots = session.text("roots", json!({}));
    assert!(!roots.contains("file://"), "{roots}");
    // Its own directory is read-only, and so is everything else but its temporary directory.
    let problem = session.error("write_path", json!({"path": "x"}));
    assert!(problem.contains("cannot: "), "{problem}");
    assert_eq!(session.text("write_path", json!({"path": "/tmp/x"})), "written");
}

#[test]
fn a_server_that_may_read_sees_the_workspace_without_its_secrets() {
    let user = ScriptedUser::with_server(&["--files", "read"]);
    user.home.write_file("workspace/a.txt", "inside\n");
    user.home.write_file("workspace/.env", "KEY=SECRET\n");
    let mut session = user.begin("ask");
    assert_eq!(session.text("read_path", json!({"path": "a.txt"})), "inside\n");
    let hidden = session.call("read_path", json!({"path": ".env"}));
    assert!(!hidden.to_string().contains("SECRET"), "{hidden}");
    let problem = session.error("write_path", json!({"path": "b.txt"}));
    assert!(problem.contains("Read-only file system"), "{problem}");
    assert_eq!(user.read("b.txt"), None);
    let roots = session.text("roots", json!({}));
    let root = user.home.workspace().canonicalize().expect("it is there");
    assert!(roots.contains(&format!("\"file://{}\"", root.display())), "{roots}");
    // It sees what other tools change meanwhile.
    user.home.write_file("workspace/a.txt", "changed\n");
    assert_eq!(session.text("read_path", json!({"path": "a.txt"})), "changed\n");
}

#[test]
fn a_server_gets_only_the_variables_that_the_user_named() {
    let user = ScriptedUser::with_server(&["--env", "NAMED_TOKEN"]);
    let workspace = user.home.workspace();
    let mut command = user.home.command(&["mcp", "serve", "-C", workspace.to_str().expect("text")]);
    command.env("OPENAI_API_KEY", "sk-SECRET").env("NAMED_TOKEN", "named").env("OTHER", "SECRET");
    let mut client = McpClient::start_command(command);
    client.initialize("2025-11-25", json!({}));
    let text = ok_text(&client.call("s__environment", json!({})));
    let seen: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(seen["NAMED_TOKEN"], "named");
    assert!(!text.contains("SECRET"), "{text}");
    drop(client);
    // Without the name, it is not there.
    let user = ScriptedUser::with_server(&[]);
    let text = user.begin("ask").text("environment", json!({}));
    assert!(!text.contains("NAMED_TOKEN"), "{text}");
}

/// Answers one request on this machine with a text.
fn answer_once(listener: &TcpListener, text: &str) {
    let (mut stream, _) = listener.accept().expect("a connection");
    let mut request = [0; 2048];
    let _ = stream.read(&mut request).expect("a request");
    let length = text.len();
    let answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}");
    stream.write_all(answer.as_bytes()).expect("an answer");
}

#[test]
fn a_server_without_network_connects_to_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let user = ScriptedUser::with_server(&[]);
    let mut session = user.begin("ask");
    let problem = session.error("connect", json!({"host": "127.0.0.1", "port": port}));
    assert!(problem.contains("cannot: "), "{problem}");
    listener.set_nonblocking(true).expect("it is set");
    assert!(listener.accept().is_err(), "a connection came");
}

#[test]
fn a_server_reaches_its_hosts_through_the_proxy_and_no_others() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let user = ScriptedUser::with_server(&["--network", &format!("127.0.0.1:{port}")]);
    let mut session = user.begin("auto");
    let id = session.client.start_call(
        "s__fetch",
        json!({
            "url": format!("http://127.0.0.1:{port}/x"),
        }),
    );
    answer_once(&listener, "from outside");
    assert_eq!(ok_text(&session.client.result_of(id)), "from outside");
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let other = other.local_addr().expect("an address").port();
    let problem = session.error("fetch", json!({"url": format!("http://127.0.0.1:{other}/")}));
    let refused =
        format!("[host: the connection to 127.0.0.1:{other} was refused: the server has no");
    assert!(problem.contains("cannot: ") && problem.contains(&refused), "{problem}");
    // The process itself has no network at all.
    let problem = session.error("connect", json!({"host": "127.0.0.1", "port": port}));
    assert!(problem.contains("cannot: "), "{problem}");
}

#[test]
fn a_policy_closes_hosts_that_a_server_may_use() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let user = ScriptedUser::with_server(&["--network", &format!("127.0.0.1:{port}")]);
    user.home
        .write_file("config/cofferdam/policy.toml", "[commands.network]\ndeny = [\"127.0.0.1\"]\n");
    let mut session = user.begin("auto");
    let problem = session.error("fetch", json!({"url": format!("http://127.0.0.1:{port}/")}));
    assert!(problem.contains("cannot: "), "{problem}");
}

#[test]
fn a_server_ends_with_its_session_and_with_everything_that_it_started() {
    let user = ScriptedUser::with_server(&[]);
    let mut session = user.begin("ask");
    session.text("daemon", json!({}));
    let sleepers = || find_processes("sleep 98765").len();
    wait_until("the test finds its processes", || sleepers() > 0);
    session.client.close_input();
    session.client.wait_for_exit(std::time::Duration::from_secs(10));
    wait_until("all processes have ended", || sleepers() == 0);
    let mut session = user.begin("ask");
    session.text("daemon", json!({}));
    wait_until("the test finds its processes", || sleepers() > 0);
    // kill -9 of the host.
    session.client.kill();
    wait_until("all processes have ended", || sleepers() == 0);
}

#[test]
fn a_server_with_too_many_processes_is_ended() {
    let user = ScriptedUser::with_server(&[]);
    let config = user.home.path().join("config/cofferdam/config.toml");
    let text = std::fs::read_to_string(&config).expect("it is there");
    user.home.write_file("config/cofferdam/config.toml", format!("{text}max_processes = 20\n"));
    let mut session = user.begin("ask");
    let result = session.call("many_processes", json!({}));
    assert_eq!(result["isError"], json!(true), "{result}");
    session.assert_usable();
}

#[test]
fn without_the_sandbox_level_that_it_needs_a_server_does_not_start() {
    let user = ScriptedUser::with_server(&[]);
    let config = user.home.path().join("config/cofferdam/config.toml");
    let text = std::fs::read_to_string(&config).expect("it is there");
    let limited = format!("{text}\n[commands]\nat_most = \"kernel\"\n");
    user.home.write_file("config/cofferdam/config.toml", limited);
    let mut session: ScriptedSession = user.begin("ask");
    let problem = session.error("echo", json!({"text": "x"}));
    assert!(problem.contains("servers need the sandbox level `full`"), "{problem}");
    assert!(problem.contains("hint: `cofferdam doctor`"), "{problem}");
    let list = user.home.run(&["mcp", "list", "--json"]);
    let list: Value = serde_json::from_str(&list.stdout).expect("JSON");
    assert_eq!(list["sandbox"], "kernel");
}
