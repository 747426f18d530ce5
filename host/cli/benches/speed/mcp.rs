//! Benchmarks of calls over MCP, beside the same calls without MCP.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam::sandbox::InstanceAllocation;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::calls::Bench;
use crate::folders;
use crate::measure::{Line, against, shown};

/// The number of calls in one sample with several in flight.
const CALLS: usize = 1600;
const IN_FLIGHT: usize = 16;

/// A server with its client.
struct BenchServer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl BenchServer {
    fn start(directory: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
        command.args(["mcp", "serve", "-C"]).arg(directory);
        command.envs(folders::own_folders(directory));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut server = Self { child, input, output, next_id: 0 };
        server.send(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            }),
        );
        server.receive();
        server
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.input.write_all(format!("{request}\n").as_bytes()).expect("it reads");
        self.next_id
    }

    /// Returns the ID of the next answer.
    fn receive(&mut self) -> u64 {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        let answer: Value = serde_json::from_str(&line).expect("it is JSON");
        assert!(answer["result"]["isError"] != true, "{answer}");
        answer["id"].as_u64().expect("it is an answer")
    }

    fn call(&mut self, params: &Value) {
        self.send("tools/call", params);
        self.receive();
    }

    /// Makes calls with several in flight. Returns the time of each, and the time for all.
    fn call_many(&mut self, params: &Value) -> (Vec<Duration>, Duration) {
        let started = Instant::now();
        let (mut sent, mut times) = (HashMap::new(), Vec::new());
        let mut count = 0;
        while times.len() < CALLS {
            while sent.len() < IN_FLIGHT && count < CALLS {
                let id = self.send("tools/call", params);
                sent.insert(id, Instant::now());
                count += 1;
            }
            let id = self.receive();
            times.push(sent.remove(&id).expect("it was sent").elapsed());
        }
        (times, started.elapsed())
    }
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn run(runtime: &Runtime) {
    let directory = tempfile::tempdir().expect("a folder");
    std::fs::write(directory.path().join("4k.txt"), "0123456789abcde\n".repeat(256))
        .expect("it is written");
    let without = Bench::new(InstanceAllocation::Pooled, directory.path());
    let mut server = BenchServer::start(directory.path());
    let cases =
        [("submit", json!({}), "≤ 130 µs"), ("read_file", json!({"path": "4k.txt"}), "≤ 200 µs")];
    for (tool, arguments, target) in cases {
        let params = json!({"name": tool, "arguments": arguments});
        let input = arguments.to_string();
        let name = format!("{tool}, 1 in flight (native: without MCP)");
        against(
            &Line { name: &name, target },
            1000,
            || server.call(&params),
            || drop(without.call(runtime, tool, &input)),
        );
        let (times, all) = server.call_many(&params);
        let calls = u32::try_from(CALLS).expect("a small number");
        let name = format!("{tool}, {IN_FLIGHT} in flight, each");
        shown(&Line { name: &name, target: "" }, times);
        let name = format!("{tool}, {IN_FLIGHT} in flight, time for one of all");
        shown(&Line { name: &name, target: "≤ 100 µs" }, vec![all / calls]);
    }
}
