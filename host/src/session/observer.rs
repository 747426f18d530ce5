//! Writing down what happens, before anybody else hears of it.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::journal::Journal;
use super::record::Record;
use crate::agent::Outcome;
use crate::agent::events::{Event, Fitting, Observer, Tier};
use crate::agent::ports::Delta;
use crate::conversation::{Call, CallId, OpenTurn, ToolResult, Turn};

/// Writes a request into a journal and passes every event on to whoever else watches.
///
/// A failure to write, such as a full disk, costs nothing but the rest of the journal: the user is told once, the request
/// goes on, and what was written until then stays readable.
pub struct Recording<'a> {
    state: Arc<Mutex<State>>,
    then: &'a dyn Observer,
}

/// Brings a recording to its end from outside, for a program that has to leave in the middle of a request.
#[derive(Clone)]
pub struct LastWords {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// `None` once writing failed: after a gap nothing more is written, since it would not fit to what is there.
    journal: Option<Journal>,
    open: Option<Open>,
    /// The text of the response that is coming, as far as it has come.
    partial: String,
    is_under_way: bool,
}

/// The open turn as far as it is on record.
struct Open {
    /// The place of each call.
    places: HashMap<CallId, usize>,
    progress: Vec<Progress>,
}

/// How far a call is on record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    Started,
    Finished,
}

/// When a record has to be on the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Durable {
    Later,
    Now,
}

impl<'a> Recording<'a> {
    /// Records into a journal what `then` is told.
    pub fn new(journal: Journal, then: &'a dyn Observer) -> Self {
        Self { state: Arc::new(Mutex::new(State { journal: Some(journal), ..State::default() })), then }
    }

    /// Gives the journal back for the next request; `None` if it could not be written any more.
    pub fn into_journal(self) -> Option<Journal> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).journal.take()
    }

    /// For somebody who may have to end it.
    pub fn last_words(&self) -> LastWords {
        LastWords { state: Arc::clone(&self.state) }
    }
}

impl LastWords {
    /// Writes down what is not on record yet, as an abort would leave it, and waits until it is on the disk. Nothing more
    /// is written after it. A failure leaves what a crash would leave.
    pub fn write(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { journal: Some(mut journal), open, partial, is_under_way } = std::mem::take(&mut *state) else { return };
        let open = open.map(Open::abandoned);
        let partial = Turn::interrupted_text(partial).filter(|_| open.is_none()).map(Record::Turn);
        let outcome = is_under_way.then(|| Record::outcome(&Outcome::Aborted));
        let mut records = open.into_iter().chain(partial).chain(outcome);
        drop(records.try_for_each(|record| journal.append(&record)).and_then(|()| journal.sync()));
    }
}

impl Observer for Recording<'_> {
    fn observe(&self, event: &Event<'_>) {
        let problem = self.state.lock().unwrap_or_else(PoisonError::into_inner).write(event);
        if let Some(notice) = problem {
            self.then.observe(&Event::Notice(&notice));
        }
        self.then.observe(event);
    }

    fn is_live(&self) -> bool {
        self.then.is_live()
    }
}

impl State {
    /// What the user has to be told, if it failed.
    fn write(&mut self, event: &Event<'_>) -> Option<String> {
        let (record, durable) = self.record(event)?;
        let journal = self.journal.as_mut()?;
        let written = append(journal, &record, durable);
        let error = written.err()?;
        let notice = format!(
            "Session {} could not be written ({error}). The request goes on, and what was written before stays; the rest is not recorded.",
            journal.id()
        );
        self.journal = None;
        Some(notice)
    }

    fn record(&mut self, event: &Event<'_>) -> Option<(Record, Durable)> {
        Some(match event {
            Event::RequestStarted { request, prompt, model } => {
                self.is_under_way = true;
                (Record::request(request, prompt, model), Durable::Later)
            }
            Event::CallsProposed(turn) => {
                self.partial.clear();
                self.open = Some(Open::of(turn));
                (Record::Response(turn.response()), Durable::Later)
            }
            // What can change something outside is on the disk before it does.
            Event::CallStarted { call, tier, .. } => {
                let durable = match tier {
                    Tier::Write => Durable::Now,
                    Tier::Research | Tier::ReadOnly => Durable::Later,
                };
                (Record::Started { call: self.came(call, Progress::Started)? }, durable)
            }
            Event::CallFinished { call, result, remembered, .. } => {
                let place = self.came(call, Progress::Finished)?;
                (Record::Finished { call: place, result: (*result).clone(), remembered: remembered.cloned() }, Durable::Later)
            }
            Event::TurnFinished(turn) => {
                self.partial.clear();
                (self.open.take().map_or_else(|| Record::Turn((*turn).clone()), |open| open.closed(turn)), Durable::Now)
            }
            Event::Fitting(Fitting::Summarised { summary, usage, .. }) => (Record::compacted(summary, *usage), Durable::Now),
            Event::SubAgentTurn { usage, .. } | Event::Discarded { usage } => (Record::Spent(*usage), Durable::Later),
            Event::RequestFinished { outcome } => {
                self.is_under_way = false;
                (Record::outcome(outcome), Durable::Now)
            }
            // After a pause a response begins anew.
            Event::TurnStarted { .. } | Event::Delta(Delta::Retry { .. }) => {
                self.partial.clear();
                return None;
            }
            Event::Delta(Delta::Text(text)) => {
                self.partial.push_str(text);
                return None;
            }
            Event::Fitting(Fitting::Pruned(_) | Fitting::Summarising)
            | Event::Delta(Delta::Reasoning(_) | Delta::CallBegun(_))
            | Event::Answered(_)
            | Event::CallProgress { .. }
            | Event::Notice(_) => return None,
        })
    }

    /// The place of a call, which has come so far.
    fn came(&mut self, call: &Call, progress: Progress) -> Option<usize> {
        let open = self.open.as_mut()?;
        let place = *open.places.get(&call.id)?;
        *open.progress.get_mut(place)? = progress;
        Some(place)
    }
}

fn append(journal: &mut Journal, record: &Record, durable: Durable) -> io::Result<()> {
    journal.append(record)?;
    match durable {
        Durable::Later => Ok(()),
        Durable::Now => journal.sync(),
    }
}

impl Open {
    fn of(turn: &OpenTurn) -> Self {
        let places: HashMap<_, _> = turn.calls().enumerate().map(|(place, (call, _))| (call.id.clone(), place)).collect();
        Self { progress: vec![Progress::Waiting; places.len()], places }
    }

    /// The record of a turn whose other results are on record already.
    fn closed(self, turn: &Turn) -> Record {
        let all = turn.calls().zip(self.progress).enumerate();
        let rest = all.filter(|(_, (_, progress))| *progress != Progress::Finished);
        Record::Closed { rest: rest.map(|(place, (answered, _))| (place, answered.result.clone())).collect() }
    }

    /// The record of a turn that nobody will finish.
    fn abandoned(self) -> Record {
        let result = |progress| match progress {
            Progress::Waiting => Some(ToolResult::not_run("the request was stopped")),
            Progress::Started => Some(ToolResult::interrupted()),
            Progress::Finished => None,
        };
        Record::Closed {
            rest: self.progress.into_iter().enumerate().filter_map(|(place, progress)| Some((place, result(progress)?))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::super::test_run::{Notices, Script, WORKSPACE, calls, compact, only, request, said};
    use super::super::{Session, Store};
    use super::*;
    use crate::agent::Compacted;
    use crate::conversation::{Response, ResponseBlock, ResultStatus, Transcript};

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
        };
        let started = Event::CallStarted { call: &call("b"), tier: Tier::Write, summary: "" };
        let in_text = [Event::TurnStarted { turn: 1 }, Event::Delta(Delta::Text("I was ab")), Event::Delta(Delta::Text("out to"))];
        let turn = open();
        let in_calls = [Event::Delta(Delta::Text("I write.")), Event::CallsProposed(&turn), finished, started];
        for (events, expected) in [(&in_text[..], "I was about to"), (&in_calls[..], "")] {
            let folder = tempfile::tempdir().expect("a folder");
            let (store, session) = store(folder.path());
            let recording = Recording::new(session.journal, &Nobody);
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
            assert_eq!((turn.text().as_str(), turn.is_interrupted()), (expected, !turn.has_calls()));
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
        let turns_of =
            |transcript: &Transcript| transcript.exchanges().iter().map(|exchange| exchange.turns().to_vec()).collect::<Vec<_>>();
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
}
