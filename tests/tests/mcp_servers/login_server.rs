//! A login server of OAuth 2.1, an MCP server that accepts its tokens, and the browser of the user.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::http_script::{HttpReply, HttpRequest, HttpScript, answer};
use crate::scripted::ScriptedUser;

/// What a server does otherwise than the standards say.
#[derive(Clone, Default)]
pub(crate) struct LoginKnobs {
    /// Replaces keys of the metadata of the MCP server; `null` removes one.
    pub(crate) resource: Value,
    /// The challenge of the MCP server, in place of the usual one.
    pub(crate) challenge: Option<String>,
    /// Replaces keys of the metadata of the login server; `null` removes one.
    pub(crate) issuer: Value,
    /// Replaces keys of what is registered.
    pub(crate) registered: Value,
    /// Replaces parameters of the answer that the browser brings.
    pub(crate) answered: Value,
    /// Replaces keys of the response with tokens.
    pub(crate) tokens: Value,
    /// A raw response to requests of this path, in place of the usual one.
    pub(crate) raw: Option<(&'static str, String)>,
    /// The lifetime of access tokens, in seconds.
    pub(crate) lifetime: Option<u64>,
}

#[derive(Default)]
struct LoginState {
    knobs: LoginKnobs,
    /// The parameters of each code.
    codes: HashMap<String, HashMap<String, String>>,
    /// The tokens that the MCP server accepts.
    valid: Vec<String>,
    refresh: Vec<String>,
    count: u32,
}

/// A login server and its MCP server.
pub(crate) struct LoginServers {
    pub(crate) user: ScriptedUser,
    pub(crate) server: HttpScript,
    pub(crate) login: HttpScript,
    state: Arc<Mutex<LoginState>>,
}

/// Replaces keys of an object.
fn patch(mut object: Value, with: &Value) -> Value {
    for (key, value) in with.as_object().into_iter().flatten() {
        match value {
            Value::Null => {
                object.as_object_mut().expect("an object").remove(key);
            }
            value => object[key] = value.clone(),
        }
    }
    object
}

/// Decodes a query or a form.
pub(crate) fn parameters(text: &str) -> HashMap<String, String> {
    let decode = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            match byte {
                b'+' => bytes.push(b' '),
                b'%' => {
                    let digits: Vec<u8> = rest.by_ref().take(2).collect();
                    let digits = String::from_utf8(digits).expect("digits");
                    bytes.push(u8::from_str_radix(&digits, 16).expect("digits"));
                }
                byte => bytes.push(byte),
            }
        }
        String::from_utf8(bytes).expect("text")
    };
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

impl LoginServers {
    /// Starts both servers, and a user whose configuration has the MCP server as `s`.
    pub(crate) fn start() -> Self {
        let state = Arc::new(Mutex::new(LoginState::default()));
        let login_address = Arc::new(Mutex::new(String::new()));
        let (shared, issuer) = (Arc::clone(&state), Arc::clone(&login_address));
        let login = HttpScript::start(move |request, reply| {
            let issuer = issuer.lock().expect("unpoisoned").clone();
            serve_login(&mut shared.lock().expect("unpoisoned"), &issuer, request, reply)
        });
        let issuer = format!("http://{}", login.address);
        login_address.lock().expect("unpoisoned").clone_from(&issuer);
        let shared = Arc::clone(&state);
        let server =
            HttpScript::start(move |request, reply| serve_mcp(&shared, &issuer, request, reply));
        let user = ScriptedUser::new();
        user.home.write_file(
            "config/cofferdam/config.toml",
            format!("[mcp.servers.s]\nurl = \"{}\"\n", server.url()),
        );
        Self { user, server, login, state }
    }

    /// From here on, the servers behave like this.
    pub(crate) fn turn(&self, knobs: LoginKnobs) {
        self.state.lock().expect("unpoisoned").knobs = knobs;
    }

    /// From here on, the MCP server rejects all tokens that were given out.
    pub(crate) fn revoke(&self) {
        self.state.lock().expect("unpoisoned").valid.clear();
    }

    /// From here on, the login server refreshes nothing.
    pub(crate) fn end_logins(&self) {
        self.state.lock().expect("unpoisoned").refresh.clear();
    }

    /// The access tokens that the MCP server accepts.
    pub(crate) fn valid_tokens(&self) -> Vec<String> {
        self.state.lock().expect("unpoisoned").valid.clone()
    }

    /// Begins a login in a program of its own.
    pub(crate) fn begin(&self, args: &[&str]) -> RunningLogin {
        let mut command = self.user.home.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut url = String::new();
        output.read_line(&mut url).expect("it is text");
        RunningLogin { child, output, url: url.trim().to_owned() }
    }

    /// Logs in as a user with a browser, and returns the exit code and everything that was written.
    pub(crate) fn log_in(&self, args: &[&str]) -> (Option<i32>, String) {
        let login = self.begin(args);
        if !login.url.is_empty() {
            login.visit();
        }
        login.finish()
    }
}

/// A program that waits for a login.
pub(crate) struct RunningLogin {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    /// The URL that the user has to open; empty if the program ended before.
    pub(crate) url: String,
}

impl RunningLogin {
    /// Opens the URL as a browser, and follows the redirect back to this machine.
    pub(crate) fn visit(&self) -> (u16, String) {
        let (status, head) = browse(&self.url);
        assert_eq!(status, 302, "{head}");
        let target = head.lines().find_map(|line| line.strip_prefix("location: "));
        browse(target.expect("a target"))
    }

    /// Waits for the end, and returns the exit code and everything that was written.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        let mut text = format!("{}\n", self.url);
        self.output.read_to_string(&mut text).expect("it is text");
        let mut errors = self.child.stderr.take().expect("it is piped");
        errors.read_to_string(&mut text).expect("it is text");
        (self.child.wait().expect("it is a child").code(), text)
    }
}

/// Requests a page, and returns the status and the whole response.
pub(crate) fn browse(url: &str) -> (u16, String) {
    let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("no URL: {url}"));
    let (host, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("it listens");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        .expect("it reads");
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains("\r\n\r\n") {
        let length = stream.read(&mut buffer).expect("it answers");
        assert!(length > 0, "no response: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    (text.split(' ').nth(1).expect("a status").parse().expect("a number"), text)
}

fn respond_json(reply: &mut HttpReply<'_>, status: u16, json: &Value) -> bool {
    reply.respond(status, &[("content-type", "application/json")], &json.to_string())
}

fn serve_login(
    state: &mut LoginState,
    issuer: &str,
    request: &HttpRequest,
    reply: &mut HttpReply<'_>,
) -> bool {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    if let Some((raw_path, raw)) = &state.knobs.raw
        && path == *raw_path
    {
        reply.raw(raw);
        return false;
    }
    match (request.method.as_str(), path) {
        ("GET", "/.well-known/oauth-authorization-server") => {
            let metadata = json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize?tenant=1"),
                "token_endpoint": format!("{issuer}/token"),
                "registration_endpoint": format!("{issuer}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["plain", "S256"],
                "authorization_response_iss_parameter_supported": true,
            });
            respond_json(reply, 200, &patch(metadata, &state.knobs.issuer))
        }
        ("POST", "/register") => {
            let asked = request.message();
            assert_eq!(asked["token_endpoint_auth_method"], "none");
            let redirect = asked["redirect_uris"][0].as_str().expect("a URL").to_owned();
            assert!(redirect.starts_with("http://127.0.0.1:"), "{redirect}");
            let registered = json!({"client_id": "client-1", "redirect_uris": [redirect]});
            respond_json(reply, 201, &patch(registered, &state.knobs.registered))
        }
        ("GET", "/authorize") => {
            let asked = parameters(query);
            assert_eq!(asked["code_challenge_method"], "S256");
            assert_eq!((&*asked["response_type"], &*asked["tenant"]), ("code", "1"));
            assert!(asked["state"].len() >= 32, "{asked:?}");
            state.count += 1;
            let code = format!("code/{}", state.count);
            let answered = json!({"code": code, "state": asked["state"], "iss": issuer});
            let answered = patch(answered, &state.knobs.answered);
            let answered: Vec<String> = answered
                .as_object()
                .expect("an object")
                .iter()
                .map(|(name, value)| format!("{name}={}", encode(value.as_str().expect("text"))))
                .collect();
            let target = format!("{}?{}", asked["redirect_uri"], answered.join("&"));
            state.codes.insert(code, asked);
            reply.respond(302, &[("location", &target)], "")
        }
        ("POST", "/token") => {
            let asked = parameters(&request.text());
            match give_tokens(state, &asked) {
                Ok(tokens) => respond_json(reply, 200, &tokens),
                Err(problem) => respond_json(reply, 400, &json!({"error": problem})),
            }
        }
        _ => reply.respond(404, &[], ""),
    }
}

fn give_tokens(
    state: &mut LoginState,
    asked: &HashMap<String, String>,
) -> Result<Value, &'static str> {
    let get = |key: &str| asked.get(key).map(String::as_str).unwrap_or_default();
    match get("grant_type") {
        "authorization_code" => {
            let code = state.codes.remove(get("code")).ok_or("invalid_grant")?;
            let digest = digest(&SHA256, get("code_verifier").as_bytes());
            if code["code_challenge"] != URL_SAFE_NO_PAD.encode(digest) {
                return Err("wrong_verifier");
            }
            for key in ["client_id", "redirect_uri", "resource"] {
                if code[key] != get(key) {
                    return Err("wrong_parameter");
                }
            }
        }
        "refresh_token" => {
            let known = state.refresh.iter().position(|token| token == get("refresh_token"));
            // A refresh token works once.
            state.refresh.remove(known.ok_or("invalid_grant")?);
            if get("resource").is_empty() || get("client_id") != "client-1" {
                return Err("wrong_parameter");
            }
        }
        _ => return Err("unsupported_grant_type"),
    }
    state.count += 1;
    let (access, refresh) =
        (format!("access-token-{}", state.count), format!("refresh-token-{}", state.count));
    state.valid.push(access.clone());
    state.refresh.push(refresh.clone());
    let tokens = json!({
        "access_token": access,
        "refresh_token": refresh,
        "token_type": "Bearer",
        "expires_in": state.knobs.lifetime.unwrap_or(3600),
        "scope": "call",
    });
    Ok(patch(tokens, &state.knobs.tokens))
}

fn serve_mcp(
    state: &Mutex<LoginState>,
    issuer: &str,
    request: &HttpRequest,
    reply: &mut HttpReply<'_>,
) -> bool {
    let host = request.header("host").expect("a host").to_owned();
    let (knobs, valid) = {
        let state = state.lock().expect("unpoisoned");
        (state.knobs.clone(), state.valid.clone())
    };
    let metadata_path = "/.well-known/oauth-protected-resource/mcp";
    if request.path == metadata_path {
        let metadata = json!({
            "resource": format!("http://{host}/mcp"),
            "authorization_servers": [issuer],
            "scopes_supported": ["call", "more"],
        });
        return respond_json(reply, 200, &patch(metadata, &knobs.resource));
    }
    if request.path != "/mcp" {
        return reply.respond(404, &[], "");
    }
    let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    if token.is_some_and(|token| valid.iter().any(|known| known == token)) {
        return answer(request, reply);
    }
    let usual =
        format!("Bearer resource_metadata=\"http://{host}{metadata_path}\", scope=\"call\"");
    let challenge = knobs.challenge.unwrap_or(usual);
    reply.respond(401, &[("www-authenticate", &challenge)], "")
}
