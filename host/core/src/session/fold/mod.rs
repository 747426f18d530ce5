//! Reading of a session log, either completely or not at all.

use std::io::{self, BufRead};

use serde::Serialize;

use super::ModelIdentity;
use super::record::{AnyHeader, FORMAT_VERSION, JournalHeader, JournalRecord};
use crate::agent::events::ToolStateDelta;
use crate::conversation::{
    AssistantTurn, CallProgressSlot, FoundMessage, OpenTurn, RollingSummary, TokenUsage,
    ToolResult, Transcript, TurnIndex,
};

/// The reason of calls that a crash prevented from starting.
const CRASH_REASON: &str = "the program ended before the call started";

/// The content of a session log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SavedSession {
    /// The header; `None` if a crash came before it was written.
    pub header: Option<JournalHeader>,
    /// The conversation, which is valid whatever the last record is.
    pub transcript: Transcript,
    /// The requests, from the oldest to the newest.
    pub requests: Vec<SessionRequest>,
    /// The changes to tool state, in order.
    pub state_deltas: Vec<ToolStateDelta>,
    /// The length of the complete lines of the file, in bytes.
    pub(super) complete_bytes: u64,
    /// The record that closes a turn that a crash left open.
    ///
    /// Until it is written, only a request may follow.
    pub(super) closing_record: Option<JournalRecord>,
}

/// A single request of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionRequest {
    /// The ID of the request.
    pub id: String,
    /// The prompt of the user.
    pub prompt: String,
    /// The model that answered, if it was recorded.
    pub model: Option<String>,
    /// The provider of the model, if it was recorded.
    pub provider: Option<String>,
    /// The address of the API, if it was not the provider's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The time at which the request began.
    pub at: String,
    /// The number of turns that the request took.
    pub turns: usize,
    /// The end of the request.
    ///
    /// `None` if it is still running, or was running when the program was killed.
    pub ended: Option<RequestEnd>,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RequestEnd {
    /// The name of the outcome.
    pub outcome: String,
    /// The error, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The time at which the request ended.
    pub at: String,
}

/// The reason why a session log cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnreadableJournal {
    Io(io::ErrorKind),
    NewerVersion { version: u32 },
    Damaged { line: usize, reason: String },
}

impl SavedSession {
    /// Reads a session log from memory.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, UnreadableJournal> {
        Self::read_from(bytes)
    }

    /// Reads a session log line by line.
    ///
    /// Bytes after the last newline were torn by a crash and are ignored.
    pub(super) fn read_from(mut journal: impl BufRead) -> Result<Self, UnreadableJournal> {
        let mut line = Vec::new();
        let mut next = |line: &mut Vec<u8>| {
            line.clear();
            journal
                .read_until(b'\n', line)
                .map(|_| line.ends_with(b"\n"))
                .map_err(|error| UnreadableJournal::Io(error.kind()))
        };
        if !next(&mut line)? {
            return Ok(Self::default());
        }
        let header = read_header(&line)?;
        let (mut number, mut complete_bytes) = (1, line.len() as u64);
        let mut fold = JournalFold::default();
        while next(&mut line)? {
            number += 1;
            let damaged = |reason: String| UnreadableJournal::Damaged { line: number, reason };
            let record =
                serde_json::from_slice(&line).map_err(|error| damaged(error.to_string()))?;
            fold.apply(record).map_err(|reason| damaged(reason.to_owned()))?;
            complete_bytes += line.len() as u64;
        }
        let state_deltas = std::mem::take(&mut fold.state_deltas);
        let answered = fold.open_turn.as_ref().map(OpenTurn::answered);
        let (transcript, requests) = fold.finish();
        let closing_record = answered
            .zip(transcript.last_turn())
            .map(|(answered, turn)| JournalRecord::from_closed_turn(&answered, turn));
        Ok(Self {
            header: Some(header),
            transcript,
            requests,
            state_deltas,
            complete_bytes,
            closing_record,
        })
    }

    /// Returns the model that received the newest request, if it was recorded.
    pub fn last_model(&self) -> Option<ModelIdentity> {
        let SessionRequest { model, provider, address, .. } = self.requests.last()?;
        Some(ModelIdentity {
            provider: provider.clone()?,
            model: model.clone()?,
            address: address.clone(),
        })
    }

    /// Returns the number of turns in the whole session.
    pub fn turn_count(&self) -> usize {
        self.requests.iter().map(|request| request.turns).sum()
    }
}

fn read_header(line: &[u8]) -> Result<JournalHeader, UnreadableJournal> {
    let damaged = |reason: String| UnreadableJournal::Damaged { line: 1, reason };
    let unreadable =
        |error: serde_json::Error| damaged(format!("not the header of a session: {error}"));
    match serde_json::from_slice(line).map_err(unreadable)? {
        AnyHeader { cofferdam_session: 0 } => Err(damaged("version 0 does not exist".into())),
        AnyHeader { cofferdam_session: version } if version > FORMAT_VERSION => {
            Err(UnreadableJournal::NewerVersion { version })
        }
        AnyHeader { .. } => serde_json::from_slice(line).map_err(unreadable),
    }
}

/// The state of the session after the records read so far.
#[derive(Default)]
struct JournalFold {
    parts: Vec<FoundMessage>,
    summary: Option<RollingSummary>,
    requests: Vec<SessionRequest>,
    open_turn: Option<OpenTurn>,
    /// The turn that was open when the newest request began.
    ///
    /// It is `None` once a record other than a result has been read.
    unfinished_turn: Option<OpenTurn>,
    state_deltas: Vec<ToolStateDelta>,
}

type ApplyResult = Result<(), &'static str>;

impl JournalFold {
    fn apply(&mut self, record: JournalRecord) -> ApplyResult {
        if !matches!(record, JournalRecord::Finished { .. }) {
            self.close_unfinished_turn();
        }
        match record {
            JournalRecord::Request { id, prompt, model, provider, address, at } => {
                self.unfinished_turn = self.open_turn.take();
                self.requests.push(SessionRequest {
                    id,
                    prompt: prompt.clone(),
                    model,
                    provider,
                    address,
                    at,
                    turns: 0,
                    ended: None,
                });
                self.parts.push(FoundMessage { prompt, ..FoundMessage::default() });
            }
            JournalRecord::Response(response) => {
                self.check_in_progress()?;
                self.open_turn =
                    Some(OpenTurn::new(response).map_err(|_| "the response has no calls")?);
            }
            JournalRecord::Started { call } => match self.open_call(call)? {
                (turn, CallProgressSlot::Waiting) => turn.start(call),
                (_, CallProgressSlot::Started | CallProgressSlot::Done(_)) => {
                    return Err("the call was already started");
                }
            },
            JournalRecord::Finished { call, result, remembered } => {
                self.finish_call(call, result)?;
                self.state_deltas.extend(remembered);
            }
            JournalRecord::Closed { .. } if self.open_turn.is_none() => {
                return Err("no turn is open");
            }
            JournalRecord::Closed { rest } => {
                for (call, result) in rest {
                    self.add_result(call, result)?;
                }
                self.close_open_turn();
            }
            JournalRecord::Turn(turn) => {
                self.check_in_progress()?;
                self.add_turn(turn);
            }
            JournalRecord::Spent(usage) => {
                let part = self.parts.last_mut().ok_or("there is no request before this record")?;
                part.overhead.push(usage);
            }
            JournalRecord::Compacted { .. } if self.open_turn.is_some() => {
                return Err("the previous turn is still open");
            }
            JournalRecord::Compacted { summary, usage, .. } => {
                self.apply_summary(summary, usage)?
            }
            JournalRecord::Outcome { kind, message, at } => {
                self.check_in_progress()?;
                if let Some(request) = self.requests.last_mut() {
                    request.ended = Some(RequestEnd { outcome: kind, message, at });
                }
            }
        }
        Ok(())
    }

    /// Completes the reading; a turn that a crash left open is closed as usual.
    fn finish(mut self) -> (Transcript, Vec<SessionRequest>) {
        self.close_unfinished_turn();
        self.close_open_turn();
        let mut transcript = Transcript::assemble(self.parts);
        // The position was checked when the summary was read, and the turns are complete without
        // it.
        if let Some(summary) = self.summary {
            transcript.apply_summary(summary);
        }
        (transcript, self.requests)
    }

    /// Checks that the newest request is still running and has no open turn.
    fn check_in_progress(&self) -> ApplyResult {
        match (self.requests.last(), &self.open_turn) {
            (None, _) => Err("there is no request before this record"),
            (Some(SessionRequest { ended: Some(_), .. }), _) => {
                Err("the request has already ended")
            }
            (Some(SessionRequest { ended: None, .. }), Some(_)) => {
                Err("the previous turn is still open")
            }
            (Some(SessionRequest { ended: None, .. }), None) => Ok(()),
        }
    }

    fn open_call(
        &mut self,
        index: usize,
    ) -> Result<(&mut OpenTurn, CallProgressSlot), &'static str> {
        let turn = self.open_turn.as_mut().ok_or("no turn is open")?;
        let slot = turn.progress(index).ok_or("the open turn has no such call")?.clone();
        Ok((turn, slot))
    }

    fn add_result(&mut self, index: usize, result: ToolResult) -> ApplyResult {
        match self.open_call(index)? {
            (turn, CallProgressSlot::Waiting | CallProgressSlot::Started) => {
                turn.answer(index, result)
            }
            (_, CallProgressSlot::Done(_)) => return Err("the call was already finished"),
        }
        Ok(())
    }

    /// Adds the result of a call.
    ///
    /// If its call is not in the open turn, the result belongs to the turn that was open when the
    /// request began. If there is none, the result is dropped, since no provider accepts a result
    /// without its call.
    fn finish_call(&mut self, index: usize, result: ToolResult) -> ApplyResult {
        if self.open_turn.as_ref().is_some_and(|turn| turn.progress(index).is_some()) {
            return self.add_result(index, result);
        }
        if let Some(turn) = &mut self.unfinished_turn {
            turn.answer(index, result);
        }
        Ok(())
    }

    fn close_open_turn(&mut self) {
        if let Some(turn) = self.open_turn.take() {
            self.add_turn(turn.close(CRASH_REASON));
        }
    }

    /// Closes the turn that was open before the newest request, which gets no more results.
    fn close_unfinished_turn(&mut self) {
        if let Some(turn) = self.unfinished_turn.take() {
            self.add_turn_to(self.requests.len().saturating_sub(2), turn.close(CRASH_REASON));
        }
    }

    fn add_turn(&mut self, turn: AssistantTurn) {
        self.add_turn_to(self.requests.len().saturating_sub(1), turn);
    }

    fn add_turn_to(&mut self, request: usize, turn: AssistantTurn) {
        if let (Some(part), Some(request)) =
            (self.parts.get_mut(request), self.requests.get_mut(request))
        {
            part.turns.push(turn);
            request.turns += 1;
        }
    }

    /// Stores the newest summary, which must extend the one before it.
    fn apply_summary(&mut self, summary: RollingSummary, usage: TokenUsage) -> ApplyResult {
        let TurnIndex { exchange, turn } = summary.until;
        let turns = self.parts.get(exchange).map_or(0, |part| part.turns.len());
        let exists = exchange <= self.parts.len() && turn <= turns;
        let extends = self.summary.as_ref().is_none_or(|previous| previous.until < summary.until);
        let Some(part) = self.parts.last_mut().filter(|_| exists && extends) else {
            return Err("the summary covers turns that do not exist");
        };
        part.overhead.push(usage);
        self.summary = Some(summary);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
