//! Tests of complete model clients against a scripted server.

mod streams;

use std::time::{Duration, Instant};

use crate::agent::ports::{LanguageModel, ModelError, ModelErrorKind, ModelRequest};
use crate::conversation::{ModelResponse, StopReason, Transcript};
use crate::model::test_server::{
    ModelProbe, RawAnswer, ScriptedModelServer, empty_request, short_timing,
};
use crate::model::{ApiKey, ModelSettings, connect};

const HELLO: &str = concat!(
    "data: {\"choices\": [{\"delta\": {\"content\": \"Grüße \"}}]}\r\n\r\n",
    ": comment\n\n",
    "data: {\"choices\": [{\"delta\": {\"content\": \"🦀\"}}]}\n\n",
    "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}\n\n",
    "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 3}}\n\n",
    "data: [DONE]\n\n",
);

const CLAUDE: &str = concat!(
    "event: message_start\ndata: {\"type\": \"message_start\", \"message\": {\"usage\": \
        {\"input_tokens\": 3}}}\n\n",
    "event: content_block_start\ndata: {\"type\": \"content_block_start\", \"index\": 0, \
        \"content_block\": {\"type\": \"text\", \"text\": \"\"}}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_delta\ndata: {\"type\": \"content_block_delta\", \"index\": 0, \
        \"delta\": {\"type\": \"text_delta\", \"text\": \"Grüße 🦀\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\": \"content_block_stop\", \"index\": 0}\n\n",
    "event: message_delta\ndata: {\"type\": \"message_delta\", \"delta\": {\"stop_reason\": \
        \"end_turn\"}, \"usage\": {\"output_tokens\": 2}}\n\n",
    "event: message_stop\ndata: {\"type\": \"message_stop\"}\n\n",
);

const HALF: &str = "data: {\"choices\": [{\"delta\": {\"content\": \"half\"}}]}\n\n";

fn model(spec: &str, server: &ScriptedModelServer) -> Box<dyn LanguageModel> {
    let settings = ModelSettings {
        base_url: Some(server.url() + "/v1"),
        openai_key: ApiKey::new("sk-secret"),
        anthropic_key: ApiKey::new("sk-ant-secret"),
        timing: short_timing(),
        ..ModelSettings::default()
    };
    connect(&spec.parse().expect("a spec"), &settings).expect("connected")
}

/// A stream that was cut off within an event.
const DAMAGED: &str = "data: {\"choices\": [{\"delta\": {\"content\": \"ha\n\n";

#[derive(Debug)]
struct RecordedRequest {
    outcome: Result<ModelResponse, ModelError>,
    deltas: Vec<String>,
    server: ScriptedModelServer,
}

async fn ask_as(spec: &str, answers: Vec<RawAnswer>) -> RecordedRequest {
    ask_shown(spec, answers, true).await
}

async fn ask_shown(spec: &str, answers: Vec<RawAnswer>, is_shown_live: bool) -> RecordedRequest {
    let server = ScriptedModelServer::start(answers).await;
    let model = model(spec, &server);
    let mut probe = ModelProbe::default();
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Hi");
    let outcome =
        probe.respond(&*model, ModelRequest { is_shown_live, ..empty_request(&transcript) }).await;
    RecordedRequest { outcome, deltas: probe.deltas, server }
}

async fn ask(answers: Vec<RawAnswer>) -> RecordedRequest {
    ask_as("openai:m", answers).await
}

fn failed(run: &RecordedRequest) -> (ModelErrorKind, &str) {
    let error = run.outcome.as_ref().expect_err("a failure");
    assert!(!error.message.contains("secret"), "{error}");
    (error.kind, &error.message)
}

#[tokio::test]
async fn r088_whole_and_byte_by_byte() {
    for answer in [RawAnswer::events(HELLO), RawAnswer::byte_by_byte(HELLO)] {
        let run = ask(vec![answer]).await;
        let response = run.outcome.expect("a response");
        assert_eq!(
            (response.text().as_str(), response.stop, response.usage.input),
            ("Grüße 🦀", StopReason::End, Some(3))
        );
        let request = &run.server.requests()[0];
        assert!(request.head.starts_with("post /v1/chat/completions http/1.1"), "{}", request.head);
        assert!(request.head.contains("authorization: bearer sk-secret"), "{}", request.head);
        assert_eq!(request.body["messages"][0]["content"], "Hi");
    }
}

#[tokio::test]
async fn r088_whole_and_byte_by_byte_for_anthropic() {
    for answer in [RawAnswer::events(CLAUDE), RawAnswer::byte_by_byte(CLAUDE)] {
        let run = ask_as("anthropic:m", vec![answer]).await;
        assert_eq!(run.outcome.map(|response| response.text()), Ok("Grüße 🦀".into()));
        let head = &run.server.requests()[0].head;
        assert!(head.starts_with("post /v1/messages http/1.1"), "{head}");
        assert!(
            head.contains("x-api-key: sk-ant-secret")
                && head.contains("anthropic-version: 2023-06-01"),
            "{head}"
        );
    }
}

#[tokio::test]
async fn r085_transient_failures_are_retried() {
    let busy = RawAnswer::new(
        "429 Too Many Requests",
        &[("retry-after", "0")],
        "{\"error\": {\"message\": \"slow down\"}}",
    );
    let nothing = RawAnswer(Vec::new());
    let overloaded = RawAnswer::events(
        "data: {\"error\": {\"type\": \"overloaded_error\", \"message\": \"x\"}}\n\n",
    );
    for trouble in [busy, nothing, overloaded] {
        let run =
            ask(vec![trouble, RawAnswer::new("503 Busy", &[], ""), RawAnswer::events(HELLO)]).await;
        assert!(run.outcome.is_ok(), "{:?}", run.outcome);
        assert_eq!(run.deltas[..2], ["retry after attempt 1", "retry after attempt 2"]);
    }
}

#[tokio::test]
async fn r085_three_attempts_and_no_more() {
    let run =
        ask(vec![RawAnswer::new("500 Oops", &[], "{\"error\": {\"message\": \"oops\"}}"); 9]).await;
    let host = &run.server.address;
    assert_eq!(
        failed(&run),
        (
            ModelErrorKind::Unavailable,
            format!("the server ({host}) failed (status 500): oops (given up after 3 attempts)")
                .as_str()
        )
    );
    assert_eq!(run.server.requests().len(), 3);
}

#[tokio::test]
async fn r085_retry_after_is_honoured_up_to_a_limit() {
    let start = Instant::now();
    let run = ask(vec![
        RawAnswer::new("429 Slow", &[("retry-after", "1")], ""),
        RawAnswer::events(HELLO),
    ])
    .await;
    assert!(run.outcome.is_ok() && start.elapsed() >= Duration::from_secs(1));
    let run = ask(vec![RawAnswer::new("429 Slow", &[("retry-after", "1000000000")], "")]).await;
    let (kind, message) = failed(&run);
    assert_eq!(kind, ModelErrorKind::Unavailable);
    assert!(
        message.ends_with(
            "the server asks to wait for more than a year, longer than the limit of 60 s\nhint: \
                try again later"
        ),
        "{message}"
    );
}

#[tokio::test]
async fn r085_other_refusals_are_final() {
    for status in ["400 Bad", "401 Who", "404 What", "422 How"] {
        let run = ask(vec![
            RawAnswer::new(status, &[], "bad key sk-secret\u{1b}[2J"),
            RawAnswer::events(HELLO),
        ])
        .await;
        let (kind, message) = failed(&run);
        assert_eq!(kind, ModelErrorKind::Rejected);
        assert!(message.contains("bad key [key redacted]\\u{1b}[2J"), "{message}");
        assert_eq!(run.server.requests().len(), 1);
    }
}

#[tokio::test]
async fn r085_nothing_is_retried_after_text_was_shown() {
    let broken = RawAnswer::new(
        "200 OK",
        &[("content-type", "text/event-stream"), ("content-length", "9999")],
        HALF,
    );
    let erroring = RawAnswer::events(&format!(
        "{HALF}data: {{\"error\": {{\"type\": \"server_error\", \"message\": \"x\"}}}}\n\n"
    ));
    for (answer, kind) in
        [(broken, ModelErrorKind::Transport), (erroring, ModelErrorKind::Unavailable)]
    {
        let run = ask(vec![answer, RawAnswer::events(HELLO)]).await;
        let error = run.outcome.expect_err("a failure");
        assert_eq!((error.kind, error.partial_text.as_str()), (kind, "half"), "{error}");
        assert_eq!(run.server.requests().len(), 1);
    }
}

#[tokio::test]
async fn r085_a_broken_response_is_retried_if_nobody_saw_it() {
    let cut = RawAnswer::events(HALF);
    let broken = RawAnswer::new(
        "200 OK",
        &[("content-type", "text/event-stream"), ("content-length", "9999")],
        HALF,
    );
    let damaged = RawAnswer::events(&format!("{HALF}{DAMAGED}"));
    for trouble in [cut, broken, damaged] {
        let run =
            ask_shown("openai:m", vec![trouble.clone(), RawAnswer::events(HELLO)], false).await;
        assert_eq!(
            run.outcome.map(|response| response.text()),
            Ok("Grüße 🦀".into()),
            "{trouble:?}"
        );
        assert_eq!(run.deltas[..2], ["text half", "retry after attempt 1"]);
        assert_eq!(run.server.requests().len(), 2);

        // Only the text of the last attempt remains.
        let run = ask_shown("openai:m", vec![trouble; 3], false).await;
        assert_eq!(run.outcome.expect_err("a failure").partial_text, "half");
    }
}

#[tokio::test]
async fn r085_thinking_and_the_start_of_a_call_do_not_prevent_a_retry() {
    let thinking_block = "data: {\"choices\": [{\"delta\": {\"reasoning_content\": \"Hm.\"}}]}\n\n";
    let call = "data: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, \"id\": \"a\", \
        \"function\": {\"name\": \"grep\"}}]}}]}\n\n";
    let overloaded = "data: {\"error\": {\"type\": \"overloaded_error\", \"message\": \"x\"}}\n\n";
    let run = ask(vec![
        RawAnswer::events(&format!("{thinking_block}{call}{overloaded}")),
        RawAnswer::events(HELLO),
    ])
    .await;
    assert_eq!(run.outcome.map(|response| response.text()), Ok("Grüße 🦀".into()));
    assert_eq!(run.deltas[..3], ["reasoning Hm.", "call grep", "retry after attempt 1"]);
}

#[tokio::test]
async fn r085_a_broken_stream_is_retried_before_anything_was_shown() {
    for (spec, whole) in [("openai:m", HELLO), ("anthropic:m", CLAUDE)] {
        for trouble in [
            "",
            ": comment\n\n",
            "data: {\"choi\n\n",
            "event: message_start\ndata: {\"type\": \"message_st\n\n",
        ] {
            let run =
                ask_as(spec, vec![RawAnswer::events(trouble), RawAnswer::events(whole)]).await;
            assert!(run.outcome.is_ok(), "{trouble:?}: {:?}", run.outcome);
        }
    }
}

#[tokio::test]
async fn r085_a_pause_in_milliseconds_is_honoured_exactly() {
    let headers = [("retry-after-ms", "1200"), ("retry-after", "60")];
    let start = Instant::now();
    let run = ask(vec![RawAnswer::new("429 Slow", &headers, ""), RawAnswer::events(HELLO)]).await;
    let took = start.elapsed();
    assert!(
        run.outcome.is_ok()
            && took >= Duration::from_millis(1_200)
            && took < Duration::from_secs(50),
        "{took:?}"
    );
}
