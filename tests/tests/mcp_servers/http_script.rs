//! A small MCP server over HTTP that behaves as a test says, and a user who has accepted it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::scripted::{ScriptedSession, ScriptedUser};

/// A request that the server got.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// The path with the query.
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The message of the body.
    pub(crate) fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The method of the message.
    pub(crate) fn called(&self) -> String {
        self.message()["method"].as_str().unwrap_or_default().to_owned()
    }
}

/// The connection on which a request is answered.
pub(crate) struct HttpReply<'s> {
    stream: &'s mut TcpStream,
}

impl HttpReply<'_> {
    /// Sends bytes. Returns false if the client is gone.
    pub(crate) fn raw(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Sends a whole response.
    pub(crate) fn respond(&mut self, status: u16, headers: &[(&str, &str)], body: &str) -> bool {
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        self.raw(format!("HTTP/1.1 {status} S\r\n{headers}content-length: {length}\r\n\r\n{body}"))
    }

    pub(crate) fn json(&mut self, body: &Value) -> bool {
        self.respond(200, &[("content-type", "application/json")], &body.to_string())
    }

    /// Sends the head of a JSON response with these lines.
    pub(crate) fn begin_json(&mut self, lines: &str) -> bool {
        self.raw(format!("HTTP/1.1 200 S\r\ncontent-type: application/json\r\n{lines}\r\n\r\n"))
    }

    /// Begins a stream of events, which ends with the connection.
    pub(crate) fn begin_events(&mut self) -> bool {
        self.raw("HTTP/1.1 200 S\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    }

    pub(crate) fn event(&mut self, data: &Value) -> bool {
        self.raw(format!("data: {data}\n\n"))
    }

    /// Sends the same bytes until the client is gone.
    pub(crate) fn flood(&mut self, bytes: &[u8]) {
        let many = bytes.repeat((64 << 10) / bytes.len().max(1) + 1);
        while self.raw(&many) {}
    }

    /// Waits until the client is gone.
    pub(crate) fn hang(&mut self) {
        let mut buffer = [0; 1024];
        while matches!(self.stream.read(&mut buffer), Ok(length) if length > 0) {}
    }

    /// Waits for a time.
    pub(crate) fn pause(&self, milliseconds: u64) {
        std::thread::sleep(Duration::from_millis(milliseconds));
    }
}

/// What a server does with a request. If it returns false, the connection ends.
pub(crate) type Behaviour = Arc<dyn Fn(&HttpRequest, &mut HttpReply<'_>) -> bool + Send + Sync>;

/// A server that listens until the test ends.
pub(crate) struct HttpScript {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
    behaviour: Arc<Mutex<Behaviour>>,
}

impl HttpScript {
    /// Starts a server.
    pub(crate) fn start(
        behaviour: impl Fn(&HttpRequest, &mut HttpReply<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let behaviour: Arc<Mutex<Behaviour>> = Arc::new(Mutex::new(Arc::new(behaviour)));
        let (kept, current) = (Arc::clone(&requests), Arc::clone(&behaviour));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, current) = (Arc::clone(&kept), Arc::clone(&current));
                std::thread::spawn(move || serve(stream, &kept, &current));
            }
        });
        Self { address, requests, behaviour }
    }

    /// A well-behaved MCP server.
    pub(crate) fn well_behaved() -> Self {
        Self::start(answer)
    }

    /// From here on, the server behaves like this.
    pub(crate) fn behave(
        &self,
        behaviour: impl Fn(&HttpRequest, &mut HttpReply<'_>) -> bool + Send + Sync + 'static,
    ) {
        *self.behaviour.lock().expect("unpoisoned") = Arc::new(behaviour);
    }

    /// From here on, calls of tools are answered like this, and everything else well.
    pub(crate) fn behave_at_calls(
        &self,
        behaviour: impl Fn(&HttpRequest, &mut HttpReply<'_>) -> bool + Send + Sync + 'static,
    ) {
        self.behave(move |request, reply| match request.called().as_str() {
            "tools/call" => behaviour(request, reply),
            _ => answer(request, reply),
        });
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<HttpRequest> {
        self.requests.lock().expect("unpoisoned").clone()
    }

    /// How often a method of MCP was called so far.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests().iter().filter(|request| request.called() == method).count()
    }
}

fn serve(mut stream: TcpStream, kept: &Mutex<Vec<HttpRequest>>, behaviour: &Mutex<Behaviour>) {
    let mut received = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut received) {
        kept.lock().expect("unpoisoned").push(request.clone());
        let behaviour = Arc::clone(&behaviour.lock().expect("unpoisoned"));
        if !behaviour(&request, &mut HttpReply { stream: &mut stream }) {
            return;
        }
    }
}

fn read_request(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<HttpRequest> {
    let mut buffer = [0; 8192];
    let end = loop {
        if let Some(at) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        let length = stream.read(&mut buffer).ok().filter(|length| *length > 0)?;
        received.extend_from_slice(&buffer[..length]);
    };
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap_or(0));
    while received.len() < end + 4 + length {
        let length = stream.read(&mut buffer).ok().filter(|length| *length > 0)?;
        received.extend_from_slice(&buffer[..length]);
    }
    let body = received[end + 4..end + 4 + length].to_vec();
    received.drain(..end + 4 + length);
    Some(HttpRequest { method, path, headers, body })
}

/// The result of a request, as a message.
pub(crate) fn result(request: &HttpRequest, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request.message()["id"], "result": result})
}

/// A result of a call with this text.
pub(crate) fn text_result(request: &HttpRequest, text: &str) -> Value {
    result(request, json!({"content": [{"type": "text", "text": text}]}))
}

/// The tools of the well-behaved server.
pub(crate) fn tools() -> Value {
    let text = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    json!([
        {"name": "echo", "description": "Repeats a text.", "inputSchema": text},
        {"name": "add", "description": "Adds nothing.", "inputSchema": {"type": "object"}},
    ])
}

/// Answers a request as a well-behaved server with sessions.
pub(crate) fn answer(request: &HttpRequest, reply: &mut HttpReply<'_>) -> bool {
    let message = request.message();
    match (request.method.as_str(), request.called().as_str()) {
        ("POST", "initialize") => {
            let begun = result(
                request,
                json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "script", "version": "1"},
                }),
            );
            let headers = [("content-type", "application/json"), ("mcp-session-id", "session-1")];
            reply.respond(200, &headers, &begun.to_string())
        }
        ("POST", "tools/list") => reply.json(&result(request, json!({"tools": tools()}))),
        ("POST", "tools/call") => {
            let text = message["params"]["arguments"]["text"].as_str().unwrap_or("called");
            reply.json(&text_result(request, text))
        }
        ("POST", _) if message["id"].is_null() || message["method"].is_null() => {
            reply.respond(202, &[], "")
        }
        ("POST", _) => reply.json(&json!({
            "jsonrpc": "2.0", "id": message["id"],
            "error": {"code": -32601, "message": "unknown method"},
        })),
        ("DELETE", _) => reply.respond(200, &[], ""),
        ("GET", _) if !request.path.starts_with("/mcp") => reply.respond(404, &[], ""),
        _ => reply.respond(405, &[], ""),
    }
}

/// A user who has accepted a scripted server over HTTP as `s`.
pub(crate) struct HttpUser {
    pub(crate) user: ScriptedUser,
    pub(crate) server: HttpScript,
}

impl HttpUser {
    /// A user who has accepted the well-behaved server.
    #[track_caller]
    pub(crate) fn new() -> Self {
        let (user, server) = (ScriptedUser::new(), HttpScript::well_behaved());
        let added = user.home.run(&["mcp", "add", "s", "--yes", "--url", &server.url()]);
        assert_eq!(added.exit_code, 0, "{added:?}");
        Self { user, server }
    }

    pub(crate) fn begin(&self) -> ScriptedSession {
        self.user.begin("auto")
    }

    /// Limits the calls of a tool to two seconds.
    pub(crate) fn limit_calls(&self) {
        let config = self.user.home.path().join("config/cofferdam/config.toml");
        let text = std::fs::read_to_string(config).expect("it is there");
        self.user.home.write_file(
            "config/cofferdam/config.toml",
            format!("{text}\n[tools.\"s/echo\".limits]\nseconds = 2\n"),
        );
    }
}
