//! A recorded run of the loop with a scripted model, which the tests truncate and damage.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{
    OpenSession, SessionJournal, SessionRecorder, SessionScope, SessionStore, StoredSession,
};
use crate::agent::events::{AgentEvent, Observer};
use crate::agent::ports::{
    LanguageModel, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ResponseDelta, RunOutcome,
    ToolDefinition, ToolRunner,
};
use crate::agent::{
    ActiveTime, Agent, CompactionOutcome, InterventionSettings, RequestId, RequestOutcome,
    TurnLimit,
};
use crate::conversation::{
    CallId, ModelResponse, OpenTurn, ResponseBlock, StopReason, ToolCall, ToolResult, Transcript,
    validate,
};
use crate::policy::Tier;

pub(super) const WORKSPACE: &str = "/home/me/pro ject";

/// A model that returns scripted responses and checks that each request is valid.
pub(super) struct ScriptedModel {
    info: ModelInfo,
    responses: Mutex<VecDeque<Result<ModelResponse, ModelError>>>,
}

impl ScriptedModel {
    pub(super) fn new(
        responses: impl IntoIterator<Item = Result<ModelResponse, ModelError>>,
    ) -> Self {
        let info = ModelInfo {
            provider: "script".into(),
            model: "script".into(),
            address: None,
            context_window: 1000,
            max_output: None,
        };
        Self { info, responses: Mutex::new(responses.into_iter().collect()) }
    }
}

impl LanguageModel for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
        _: &'a mut (dyn FnMut(ResponseDelta<'_>) + Send),
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        assert!(request.conversation.exchanges().next().is_some(), "the script has a response");
        let next = self.responses.lock().expect("not poisoned").pop_front();
        Box::pin(async move {
            next.unwrap_or_else(|| {
                Err(ModelError::new(ModelErrorKind::Unavailable, "the script has ended"))
            })
        })
    }
}

/// Tools whose name decides their behaviour.
///
/// - `read` and `write` succeed.
/// - `missing` is refused.
/// - `stop` ends the request and leaves its own call and all later ones without a result.
/// - `spy` returns the content of the file that its arguments name.
#[derive(Default)]
pub(super) struct ScriptedTools(ActiveTime);

impl ToolRunner for ScriptedTools {
    fn definitions(&self) -> &[ToolDefinition] {
        &[]
    }

    fn active_time(&self) -> &ActiveTime {
        &self.0
    }

    fn run<'a>(
        &'a self,
        turn: &'a mut OpenTurn,
        observer: &'a dyn Observer,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, RunOutcome> {
        Box::pin(async move {
            let calls: Vec<ToolCall> = turn.calls().map(|(call, _)| call.clone()).collect();
            for (index, call) in calls.iter().enumerate() {
                let tier = match call.name.as_str() {
                    "missing" => None,
                    "write" => Some(Tier::Write),
                    _ => Some(Tier::ReadOnly),
                };
                if let Some(tier) = tier {
                    turn.start(index);
                    observer.observe(&AgentEvent::CallStarted { call, tier, summary: "" });
                }
                let result = match call.name.as_str() {
                    "stop" => return RunOutcome::Aborted,
                    "missing" => ToolResult::error("there is no such tool"),
                    "spy" => ToolResult::ok(
                        std::fs::read_to_string(&call.arguments).expect("the journal is there"),
                    ),
                    name => {
                        ToolResult::ok(format!("{name} of {}: done\nä🦀\u{2028}", call.arguments))
                    }
                };
                let event = AgentEvent::CallFinished {
                    call,
                    tier,
                    summary: "",
                    result: &result,
                    view: None,
                    structured: None,
                    duration: Duration::ZERO,
                    state_delta: None,
                    denied: None,
                    exit_code: None,
                };
                observer.observe(&event);
                turn.answer(index, result);
            }
            RunOutcome::Finished
        })
    }
}

/// An observer that stores the notices.
#[derive(Default)]
pub(super) struct NoticeLog(pub(super) Mutex<Vec<String>>);

impl Observer for NoticeLog {
    fn observe(&self, event: &AgentEvent<'_>) {
        if let AgentEvent::Notice(text) = event {
            self.0.lock().expect("not poisoned").push((*text).to_owned());
        }
    }
}

pub(super) fn text_response(text: &str) -> Result<ModelResponse, ModelError> {
    Ok(ModelResponse { blocks: vec![ResponseBlock::Text(text.into())], ..ModelResponse::default() })
}

/// Creates a response with calls of the named tools, all with the same ID.
///
/// Some providers send such duplicate IDs.
pub(super) fn call_response(
    text: &str,
    calls: &[(&str, &str)],
) -> Result<ModelResponse, ModelError> {
    let call = |(name, arguments): &(&str, &str)| {
        ResponseBlock::Call(ToolCall {
            id: CallId::new("c"),
            name: (*name).into(),
            arguments: (*arguments).into(),
        })
    };
    let blocks =
        [ResponseBlock::Text(text.into())].into_iter().chain(calls.iter().map(call)).collect();
    Ok(ModelResponse { blocks, stop: StopReason::Calls, ..ModelResponse::default() })
}

/// Runs one request on a transcript and records it; at most three turns may have calls.
pub(super) async fn run_request(
    journal: SessionJournal,
    transcript: &mut Transcript,
    prompt: &str,
    script: &ScriptedModel,
    observer: &dyn Observer,
) -> RequestOutcome {
    let recorder = SessionRecorder::new(journal, script.info(), observer);
    let outcome = new_agent(script, &ScriptedTools::default(), &recorder)
        .run_request(&RequestId::new(7), transcript, prompt, &CancellationToken::new())
        .await;
    assert_eq!(validate(transcript), Ok(()));
    outcome
}

/// Compacts the session so far and records the summary.
pub(super) async fn run_compaction(
    journal: SessionJournal,
    transcript: &mut Transcript,
    script: &ScriptedModel,
) -> CompactionOutcome {
    let recorder = SessionRecorder::new(journal, script.info(), &IGNORED_EVENTS);
    let outcome = new_agent(script, &ScriptedTools::default(), &recorder)
        .compact(transcript, &CancellationToken::new())
        .await;
    assert_eq!(validate(transcript), Ok(()));
    outcome
}

fn new_agent<'a>(
    script: &'a ScriptedModel,
    tools: &'a ScriptedTools,
    observer: &'a dyn Observer,
) -> Agent<'a> {
    Agent {
        model: script,
        tools,
        observer,
        system: String::new(),
        turn_limit: TurnLimit::new(3).expect("at least one"),
        time_limit: None,
        interventions: InterventionSettings::default(),
    }
}

static IGNORED_EVENTS: NoticeLog = NoticeLog(Mutex::new(Vec::new()));

/// Returns prompts and scripts that cover every outcome of a request and of a turn.
fn all_requests() -> Vec<(&'static str, ScriptedModel)> {
    let broken = ModelError {
        kind: ModelErrorKind::Transport,
        message: "the line broke".into(),
        partial_text: "I was about to".into(),
    };
    let cut_off = call_response("long", &[("write", "{\"a")])
        .map(|response| ModelResponse { stop: StopReason::Length, ..response });
    vec![
        (
            "Fix the test.",
            ScriptedModel::new([
                call_response("I look.", &[("read", "a"), ("missing", "b"), ("read", "c")]),
                call_response("", &[("write", "d")]),
                text_response("Done."),
            ]),
        ),
        (
            "And\nthe other?",
            ScriptedModel::new([call_response(
                "Hm.",
                &[("read", "e"), ("stop", ""), ("write", "f")],
            )]),
        ),
        ("Again.", ScriptedModel::new([cut_off, Err(broken)])),
        (
            "Ends at once.",
            ScriptedModel::new([Err(ModelError::new(ModelErrorKind::Rejected, "a bad key"))]),
        ),
        (
            "To the limit.",
            ScriptedModel::new((0..4).map(|_| call_response("more", &[("read", "g")]))),
        ),
        ("Says nothing.", ScriptedModel::new([text_response(" "), text_response("")])),
    ]
}

/// Creates a store in a directory, with one session that contains every kind of event.
///
/// Also returns the transcript as it was in memory at the end.
pub(super) async fn session_with_every_event(
    directory: &Path,
) -> (SessionStore, StoredSession, Transcript) {
    let store = SessionStore::new(directory.join("sessions"));
    let OpenSession { mut transcript, mut journal, .. } =
        store.create_session(Path::new(WORKSPACE), Box::new(str::to_owned)).expect("created");
    for (prompt, script) in all_requests() {
        let notices = NoticeLog::default();
        run_request(journal, &mut transcript, prompt, &script, &notices).await;
        if prompt == "Again." {
            journal = reopen_journal(&store);
            let done = run_compaction(
                journal,
                &mut transcript,
                &ScriptedModel::new([text_response("They fixed it.")]),
            )
            .await;
            assert!(matches!(done, CompactionOutcome::Done { turns: 1.., .. }), "{done:?}");
        }
        assert!(
            notices
                .0
                .lock()
                .expect("not poisoned")
                .iter()
                .all(|notice| notice.contains("output limit"))
        );
        journal = reopen_journal(&store);
    }
    drop(journal);
    let entry = only_session(&store);
    (store, entry, transcript)
}

fn reopen_journal(store: &SessionStore) -> SessionJournal {
    only_session(store)
        .resume(Path::new(WORKSPACE), Box::new(str::to_owned))
        .expect("not in use")
        .journal
}

pub(super) fn only_session(store: &SessionStore) -> StoredSession {
    store.list(SessionScope::All).expect("readable").pop().expect("present")
}
