//! The server.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::script::{ReplyBody, StreamEnding};
use super::{
    Provider, ReceivedRequest, ScriptedReply, StreamChunking, anthropic, history, http, openai,
    responses, sdk, validate_anthropic, validate_openai, validate_responses,
};

/// How long a test waits for something that has to happen.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How much of what has no end is written at once, and in all.
const ENDLESS_CHUNK_BYTES: usize = 64 << 10;
const MAX_ENDLESS_BYTES: usize = 2 << 30;
/// How long a connection that says nothing looks away.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Plays a script; one that is dropped judges what it heard.
#[derive(Debug)]
pub struct ProviderServer {
    provider: Provider,
    address: SocketAddr,
    shared: Arc<SharedState>,
}

#[derive(Debug)]
struct SharedState {
    key: String,
    state: Mutex<ScriptState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ScriptState {
    script: VecDeque<ScriptedReply>,
    requests: Vec<ReceivedRequest>,
    /// Which conversation each request belongs to, where several run side by side.
    conversations: Vec<Option<String>>,
    unexpected_requests: usize,
    released: bool,
    is_finished: bool,
}

impl ProviderServer {
    pub(super) fn start(provider: Provider, script: VecDeque<ScriptedReply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let key = format!("sk-scripted-{}-{}", address.port(), std::process::id());
        let shared = Arc::new(SharedState {
            key,
            state: Mutex::new(ScriptState { script, ..ScriptState::default() }),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.state().is_finished {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || shared.serve(stream, provider));
            }
        });
        Self { provider, address, shared }
    }

    /// Whose format it speaks.
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// For `--base-url`.
    pub fn base_url(&self) -> String {
        match self.provider {
            Provider::OpenAi | Provider::Responses => format!("http://{}/v1", self.address),
            Provider::Anthropic => format!("http://{}", self.address),
        }
    }

    /// The key that it wants. No other place than a header may ever hold it.
    pub fn key(&self) -> &str {
        &self.shared.key
    }

    /// What arrived so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.state().requests.clone()
    }

    /// The only request.
    pub fn request(&self) -> ReceivedRequest {
        let [request] = self.requests().try_into().expect("there is exactly one request");
        request
    }

    /// The newest request.
    pub fn last_request(&self) -> ReceivedRequest {
        self.requests().pop().expect("there is a request")
    }

    /// Waits until so many requests have arrived.
    pub fn wait_for_requests(&self, count: usize) {
        self.shared.wait_until(
            |state| state.requests.len() >= count,
            &format!("request {count} does not arrive"),
        );
    }

    /// Lets replies go out that wait for it.
    pub fn release(&self) {
        self.shared.state().released = true;
        self.shared.changed.notify_all();
    }

    fn assert_valid(&self) {
        let state = self.shared.state();
        for (number, request) in state.requests.iter().enumerate() {
            let mut problems = match self.provider {
                Provider::OpenAi => validate_openai::request_errors(request),
                Provider::Anthropic => validate_anthropic::request_errors(request),
                Provider::Responses => validate_responses::request_errors(request),
            };
            problems.extend(sdk::schema_errors(self.provider, &request.body));
            assert!(
                problems.is_empty(),
                "{:?}, request {}: {problems:#?}\n{:#}",
                self.provider,
                number + 1,
                request.body
            );
            assert!(
                !request.body.to_string().contains(self.key()),
                "request {} holds the key:\n{:#}",
                number + 1,
                request.body
            );
        }
        for conversation in state.conversations.iter().collect::<BTreeSet<_>>() {
            let of_it = |(_, of): &(&ReceivedRequest, &Option<String>)| of == &conversation;
            let requests: Vec<ReceivedRequest> = state
                .requests
                .iter()
                .zip(&state.conversations)
                .filter(of_it)
                .map(|(request, _)| request.clone())
                .collect();
            if let Err(problem) = history::check_history(&requests) {
                panic!("{:?}: {problem}", self.provider);
            }
        }
        let (played, left) = (state.requests.len(), state.script.len());
        assert_eq!(
            state.unexpected_requests, 0,
            "{:?}: the script was over, and more was asked for: {:#?}",
            self.provider, state.requests
        );
        assert_eq!(
            left, 0,
            "{:?}: {played} replies were asked for, and {left} are left: {:#?}",
            self.provider, state.requests
        );
    }
}

impl Drop for ProviderServer {
    fn drop(&mut self) {
        self.shared.state().is_finished = true;
        self.shared.changed.notify_all();
        // Wakes the thread that accepts, so that it sees that it is over.
        drop(TcpStream::connect(self.address));
        if !std::thread::panicking() {
            self.assert_valid();
        }
    }
}

impl SharedState {
    fn state(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until(&self, is_true: impl Fn(&ScriptState) -> bool, otherwise: &str) {
        let deadline = Instant::now() + TIMEOUT;
        let mut state = self.state();
        while !is_true(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{otherwise}: {:#?}", state.requests);
            state =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn serve(&self, mut stream: TcpStream, provider: Provider) {
        stream.set_nodelay(true).expect("it is a socket");
        while let Some(request) = http::read_request(&mut stream, provider) {
            let (reply, number) = {
                let mut state = self.state();
                let first = request.user_texts().into_iter().next().unwrap_or_default();
                state.requests.push(request);
                let meant = |reply: &ScriptedReply| {
                    reply.only_for.as_ref().is_some_and(|text| first.contains(text))
                };
                let place = state
                    .script
                    .iter()
                    .position(meant)
                    .or_else(|| state.script.iter().position(|reply| reply.only_for.is_none()));
                let reply = place.and_then(|place| state.script.remove(place));
                let conversation = reply.as_ref().and_then(|reply| reply.only_for.clone());
                state.conversations.push(conversation);
                state.unexpected_requests += usize::from(reply.is_none());
                (reply, state.requests.len())
            };
            self.changed.notify_all();
            let over = super::error_reply(400, "invalid_request_error", "the script is over");
            let stays_open = self.send_reply(&mut stream, provider, &reply.unwrap_or(over), number);
            if !stays_open.unwrap_or(false) {
                let _ = stream.shutdown(std::net::Shutdown::Write);
                // Reading to the end keeps the kernel from resetting what was written.
                let _ = stream.set_read_timeout(Some(POLL_INTERVAL));
                let _ = stream.read_to_end(&mut Vec::new());
                return;
            }
        }
    }

    /// Says whether the connection can serve another request.
    fn send_reply(
        &self,
        stream: &mut TcpStream,
        provider: Provider,
        reply: &ScriptedReply,
        number: usize,
    ) -> io::Result<bool> {
        if reply.waits_for_release {
            self.wait_until(
                |state| state.released || state.is_finished,
                "nobody releases the reply",
            );
        }
        let mut headers = reply.headers.clone();
        match &reply.body {
            ReplyBody::Hang => self.wait_for_close(stream),
            ReplyBody::Raw(bytes) => {
                stream.write_all(bytes)?;
                return Ok(false);
            }
            ReplyBody::Endless { prefix: begin, repeated: again } => {
                stream.write_all(begin)?;
                let piece = again.repeat((ENDLESS_CHUNK_BYTES / again.len()).max(1));
                for _ in 0..MAX_ENDLESS_BYTES / piece.len() {
                    stream.write_all(&piece)?;
                }
                return Ok(false);
            }
            ReplyBody::Failure { status, kind, message } => {
                let body = match provider {
                    Provider::OpenAi | Provider::Responses => openai::error(kind, message),
                    Provider::Anthropic => anthropic::error(kind, message),
                };
                let body = body.to_string();
                headers.push(("content-type", "application/json".into()));
                headers.push(("content-length", body.len().to_string()));
                stream.write_all((http::response_head(*status, &headers) + &body).as_bytes())?;
                return Ok(true);
            }
            ReplyBody::Stream { content: said, ending } => {
                let (mut events, end) = match provider {
                    Provider::OpenAi => openai::events(said, number),
                    Provider::Anthropic => anthropic::events(said, number),
                    Provider::Responses => responses::events(said, number),
                };
                match ending {
                    StreamEnding::Complete => events.extend(end),
                    StreamEnding::Disconnect => drop(events.pop()),
                    StreamEnding::WithoutFinalEvent | StreamEnding::Hang => {}
                    StreamEnding::Error { kind, message } => events.push(match provider {
                        Provider::OpenAi => openai::error_event(kind, message),
                        Provider::Anthropic => anthropic::error_event(kind, message),
                        Provider::Responses => responses::error_event(kind, message),
                    }),
                }
                headers.push(("content-type", "text/event-stream; charset=utf-8".into()));
                headers.push(("transfer-encoding", "chunked".into()));
                stream.write_all(http::response_head(200, &headers).as_bytes())?;
                for piece in split_events(&events, reply) {
                    http::write_chunk(stream, &piece)?;
                }
                match ending {
                    StreamEnding::Complete | StreamEnding::WithoutFinalEvent => {
                        stream.write_all(b"0\r\n\r\n")?;
                        return Ok(true);
                    }
                    StreamEnding::Hang => self.wait_for_close(stream),
                    StreamEnding::Disconnect | StreamEnding::Error { .. } => {}
                }
            }
        }
        Ok(false)
    }

    /// Until the client goes away, or the test is over.
    fn wait_for_close(&self, stream: &mut TcpStream) {
        let _ = stream.set_read_timeout(Some(POLL_INTERVAL));
        while !self.state().is_finished {
            match stream.read(&mut [0; 64]) {
                Ok(0) => return,
                Err(error)
                    if !matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    return;
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// The bytes of all events, in the pieces in which they travel.
fn split_events(events: &[String], reply: &ScriptedReply) -> Vec<Vec<u8>> {
    let events: Vec<String> = events
        .iter()
        .map(|event| if reply.crlf { event.replace('\n', "\r\n") } else { event.clone() })
        .collect();
    match reply.chunking {
        StreamChunking::PerEvent => events.into_iter().map(String::into_bytes).collect(),
        StreamChunking::Whole => vec![events.concat().into_bytes()],
        StreamChunking::PerByte => events.concat().bytes().map(|byte| vec![byte]).collect(),
        StreamChunking::WithinCharacters => {
            let mut pieces = vec![Vec::new()];
            for byte in events.concat().bytes() {
                pieces.last_mut().expect("it is never empty").push(byte);
                if byte >= 0xC0 {
                    pieces.push(Vec::new());
                }
            }
            pieces
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::text_reply;
    use super::*;

    #[test]
    fn a_cut_goes_through_characters_and_loses_nothing() {
        let events = ["data: grün 日本\n\n".to_owned()];
        let reply = text_reply("").with_chunking(StreamChunking::WithinCharacters).with_crlf();
        let pieces = split_events(&events, &reply);
        assert_eq!(pieces.len(), 4);
        assert!(pieces.iter().all(|piece| std::str::from_utf8(piece).is_err()));
        assert_eq!(pieces.concat(), "data: grün 日本\r\n\r\n".as_bytes());
    }

    #[test]
    #[should_panic(expected = "and 1 are left")]
    fn a_script_that_is_not_played_to_its_end_fails_the_test() {
        drop(Provider::OpenAi.serve([text_reply("never asked for")]));
    }

    #[test]
    #[should_panic(expected = "the first message is not the system prompt")]
    fn r060_a_body_that_breaks_a_rule_fails_the_test() {
        let server = Provider::OpenAi.serve([text_reply("Fine.")]);
        let body =
            r#"{"model": "m", "stream": true, "messages": [{"role": "user", "content": "u"}]}"#;
        let mut client = TcpStream::connect(server.address).expect("it listens");
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nauthorization: Bearer sk-\r\ncontent-length: \
                {}\r\n\r\n",
            body.len()
        );
        client.write_all((head + body).as_bytes()).expect("it reads");
        server.wait_for_requests(1);
        drop(server);
    }
}
