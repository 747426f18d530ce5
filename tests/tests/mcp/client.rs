//! A client that sends what a test says, and demands that the server writes nothing but messages.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use cofferdam_tests::program::TestHome;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A user with a project.
pub(crate) fn new_home() -> TestHome {
    TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"))
}

/// A server with its client.
pub(crate) struct McpClient {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Result<Value, String>>,
    /// Messages that arrived while another one was waited for.
    kept: Vec<Value>,
    next_id: i64,
}

impl McpClient {
    /// Starts the server for the workspace of this home, and begins a session.
    pub(crate) fn begin(home: &TestHome, args: &[&str]) -> Self {
        Self::begin_with(home, args, json!({"elicitation": {}}))
    }

    /// Begins a session as a client with these capabilities.
    pub(crate) fn begin_with(home: &TestHome, args: &[&str], capabilities: Value) -> Self {
        let workspace = home.workspace();
        let workspace = workspace.to_str().expect("it is text");
        let mut client = Self::start(home, &[&["-C", workspace], args].concat());
        client.initialize("2025-11-25", capabilities);
        client
    }

    /// Starts the server.
    pub(crate) fn start(home: &TestHome, args: &[&str]) -> Self {
        Self::start_command(home.command(&[&["mcp", "serve"], args].concat()))
    }

    pub(crate) fn start_command(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the program starts");
        let output = child.stdout.take().expect("it is piped");
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                let parsed = serde_json::from_str::<Value>(&line)
                    .map_err(|error| format!("{error}: {line:.200}"));
                if sender.send(parsed).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, messages, kept: Vec::new(), next_id: 1 }
    }

    pub(crate) fn initialize(&mut self, version: &str, capabilities: Value) -> Value {
        let answer = self.ask(
            "initialize",
            json!({
                "protocolVersion": version,
                "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        self.notify("notifications/initialized", json!({}));
        answer["result"].clone()
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(bytes).expect("the server reads");
        input.flush().expect("the server reads");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns its ID.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer_of(id)
    }

    /// Calls a tool and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.start_call(tool, arguments);
        self.result_of(id)
    }

    pub(crate) fn start_call(&mut self, tool: &str, arguments: Value) -> i64 {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Waits for the answer of a request.
    #[track_caller]
    pub(crate) fn answer_of(&mut self, id: i64) -> Value {
        self.wait_for(&format!("the answer of {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    #[track_caller]
    pub(crate) fn result_of(&mut self, id: i64) -> Value {
        let answer = self.answer_of(id);
        assert!(answer["result"].is_object(), "no result: {answer}");
        answer["result"].clone()
    }

    /// Waits for a request or a notification of the server.
    #[track_caller]
    pub(crate) fn wait_for_method(&mut self, method: &str) -> Value {
        self.wait_for(method, |message| message["method"] == method)
    }

    #[track_caller]
    pub(crate) fn wait_for(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&is_it) {
            return self.kept.remove(at);
        }
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(Ok(message)) if is_it(&message) => return message,
                Ok(Ok(message)) => self.kept.push(message),
                Ok(Err(problem)) => panic!("the server wrote something else: {problem}"),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("{what} does not come: {:.2000}", format!("{:?}", self.kept))
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the server ended before {what}: {:.2000}", format!("{:?}", self.kept))
                }
            }
        }
    }

    /// Returns all messages that arrive within a time.
    pub(crate) fn collect_for(&mut self, time: Duration) -> Vec<Value> {
        let deadline = Instant::now() + time;
        while let Ok(message) =
            self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            self.kept.push(message.expect("the server writes only messages"));
        }
        std::mem::take(&mut self.kept)
    }

    /// Answers the next question of the server with the content of a form, and returns it.
    #[track_caller]
    pub(crate) fn answer_question(&mut self, content: Value) -> Value {
        let question = self.wait_for_method("elicitation/create");
        let result = json!({"action": "accept", "content": content});
        self.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
        question
    }

    /// The server answers still.
    #[track_caller]
    pub(crate) fn assert_healthy(&mut self) {
        let answer = self.ask("ping", json!({}));
        assert_eq!(answer["result"], json!({}), "{answer}");
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    pub(crate) fn send_signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is a child");
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end, and returns the exit code and what was written after the last message
    /// that the test waited for.
    #[track_caller]
    pub(crate) fn wait_for_exit(&mut self, time: Duration) -> (Option<i32>, Vec<Value>) {
        let deadline = Instant::now() + time;
        let code = loop {
            if let Some(status) = self.child.try_wait().expect("it is a child") {
                break status.code();
            }
            assert!(Instant::now() < deadline, "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        (code, self.collect_for(Duration::from_secs(1)))
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The text of a result.
pub(crate) fn text_of(result: &Value) -> String {
    let pieces = result["content"].as_array().expect("a result has content");
    pieces.iter().filter_map(|piece| piece["text"].as_str()).collect()
}

/// Demands a successful result, and returns its text.
#[track_caller]
pub(crate) fn ok_text(result: &Value) -> String {
    assert_eq!(result["isError"], json!(false), "{result}");
    text_of(result)
}

/// Demands an error, and returns its text.
#[track_caller]
pub(crate) fn error_text(result: &Value) -> String {
    assert_eq!(result["isError"], json!(true), "{result}");
    text_of(result)
}
