use std::path::Path;

use super::super::scripted_run::{
    NoticeLog, ScriptedModel, WORKSPACE, call_response, only_session, run_compaction, run_request,
    text_response,
};
use super::super::{OpenSession, SessionStore};
use super::*;
use crate::agent::CompactionOutcome;
use crate::conversation::{
    ModelResponse, ResponseBlock, ResultStatus, StopReason, ToolResult, Transcript, validate,
};

fn any_model() -> ModelInfo {
    ModelInfo {
        provider: "p".into(),
        model: "m".into(),
        address: None,
        context_window: 1000,
        max_output: None,
    }
}

fn new_store(directory: &Path) -> (SessionStore, OpenSession) {
    let store = SessionStore::new(directory.join("sessions"));
    let session = store
        .create_session(
            Path::new(WORKSPACE),
            Box::new(|text| text.replace("sk-secret", "[key redacted]")),
        )
        .expect("created");
    (store, session)
}

#[tokio::test]
async fn r108_a_call_is_on_record_before_it_runs() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (store, mut session) = new_store(temp.path());
    let path = only_session(&store).journal_path().display().to_string();
    let script = ScriptedModel::new([call_response("", &[("spy", &path)]), text_response("Seen.")]);
    run_request(session.journal, &mut session.transcript, "Spy.", &script, &NoticeLog::default())
        .await;
    let seen =
        session.transcript.exchanges()[0].turns()[0].calls().next().expect("a call").result.text();
    let last = seen.lines().last().expect("lines");
    assert_eq!(last, "{\"started\":{\"call\":0}}", "{seen}");
    assert!(seen.contains("{\"request\":") && seen.contains("{\"response\":"), "{seen}");
}

#[tokio::test]
async fn the_model_of_a_session_is_recorded() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (store, session) = new_store(temp.path());
    assert_eq!(session.last_model, None);
    let mut journal = session.journal;
    for address in [Some("http://localhost:8000/v1"), None] {
        let info = ModelInfo { address: address.map(str::to_owned), ..any_model() };
        let recorder = SessionRecorder::new(journal, &info, &IgnoredEvents);
        recorder.observe(&AgentEvent::RequestStarted { request: "1", prompt: "Go.", model: "m" });
        recorder.observe(&AgentEvent::RequestFinished { outcome: &RequestOutcome::Empty });
        drop(recorder.into_journal());
        let resumed = only_session(&store)
            .resume(Path::new(WORKSPACE), Box::new(str::to_owned))
            .expect("not in use");
        assert_eq!(resumed.last_model, Some((&info).into()));
        journal = resumed.journal;
    }
    let names = [Some("http://localhost:8000/v1"), None].map(|address| {
        ModelIdentity {
            provider: "p".into(),
            model: "m".into(),
            address: address.map(str::to_owned),
        }
        .to_string()
    });
    assert_eq!(names, ["p:m at http://localhost:8000/v1", "p:m"]);
}

#[tokio::test]
async fn r114_a_secret_never_reaches_a_session() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (store, mut session) = new_store(temp.path());
    let script = ScriptedModel::new([
        call_response("sk-secret!", &[("read", "{\"key\":\"sk-secret\"}")]),
        text_response("It is sk-secret."),
    ]);
    run_request(
        session.journal,
        &mut session.transcript,
        "Use sk-secret.",
        &script,
        &NoticeLog::default(),
    )
    .await;
    let text = std::fs::read_to_string(only_session(&store).journal_path()).expect("readable");
    assert!(!text.contains("sk-secret"), "{text}");
    assert_eq!(
        text.matches("[key redacted]").count(),
        5,
        "redacted in prompt, text, arguments, result and answer: {text}"
    );
}

#[tokio::test]
async fn a_full_disk_causes_a_notice_and_the_request_continues() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (store, mut session) = new_store(temp.path());
    let first = ScriptedModel::new([text_response("Hello.")]);
    run_request(session.journal, &mut session.transcript, "Hello?", &first, &NoticeLog::default())
        .await;
    let entry = only_session(&store);
    let durable = session.transcript.clone();

    let mut session =
        entry.resume(Path::new(WORKSPACE), Box::new(str::to_owned)).expect("not in use");
    let full = std::fs::OpenOptions::new().append(true).open("/dev/full").expect("present");
    session.journal.replace_file(full);
    let script = ScriptedModel::new([
        call_response("", &[("write", "a"), ("read", "b")]),
        text_response("Done all the same."),
    ]);
    let notices = NoticeLog::default();
    let outcome =
        run_request(session.journal, &mut session.transcript, "Go on.", &script, &notices).await;
    assert_eq!(outcome, RequestOutcome::Answered { text: "Done all the same.".into() });
    let notices = notices.0.into_inner().expect("not poisoned");
    assert!(
        matches!(
            &notices[..],
            [one] if one.contains("No space left") && one.contains(entry.id.as_str())
        ),
        "{notices:?}"
    );
    assert_eq!(entry.load().expect("readable").transcript, durable);
}

#[test]
fn r107_a_shutdown_saves_the_session_first() {
    let call =
        |id: &str| ToolCall { id: CallId::new(id), name: "write".into(), arguments: "{}".into() };
    let response = ModelResponse {
        blocks: ["a", "b", "c"].map(|id| ResponseBlock::Call(call(id))).into(),
        ..ModelResponse::default()
    };
    let open = || OpenTurn::new(response.clone()).expect("has calls");
    let answer = ToolResult::ok("done");
    let finished = AgentEvent::CallFinished {
        call: &call("a"),
        tier: None,
        summary: "",
        result: &answer,
        view: None,
        structured: None,
        duration: Duration::ZERO,
        state_delta: None,
        denied: None,
        exit_code: None,
    };
    let started = AgentEvent::CallStarted { call: &call("b"), tier: Tier::Write, summary: "" };
    let in_text = [
        AgentEvent::TurnStarted { turn: 1 },
        AgentEvent::Delta(ResponseDelta::Text("I was ab")),
        AgentEvent::Delta(ResponseDelta::Text("out to")),
    ];
    let turn = open();
    let in_calls = [
        AgentEvent::Delta(ResponseDelta::Text("I write.")),
        AgentEvent::CallsRequested(&turn),
        finished,
        started,
    ];
    for (events, expected) in [(&in_text[..], "I was about to"), (&in_calls[..], "")] {
        let temp = tempfile::tempdir().expect("temporary directory");
        let (store, session) = new_store(temp.path());
        let recorder = SessionRecorder::new(session.journal, &any_model(), &IgnoredEvents);
        recorder.observe(&AgentEvent::RequestStarted { request: "1", prompt: "Go.", model: "m" });
        for event in events {
            recorder.observe(event);
        }
        recorder.shutdown_recorder().finish();
        // Events of the request after this point come too late.
        recorder.observe(&AgentEvent::TurnFinished(&open().close("too late")));
        recorder.observe(&AgentEvent::RequestFinished { outcome: &RequestOutcome::Empty });
        recorder.shutdown_recorder().finish();

        let saved = only_session(&store).load().expect("complete");
        let ended: Vec<_> = saved
            .requests
            .iter()
            .filter_map(|request| request.ended.as_ref())
            .map(|e| e.outcome.as_str())
            .collect();
        assert_eq!(ended, ["aborted"]);
        let turn = saved.transcript.last_turn().expect("present");
        assert_eq!(
            (turn.text().as_str(), *turn.stop_reason() == StopReason::Interrupted),
            (expected, !turn.has_calls())
        );
        let statuses: Vec<_> = turn.calls().map(|answered| answered.result.status).collect();
        let expected = [ResultStatus::Ok, ResultStatus::Interrupted, ResultStatus::NotRun];
        assert_eq!(statuses, if turn.has_calls() { expected.to_vec() } else { Vec::new() });
    }
}

#[tokio::test]
async fn r073_compaction_works_at_any_length_reports_its_effect_and_is_recorded() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (store, mut session) = new_store(temp.path());
    let reopen = || {
        only_session(&store)
            .resume(Path::new(WORKSPACE), Box::new(str::to_owned))
            .expect("not in use")
    };
    assert_eq!(
        run_compaction(session.journal, &mut session.transcript, &ScriptedModel::new([])).await,
        CompactionOutcome::NothingToSummarise
    );
    let long = "a long path ".repeat(50);
    let script = ScriptedModel::new([
        call_response("I look.", &[("read", &long)]),
        call_response("And again.", &[("read", "b")]),
        text_response("Done."),
    ]);
    run_request(reopen().journal, &mut session.transcript, "Look.", &script, &NoticeLog::default())
        .await;
    let uncompacted = session.transcript.clone();

    let done = run_compaction(
        reopen().journal,
        &mut session.transcript,
        &ScriptedModel::new([text_response("They looked.")]),
    )
    .await;
    let CompactionOutcome::Done { turns, before, after } = done else { panic!("{done:?}") };
    assert!(
        turns >= 1 && before > 250 && after < before / 2,
        "{turns} turns: {before} became {after}"
    );
    let turns_of = |transcript: &Transcript| {
        transcript.exchanges().iter().map(|exchange| exchange.turns().to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(turns_of(&session.transcript), turns_of(&uncompacted));
    assert_eq!(only_session(&store).load().expect("complete").transcript, session.transcript);
    assert_eq!(reopen().transcript.sent_tokens(), session.transcript.sent_tokens());

    // a failed compaction changes nothing.
    for reply in [
        text_response(" "),
        text_response(&"no shorter ".repeat(500)),
        call_response("", &[("read", "c")]),
    ] {
        let failed =
            run_compaction(reopen().journal, &mut session.transcript, &ScriptedModel::new([reply]))
                .await;
        assert!(
            matches!(
                failed,
                CompactionOutcome::Failed { .. } | CompactionOutcome::NothingToSummarise
            ),
            "{failed:?}"
        );
        assert_eq!(only_session(&store).load().expect("complete").transcript, session.transcript);
    }
}

/// however a turn ends, the same function adds the missing results.
#[test]
fn r059_an_abort_a_shutdown_and_a_crash_at_the_same_moment_leave_the_same_turn() {
    let call =
        |id: &str| ToolCall { id: CallId::new(id), name: "write".into(), arguments: "{}".into() };
    let response = ModelResponse {
        blocks: ["a", "b", "c"].map(|id| ResponseBlock::Call(call(id))).into(),
        ..ModelResponse::default()
    };
    let (first, second) = (call("a"), call("b"));
    let answer = ToolResult::ok("done");
    let started = |call| AgentEvent::CallStarted { call, tier: Tier::Write, summary: "" };
    let finished = |call| AgentEvent::CallFinished {
        call,
        tier: None,
        summary: "",
        result: &answer,
        view: None,
        structured: None,
        duration: Duration::ZERO,
        state_delta: None,
        denied: None,
        exit_code: None,
    };
    let events = [started(&first), finished(&first), started(&second), finished(&second)];
    for count in 0..=events.len() {
        let transcript_after = |end: &dyn Fn(&SessionRecorder<'_>, OpenTurn)| {
            let temp = tempfile::tempdir().expect("temporary directory");
            let (store, session) = new_store(temp.path());
            let recorder = SessionRecorder::new(session.journal, &any_model(), &IgnoredEvents);
            let mut turn = OpenTurn::new(response.clone()).expect("has calls");
            recorder.observe(&AgentEvent::RequestStarted {
                request: "1",
                prompt: "Go.",
                model: "m",
            });
            recorder.observe(&AgentEvent::CallsRequested(&turn));
            for event in &events[..count] {
                recorder.observe(event);
                match event {
                    AgentEvent::CallStarted { call, .. } => {
                        turn.start(usize::from(call.id == second.id))
                    }
                    AgentEvent::CallFinished { call, .. } => {
                        turn.answer(usize::from(call.id == second.id), answer.clone())
                    }
                    _ => {}
                }
            }
            end(&recorder, turn);
            drop(recorder);
            let transcript = only_session(&store).load().expect("complete").transcript;
            assert_eq!(validate(&transcript), Ok(()), "after {count}");
            transcript
        };
        let aborted = transcript_after(&|recorder, turn| {
            recorder.observe(&AgentEvent::TurnFinished(&turn.close("the request was cancelled")))
        });
        let exited = transcript_after(&|recorder, _| recorder.shutdown_recorder().finish());
        let crashed = transcript_after(&|_, _| {});
        assert_eq!(aborted, exited, "after {count}");
        // Only the reason of calls that were not run differs.
        let statuses = |transcript: &Transcript| -> Vec<_> {
            transcript
                .last_turn()
                .expect("a turn")
                .calls()
                .map(|answered| (answered.call.id.clone(), answered.result.status))
                .collect()
        };
        assert_eq!(statuses(&aborted), statuses(&crashed), "after {count}");
        // Each call appears once, together with its result.
        let json = serde_json::to_value(&aborted).expect("valid JSON");
        for id in ["a", "b", "c"] {
            assert_eq!(json.to_string().matches(&format!("\"id\":\"{id}\"")).count(), 1, "{json}");
        }
        // Deserialization with its repair returns the same transcript.
        assert_eq!(serde_json::from_value::<Transcript>(json).expect("a transcript"), aborted);
    }
}

struct IgnoredEvents;

impl Observer for IgnoredEvents {
    fn observe(&self, _: &AgentEvent<'_>) {}
}

#[tokio::test]
async fn r064_resuming_a_session_runs_nothing_again() {
    let temp = tempfile::tempdir().expect("temporary directory");
    let (store, mut session) = new_store(temp.path());
    let script =
        ScriptedModel::new([call_response("", &[("write", "a"), ("stop", ""), ("write", "b")])]);
    run_request(session.journal, &mut session.transcript, "Write.", &script, &NoticeLog::default())
        .await;
    let mut session = only_session(&store)
        .resume(Path::new(WORKSPACE), Box::new(str::to_owned))
        .expect("not in use");
    let before = session.transcript.clone();
    run_request(
        session.journal,
        &mut session.transcript,
        "What now?",
        &ScriptedModel::new([text_response("Look first.")]),
        &NoticeLog::default(),
    )
    .await;
    assert_eq!(session.transcript.exchanges()[0], before.exchanges()[0]);
    let statuses: Vec<_> =
        before.exchanges()[0].turns()[0].calls().map(|answered| answered.result.status).collect();
    assert_eq!(statuses, [ResultStatus::Ok, ResultStatus::Interrupted, ResultStatus::NotRun]);
}
