//! Tests of complete, broken, slow, refused and endless responses.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{CLAUDE, HALF, HELLO, ask, ask_as, failed, model};
use crate::agent::ports::ModelErrorKind;
use crate::conversation::Transcript;
use crate::model::test_server::{
    ModelProbe, RawAnswer, ScriptedModelServer, ServerStep, empty_request, full_transcript,
    short_timing,
};
use crate::model::{ModelSettings, connect};

#[tokio::test]
async fn r083_a_stream_without_its_end_is_an_error_with_the_text_so_far() {
    let run = ask(vec![RawAnswer::events(HALF)]).await;
    let error = run.outcome.expect_err("a failure");
    assert_eq!((error.kind, error.partial_text.as_str()), (ModelErrorKind::Malformed, "half"));
}

#[tokio::test]
async fn r083_a_connection_that_breaks_after_the_end_loses_nothing() {
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
    let run = ask(vec![mute]).await;
    assert_eq!(failed(&run).0, ModelErrorKind::Timeout);
    let run = ask(vec![RawAnswer::events("").then(ServerStep::Stall)]).await;
    let named = "sent nothing for 500 ms\nhint: if it needs more time to begin, raise \
        `first_event_timeout_seconds` in [provider]";
    assert!(failed(&run).1.ends_with(named), "{run:?}");
    let run = ask(vec![RawAnswer::events(HALF).then(ServerStep::Stall)]).await;
    let error = run.outcome.expect_err("a failure");
    assert_eq!(error.partial_text, "half");
    assert!(error.message.ends_with("raise `idle_timeout_seconds` in [provider]"), "{error}");
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
async fn r086_a_stream_of_only_heartbeats_times_out() {
    for beat in [": keep-alive\n\n", "event: ping\ndata: {\"type\": \"ping\"}\n\n"] {
        let mut answer = RawAnswer::events("");
        for _ in 0..40 {
            answer = answer
                .then(ServerStep::Wait(Duration::from_millis(100)))
                .then(ServerStep::Send(beat.into()));
        }
        let start = Instant::now();
        let run = ask(vec![answer.then(ServerStep::Send(HELLO.into()))]).await;
        let (kind, message) = failed(&run);
        assert_eq!(kind, ModelErrorKind::Timeout, "{message}");
        assert!(message.contains("sent only heartbeats for 1 s"), "{message}");
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    }
    // Data after a complete response does not lose the response.
    let whole = HELLO.split("data: {\"choices\": [], ").next().expect("a beginning");
    let mut answer = RawAnswer::events(whole);
    for _ in 0..40 {
        answer = answer
            .then(ServerStep::Wait(Duration::from_millis(100)))
            .then(ServerStep::Send(b": keep-alive\n\n".to_vec()));
    }
    let start = Instant::now();
    assert_eq!(
        ask(vec![answer]).await.outcome.map(|response| response.text()),
        Ok("Grüße 🦀".into())
    );
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

#[tokio::test]
async fn r085_a_pause_of_days_is_reported_and_not_waited_for() {
    for (run, words) in [("1036800", "12 days"), ("9".repeat(30).as_str(), "more than a year")] {
        let start = Instant::now();
        let run = ask(vec![RawAnswer::new("429 Slow", &[("retry-after", run)], "")]).await;
        let (_, message) = failed(&run);
        assert!(
            message.contains(&format!(
                "the server asks to wait for {words}, longer than the limit of 60 s"
            )),
            "{message}"
        );
        assert!(start.elapsed() < Duration::from_secs(3));
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
        [(page_by_type, "a web page"), (page_by_looks, "a web page"), (json, "a single JSON value")]
    {
        let run = ask(vec![answer]).await;
        let (kind, message) = failed(&run);
        assert_eq!(kind, ModelErrorKind::Malformed);
        assert!(message.contains(what) && message.contains("check the base URL"), "{message}");
    }
    let error = RawAnswer::new(
        "200 OK",
        &[("content-type", "application/json")],
        "{\"error\": \"model not found\"}",
    );
    assert!(failed(&ask(vec![error]).await).1.ends_with(
        "ended the response with an error: model not \
            found"
    ));
}

#[tokio::test]
async fn r114_a_redirect_is_not_followed() {
    let elsewhere = ScriptedModelServer::start(vec![RawAnswer::events(HELLO)]).await;
    let location = format!("{}/v1/chat/completions", elsewhere.url());
    for status in ["307 Temporary Redirect", "301 Moved"] {
        let run = ask(vec![RawAnswer::new(status, &[("location", &location)], "")]).await;
        let (kind, message) = failed(&run);
        assert_eq!(kind, ModelErrorKind::Rejected);
        assert!(message.contains("redirects are not followed"), "{message}");
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn r088_an_endless_line_is_given_up() {
    let mut answer = RawAnswer::events("data: ");
    for _ in 0..16 {
        answer = answer.then(ServerStep::Send(vec![b'x'; 1 << 20]));
    }
    let run = ask(vec![answer]).await;
    assert_eq!(failed(&run).0, ModelErrorKind::Malformed);
}

#[tokio::test]
async fn r085_an_unreachable_server_is_retried_and_named() {
    let settings = ModelSettings {
        base_url: Some("http://127.0.0.1:1/v1".into()),
        timing: short_timing(),
        ..ModelSettings::default()
    };
    let model = connect(&"openai:m".parse().expect("a spec"), &settings).expect("connected");
    let mut probe = ModelProbe::default();
    let error = probe
        .respond(&*model, empty_request(&Transcript::new()))
        .await
        .expect_err("connection refused");
    assert_eq!(error.kind, ModelErrorKind::Transport);
    assert!(
        error.message.starts_with("the server (127.0.0.1:1) could not be reached: "),
        "{error}"
    );
    assert_eq!(probe.deltas.len(), 2);
}

#[tokio::test]
async fn r100_cancelling_works_at_every_stage() {
    let connecting = RawAnswer(vec![ServerStep::Stall]);
    let streaming = RawAnswer::events(HALF).then(ServerStep::Stall);
    let fragment = concat!(
        r#"{"choices": [{"delta": {"tool_calls": [{"index": 0, "#,
        r#""function": {"name": "x", "arguments": "{"}}]}}]}"#,
    );
    let arguments = RawAnswer::events(&format!("data: {fragment}\n\n")).then(ServerStep::Stall);
    let backoff = RawAnswer::new("429 Slow", &[("retry-after", "30")], "");
    for (answer, partial) in [(connecting, ""), (streaming, "half"), (arguments, ""), (backoff, "")]
    {
        let server = ScriptedModelServer::start(vec![answer]).await;
        // Timeouts so long that the test fails if cancelling does not work.
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
        let start = Instant::now();
        let error = ModelProbe::default()
            .respond_until(&*model, empty_request(&Transcript::new()), &cancel)
            .await
            .expect_err("cancelled");
        assert_eq!((error.kind, error.partial_text.as_str()), (ModelErrorKind::Aborted, partial));
        assert!(start.elapsed() < Duration::from_secs(1));
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
async fn r090_refused_thinking_of_another_model_is_omitted() {
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
async fn r090_refused_encrypted_thinking_is_omitted() {
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
async fn r072_overflow_is_a_failure_of_its_own_kind() {
    let body = "{\"error\": {\"message\": \"maximum context length is 8192 tokens\", \"code\": \
        \"context_length_exceeded\"}}";
    let run = ask(vec![RawAnswer::new("400 Bad", &[], body)]).await;
    let (kind, message) = failed(&run);
    assert_eq!(kind, ModelErrorKind::Overflow);
    assert!(message.contains("8192 tokens"), "{message}");
}

#[tokio::test]
async fn a_refused_usage_option_is_not_sent_again() {
    let refusal = concat!(
        r#"{"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "#,
        r#""msg": "Extra inputs are not permitted"}]}"#,
    );
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
    let run: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| request.body.get("stream_options").is_some())
        .collect();
    assert_eq!(run, [true, false, false]);
}

#[tokio::test]
async fn a_refused_thinking_key_is_omitted() {
    let refusal = concat!(
        r#"{"error": {"message": "'messages.1': property 'reasoning_content' is unsupported", "#,
        r#""type": "invalid_request_error"}}"#,
    );
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
        "a key that was not sent cannot be omitted"
    );
    let sent: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| request.body.to_string().contains("reasoning_content"))
        .collect();
    assert_eq!(sent, [true, false, false, false]);
}

#[tokio::test]
async fn compressed_responses_are_not_requested_and_are_refused() {
    let run = ask(vec![RawAnswer::events(HELLO)]).await;
    let head = &run.server.requests()[0].head;
    assert!(head.contains("\r\naccept-encoding: identity"), "{head}");
    for (headers, encoding) in
        [(("content-encoding", "gzip"), "gzip"), (("content-encoding", "identity, br"), "br")]
    {
        let stream = RawAnswer::new(
            "200 OK",
            &[("content-type", "text/event-stream"), headers],
            "\u{1f}\u{8b}",
        );
        let run = ask(vec![stream, RawAnswer::events(HELLO)]).await;
        let (kind, message) = failed(&run);
        assert_eq!(kind, ModelErrorKind::Malformed);
        assert!(
            message.contains(&format!(
                "compressed its response with {encoding}, although the request did not allow it"
            )),
            "{message}"
        );
        assert_eq!(run.server.requests().len(), 1);
        let error = RawAnswer::new("400 Bad", &[headers], "\u{1f}\u{8b}");
        let run = ask(vec![error]).await;
        assert!(
            failed(&run).1.contains(&format!("(its error message is compressed with {encoding}")),
            "{:?}",
            run.outcome
        );
    }
    let run = ask(vec![RawAnswer::new(
        "200 OK",
        &[("content-type", "text/event-stream"), ("content-encoding", "identity")],
        HELLO,
    )])
    .await;
    assert!(run.outcome.is_ok(), "{:?}", run.outcome);
}

#[tokio::test]
async fn a_slow_error_body_is_read_until_its_deadline() {
    let mut drips = RawAnswer::new("400 Bad", &[("content-length", "9999")], "no such");
    for _ in 0..50 {
        drips = drips
            .then(ServerStep::Wait(Duration::from_millis(100)))
            .then(ServerStep::Send(b" model".to_vec()));
    }
    let start = Instant::now();
    let run = ask(vec![drips]).await;
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert!(
        failed(&run).1.contains("rejected the request (status 400): no such model"),
        "{:?}",
        run.outcome
    );
}

#[tokio::test]
async fn a_last_event_without_its_blank_line_counts_if_it_is_whole() {
    let end = "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}";
    for cut in ["", "\n", "\r"] {
        let run = ask(vec![RawAnswer::events(&format!("{HALF}{end}{cut}"))]).await;
        assert_eq!(run.outcome.map(|response| response.text()), Ok("half".into()), "{cut:?}");
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
            .ends_with("ended the response with an error: not so")
    );
    let run = ask(vec![RawAnswer::events(&format!("{HALF}{}", &end[..end.len() - 1]))]).await;
    assert!(
        failed(&run).1.ends_with("the stream ended before the response was complete"),
        "{:?}",
        run.outcome
    );
}

#[tokio::test]
async fn r091_implausible_usage_is_unknown() {
    let absurd = HELLO.replace(
        "{\"prompt_tokens\": 3}",
        "{\"prompt_tokens\": 9000000000, \"completion_tokens\": 5}",
    );
    let usage = ask(vec![RawAnswer::events(&absurd)]).await.outcome.expect("a response").usage;
    assert_eq!((usage.input, usage.output), (None, Some(5)));
}

/// Returns the error message for a stream that repeats an event, and the length of the kept text.
async fn endless(spec: &str, begin: &str, event: &str) -> (String, usize) {
    let mut answer = RawAnswer::events(begin);
    let piece = event.repeat(((1 << 20) / event.len()).max(1));
    for _ in 0..8 {
        answer = answer.then(ServerStep::Send(piece.clone().into_bytes()));
    }
    let error = ask_as(spec, vec![answer]).await.outcome.expect_err("endless response");
    assert_eq!(error.kind, ModelErrorKind::Malformed, "{error}");
    (error.message, error.partial_text.len())
}

#[tokio::test]
async fn r088_an_endless_response_is_an_error_in_every_part() {
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
