//! Whole models against a server that plays a script.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::agent::ports::{LanguageModel, ModelError, ModelErrorKind, ModelRequest};
use crate::conversation::{ModelResponse, StopReason, Transcript};
use crate::model::test_server::{
    ModelProbe, RawAnswer, ScriptedModelServer, ServerStep, empty_request, full_transcript,
    short_timing,
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

/// A stream that was cut within an event.
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
    let mut heard = ModelProbe::default();
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Hi");
    let outcome =
        heard.respond(&*model, ModelRequest { is_shown_live, ..empty_request(&transcript) }).await;
    RecordedRequest { outcome, deltas: heard.deltas, server }
}

async fn ask(answers: Vec<RawAnswer>) -> RecordedRequest {
    ask_as("openai:m", answers).await
}

fn failed(asked: &RecordedRequest) -> (ModelErrorKind, &str) {
    let error = asked.outcome.as_ref().expect_err("a failure");
    assert!(!error.message.contains("secret"), "{error}");
    (error.kind, &error.message)
}

#[tokio::test]
async fn r088_whole_and_byte_by_byte() {
    for answer in [RawAnswer::events(HELLO), RawAnswer::byte_by_byte(HELLO)] {
        let asked = ask(vec![answer]).await;
        let response = asked.outcome.expect("a response");
        assert_eq!(
            (response.text().as_str(), response.stop, response.usage.input),
            ("Grüße 🦀", StopReason::End, Some(3))
        );
        let request = &asked.server.requests()[0];
        assert!(request.head.starts_with("post /v1/chat/completions http/1.1"), "{}", request.head);
        assert!(request.head.contains("authorization: bearer sk-secret"), "{}", request.head);
        assert_eq!(request.body["messages"][0]["content"], "Hi");
    }
}

#[tokio::test]
async fn r088_the_other_format_too() {
    for answer in [RawAnswer::events(CLAUDE), RawAnswer::byte_by_byte(CLAUDE)] {
        let asked = ask_as("anthropic:m", vec![answer]).await;
        assert_eq!(asked.outcome.map(|response| response.text()), Ok("Grüße 🦀".into()));
        let head = &asked.server.requests()[0].head;
        assert!(head.starts_with("post /v1/messages http/1.1"), "{head}");
        assert!(
            head.contains("x-api-key: sk-ant-secret")
                && head.contains("anthropic-version: 2023-06-01"),
            "{head}"
        );
    }
}

#[tokio::test]
async fn r085_what_may_pass_is_tried_again() {
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
        let asked =
            ask(vec![trouble, RawAnswer::new("503 Busy", &[], ""), RawAnswer::events(HELLO)]).await;
        assert!(asked.outcome.is_ok(), "{:?}", asked.outcome);
        assert_eq!(asked.deltas[..2], ["retry after attempt 1", "retry after attempt 2"]);
    }
}

#[tokio::test]
async fn r085_three_attempts_and_no_more() {
    let asked =
        ask(vec![RawAnswer::new("500 Oops", &[], "{\"error\": {\"message\": \"oops\"}}"); 9]).await;
    let host = &asked.server.address;
    assert_eq!(
        failed(&asked),
        (
            ModelErrorKind::Unavailable,
            format!("The server ({host}) failed (status 500): oops (given up after 3 attempts)")
                .as_str()
        )
    );
    assert_eq!(asked.server.requests().len(), 3);
}

#[tokio::test]
async fn r085_retry_after_is_honoured_up_to_a_limit() {
    let begun = Instant::now();
    let asked = ask(vec![
        RawAnswer::new("429 Slow", &[("retry-after", "1")], ""),
        RawAnswer::events(HELLO),
    ])
    .await;
    assert!(asked.outcome.is_ok() && begun.elapsed() >= Duration::from_secs(1));
    let asked = ask(vec![RawAnswer::new("429 Slow", &[("retry-after", "1000000000")], "")]).await;
    let (kind, message) = failed(&asked);
    assert_eq!(kind, ModelErrorKind::Unavailable);
    assert!(
        message.ends_with(
            "It asks to wait for more than a year, longer than the 60 s that \
            Cofferdam waits by itself. Try again later."
        ),
        "{message}"
    );
}

#[tokio::test]
async fn r085_other_refusals_are_final() {
    for status in ["400 Bad", "401 Who", "404 What", "422 How"] {
        let asked = ask(vec![
            RawAnswer::new(status, &[], "bad key sk-secret\u{1b}[2J"),
            RawAnswer::events(HELLO),
        ])
        .await;
        let (kind, message) = failed(&asked);
        assert_eq!(kind, ModelErrorKind::Rejected);
        assert!(message.contains("bad key [key redacted]\\u{1b}[2J"), "{message}");
        assert_eq!(asked.server.requests().len(), 1);
    }
}

#[tokio::test]
async fn r085_nothing_is_sent_again_once_something_was_shown() {
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
        let asked = ask(vec![answer, RawAnswer::events(HELLO)]).await;
        let error = asked.outcome.expect_err("a failure");
        assert_eq!((error.kind, error.partial_text.as_str()), (kind, "half"), "{error}");
        assert_eq!(asked.server.requests().len(), 1);
    }
}

#[tokio::test]
async fn r085_a_response_that_broke_off_begins_anew_if_nobody_saw_it() {
    let cut = RawAnswer::events(HALF);
    let broken = RawAnswer::new(
        "200 OK",
        &[("content-type", "text/event-stream"), ("content-length", "9999")],
        HALF,
    );
    let damaged = RawAnswer::events(&format!("{HALF}{DAMAGED}"));
    for trouble in [cut, broken, damaged] {
        let asked =
            ask_shown("openai:m", vec![trouble.clone(), RawAnswer::events(HELLO)], false).await;
        assert_eq!(
            asked.outcome.map(|response| response.text()),
            Ok("Grüße 🦀".into()),
            "{trouble:?}"
        );
        assert_eq!(asked.deltas[..2], ["text half", "retry after attempt 1"]);
        assert_eq!(asked.server.requests().len(), 2);

        // What came of the last attempt is what remains, once.
        let asked = ask_shown("openai:m", vec![trouble; 3], false).await;
        assert_eq!(asked.outcome.expect_err("a failure").partial_text, "half");
    }
}

#[tokio::test]
async fn r085_thinking_and_the_beginning_of_a_call_are_not_shown() {
    let thought = "data: {\"choices\": [{\"delta\": {\"reasoning_content\": \"Hm.\"}}]}\n\n";
    let call = "data: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, \"id\": \"a\", \
        \"function\": {\"name\": \"grep\"}}]}}]}\n\n";
    let overloaded = "data: {\"error\": {\"type\": \"overloaded_error\", \"message\": \"x\"}}\n\n";
    let asked = ask(vec![
        RawAnswer::events(&format!("{thought}{call}{overloaded}")),
        RawAnswer::events(HELLO),
    ])
    .await;
    assert_eq!(asked.outcome.map(|response| response.text()), Ok("Grüße 🦀".into()));
    assert_eq!(asked.deltas[..3], ["reasoning Hm.", "call grep", "retry after attempt 1"]);
}

#[tokio::test]
async fn r085_a_stream_that_ends_or_is_damaged_before_anything_was_shown_is_tried_again() {
    for (spec, whole) in [("openai:m", HELLO), ("anthropic:m", CLAUDE)] {
        for trouble in [
            "",
            ": comment\n\n",
            "data: {\"choi\n\n",
            "event: message_start\ndata: {\"type\": \"message_st\n\n",
        ] {
            let asked =
                ask_as(spec, vec![RawAnswer::events(trouble), RawAnswer::events(whole)]).await;
            assert!(asked.outcome.is_ok(), "{trouble:?}: {:?}", asked.outcome);
        }
    }
}

#[tokio::test]
async fn r085_a_pause_told_in_milliseconds_is_honoured_exactly() {
    let headers = [("retry-after-ms", "1200"), ("retry-after", "60")];
    let begun = Instant::now();
    let asked = ask(vec![RawAnswer::new("429 Slow", &headers, ""), RawAnswer::events(HELLO)]).await;
    let took = begun.elapsed();
    assert!(
        asked.outcome.is_ok()
            && took >= Duration::from_millis(1_200)
            && took < Duration::from_secs(50),
        "{took:?}"
    );
}

#[tokio::test]
async fn r083_a_stream_without_its_end_is_an_error_with_the_text_so_far() {
    let asked = ask(vec![RawAnswer::events(HALF)]).await;
    let error = asked.outcome.expect_err("a failure");
    assert_eq!((error.kind, error.partial_text.as_str()), (ModelErrorKind::Malformed, "half"));
}

#[tokio::test]
async fn r083_a_connection_that_breaks_after_the_end_has_lost_nothing() {
    let whole = HELLO.split("data: {\"choices\": [], ").next().expect("a beginning");
    let broken = RawAnswer::new(
        "200 OK",
        &[("content-type", "text/event-stream"), ("content-length", "9999")],
        whole,
    );
    let stalled = RawAnswer::events(whole).then(ServerStep::Stall);
    for answer in [RawAnswer::events(whole), broken, stalled] {
        assert_eq!(
            ask(vec![answer]).await.outcome.map(|response| response.text()),
            Ok("Grüße 🦀".into())
        );
    }
}

#[tokio::test]
async fn r086_silence_is_a_timeout() {
    let mute = RawAnswer(vec![ServerStep::Stall]);
    let asked = ask(vec![mute]).await;
    assert_eq!(failed(&asked).0, ModelErrorKind::Timeout);
    let asked = ask(vec![RawAnswer::events("").then(ServerStep::Stall)]).await;
    let named = "sent nothing for 500 ms. If it needs longer to begin, raise \
        `first_event_timeout_seconds` in [provider].";
    assert!(failed(&asked).1.ends_with(named), "{asked:?}");
    let asked = ask(vec![RawAnswer::events(HALF).then(ServerStep::Stall)]).await;
    let error = asked.outcome.expect_err("a failure");
    assert_eq!(error.partial_text, "half");
    assert!(error.message.ends_with("raise `idle_timeout_seconds` in [provider]."), "{error}");
}

#[tokio::test]
async fn r086_heartbeats_keep_a_stream_alive() {
    let mut answer = RawAnswer::events("");
    for _ in 0..6 {
        answer = answer
            .then(ServerStep::Wait(Duration::from_millis(150)))
            .then(ServerStep::Send(b": ping\n\n".to_vec()));
    }
    assert!(ask(vec![answer.then(ServerStep::Send(HELLO.into()))]).await.outcome.is_ok());
}

#[tokio::test]
async fn r086_a_stream_of_nothing_but_heartbeats_comes_to_an_end() {
    for beat in [": keep-alive\n\n", "event: ping\ndata: {\"type\": \"ping\"}\n\n"] {
        let mut answer = RawAnswer::events("");
        for _ in 0..40 {
            answer = answer
                .then(ServerStep::Wait(Duration::from_millis(100)))
                .then(ServerStep::Send(beat.into()));
        }
        let begun = Instant::now();
        let asked = ask(vec![answer.then(ServerStep::Send(HELLO.into()))]).await;
        let (kind, message) = failed(&asked);
        assert_eq!(kind, ModelErrorKind::Timeout, "{message}");
        assert!(message.contains("sent nothing but heartbeats for 1 s"), "{message}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
    // A response that is whole is not lost to what follows it.
    let whole = HELLO.split("data: {\"choices\": [], ").next().expect("a beginning");
    let mut answer = RawAnswer::events(whole);
    for _ in 0..40 {
        answer = answer
            .then(ServerStep::Wait(Duration::from_millis(100)))
            .then(ServerStep::Send(b": keep-alive\n\n".to_vec()));
    }
    let begun = Instant::now();
    assert_eq!(
        ask(vec![answer]).await.outcome.map(|response| response.text()),
        Ok("Grüße 🦀".into())
    );
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn r085_a_pause_of_days_is_told_and_not_waited_for() {
    for (asked, words) in [("1036800", "12 days"), ("9".repeat(30).as_str(), "more than a year")] {
        let begun = Instant::now();
        let asked = ask(vec![RawAnswer::new("429 Slow", &[("retry-after", asked)], "")]).await;
        let (_, message) = failed(&asked);
        assert!(
            message.contains(&format!(
                "It asks to wait for {words}, longer than the 60 s that Cofferdam waits by itself"
            )),
            "{message}"
        );
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
}

#[tokio::test]
async fn a_web_page_is_not_a_stream() {
    let page = "<!DOCTYPE html><title>Welcome</title>";
    let page_by_type =
        RawAnswer::new("200 OK", &[("content-type", "text/html; charset=utf-8")], page);
    let page_by_looks = RawAnswer::new("200 OK", &[], page);
    let json =
        RawAnswer::new("200 OK", &[("content-type", "application/json")], "{\"choices\": []}");
    for (answer, what) in
        [(page_by_type, "a web page"), (page_by_looks, "a web page"), (json, "one piece of JSON")]
    {
        let asked = ask(vec![answer]).await;
        let (kind, message) = failed(&asked);
        assert_eq!(kind, ModelErrorKind::Malformed);
        assert!(message.contains(what) && message.contains("Check the base URL"), "{message}");
    }
    let error = RawAnswer::new(
        "200 OK",
        &[("content-type", "application/json")],
        "{\"error\": \"model not found\"}",
    );
    assert!(
        failed(&ask(vec![error]).await).1.ends_with("broke off with an error: model not found")
    );
}

#[tokio::test]
async fn r114_a_redirect_is_not_followed() {
    let elsewhere = ScriptedModelServer::start(vec![RawAnswer::events(HELLO)]).await;
    let location = format!("{}/v1/chat/completions", elsewhere.url());
    for status in ["307 Temporary Redirect", "301 Moved"] {
        let asked = ask(vec![RawAnswer::new(status, &[("location", &location)], "")]).await;
        let (kind, message) = failed(&asked);
        assert_eq!(kind, ModelErrorKind::Rejected);
        assert!(message.contains("Redirects are not followed"), "{message}");
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn r088_an_endless_line_is_given_up() {
    let mut answer = RawAnswer::events("data: ");
    for _ in 0..16 {
        answer = answer.then(ServerStep::Send(vec![b'x'; 1 << 20]));
    }
    let asked = ask(vec![answer]).await;
    assert_eq!(failed(&asked).0, ModelErrorKind::Malformed);
}

#[tokio::test]
async fn r085_a_server_that_is_not_there_is_tried_again_and_named() {
    let settings = ModelSettings {
        base_url: Some("http://127.0.0.1:1/v1".into()),
        timing: short_timing(),
        ..ModelSettings::default()
    };
    let model = connect(&"openai:m".parse().expect("a spec"), &settings).expect("connected");
    let mut heard = ModelProbe::default();
    let error = heard
        .respond(&*model, empty_request(&Transcript::new()))
        .await
        .expect_err("nobody is there");
    assert_eq!(error.kind, ModelErrorKind::Transport);
    assert!(
        error.message.starts_with("The server (127.0.0.1:1) could not be reached: "),
        "{error}"
    );
    assert_eq!(heard.deltas.len(), 2);
}

#[tokio::test]
async fn r100_cancelling_works_at_every_stage() {
    let connecting = RawAnswer(vec![ServerStep::Stall]);
    let streaming = RawAnswer::events(HALF).then(ServerStep::Stall);
    let fragment = r#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "x", "arguments": "{"}}]}}]}"#;
    let arguments = RawAnswer::events(&format!("data: {fragment}\n\n")).then(ServerStep::Stall);
    let backoff = RawAnswer::new("429 Slow", &[("retry-after", "30")], "");
    for (answer, partial) in [(connecting, ""), (streaming, "half"), (arguments, ""), (backoff, "")]
    {
        let server = ScriptedModelServer::start(vec![answer]).await;
        // Patience that would fail the test if cancelling did not work.
        let timing = crate::model::RetryTiming {
            first_event_timeout: Some(Duration::from_secs(60)),
            idle_timeout: Duration::from_secs(60),
            ..short_timing()
        };
        let settings =
            ModelSettings { base_url: Some(server.url()), timing, ..ModelSettings::default() };
        let model = connect(&"openai:m".parse().expect("a spec"), &settings).expect("connected");
        let cancel = CancellationToken::new();
        let later = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            later.cancel();
        });
        let begun = Instant::now();
        let error = ModelProbe::default()
            .respond_until(&*model, empty_request(&Transcript::new()), &cancel)
            .await
            .expect_err("cancelled");
        assert_eq!((error.kind, error.partial_text.as_str()), (ModelErrorKind::Aborted, partial));
        assert!(begun.elapsed() < Duration::from_secs(1));
    }
    let cancel = CancellationToken::new();
    cancel.cancel();
    let server = ScriptedModelServer::start(vec![RawAnswer::events(HELLO)]).await;
    let model = model("openai:m", &server);
    let error = ModelProbe::default()
        .respond_until(&*model, empty_request(&Transcript::new()), &cancel)
        .await
        .expect_err("cancelled before");
    assert_eq!(error.kind, ModelErrorKind::Aborted);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn r090_thinking_of_another_model_is_left_out_when_it_is_refused() {
    let refusal = "{\"error\": {\"type\": \"invalid_request_error\", \"message\": \
        \"messages.1.content.0: Invalid `signature` in `thinking` block\"}}";
    let server = ScriptedModelServer::start(vec![
        RawAnswer::new("400 Bad", &[], refusal),
        RawAnswer::events(CLAUDE),
    ])
    .await;
    let model = model("anthropic:m", &server);
    let outcome = ModelProbe::default().respond(&*model, empty_request(&full_transcript())).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    let sent: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| request.body.to_string().contains("\"signature\""))
        .collect();
    assert_eq!(sent, [true, false]);
}

#[tokio::test]
async fn r090_sealed_thinking_that_is_refused_is_left_out() {
    let refusal = "{\"error\": {\"type\": \"invalid_request_error\", \"message\": \"The encrypted \
        content for item rs_1 could not be verified.\"}}";
    let completed = "data: {\"type\": \"response.completed\", \"response\": {\"output\": \
        [{\"type\": \"message\", \"content\": [{\"text\": \"Hi\"}]}]}}\n\n";
    let server = ScriptedModelServer::start(vec![
        RawAnswer::new("400 Bad", &[], refusal),
        RawAnswer::events(completed),
    ])
    .await;
    let settings = ModelSettings {
        base_url: Some(format!("{}/v1/responses", server.url())),
        timing: short_timing(),
        ..ModelSettings::default()
    };
    let model =
        connect(&"openai:gpt-6-sol".parse().expect("a spec"), &settings).expect("connected");
    let outcome = ModelProbe::default().respond(&*model, empty_request(&full_transcript())).await;
    assert_eq!(outcome.map(|response| response.text()), Ok("Hi".into()));
    let sent: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| request.body.to_string().contains("sealed"))
        .collect();
    assert_eq!(sent, [true, false]);
}

#[tokio::test]
async fn r072_overflow_is_told_apart() {
    let body = "{\"error\": {\"message\": \"maximum context length is 8192 tokens\", \"code\": \
        \"context_length_exceeded\"}}";
    let asked = ask(vec![RawAnswer::new("400 Bad", &[], body)]).await;
    let (kind, message) = failed(&asked);
    assert_eq!(kind, ModelErrorKind::Overflow);
    assert!(message.contains("8192 tokens"), "{message}");
}

#[tokio::test]
async fn a_server_that_refuses_to_be_asked_for_usage_is_not_asked_again() {
    let refusal = r#"{"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}"#;
    let server = ScriptedModelServer::start(vec![
        RawAnswer::new("422 What", &[], refusal),
        RawAnswer::events(HELLO),
        RawAnswer::events(HELLO),
    ])
    .await;
    let model = model("openai:m", &server);
    for _ in 0..2 {
        let outcome =
            ModelProbe::default().respond(&*model, empty_request(&full_transcript())).await;
        assert_eq!(outcome.map(|response| response.text()), Ok("Grüße 🦀".into()));
    }
    let asked: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| request.body.get("stream_options").is_some())
        .collect();
    assert_eq!(asked, [true, false, false]);
}

#[tokio::test]
async fn thinking_that_a_server_has_no_key_for_is_left_out() {
    let refusal = r#"{"error": {"message": "'messages.1': property 'reasoning_content' is unsupported", "type": "invalid_request_error"}}"#;
    let refused = RawAnswer::new("400 Bad", &[], refusal);
    let server = ScriptedModelServer::start(vec![
        refused.clone(),
        RawAnswer::events(HELLO),
        RawAnswer::events(HELLO),
        refused,
    ])
    .await;
    let model = model("openai:kimi-k2", &server);
    for _ in 0..2 {
        assert!(
            ModelProbe::default().respond(&*model, empty_request(&full_transcript())).await.is_ok()
        );
    }
    assert!(
        ModelProbe::default().respond(&*model, empty_request(&full_transcript())).await.is_err(),
        "what was not sent cannot be left out"
    );
    let sent: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| request.body.to_string().contains("reasoning_content"))
        .collect();
    assert_eq!(sent, [true, false, false, false]);
}

#[tokio::test]
async fn nothing_is_asked_for_compressed_and_what_is_is_named() {
    let asked = ask(vec![RawAnswer::events(HELLO)]).await;
    let head = &asked.server.requests()[0].head;
    assert!(head.contains("\r\naccept-encoding: identity"), "{head}");
    for (headers, how) in
        [(("content-encoding", "gzip"), "gzip"), (("content-encoding", "identity, br"), "br")]
    {
        let stream = RawAnswer::new(
            "200 OK",
            &[("content-type", "text/event-stream"), headers],
            "\u{1f}\u{8b}",
        );
        let asked = ask(vec![stream, RawAnswer::events(HELLO)]).await;
        let (kind, message) = failed(&asked);
        assert_eq!(kind, ModelErrorKind::Malformed);
        assert!(
            message.contains(&format!(
                "a body that is compressed with {how}, although it was asked not to compress"
            )),
            "{message}"
        );
        assert_eq!(asked.server.requests().len(), 1);
        let error = RawAnswer::new("400 Bad", &[headers], "\u{1f}\u{8b}");
        let asked = ask(vec![error]).await;
        assert!(
            failed(&asked).1.contains(&format!("(its message is compressed with {how}")),
            "{:?}",
            asked.outcome
        );
    }
    let asked = ask(vec![RawAnswer::new(
        "200 OK",
        &[("content-type", "text/event-stream"), ("content-encoding", "identity")],
        HELLO,
    )])
    .await;
    assert!(asked.outcome.is_ok(), "{:?}", asked.outcome);
}

#[tokio::test]
async fn an_error_that_drips_is_waited_for_until_its_deadline() {
    let mut drips = RawAnswer::new("400 Bad", &[("content-length", "9999")], "no such");
    for _ in 0..50 {
        drips = drips
            .then(ServerStep::Wait(Duration::from_millis(100)))
            .then(ServerStep::Send(b" model".to_vec()));
    }
    let begun = Instant::now();
    let asked = ask(vec![drips]).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(
        failed(&asked).1.contains("refused the request (status 400): no such model"),
        "{:?}",
        asked.outcome
    );
}

#[tokio::test]
async fn a_last_event_without_its_blank_line_counts_if_it_is_whole() {
    let end = "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}";
    for cut in ["", "\n", "\r"] {
        let asked = ask(vec![RawAnswer::events(&format!("{HALF}{end}{cut}"))]).await;
        assert_eq!(asked.outcome.map(|response| response.text()), Ok("half".into()), "{cut:?}");
    }
    let claude = CLAUDE.trim_end();
    assert_eq!(
        ask_as("anthropic:m", vec![RawAnswer::events(claude)])
            .await
            .outcome
            .map(|response| response.text()),
        Ok("Grüße 🦀".into())
    );
    let error = "data: {\"error\": {\"type\": \"invalid_request_error\", \"message\": \"not so\"}}";
    assert!(
        failed(&ask(vec![RawAnswer::events(error)]).await)
            .1
            .ends_with("broke off with an error: not so")
    );
    let asked = ask(vec![RawAnswer::events(&format!("{HALF}{}", &end[..end.len() - 1]))]).await;
    assert!(
        failed(&asked).1.ends_with("the stream ended before the response did"),
        "{:?}",
        asked.outcome
    );
}

#[tokio::test]
async fn r091_usage_that_cannot_be_true_is_unknown() {
    let absurd = HELLO.replace(
        "{\"prompt_tokens\": 3}",
        "{\"prompt_tokens\": 9000000000, \"completion_tokens\": 5}",
    );
    let usage = ask(vec![RawAnswer::events(&absurd)]).await.outcome.expect("a response").usage;
    assert_eq!((usage.input, usage.output), (None, Some(5)));
}

/// What a stream of this event without end comes to; with the text that is kept of it.
async fn endless(spec: &str, begin: &str, event: &str) -> (String, usize) {
    let mut answer = RawAnswer::events(begin);
    let piece = event.repeat(((1 << 20) / event.len()).max(1));
    for _ in 0..8 {
        answer = answer.then(ServerStep::Send(piece.clone().into_bytes()));
    }
    let error = ask_as(spec, vec![answer]).await.outcome.expect_err("it has no end");
    assert_eq!(error.kind, ModelErrorKind::Malformed, "{error}");
    (error.message, error.partial_text.len())
}

#[tokio::test]
async fn r088_whatever_of_a_response_has_no_end_is_given_up() {
    let delta = |delta: &str| format!("data: {{\"choices\": [{{\"delta\": {delta}}}]}}\n\n");
    let x = "x".repeat(1000);
    let openai = [
        delta(&format!("{{\"content\": \"{x}\"}}")),
        delta(&format!("{{\"reasoning_content\": \"{x}\"}}")),
        delta(&format!(
            "{{\"tool_calls\": [{{\"index\": 0, \"function\": {{\"arguments\": \"{x}\"}}}}]}}"
        )),
        delta("{\"tool_calls\": [{\"function\": {\"name\": \"a\", \"arguments\": \"{}\"}}]}"),
    ];
    for event in &openai {
        let (message, kept) = endless("openai:m", "", event).await;
        assert!(
            message.ends_with("the response is longer than 4 MiB") && kept <= (256 << 10) + 100,
            "{message}: {kept}"
        );
    }
}
