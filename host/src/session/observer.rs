//! Writing down what happens, before anybody else hears of it.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::journal::Journal;
use super::record::Record;
use crate::agent::events::{Event, Observer, Tier};
use crate::conversation::{Call, CallId, OpenTurn, Turn};

/// Writes a request into a journal and passes every event on to whoever else watches.
///
/// A failure to write, such as a full disk, costs nothing but the rest of the journal: the user is told once, the request
/// goes on, and what was written until then stays readable.
pub struct Recording<'a> {
    state: Mutex<State>,
    then: &'a dyn Observer,
}

struct State {
    /// `None` once writing failed: after a gap nothing more is written, since it would not fit to what is there.
    journal: Option<Journal>,
    open: Option<Open>,
}

/// The open turn as far as it is on record.
struct Open {
    /// The place of each call.
    places: HashMap<CallId, usize>,
    finished: Vec<bool>,
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
        Self { state: Mutex::new(State { journal: Some(journal), open: None }), then }
    }

    /// Gives the journal back for the next request; `None` if it could not be written any more.
    pub fn into_journal(self) -> Option<Journal> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).journal
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
            Event::RequestStarted { request, prompt } => (Record::request(request, prompt), Durable::Later),
            Event::CallsProposed(turn) => {
                self.open = Some(Open::of(turn));
                (Record::Response(turn.response()), Durable::Later)
            }
            // What can change something outside is on the disk before it does.
            Event::CallStarted { call, tier: Tier::Write, .. } => (Record::Started { call: self.place(call)? }, Durable::Now),
            Event::CallStarted { call, tier: Tier::Research | Tier::ReadOnly, .. } => {
                (Record::Started { call: self.place(call)? }, Durable::Later)
            }
            Event::CallFinished { call, result, .. } => {
                let place = self.place(call)?;
                if let Some(finished) = self.open.as_mut()?.finished.get_mut(place) {
                    *finished = true;
                }
                (Record::Finished { call: place, result: (*result).clone() }, Durable::Later)
            }
            Event::TurnFinished(turn) => {
                (self.open.take().map_or_else(|| Record::Turn((*turn).clone()), |open| open.closed(turn)), Durable::Now)
            }
            Event::RequestFinished { outcome } => (Record::outcome(outcome), Durable::Now),
            Event::TurnStarted { .. } | Event::Delta(_) | Event::Answered(_) | Event::CallProgress { .. } | Event::Notice(_) => {
                return None;
            }
        })
    }

    fn place(&self, call: &Call) -> Option<usize> {
        self.open.as_ref()?.places.get(&call.id).copied()
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
        Self { finished: vec![false; places.len()], places }
    }

    /// The record of a turn whose other results are on record already.
    fn closed(self, turn: &Turn) -> Record {
        let all = turn.calls().zip(self.finished).enumerate();
        let rest = all.filter(|(_, (_, finished))| !finished).map(|(place, (answered, _))| (place, answered.result.clone()));
        Record::Closed { rest: rest.collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::test_run::{Notices, Script, WORKSPACE, calls, only, request, said};
    use super::super::{Session, Store};
    use crate::agent::Outcome;
    use crate::conversation::ResultStatus;

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
