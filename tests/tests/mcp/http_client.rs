//! A server over HTTP, and clients that send the bytes that a test says.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cofferdam_tests::program::TestHome;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// How long a response may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server that listens.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<String>>,
}

impl HttpServer {
    /// Starts a server for the workspace of this home, on a free port.
    pub(crate) fn start(home: &TestHome, args: &[&str]) -> Self {
        let all = [&["mcp", "serve", "-C", ".", "--http", "127.0.0.1:0"], args].concat();
        Self::start_command(home.command(&all))
    }

    pub(crate) fn start_command(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
        let log = Arc::new(Mutex::new(String::new()));
        let mut line = String::new();
        let address = loop {
            line.clear();
            let length = errors.read_line(&mut line).expect("it is text");
            assert!(length > 0, "the server ended: {}", log.lock().expect("unpoisoned"));
            log.lock().expect("unpoisoned").push_str(&line);
            if let Some(rest) = line.strip_prefix("MCP server: http://") {
                let (address, _) = rest.split_once("/mcp ").expect("the path and more");
                break address.parse().expect("an address");
            }
        };
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                kept.lock().expect("unpoisoned").push_str(&format!("{line}\n"));
            }
        });
        Self { child, address, log }
    }

    /// What the server has written to standard error.
    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("unpoisoned").clone()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send_signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is a child");
    }

    #[track_caller]
    pub(crate) fn wait_for_exit(&mut self, time: Duration) -> Option<i32> {
        let deadline = Instant::now() + time;
        loop {
            if let Some(status) = self.child.try_wait().expect("it is a child") {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the server does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A client that has no session yet.
    pub(crate) fn client(&self) -> HttpClient {
        HttpClient {
            address: self.address,
            headers: Vec::new(),
            session: None,
            version: "2025-11-25".to_owned(),
            next_id: 1,
            connection: None,
        }
    }

    /// A client with a session, and with elicitation.
    pub(crate) fn begin(&self) -> HttpClient {
        let mut client = self.client();
        client.initialize(json!({"elicitation": {}}));
        client
    }

    /// Sends bytes on a connection of its own, and reads one response.
    #[track_caller]
    pub(crate) fn exchange(&self, bytes: &[u8]) -> HttpReply {
        let mut connection = self.connect();
        connection.write_all(bytes);
        connection.read_reply().expect("a response")
    }

    pub(crate) fn connect(&self) -> HttpConnection {
        HttpConnection::open(self.address)
    }

    /// The server still serves a new client.
    #[track_caller]
    pub(crate) fn assert_healthy(&self) {
        let mut client = self.begin();
        assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
        client.end();
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl HttpReply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header_of(&self.head, name)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The only message of the body, whether it is JSON or a stream of events.
    #[track_caller]
    pub(crate) fn message(&self) -> Value {
        let text = self.text();
        let mut data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let data = data.rfind(|data| !data.is_empty()).unwrap_or(&text);
        serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn header_of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// A connection, as bytes.
pub(crate) struct HttpConnection {
    stream: TcpStream,
    received: VecDeque<u8>,
    /// The bytes that are left of the current piece of a chunked body; `None` if the body is not
    /// chunked or has ended.
    is_chunked: bool,
    head: String,
}

impl HttpConnection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("it can be set");
        stream.set_write_timeout(Some(TIMEOUT)).expect("it can be set");
        stream.set_nodelay(true).expect("it can be set");
        Self { stream, received: VecDeque::new(), is_chunked: false, head: String::new() }
    }

    #[track_caller]
    pub(crate) fn write_all(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// Sends bytes that the server may not want to read to the end.
    pub(crate) fn try_write_all(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    pub(crate) fn close(&self) {
        drop(self.stream.shutdown(Shutdown::Both));
    }

    /// Reads more bytes. Returns false at the end.
    fn fill(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) | Err(_) => false,
            Ok(length) => {
                self.received.extend(&buffer[..length]);
                true
            }
        }
    }

    fn read_line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=at).collect();
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Reads status line and headers. Returns the status.
    pub(crate) fn read_head(&mut self) -> Option<u16> {
        loop {
            self.head.clear();
            loop {
                let line = self.read_line()?;
                if line.is_empty() {
                    break;
                }
                self.head.push_str(&line);
                self.head.push('\n');
            }
            let status = self.head.split(' ').nth(1)?.parse().ok()?;
            self.is_chunked = header_of(&self.head, "transfer-encoding") == Some("chunked");
            if status != 100 {
                return Some(status);
            }
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header_of(&self.head, name)
    }

    fn read_exact(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.received.len() < length {
            if !self.fill() {
                return None;
            }
        }
        Some(self.received.drain(..length).collect())
    }

    /// Reads the next piece of a chunked body; `None` at its end.
    fn read_piece(&mut self) -> Option<Vec<u8>> {
        let length = usize::from_str_radix(&self.read_line()?, 16).ok()?;
        let piece = self.read_exact(length)?;
        self.read_line()?;
        (length > 0).then_some(piece)
    }

    /// Reads a whole response.
    pub(crate) fn read_reply(&mut self) -> Option<HttpReply> {
        let status = self.read_head()?;
        let head = self.head.clone();
        let mut body = Vec::new();
        if self.is_chunked {
            while let Some(piece) = self.read_piece() {
                body.extend(piece);
            }
        } else {
            let length = self.header("content-length").map_or(0, |n| n.parse().expect("a number"));
            body = self.read_exact(length)?;
        }
        Some(HttpReply { status, head, body })
    }

    /// Whether the server closes the connection within a time, after what it still sends.
    pub(crate) fn is_closed_within(&mut self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).expect("it can be set");
        let deadline = Instant::now() + time;
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) if Instant::now() < deadline => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe
                    ) =>
                {
                    return true;
                }
                Ok(_) | Err(_) => return false,
            }
        }
    }
}

/// One event of a stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamEvent {
    pub(crate) id: Option<String>,
    pub(crate) message: Option<Value>,
}

/// A response that is a stream of events.
pub(crate) struct EventReader {
    pub(crate) connection: HttpConnection,
    text: String,
}

impl EventReader {
    /// The next event; `None` at the end.
    #[track_caller]
    pub(crate) fn next_event(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = event.to_owned();
                self.text = rest.to_owned();
                let field = |name: &str| {
                    event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
                };
                let data = field("data:").filter(|data| !data.is_empty());
                let message = data.map(|data| serde_json::from_str(data).expect("JSON"));
                if message.is_none() && field("id:").is_none() {
                    // A comment keeps the connection alive.
                    continue;
                }
                return Some(StreamEvent { id: field("id:").map(str::to_owned), message });
            }
            let piece = self.connection.read_piece()?;
            self.text.push_str(std::str::from_utf8(&piece).expect("text"));
        }
    }

    /// The next event with a message.
    #[track_caller]
    pub(crate) fn next_message(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.next_event()?.message {
                return Some(message);
            }
        }
    }

    /// The answer of the request, past everything before it.
    #[track_caller]
    pub(crate) fn answer(mut self) -> Value {
        loop {
            let message = self.next_message().expect("the stream has an answer");
            if message.get("method").is_none() {
                return message;
            }
        }
    }
}

/// A client of one session.
pub(crate) struct HttpClient {
    address: SocketAddr,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) session: Option<String>,
    pub(crate) version: String,
    next_id: i64,
    connection: Option<HttpConnection>,
}

impl HttpClient {
    /// With a header in all requests.
    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn with_token(self, token: &str) -> Self {
        self.with_header("authorization", &format!("Bearer {token}"))
    }

    /// The head of a request with all headers of the protocol.
    pub(crate) fn head(&self, method: &str, more: &str) -> String {
        let mut head = format!("{method} /mcp HTTP/1.1\r\nhost: {}\r\n", self.address);
        head.push_str("accept: application/json, text/event-stream\r\n");
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(session) = &self.session {
            head.push_str(&format!("mcp-session-id: {session}\r\n"));
            head.push_str(&format!("mcp-protocol-version: {}\r\n", self.version));
        }
        format!("{head}{more}\r\n")
    }

    /// A request with a body, as bytes.
    pub(crate) fn post_bytes(&self, body: &str, more: &str) -> Vec<u8> {
        let length = body.len();
        let more = format!("content-type: application/json\r\ncontent-length: {length}\r\n{more}");
        format!("{}{body}", self.head("POST", &more)).into_bytes()
    }

    /// Another connection to the server.
    pub(crate) fn connect(&self) -> HttpConnection {
        HttpConnection::open(self.address)
    }

    fn connection(&mut self) -> &mut HttpConnection {
        self.connection.get_or_insert_with(|| HttpConnection::open(self.address))
    }

    /// Sends a message and reads the whole response.
    #[track_caller]
    pub(crate) fn post(&mut self, message: &Value) -> HttpReply {
        let bytes = self.post_bytes(&message.to_string(), "");
        self.post_raw(&bytes)
    }

    /// Sends a request on the connection of this client, and reads the whole response.
    #[track_caller]
    pub(crate) fn post_raw(&mut self, bytes: &[u8]) -> HttpReply {
        let connection = self.connection();
        connection.write_all(bytes);
        let reply = connection.read_reply().expect("a response");
        if reply.header("connection") == Some("close") {
            self.connection = None;
        }
        reply
    }

    /// Sends a message on a connection of its own, and returns the stream of events.
    #[track_caller]
    pub(crate) fn open_stream(&self, message: &Value) -> EventReader {
        self.read_stream(&self.post_bytes(&message.to_string(), ""))
    }

    /// Reads the stream of the session, or resumes one.
    #[track_caller]
    pub(crate) fn get_stream(&self, last_event: Option<&str>) -> EventReader {
        let more = last_event.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        self.read_stream(self.head("GET", &more).as_bytes())
    }

    #[track_caller]
    fn read_stream(&self, request: &[u8]) -> EventReader {
        let mut connection = HttpConnection::open(self.address);
        connection.write_all(request);
        let status = connection.read_head();
        assert_eq!(status, Some(200), "{}", connection.head);
        assert_eq!(connection.header("content-type"), Some("text/event-stream"));
        EventReader { connection, text: String::new() }
    }

    #[track_caller]
    pub(crate) fn initialize(&mut self, capabilities: Value) -> Value {
        let reply = self.try_initialize(capabilities);
        assert_eq!(reply.status, 200, "{reply:?}");
        let answer = reply.message();
        self.session = reply.header("mcp-session-id").map(str::to_owned);
        assert!(self.session.is_some(), "{reply:?}");
        self.version = answer["result"]["protocolVersion"].as_str().expect("a version").to_owned();
        let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(&begun).status, 202);
        answer["result"].clone()
    }

    /// Asks for a session, and does not demand one.
    #[track_caller]
    pub(crate) fn try_initialize(&mut self, capabilities: Value) -> HttpReply {
        let message = self.request(
            "initialize",
            json!({
                "protocolVersion": self.version,
                "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        self.post(&message)
    }

    /// A request with the next ID.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    /// Sends a request and returns its answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let request = self.request(method, params);
        let reply = self.post(&request);
        assert_eq!(reply.status, 200, "{reply:?}");
        let answer = reply.message();
        assert_eq!(answer["id"], request["id"], "{answer}");
        answer
    }

    #[track_caller]
    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let reply = self.post(&message);
        assert_eq!(reply.status, 202, "{reply:?}");
    }

    /// Calls a tool and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Starts a call, and returns its request with its stream.
    #[track_caller]
    pub(crate) fn start_call(&mut self, tool: &str, arguments: Value) -> (Value, EventReader) {
        let request = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let stream = self.open_stream(&request);
        (request, stream)
    }

    /// Answers a question of the server.
    #[track_caller]
    pub(crate) fn answer(&mut self, question: &Value, content: Value) {
        let result = json!({"action": "accept", "content": content});
        let reply = self.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
        assert_eq!(reply.status, 202, "{reply:?}");
    }

    /// Ends the session. Returns the status.
    pub(crate) fn end(&mut self) -> u16 {
        let bytes = self.head("DELETE", "").into_bytes();
        let connection = self.connection();
        connection.write_all(&bytes);
        connection.read_reply().expect("a response").status
    }
}
