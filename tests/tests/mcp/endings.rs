//! The ends of a session: whatever ends it, nothing keeps running and nothing is half written.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_tests::program::{TestHome, find_processes, wait_for_sleep, wait_until};
use rustix::process::Signal;
use serde_json::json;

use crate::client::{McpClient, new_home, text_of};

/// Starts a command in the foreground and one in the background, with times that no other test
/// uses.
fn start_commands(client: &mut McpClient, times: [&str; 2]) -> i64 {
    let background =
        client.call("bash", json!({"command": format!("sleep {}", times[0]), "background": true}));
    assert_eq!(background["isError"], false, "{background}");
    wait_for_sleep(times[0]);
    let call = client.start_call("bash", json!({"command": format!("sleep {}", times[1])}));
    wait_for_sleep(times[1]);
    call
}

fn assert_all_over(times: [&str; 2]) {
    for time in times {
        wait_until("the command is over", || find_processes(&format!("sleep {time}")).is_empty());
    }
}

#[test]
fn the_end_of_the_input_ends_everything() {
    let home = new_home();
    let times = ["2081.5", "2082.5"];
    let mut client = McpClient::begin(&home, &["--mode", "auto"]);
    let call = start_commands(&mut client, times);
    let closed = Instant::now();
    client.close_input();
    let (code, rest) = client.wait_for_exit(Duration::from_secs(10));
    assert_eq!(code, Some(0));
    assert!(closed.elapsed() < Duration::from_secs(4), "{:?}", closed.elapsed());
    let answer = rest.iter().find(|message| message["id"] == call).expect("it has a result");
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_all_over(times);
}

#[test]
fn a_call_that_is_nearly_done_has_its_result_after_the_end_of_the_input() {
    let home = new_home();
    let mut client = McpClient::begin(&home, &["--mode", "auto"]);
    let call = client.start_call("bash", json!({"command": "sleep 0.3; echo done"}));
    client.close_input();
    let (code, rest) = client.wait_for_exit(Duration::from_secs(10));
    let answer = rest.iter().find(|message| message["id"] == call).expect("it has a result");
    assert!(code == Some(0) && text_of(&answer["result"]).contains("done"), "{answer}");
}

#[test]
fn a_signal_ends_everything() {
    for (signal, times) in [
        (Signal::TERM, ["2083.5", "2084.5"]),
        (Signal::INT, ["2085.5", "2086.5"]),
        (Signal::HUP, ["2087.5", "2088.5"]),
    ] {
        let home = new_home();
        let mut client = McpClient::begin(&home, &["--mode", "auto"]);
        start_commands(&mut client, times);
        client.send_signal(signal);
        let (code, _) = client.wait_for_exit(Duration::from_secs(5));
        assert_eq!(code, Some(0), "{signal:?}");
        assert_all_over(times);
    }
}

#[test]
fn a_killed_client_leaves_nothing() {
    let home = new_home();
    let times = ["2089.5", "2090.5"];
    // The client is a process that holds the other ends of the pipes and is killed.
    let server = home.command(&["mcp", "serve", "-C", ".", "--mode", "auto"]);
    let script = r#"
import json, subprocess, sys, time
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def send(message):
    server.stdin.write((json.dumps(message) + "\n").encode()); server.stdin.flush()
send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"}}})
server.stdout.readline()
send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
    "name": "bash", "arguments": {"command": "sleep 2089.5", "background": True}}})
server.stdout.readline()
send({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
    "name": "bash", "arguments": {"command": "sleep 2090.5"}}})
print(server.pid, flush=True)
time.sleep(600)
"#;
    let mut client = Command::new("python3");
    home.configure(&mut client);
    client.args(["-c", script]).arg(server.get_program()).args(server.get_args());
    let mut client =
        client.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("Python starts");
    for time in times {
        wait_for_sleep(time);
    }
    client.kill().expect("it runs");
    let killed = Instant::now();
    client.wait().expect("it is a child");
    assert_all_over(times);
    let workspace = home.workspace();
    let is_over = || {
        find_processes("mcp serve")
            .iter()
            .all(|line| !line.contains(workspace.to_str().unwrap_or("?")))
    };
    wait_until("the server is over", is_over);
    assert!(killed.elapsed() < Duration::from_secs(4), "{:?}", killed.elapsed());
}

#[test]
fn a_killed_server_leaves_no_command() {
    let home = new_home();
    let times = ["2091.5", "2092.5"];
    let mut client = McpClient::begin(&home, &["--mode", "auto"]);
    start_commands(&mut client, times);
    client.kill();
    assert_all_over(times);
}

/// Kills the server at random moments while it writes files. Each file is whole, before or after.
#[test]
fn a_server_that_is_killed_at_any_moment_leaves_whole_files() {
    let old = "old line\n".repeat(20_000);
    let home = new_home().with_file("a.txt", &old);
    let mut moments = RandomMoments::new(12345);
    for round in 0..50 {
        let new = format!("new line {round}\n").repeat(20_000);
        home.write_file("workspace/a.txt", &old);
        let mut client = McpClient::begin(&home, &["--mode", "auto"]);
        let script = format!("printf x >> log; cp a.txt copy-{round}.txt");
        for n in 0..4 {
            client.start_call(
                "write_file",
                json!({"path": format!("f-{round}-{n}"), "content": new}),
            );
            client.start_call("bash", json!({"command": script}));
        }
        std::thread::sleep(moments.next_within(Duration::from_millis(120)));
        client.kill();
        assert_files_are_whole(&home, &[&old, &new]);
    }
    // The next session begins, and undo works.
    let mut client = McpClient::begin(&home, &["--mode", "auto"]);
    client.assert_healthy();
    let listed = client.call("list_dir", json!({"path": "."}));
    assert_eq!(listed["isError"], false, "{listed}");
    client.close_input();
    client.wait_for_exit(Duration::from_secs(10));
    let undone = home.run(&["undo"]);
    assert!(undone.exit_code <= 1, "{undone:?}");
    let verified = home.run(&["audit", "verify"]);
    assert_eq!(verified.exit_code, 0, "{verified:?}");
}

/// Moments that differ, and that are the same in each run.
pub(crate) struct RandomMoments(u64);

impl RandomMoments {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A linear congruential generator.
    pub(crate) fn next_within(&mut self, time: Duration) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let most = u64::try_from(time.as_micros()).expect("a short time");
        Duration::from_micros((self.0 >> 40) % most)
    }
}

pub(crate) fn assert_files_are_whole(home: &TestHome, contents: &[&str]) {
    for entry in fs::read_dir(home.workspace()).expect("it is there").flatten() {
        let name = entry.file_name().into_string().expect("it is text");
        let text = fs::read_to_string(entry.path()).expect("it can be read");
        let is_whole = contents.contains(&text.as_str())
            || name == "log"
            || name.starts_with("f-")
                && text.len() == text.lines().count() * text.find('\n').map_or(1, |at| at + 1)
                && text.lines().count() == 20_000;
        assert!(is_whole, "{name} has {} bytes", text.len());
    }
}
