//! The observer that writes each event to the session log before it passes it on.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use super::ModelIdentity;
use super::journal::SessionJournal;
use super::record::JournalRecord;
use crate::agent::RequestOutcome;
use crate::agent::events::{AgentEvent, ContextFitting, Observer};
use crate::agent::ports::{ModelInfo, ResponseDelta};
use crate::conversation::{AssistantTurn, CallId, OpenTurn, ToolCall};
use crate::policy::Tier;

/// An observer that writes a request into a session log and passes every event on.
///
/// If writing fails, for example because the disk is full, only the rest of the log is lost. The
/// user gets one notice, the request continues, and the records written before remain readable.
pub struct SessionRecorder<'a> {
    state: Arc<Mutex<RecorderState>>,
    inner: &'a dyn Observer,
}

/// A handle that completes the session log when the program must exit during a request.
#[derive(Clone)]
pub struct ShutdownRecorder {
    state: Arc<Mutex<RecorderState>>,
}

#[derive(Default)]
struct RecorderState {
    /// `None` after a write error: later records would not match the incomplete log.
    journal: Option<SessionJournal>,
    open_turn: Option<OpenTurnRecord>,
    /// The text of the current response that has arrived so far.
    partial_text: String,
    in_progress: bool,
    /// The model that answers.
    model: ModelIdentity,
}

/// The open turn, as far as it has been recorded.
struct OpenTurnRecord {
    turn: OpenTurn,
    /// The index of each call in the turn.
    call_indices: HashMap<CallId, usize>,
}

/// The time at which a record has to be on the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlushPolicy {
    Deferred,
    Immediate,
}

impl<'a> SessionRecorder<'a> {
    /// Creates a recorder that writes to `journal` and passes every event on to `inner`.
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

    /// Returns the session log for the next request; `None` after a write error.
    pub fn into_journal(self) -> Option<SessionJournal> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).journal.take()
    }

    /// Returns a handle that can complete the log from outside.
    pub fn shutdown_recorder(&self) -> ShutdownRecorder {
        ShutdownRecorder { state: Arc::clone(&self.state) }
    }
}

impl ShutdownRecorder {
    /// Calls [`finish`](Self::finish) and waits for it at most this long.
    ///
    /// If it takes longer, the log is left as after a crash.
    pub fn finish_within(&self, timeout: Duration) {
        let (recorder, (done, is_done)) = (self.clone(), mpsc::channel());
        std::thread::spawn(move || {
            recorder.finish();
            let _ = done.send(());
        });
        let _ = is_done.recv_timeout(timeout);
    }

    /// Writes what an abort would record, and waits until it is on the disk.
    ///
    /// Nothing is written after it. If writing fails, the log is left as after a crash.
    pub fn finish(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let RecorderState {
            journal: Some(mut journal), open_turn, partial_text, in_progress, ..
        } = std::mem::take(&mut *state)
        else {
            return;
        };
        let closed = open_turn.map(OpenTurnRecord::abandonment_record);
        let partial = AssistantTurn::from_interrupted_text(partial_text)
            .filter(|_| closed.is_none())
            .map(JournalRecord::Turn);
        let outcome = in_progress.then(|| JournalRecord::from_outcome(&RequestOutcome::Aborted));
        let mut records = closed.into_iter().chain(partial).chain(outcome);
        let _ =
            records.try_for_each(|record| journal.append(&record)).and_then(|()| journal.sync());
    }
}

impl Observer for SessionRecorder<'_> {
    fn observe(&self, event: &AgentEvent<'_>) {
        let notice = self.state.lock().unwrap_or_else(PoisonError::into_inner).record_event(event);
        if let Some(notice) = notice {
            self.inner.observe(&AgentEvent::Notice(&notice));
        }
        self.inner.observe(event);
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }
}

impl RecorderState {
    /// Records an event; returns a notice for the user if that failed.
    fn record_event(&mut self, event: &AgentEvent<'_>) -> Option<String> {
        let (record, flush) = self.event_record(event)?;
        let journal = self.journal.as_mut()?;
        let error = append_record(journal, &record, flush).err()?;
        let notice = format!(
            "Cannot write session {} ({error}). The request continues; earlier records are kept, \
                but the rest is not recorded.",
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
            // A call that can change something is recorded on the disk before it runs.
            AgentEvent::CallStarted { call, tier, .. } => {
                let flush = match tier {
                    Tier::Write => FlushPolicy::Immediate,
                    Tier::Research | Tier::ReadOnly => FlushPolicy::Deferred,
                };
                let open = self.open_turn.as_mut()?;
                let index = open.call_index(call)?;
                open.turn.start(index);
                (JournalRecord::Started { call: index }, flush)
            }
            AgentEvent::CallFinished { call, result, state_delta, .. } => {
                let open = self.open_turn.as_mut()?;
                let index = open.call_index(call)?;
                open.turn.answer(index, (*result).clone());
                (
                    JournalRecord::Finished {
                        call: index,
                        result: (*result).clone(),
                        remembered: state_delta.cloned(),
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
            // A retry discards the text that has arrived.
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
    flush: FlushPolicy,
) -> io::Result<()> {
    journal.append(record)?;
    match flush {
        FlushPolicy::Deferred => Ok(()),
        FlushPolicy::Immediate => journal.sync(),
    }
}

impl OpenTurnRecord {
    /// Creates the state of a turn of which only the response has been recorded.
    fn from_turn(turn: &OpenTurn) -> Option<Self> {
        let call_indices =
            turn.calls().enumerate().map(|(index, (call, _))| (call.id.clone(), index)).collect();
        Some(Self { turn: OpenTurn::new(turn.response()).ok()?, call_indices })
    }

    fn call_index(&self, call: &ToolCall) -> Option<usize> {
        self.call_indices.get(&call.id).copied()
    }

    /// Returns the record that closes the turn.
    fn closing_record(self, turn: &AssistantTurn) -> JournalRecord {
        JournalRecord::from_closed_turn(&self.turn.answered(), turn)
    }

    /// Returns the record of a turn that will not be finished, closed like any other.
    fn abandonment_record(self) -> JournalRecord {
        let on_record = self.turn.answered();
        JournalRecord::from_closed_turn(&on_record, &self.turn.close("the request was cancelled"))
    }
}

#[cfg(test)]
mod tests;
