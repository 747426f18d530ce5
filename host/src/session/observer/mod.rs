//! Writing down what happens, before anybody else hears of it.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use super::HeldWith;
use super::journal::Journal;
use super::record::Record;
use crate::agent::Outcome;
use crate::agent::events::{Event, Fitting, Observer, Tier};
use crate::agent::ports::{Delta, ModelInfo};
use crate::conversation::{Call, CallId, OpenTurn, Turn};

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
    /// Who answers.
    with: HeldWith,
}

/// The open turn as far as it is on record.
struct Open {
    turn: OpenTurn,
    /// The place of each call.
    places: HashMap<CallId, usize>,
}

/// When a record has to be on the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Durable {
    Later,
    Now,
}

impl<'a> Recording<'a> {
    /// Records into a journal what `then` is told of requests to a model.
    pub fn new(journal: Journal, model: &ModelInfo, then: &'a dyn Observer) -> Self {
        Self { state: Arc::new(Mutex::new(State { journal: Some(journal), with: model.into(), ..State::default() })), then }
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
    /// The same for somebody who cannot wait for ever: after so long it is left at what was written by then, as by a crash.
    pub fn write_within(&self, patience: Duration) {
        let (own, (done, is_done)) = (self.clone(), mpsc::channel());
        std::thread::spawn(move || {
            own.write();
            let _ = done.send(());
        });
        let _ = is_done.recv_timeout(patience);
    }

    /// Writes down what is not on record yet, as an abort would leave it, and waits until it is on the disk. Nothing more
    /// is written after it. A failure leaves what a crash would leave.
    pub fn write(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { journal: Some(mut journal), open, partial, is_under_way, .. } = std::mem::take(&mut *state) else { return };
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
            Event::RequestStarted { request, prompt, model: _ } => {
                self.is_under_way = true;
                (Record::request(request, prompt, &self.with), Durable::Later)
            }
            Event::CallsProposed(turn) => {
                self.partial.clear();
                self.open = Open::of(turn);
                (Record::Response(turn.response()), Durable::Later)
            }
            // What can change something outside is on the disk before it does.
            Event::CallStarted { call, tier, .. } => {
                let durable = match tier {
                    Tier::Write => Durable::Now,
                    Tier::Research | Tier::ReadOnly => Durable::Later,
                };
                let open = self.open.as_mut()?;
                let place = open.place(call)?;
                open.turn.start(place);
                (Record::Started { call: place }, durable)
            }
            Event::CallFinished { call, result, remembered, .. } => {
                let open = self.open.as_mut()?;
                let place = open.place(call)?;
                open.turn.answer(place, (*result).clone());
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
}

fn append(journal: &mut Journal, record: &Record, durable: Durable) -> io::Result<()> {
    journal.append(record)?;
    match durable {
        Durable::Later => Ok(()),
        Durable::Now => journal.sync(),
    }
}

impl Open {
    /// A turn of which nothing but the response is on record.
    fn of(turn: &OpenTurn) -> Option<Self> {
        let places = turn.calls().enumerate().map(|(place, (call, _))| (call.id.clone(), place)).collect();
        Some(Self { turn: OpenTurn::new(turn.response()).ok()?, places })
    }

    fn place(&self, call: &Call) -> Option<usize> {
        self.places.get(&call.id).copied()
    }

    /// The record of how the turn ended.
    fn closed(self, turn: &Turn) -> Record {
        Record::closed(&self.turn.answered(), turn)
    }

    /// The record of a turn that nobody will finish: it is closed as any other is.
    fn abandoned(self) -> Record {
        let on_record = self.turn.answered();
        Record::closed(&on_record, &self.turn.close("the request was stopped"))
    }
}

#[cfg(test)]
mod tests;
