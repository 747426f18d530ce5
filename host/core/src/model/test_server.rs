//! A scripted model server and a recording listener, for the tests of the models.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::timing::RetryTiming;
use crate::agent::ports::{
    LanguageModel, ModelError, ModelRequest, ResponseDelta, ToolChoice, ToolDefinition,
};
use crate::conversation::{ModelResponse, Transcript};

/// A step of the answer to one connection, after its request was read.
#[derive(Clone, Debug)]
pub(super) enum ServerStep {
    /// Sends these bytes in one write.
    Send(Vec<u8>),
    /// Waits for this duration.
    Wait(Duration),
    /// Never sends anything again.
    Stall,
}

/// An HTTP response as raw bytes in steps.
#[derive(Clone, Debug)]
pub(super) struct RawAnswer(pub(super) Vec<ServerStep>);

impl RawAnswer {
    /// Creates a stream of events that is sent in one piece.
    pub(super) fn events(body: &str) -> Self {
        Self::new("200 OK", &[("content-type", "text/event-stream")], body)
    }

    /// Creates a stream of events that is sent byte by byte.
    pub(super) fn byte_by_byte(body: &str) -> Self {
        let Self(mut steps) = Self::events("");
        steps.extend(body.bytes().map(|byte| ServerStep::Send(vec![byte])));
        Self(steps)
    }

    /// Creates any response. The end of the connection ends the body.
    pub(super) fn new(status: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        Self(vec![ServerStep::Send(
            format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n{body}").into_bytes(),
        )])
    }

    pub(super) fn then(mut self, step: ServerStep) -> Self {
        self.0.push(step);
        self
    }
}

/// A request as the server received it.
#[derive(Clone, Debug)]
pub(super) struct ReceivedRequest {
    /// The request line and the headers, in lower case.
    pub(super) head: String,
    pub(super) body: Value,
}

/// A server that answers connections from a script, in order.
///
/// After the end of the script, it closes connections without an answer.
#[derive(Debug)]
pub(super) struct ScriptedModelServer {
    pub(super) address: String,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl ScriptedModelServer {
    pub(super) async fn start(answers: Vec<RawAnswer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            let mut answers = answers.into_iter();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answers.next(), Arc::clone(&seen)));
            }
        });
        Self { address, requests }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().expect("not poisoned").clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: Option<RawAnswer>,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
) {
    let Some(request) = read_request(&mut stream).await else { return };
    seen.lock().expect("not poisoned").push(request);
    for step in answer.into_iter().flat_map(|answer| answer.0) {
        match step {
            ServerStep::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
            ServerStep::Wait(duration) => tokio::time::sleep(duration).await,
            ServerStep::Stall => std::future::pending().await,
        }
    }
    // Reading to the end keeps the kernel from resetting the connection.
    let _ = stream.shutdown().await;
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
}

async fn read_request(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&chunk[..count]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        if bytes.len() >= end + 4 + length {
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or(Value::Null);
            return Some(ReceivedRequest { head, body });
        }
    }
}

/// A listener that records the deltas of a model.
#[derive(Default)]
pub(super) struct ModelProbe {
    pub(super) deltas: Vec<String>,
}

impl ModelProbe {
    pub(super) async fn respond(
        &mut self,
        model: &dyn LanguageModel,
        request: ModelRequest<'_>,
    ) -> Result<ModelResponse, ModelError> {
        self.respond_until(model, request, &CancellationToken::new()).await
    }

    pub(super) async fn respond_until(
        &mut self,
        model: &dyn LanguageModel,
        request: ModelRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let mut on_delta = |delta: ResponseDelta<'_>| self.deltas.push(describe_delta(delta));
        model.respond(request, &mut on_delta, cancel).await
    }
}

pub(super) fn describe_delta(delta: ResponseDelta<'_>) -> String {
    match delta {
        ResponseDelta::Text(text) => format!("text {text}"),
        ResponseDelta::Reasoning(text) => format!("reasoning {text}"),
        ResponseDelta::ToolCallStart(name) => format!("call {name}"),
        ResponseDelta::Retry { attempt, .. } => format!("retry after attempt {attempt}"),
    }
}

/// Returns a request that has only a transcript.
pub(super) fn empty_request(transcript: &Transcript) -> ModelRequest<'_> {
    ModelRequest {
        system: "",
        conversation: transcript.sent(),
        note: None,
        tools: &[],
        tool_choice: ToolChoice::Auto,
        is_shown_live: true,
    }
}

/// Returns a request that has every part, and that must not be answered with calls.
pub(super) fn full_request<'a>(
    transcript: &'a Transcript,
    tools: &'a [ToolDefinition],
) -> ModelRequest<'a> {
    ModelRequest {
        system: "You are careful.",
        conversation: transcript.sent(),
        note: Some("Be brief."),
        tools,
        tool_choice: ToolChoice::None,
        is_shown_live: true,
    }
}

/// Returns timeouts that are as short as tests allow.
pub(super) fn short_timing() -> RetryTiming {
    RetryTiming {
        connect_timeout: Duration::from_secs(2),
        first_event_timeout: Some(Duration::from_millis(500)),
        idle_timeout: Duration::from_millis(500),
        heartbeats: Duration::from_millis(1_500),
        initial_pause: Duration::from_millis(5),
        max_pause: Duration::from_millis(20),
        ..RetryTiming::default()
    }
}

/// Returns a conversation with everything that a wire format must encode.
///
/// It has an unanswered prompt, all kinds of thinking and results, an answer, and calls that are
/// valid, empty, broken and misnamed.
pub(super) fn full_transcript() -> Transcript {
    use crate::conversation::{
        AssistantTurn, CallId, ModelReasoning, ModelResponse, OpenTurn, ResponseBlock,
        ResultContent, ResultStatus, StopReason, ToolCall, ToolResult,
    };

    let call = |id: &str, name: &str, arguments: &str| {
        ResponseBlock::Call(ToolCall {
            id: CallId::new(id),
            name: name.into(),
            arguments: arguments.into(),
        })
    };
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Are you there?");
    transcript.begin_exchange("What is in here?");
    let response = ModelResponse {
        blocks: vec![
            ResponseBlock::Reasoning(ModelReasoning::Text {
                text: "I should look.".into(),
                signature: Some("sig".into()),
            }),
            ResponseBlock::Reasoning(ModelReasoning::Opaque { data: "opaque".into() }),
            ResponseBlock::Reasoning(ModelReasoning::Text {
                text: "Unsigned.".into(),
                signature: None,
            }),
            ResponseBlock::Reasoning(ModelReasoning::Sealed {
                id: "rs_1".into(),
                summary: vec!["In short.".into()],
                data: "sealed".into(),
            }),
            ResponseBlock::Text("Let me look.".into()),
            call("c1", "list_dir", "{\"path\": \".\", \"n\": 1.0}"),
            call("c2", "todo", ""),
            call("c3", "see.this", "{\"a\":1}{\"b\":2}"),
        ],
        stop: StopReason::Calls,
        ..ModelResponse::default()
    };
    let mut turn = OpenTurn::new(response).expect("has calls");
    let picture =
        ResultContent::Image { media_type: "image/png".into(), base64: "iVBORw0KGgo=".into() };
    turn.answer(
        0,
        ToolResult {
            status: ResultStatus::Ok,
            content: vec![ResultContent::Text("a.rs".into()), picture.clone()],
        },
    );
    turn.answer(1, ToolResult { status: ResultStatus::Ok, content: vec![] });
    turn.answer(
        2,
        ToolResult {
            status: ResultStatus::Error,
            content: vec![ResultContent::Text("no such tool".into()), picture],
        },
    );
    transcript.record(turn.close("unused"));
    let answer = ModelResponse {
        blocks: vec![ResponseBlock::Text("One file.".into())],
        ..ModelResponse::default()
    };
    transcript.record(AssistantTurn::without_calls(answer).expect("has text"));
    transcript.begin_exchange("Thanks.");
    transcript
}

/// Returns two tools, the second without a description.
pub(super) fn two_tools() -> Vec<ToolDefinition> {
    let tool = |name: &str, description: &str| ToolDefinition {
        name: name.into(),
        description: description.into(),
        input_schema: serde_json::json!({
            "type": "object", "properties": {"path": {"type": "string"}},
        }),
    };
    vec![tool("list_dir", "Lists a folder."), tool("bash", "")]
}

/// Returns a conversation with a summary of the oldest turn and a pruned result.
pub(super) fn pruned_transcript() -> Transcript {
    use crate::conversation::test_util::{text_turn, tool_turn, transcript_of};
    use crate::conversation::{PruneLimits, TurnIndex};

    let mut transcript = transcript_of(&[
        ("One.", vec![tool_turn(4_000), tool_turn(4_000)]),
        ("Two.", vec![text_turn("Yes.")]),
        ("Three.", vec![]),
    ]);
    assert!(transcript.apply_summary(
        transcript.summary_until(TurnIndex { exchange: 0, turn: 1 }, "It began.".into())
    ));
    assert!(transcript.prune(PruneLimits { protected_tokens: 0, min_gain: 1 }).is_some());
    transcript
}
