//! Writing down what happens, before anybody else hears of it.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use super::ModelIdentity;
use super::journal::SessionJournal;
use super::record::JournalRecord;
use crate::agent::RequestOutcome;
use crate::agent::events::{AgentEvent, ContextFitting, Observer, Tier};
use crate::agent::ports::{ModelInfo, ResponseDelta};
use crate::conversation::{AssistantTurn, CallId, OpenTurn, ToolCall};

/// Writes a request into a journal and passes every event on to whoever else watches.
///
/// A failure to write, such as a full disk, costs nothing but the rest of the journal: the user is
/// told once, the request goes on, and what was written until then stays readable.
pub struct SessionRecorder<'a> {
    state: Arc<Mutex<RecorderState>>,
    inner: &'a dyn Observer,
}

/// Brings a recording to its end from outside, for a program that has to leave in the middle of a
/// request.
#[derive(Clone)]
pub struct ShutdownRecorder {
    state: Arc<Mutex<RecorderState>>,
}

#[derive(Default)]
struct RecorderState {
    /// `None` once writing failed: after a gap nothing more is written, since it would not fit to
    /// what is there.
    journal: Option<SessionJournal>,
    open_turn: Option<OpenTurnRecord>,
    /// The text of the response that is coming, as far as it has come.
    partial_text: String,
    in_progress: bool,
    /// Who answers.
    model: ModelIdentity,
}

/// The open turn as far as it is on record.
struct OpenTurnRecord {
    turn: OpenTurn,
    /// The place of each call.
    call_indices: HashMap<CallId, usize>,
}

/// When a record has to be on the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlushPolicy {
    Deferred,
    Immediate,
}

impl<'a> SessionRecorder<'a> {
    /// Records into a journal what `then` is told of requests to a model.
    pub fn new(journal: SessionJournal, model: &ModelInfo, inner: &'a dyn Observer) -> Self {
        Self {
            state: Arc::new(Mutex::new(RecorderState {
                journal: Some(journal),
                model: model.into(),
                ..RecorderState::default()
            })),
            inner,
        }
    }

    /// Gives the journal back for the next request; `None` if it could not be written any more.
    pub fn into_journal(self) -> Option<SessionJournal> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).journal.take()
    }

    /// For somebody who may have to end it.
    pub fn shutdown_recorder(&self) -> ShutdownRecorder {
        ShutdownRecorder { state: Arc::clone(&self.state) }
    }
}

impl ShutdownRecorder {
    /// The same for somebody who cannot wait for ever: after so long it is left at what was written
    /// by then, as by a crash.
    pub fn finish_within(&self, patience: Duration) {
        let (own, (done, is_done)) = (self.clone(), mpsc::channel());
        std::thread::spawn(move || {
            own.finish();
            let _ = done.send(());
        });
        let _ = is_done.recv_timeout(patience);
    }

    /// Writes down what is not on record yet, as an abort would leave it, and waits until it is on
    /// the disk. Nothing more is written after it. A failure leaves what a crash would leave.
    pub fn finish(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let RecorderState {
            journal: Some(mut journal),
            open_turn: open,
            partial_text: partial,
            in_progress: is_under_way,
            ..
        } = std::mem::take(&mut *state)
        else {
            return;
        };
        let open = open.map(OpenTurnRecord::abandonment_record);
        let partial = AssistantTurn::from_interrupted_text(partial)
            .filter(|_| open.is_none())
            .map(JournalRecord::Turn);
        let outcome = is_under_way.then(|| JournalRecord::from_outcome(&RequestOutcome::Aborted));
        let mut records = open.into_iter().chain(partial).chain(outcome);
        drop(records.try_for_each(|record| journal.append(&record)).and_then(|()| journal.sync()));
    }
}

impl Observer for SessionRecorder<'_> {
    fn observe(&self, event: &AgentEvent<'_>) {
        let problem = self.state.lock().unwrap_or_else(PoisonError::into_inner).record_event(event);
        if let Some(notice) = problem {
            self.inner.observe(&AgentEvent::Notice(&notice));
        }
        self.inner.observe(event);
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }
}

impl RecorderState {
    /// What the user has to be told, if it failed.
    fn record_event(&mut self, event: &AgentEvent<'_>) -> Option<String> {
        let (record, durable) = self.event_record(event)?;
        let journal = self.journal.as_mut()?;
        let written = append_record(journal, &record, durable);
        let error = written.err()?;
        let notice = format!(
            "Session {} could not be written ({error}). The request goes on, and what was written \
                before stays; the rest is not recorded.",
            journal.id()
        );
        self.journal = None;
        Some(notice)
    }

    fn event_record(&mut self, event: &AgentEvent<'_>) -> Option<(JournalRecord, FlushPolicy)> {
        Some(match event {
            AgentEvent::RequestStarted { request, prompt, model: _ } => {
                self.in_progress = true;
                (JournalRecord::from_request(request, prompt, &self.model), FlushPolicy::Deferred)
            }
            AgentEvent::CallsRequested(turn) => {
                self.partial_text.clear();
                self.open_turn = OpenTurnRecord::from_turn(turn);
                (JournalRecord::Response(turn.response()), FlushPolicy::Deferred)
            }
            // What can change something outside is on the disk before it does.
            AgentEvent::CallStarted { call, tier, .. } => {
                let durable = match tier {
                    Tier::Write => FlushPolicy::Immediate,
                    Tier::Research | Tier::ReadOnly => FlushPolicy::Deferred,
                };
                let open = self.open_turn.as_mut()?;
                let place = open.call_index(call)?;
                open.turn.start(place);
                (JournalRecord::Started { call: place }, durable)
            }
            AgentEvent::CallFinished { call, result, state_delta: remembered, .. } => {
                let open = self.open_turn.as_mut()?;
                let place = open.call_index(call)?;
                open.turn.answer(place, (*result).clone());
                (
                    JournalRecord::Finished {
                        call: place,
                        result: (*result).clone(),
                        remembered: remembered.cloned(),
                    },
                    FlushPolicy::Deferred,
                )
            }
            AgentEvent::TurnFinished(turn) => {
                self.partial_text.clear();
                (
                    self.open_turn.take().map_or_else(
                        || JournalRecord::Turn((*turn).clone()),
                        |open| open.closing_record(turn),
                    ),
                    FlushPolicy::Immediate,
                )
            }
            AgentEvent::ContextFitting(ContextFitting::Summarised { summary, usage, .. }) => {
                (JournalRecord::from_summary(summary, *usage), FlushPolicy::Immediate)
            }
            AgentEvent::SubAgentTurn { usage, .. } | AgentEvent::Discarded { usage } => {
                (JournalRecord::Spent(*usage), FlushPolicy::Deferred)
            }
            AgentEvent::RequestFinished { outcome } => {
                self.in_progress = false;
                (JournalRecord::from_outcome(outcome), FlushPolicy::Immediate)
            }
            // After a pause a response begins anew.
            AgentEvent::TurnStarted { .. } | AgentEvent::Delta(ResponseDelta::Retry { .. }) => {
                self.partial_text.clear();
                return None;
            }
            AgentEvent::Delta(ResponseDelta::Text(text)) => {
                self.partial_text.push_str(text);
                return None;
            }
            AgentEvent::ContextFitting(ContextFitting::Pruned(_) | ContextFitting::Summarising)
            | AgentEvent::Delta(ResponseDelta::Reasoning(_) | ResponseDelta::ToolCallStart(_))
            | AgentEvent::Answered(_)
            | AgentEvent::CallProgress { .. }
            | AgentEvent::Notice(_) => return None,
        })
    }
}

fn append_record(
    journal: &mut SessionJournal,
    record: &JournalRecord,
    durable: FlushPolicy,
) -> io::Result<()> {
    journal.append(record)?;
    match durable {
        FlushPolicy::Deferred => Ok(()),
        FlushPolicy::Immediate => journal.sync(),
    }
}

impl OpenTurnRecord {
    /// A turn of which nothing but the response is on record.
    fn from_turn(turn: &OpenTurn) -> Option<Self> {
        let places =
            turn.calls().enumerate().map(|(place, (call, _))| (call.id.clone(), place)).collect();
        Some(Self { turn: OpenTurn::new(turn.response()).ok()?, call_indices: places })
    }

    fn call_index(&self, call: &ToolCall) -> Option<usize> {
        self.call_indices.get(&call.id).copied()
    }

    /// The record of how the turn ended.
    fn closing_record(self, turn: &AssistantTurn) -> JournalRecord {
        JournalRecord::from_closed_turn(&self.turn.answered(), turn)
    }

    /// The record of a turn that nobody will finish: it is closed as any other is.
    fn abandonment_record(self) -> JournalRecord {
        let on_record = self.turn.answered();
        JournalRecord::from_closed_turn(&on_record, &self.turn.close("the request was stopped"))
    }
}

#[cfg(test)]
mod tests;
