//! A scripted run of the loop, recorded: what the tests of this room cut, bend and break.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{Entry, Journal, Recording, Scope, Session, Store};
use crate::agent::events::{Event, Observer, Tier};
use crate::agent::ports::{Delta, Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest, Ran, ToolDefinition, Tools};
use crate::agent::{ActiveTime, Agent, Compacted, Interventions, Outcome, RequestId, TurnLimit};
use crate::conversation::{Call, CallId, OpenTurn, Response, ResponseBlock, StopReason, ToolResult, Transcript, validate};

pub(super) const WORKSPACE: &str = "/home/me/pro ject";

/// Says what it was given to say, and keeps the rules of what it may be asked.
pub(super) struct Script {
    info: ModelInfo,
    responses: Mutex<VecDeque<Result<Response, ModelError>>>,
}

impl Script {
    pub(super) fn new(responses: impl IntoIterator<Item = Result<Response, ModelError>>) -> Self {
        let info = ModelInfo { provider: "script".into(), model: "script".into(), address: None, context_window: 1000, max_output: None };
        Self { info, responses: Mutex::new(responses.into_iter().collect()) }
    }
}

impl Model for Script {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
        _: &'a mut (dyn FnMut(Delta<'_>) + Send),
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Response, ModelError>> {
        assert!(request.conversation.exchanges().next().is_some(), "there is something to answer");
        let next = self.responses.lock().expect("not poisoned").pop_front();
        Box::pin(async move { next.unwrap_or_else(|| Err(ModelError::new(ModelErrorKind::Unavailable, "the script is over"))) })
    }
}

/// Tools by name: `read` and `write` do it, `missing` is refused, `stop` ends the request with itself and all later calls
/// unanswered, `spy` looks at the file that it names before it answers.
#[derive(Default)]
pub(super) struct Desk(ActiveTime);

impl Tools for Desk {
    fn definitions(&self) -> &[ToolDefinition] {
        &[]
    }

    fn time(&self) -> &ActiveTime {
        &self.0
    }

    fn run<'a>(&'a self, turn: &'a mut OpenTurn, observer: &'a dyn Observer, _: &'a CancellationToken) -> BoxFuture<'a, Ran> {
        Box::pin(async move {
            let calls: Vec<Call> = turn.calls().map(|(call, _)| call.clone()).collect();
            for (index, call) in calls.iter().enumerate() {
                let tier = match call.name.as_str() {
                    "missing" => None,
                    "write" => Some(Tier::Write),
                    _ => Some(Tier::ReadOnly),
                };
                if let Some(tier) = tier {
                    turn.start(index);
                    observer.observe(&Event::CallStarted { call, tier, summary: "" });
                }
                let result = match call.name.as_str() {
                    "stop" => return Ran::Aborted,
                    "missing" => ToolResult::error("there is no such tool"),
                    "spy" => ToolResult::ok(std::fs::read_to_string(&call.arguments).expect("the journal is there")),
                    name => ToolResult::ok(format!("{name} of {}: done\nä🦀\u{2028}", call.arguments)),
                };
                let event = Event::CallFinished {
                    call,
                    tier,
                    summary: "",
                    result: &result,
                    view: None,
                    duration: Duration::ZERO,
                    remembered: None,
                    denied: None,
                    exit_code: None,
                };
                observer.observe(&event);
                turn.answer(index, result);
            }
            Ran::Finished
        })
    }
}

/// Keeps the notices.
#[derive(Default)]
pub(super) struct Notices(pub(super) Mutex<Vec<String>>);

impl Observer for Notices {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Notice(text) = event {
            self.0.lock().expect("not poisoned").push((*text).to_owned());
        }
    }
}

pub(super) fn said(text: &str) -> Result<Response, ModelError> {
    Ok(Response { blocks: vec![ResponseBlock::Text(text.into())], ..Response::default() })
}

/// Calls by the name of their tool, with ids as careless providers send them.
pub(super) fn calls(text: &str, calls: &[(&str, &str)]) -> Result<Response, ModelError> {
    let call = |(name, arguments): &(&str, &str)| {
        ResponseBlock::Call(Call { id: CallId::new("c"), name: (*name).into(), arguments: (*arguments).into() })
    };
    let blocks = [ResponseBlock::Text(text.into())].into_iter().chain(calls.iter().map(call)).collect();
    Ok(Response { blocks, stop: StopReason::Calls, ..Response::default() })
}

/// One request on a transcript, recorded. It takes at most three turns with calls.
pub(super) async fn request(
    journal: Journal,
    transcript: &mut Transcript,
    prompt: &str,
    script: &Script,
    observer: &dyn Observer,
) -> Outcome {
    let recording = Recording::new(journal, script.info(), observer);
    let outcome =
        agent(script, &Desk::default(), &recording).request(&RequestId::new(7), transcript, prompt, &CancellationToken::new()).await;
    assert_eq!(validate(transcript), Ok(()));
    outcome
}

/// A summary of the session so far, recorded.
pub(super) async fn compact(journal: Journal, transcript: &mut Transcript, script: &Script) -> Compacted {
    let recording = Recording::new(journal, script.info(), &NOBODY);
    let compacted = agent(script, &Desk::default(), &recording).compact(transcript, &CancellationToken::new()).await;
    assert_eq!(validate(transcript), Ok(()));
    compacted
}

fn agent<'a>(script: &'a Script, tools: &'a Desk, observer: &'a dyn Observer) -> Agent<'a> {
    Agent {
        model: script,
        tools,
        observer,
        system: String::new(),
        turn_limit: TurnLimit::new(3).expect("from one up"),
        time_limit: None,
        interventions: Interventions::default(),
    }
}

static NOBODY: Notices = Notices(Mutex::new(Vec::new()));

/// All ways in which a request can end and a turn can go, one after the other.
fn requests() -> Vec<(&'static str, Script)> {
    let broken = ModelError { kind: ModelErrorKind::Transport, message: "the line broke".into(), partial_text: "I was about to".into() };
    let cut_off = calls("long", &[("write", "{\"a")]).map(|response| Response { stop: StopReason::Length, ..response });
    vec![
        (
            "Fix the test.",
            Script::new([calls("I look.", &[("read", "a"), ("missing", "b"), ("read", "c")]), calls("", &[("write", "d")]), said("Done.")]),
        ),
        ("And\nthe other?", Script::new([calls("Hm.", &[("read", "e"), ("stop", ""), ("write", "f")])])),
        ("Again.", Script::new([cut_off, Err(broken)])),
        ("Ends at once.", Script::new([Err(ModelError::new(ModelErrorKind::Rejected, "a bad key"))])),
        ("To the limit.", Script::new((0..4).map(|_| calls("more", &[("read", "g")])))),
        ("Says nothing.", Script::new([said(" "), said("")])),
    ]
}

/// A store in a folder, with one session in which everything happened, and what was live at its end.
pub(super) async fn eventful(folder: &Path) -> (Store, Entry, Transcript) {
    let store = Store::new(folder.join("sessions"));
    let Session { mut transcript, mut journal, .. } = store.create(Path::new(WORKSPACE), Box::new(str::to_owned)).expect("created");
    for (prompt, script) in requests() {
        let notices = Notices::default();
        request(journal, &mut transcript, prompt, &script, &notices).await;
        if prompt == "Again." {
            journal = again(&store);
            let done = compact(journal, &mut transcript, &Script::new([said("They fixed it.")])).await;
            assert!(matches!(done, Compacted::Done { turns: 1.., .. }), "{done:?}");
        }
        assert!(notices.0.lock().expect("not poisoned").iter().all(|notice| notice.contains("limit on output")));
        journal = again(&store);
    }
    drop(journal);
    let entry = only(&store);
    (store, entry, transcript)
}

fn again(store: &Store) -> Journal {
    only(store).resume(Path::new(WORKSPACE), Box::new(str::to_owned)).expect("nobody has it").journal
}

pub(super) fn only(store: &Store) -> Entry {
    store.list(Scope::All).expect("readable").pop().expect("there is one")
}
