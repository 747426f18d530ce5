use std::path::Path;

use super::super::test_run::{Notices, Script, WORKSPACE, calls, compact, only, request, said};
use super::super::{Session, Store};
use super::*;
use crate::agent::Compacted;
use crate::conversation::{Response, ResponseBlock, ResultStatus, StopReason, ToolResult, Transcript, validate};

fn anybody() -> ModelInfo {
    ModelInfo { provider: "p".into(), model: "m".into(), address: None, context_window: 1000, max_output: None }
}

fn store(folder: &Path) -> (Store, Session) {
    let store = Store::new(folder.join("sessions"));
    let session = store.create(Path::new(WORKSPACE), Box::new(|text| text.replace("sk-secret", "[key redacted]"))).expect("created");
    (store, session)
}

#[tokio::test]
async fn r108_a_call_is_on_record_before_it_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, mut session) = store(folder.path());
    let path = only(&store).path().display().to_string();
    let script = Script::new([calls("", &[("spy", &path)]), said("Seen.")]);
    request(session.journal, &mut session.transcript, "Spy.", &script, &Notices::default()).await;
    let seen = session.transcript.exchanges()[0].turns()[0].calls().next().expect("a call").result.text();
    let last = seen.lines().last().expect("lines");
    assert_eq!(last, "{\"started\":{\"call\":0}}", "{seen}");
    assert!(seen.contains("{\"request\":") && seen.contains("{\"response\":"), "{seen}");
}

#[tokio::test]
async fn whom_a_session_was_held_with_is_on_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, session) = store(folder.path());
    assert_eq!(session.held_with, None);
    let mut journal = session.journal;
    for address in [Some("http://localhost:8000/v1"), None] {
        let info = ModelInfo { address: address.map(str::to_owned), ..anybody() };
        let recording = Recording::new(journal, &info, &Nobody);
        recording.observe(&Event::RequestStarted { request: "1", prompt: "Go.", model: "m" });
        recording.observe(&Event::RequestFinished { outcome: &Outcome::Empty });
        drop(recording.into_journal());
        let resumed = only(&store).resume(Path::new(WORKSPACE), Box::new(str::to_owned)).expect("nobody has it");
        assert_eq!(resumed.held_with, Some((&info).into()));
        journal = resumed.journal;
    }
    let told = [Some("http://localhost:8000/v1"), None]
        .map(|address| HeldWith { provider: "p".into(), model: "m".into(), address: address.map(str::to_owned) }.to_string());
    assert_eq!(told, ["p:m at http://localhost:8000/v1", "p:m"]);
}

#[tokio::test]
async fn r114_a_secret_never_reaches_a_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, mut session) = store(folder.path());
    let script = Script::new([calls("sk-secret!", &[("read", "{\"key\":\"sk-secret\"}")]), said("It is sk-secret.")]);
    request(session.journal, &mut session.transcript, "Use sk-secret.", &script, &Notices::default()).await;
    let text = std::fs::read_to_string(only(&store).path()).expect("readable");
    assert!(!text.contains("sk-secret"), "{text}");
    assert_eq!(text.matches("[key redacted]").count(), 5, "prompt, text, arguments, result and answer: {text}");
}

#[tokio::test]
async fn a_full_disk_costs_a_notice_and_no_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, mut session) = store(folder.path());
    let first = Script::new([said("Hello.")]);
    request(session.journal, &mut session.transcript, "Hello?", &first, &Notices::default()).await;
    let entry = only(&store);
    let durable = session.transcript.clone();

    let mut session = entry.resume(Path::new(WORKSPACE), Box::new(str::to_owned)).expect("nobody has it");
    let full = std::fs::OpenOptions::new().append(true).open("/dev/full").expect("there is one");
    session.journal.replace_file(full);
    let script = Script::new([calls("", &[("write", "a"), ("read", "b")]), said("Done all the same.")]);
    let notices = Notices::default();
    let outcome = request(session.journal, &mut session.transcript, "Go on.", &script, &notices).await;
    assert_eq!(outcome, Outcome::Answered { text: "Done all the same.".into() });
    let notices = notices.0.into_inner().expect("not poisoned");
    assert!(matches!(&notices[..], [one] if one.contains("No space left") && one.contains(entry.id.as_str())), "{notices:?}");
    assert_eq!(entry.look().expect("readable").transcript, durable);
}

#[test]
fn r107_who_has_to_leave_saves_first() {
    let call = |id: &str| Call { id: CallId::new(id), name: "write".into(), arguments: "{}".into() };
    let response = Response { blocks: ["a", "b", "c"].map(|id| ResponseBlock::Call(call(id))).into(), ..Response::default() };
    let open = || OpenTurn::new(response.clone()).expect("it has calls");
    let answer = ToolResult::ok("done");
    let finished = Event::CallFinished {
        call: &call("a"),
        tier: None,
        summary: "",
        result: &answer,
        view: None,
        duration: Duration::ZERO,
        remembered: None,
        denied: None,
        exit_code: None,
    };
    let started = Event::CallStarted { call: &call("b"), tier: Tier::Write, summary: "" };
    let in_text = [Event::TurnStarted { turn: 1 }, Event::Delta(Delta::Text("I was ab")), Event::Delta(Delta::Text("out to"))];
    let turn = open();
    let in_calls = [Event::Delta(Delta::Text("I write.")), Event::CallsProposed(&turn), finished, started];
    for (events, expected) in [(&in_text[..], "I was about to"), (&in_calls[..], "")] {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, session) = store(folder.path());
        let recording = Recording::new(session.journal, &anybody(), &Nobody);
        recording.observe(&Event::RequestStarted { request: "1", prompt: "Go.", model: "m" });
        events.iter().for_each(|event| recording.observe(event));
        recording.last_words().write();
        // What the request still does while the program leaves comes too late.
        recording.observe(&Event::TurnFinished(&open().close("too late")));
        recording.observe(&Event::RequestFinished { outcome: &Outcome::Empty });
        recording.last_words().write();

        let saved = only(&store).look().expect("it is whole");
        let ended: Vec<_> = saved.requests.iter().filter_map(|request| request.ended.as_ref()).map(|e| e.outcome.as_str()).collect();
        assert_eq!(ended, ["aborted"]);
        let turn = saved.transcript.last_turn().expect("there is one");
        assert_eq!((turn.text().as_str(), *turn.stop() == StopReason::Interrupted), (expected, !turn.has_calls()));
        let statuses: Vec<_> = turn.calls().map(|answered| answered.result.status).collect();
        let of_calls = [ResultStatus::Ok, ResultStatus::Interrupted, ResultStatus::NotRun];
        assert_eq!(statuses, if turn.has_calls() { of_calls.to_vec() } else { Vec::new() });
    }
}

#[tokio::test]
async fn r073_a_summary_can_be_had_at_any_length_tells_what_it_removed_and_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, mut session) = store(folder.path());
    let again = || only(&store).resume(Path::new(WORKSPACE), Box::new(str::to_owned)).expect("nobody has it");
    assert_eq!(compact(session.journal, &mut session.transcript, &Script::new([])).await, Compacted::Nothing);
    let long = "a long path ".repeat(50);
    let script = Script::new([calls("I look.", &[("read", &long)]), calls("And again.", &[("read", "b")]), said("Done.")]);
    request(again().journal, &mut session.transcript, "Look.", &script, &Notices::default()).await;
    let whole = session.transcript.clone();

    let done = compact(again().journal, &mut session.transcript, &Script::new([said("They looked.")])).await;
    let Compacted::Done { turns, before, after } = done else { panic!("{done:?}") };
    assert!(turns >= 1 && before > 250 && after < before / 2, "{turns} turns: {before} became {after}");
    let turns_of = |transcript: &Transcript| transcript.exchanges().iter().map(|exchange| exchange.turns().to_vec()).collect::<Vec<_>>();
    assert_eq!(turns_of(&session.transcript), turns_of(&whole));
    assert_eq!(only(&store).look().expect("it is whole").transcript, session.transcript);
    assert_eq!(again().transcript.sent_tokens(), session.transcript.sent_tokens());

    // what fails changes nothing.
    for reply in [said(" "), said(&"no shorter ".repeat(500)), calls("", &[("read", "c")])] {
        let failed = compact(again().journal, &mut session.transcript, &Script::new([reply])).await;
        assert!(matches!(failed, Compacted::Failed { .. } | Compacted::Nothing), "{failed:?}");
        assert_eq!(only(&store).look().expect("it is whole").transcript, session.transcript);
    }
}

/// however a turn ends, the same routine answers what nobody answered.
#[test]
fn r059_an_abort_a_second_ctrl_c_and_a_crash_at_the_same_moment_leave_the_same_turn() {
    let call = |id: &str| Call { id: CallId::new(id), name: "write".into(), arguments: "{}".into() };
    let response = Response { blocks: ["a", "b", "c"].map(|id| ResponseBlock::Call(call(id))).into(), ..Response::default() };
    let (first, second) = (call("a"), call("b"));
    let answer = ToolResult::ok("done");
    let started = |call| Event::CallStarted { call, tier: Tier::Write, summary: "" };
    let finished = |call| Event::CallFinished {
        call,
        tier: None,
        summary: "",
        result: &answer,
        view: None,
        duration: Duration::ZERO,
        remembered: None,
        denied: None,
        exit_code: None,
    };
    let happened = [started(&first), finished(&first), started(&second), finished(&second)];
    for count in 0..=happened.len() {
        let left_by = |end: &dyn Fn(&Recording<'_>, OpenTurn)| {
            let folder = tempfile::tempdir().expect("a folder");
            let (store, session) = store(folder.path());
            let recording = Recording::new(session.journal, &anybody(), &Nobody);
            let mut turn = OpenTurn::new(response.clone()).expect("it has calls");
            recording.observe(&Event::RequestStarted { request: "1", prompt: "Go.", model: "m" });
            recording.observe(&Event::CallsProposed(&turn));
            for event in &happened[..count] {
                recording.observe(event);
                match event {
                    Event::CallStarted { call, .. } => turn.start(usize::from(call.id == second.id)),
                    Event::CallFinished { call, .. } => turn.answer(usize::from(call.id == second.id), answer.clone()),
                    _ => {}
                }
            }
            end(&recording, turn);
            drop(recording);
            let transcript = only(&store).look().expect("it is whole").transcript;
            assert_eq!(validate(&transcript), Ok(()), "after {count}");
            transcript
        };
        let aborted = left_by(&|recording, turn| recording.observe(&Event::TurnFinished(&turn.close("the request was stopped"))));
        let left = left_by(&|recording, _| recording.last_words().write());
        let crashed = left_by(&|_, _| {});
        assert_eq!(aborted, left, "after {count}");
        // Why a call was not run is another reason, and all that differs.
        let statuses = |transcript: &Transcript| -> Vec<_> {
            transcript.last_turn().expect("a turn").calls().map(|answered| (answered.call.id.clone(), answered.result.status)).collect()
        };
        assert_eq!(statuses(&aborted), statuses(&crashed), "after {count}");
        // A call is in one place, and its result with it.
        let json = serde_json::to_value(&aborted).expect("it is data");
        for id in ["a", "b", "c"] {
            assert_eq!(json.to_string().matches(&format!("\"id\":\"{id}\"")).count(), 1, "{json}");
        }
        // What is read back comes through the same mending, and is the same.
        assert_eq!(serde_json::from_value::<Transcript>(json).expect("a transcript"), aborted);
    }
}

struct Nobody;

impl Observer for Nobody {
    fn observe(&self, _: &Event<'_>) {}
}

#[tokio::test]
async fn r064_nothing_is_run_again_when_a_session_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, mut session) = store(folder.path());
    let script = Script::new([calls("", &[("write", "a"), ("stop", ""), ("write", "b")])]);
    request(session.journal, &mut session.transcript, "Write.", &script, &Notices::default()).await;
    let mut session = only(&store).resume(Path::new(WORKSPACE), Box::new(str::to_owned)).expect("nobody has it");
    let before = session.transcript.clone();
    request(session.journal, &mut session.transcript, "What now?", &Script::new([said("Look first.")]), &Notices::default()).await;
    assert_eq!(session.transcript.exchanges()[0], before.exchanges()[0]);
    let statuses: Vec<_> = before.exchanges()[0].turns()[0].calls().map(|answered| answered.result.status).collect();
    assert_eq!(statuses, [ResultStatus::Ok, ResultStatus::Interrupted, ResultStatus::NotRun]);
}
