//! Reading a journal: all of it or nothing.

use std::io::{self, BufRead};

use serde::Serialize;

use super::ModelIdentity;
use super::record::{AnyHeader, FORMAT_VERSION, JournalHeader, JournalRecord};
use crate::agent::events::ToolStateDelta;
use crate::conversation::{
    AssistantTurn, CallProgressSlot, FoundMessage, OpenTurn, RollingSummary, TokenUsage,
    ToolResult, Transcript, TurnIndex,
};

/// Why calls that a crash kept from starting never will.
const CRASH_REASON: &str = "the program ended before its turn came";

/// What a journal holds.
#[derive(Clone, Debug, Default)]
pub struct SavedSession {
    /// The first line; `None` if a crash came before it was written.
    pub header: Option<JournalHeader>,
    /// Valid, whatever the journal's last record is.
    pub transcript: Transcript,
    /// From the oldest to the newest.
    pub requests: Vec<SessionRequest>,
    /// What calls have left to later ones, in order.
    pub state_deltas: Vec<ToolStateDelta>,
    /// How many bytes of the file are whole lines.
    pub(super) complete_bytes: u64,
    /// What closes the turn that a crash left open. Until it is on record nothing but a request may
    /// follow.
    pub(super) closing_record: Option<JournalRecord>,
}

/// A request of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionRequest {
    /// Its name.
    pub id: String,
    /// What the user said.
    pub prompt: String,
    /// Who answered, if that was written down.
    pub model: Option<String>,
    /// Whose model that is, if that was written down.
    pub provider: Option<String>,
    /// Where it was asked, if that was not its provider's own address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// When.
    pub at: String,
    /// How many turns it took.
    pub turns: usize,
    /// `None` if it is under way, or was when the program was killed.
    pub ended: Option<RequestEnd>,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestEnd {
    /// The outcome's word.
    pub outcome: String,
    /// What went wrong, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When.
    pub at: String,
}

/// Why a journal was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnreadableJournal {
    Io(io::ErrorKind),
    NewerVersion { version: u32 },
    Damaged { line: usize, reason: String },
}

impl SavedSession {
    /// Reads the bytes of a journal.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, UnreadableJournal> {
        Self::read_from(bytes)
    }

    /// Reads a journal line by line. What follows the last newline was torn by a crash and is
    /// passed over.
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
        let (mut number, mut whole) = (1, line.len() as u64);
        let mut fold = JournalFold::default();
        while next(&mut line)? {
            number += 1;
            let damaged =
                |problem: String| UnreadableJournal::Damaged { line: number, reason: problem };
            let record =
                serde_json::from_slice(&line).map_err(|error| damaged(error.to_string()))?;
            fold.apply(record).map_err(|problem| damaged(problem.to_owned()))?;
            whole += line.len() as u64;
        }
        let remembered = std::mem::take(&mut fold.state_deltas);
        let on_record = fold.open_turn.as_ref().map(OpenTurn::answered);
        let (transcript, requests) = fold.finish();
        let missing = on_record
            .zip(transcript.last_turn())
            .map(|(on_record, turn)| JournalRecord::from_closed_turn(&on_record, turn));
        Ok(Self {
            header: Some(header),
            transcript,
            requests,
            state_deltas: remembered,
            complete_bytes: whole,
            closing_record: missing,
        })
    }

    /// Whom the newest request went to, if that was written down.
    pub fn last_model(&self) -> Option<ModelIdentity> {
        let SessionRequest { model, provider, address, .. } = self.requests.last()?;
        Some(ModelIdentity {
            provider: provider.clone()?,
            model: model.clone()?,
            address: address.clone(),
        })
    }

    /// How many turns the assistant took.
    pub fn turn_count(&self) -> usize {
        self.requests.iter().map(|request| request.turns).sum()
    }
}

fn read_header(line: &[u8]) -> Result<JournalHeader, UnreadableJournal> {
    let damaged = |problem: String| UnreadableJournal::Damaged { line: 1, reason: problem };
    let unreadable = |error: serde_json::Error| {
        damaged(format!("this is not the beginning of a session: {error}"))
    };
    match serde_json::from_slice(line).map_err(unreadable)? {
        AnyHeader { cofferdam_session: 0 } => Err(damaged("there is no version 0".into())),
        AnyHeader { cofferdam_session: version } if version > FORMAT_VERSION => {
            Err(UnreadableJournal::NewerVersion { version })
        }
        AnyHeader { .. } => serde_json::from_slice(line).map_err(unreadable),
    }
}

/// What has happened so far.
#[derive(Default)]
struct JournalFold {
    parts: Vec<FoundMessage>,
    summary: Option<RollingSummary>,
    requests: Vec<SessionRequest>,
    open_turn: Option<OpenTurn>,
    /// The turn that was open when the newest request began, as long as nothing but results came
    /// since.
    unfinished_turn: Option<OpenTurn>,
    state_deltas: Vec<ToolStateDelta>,
}

type TakenState = Result<(), &'static str>;

impl JournalFold {
    fn apply(&mut self, record: JournalRecord) -> TakenState {
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
                self.open_turn = Some(
                    OpenTurn::new(response)
                        .map_err(|_| "a response without calls opens no turn")?,
                );
            }
            JournalRecord::Started { call } => match self.open_call(call)? {
                (turn, CallProgressSlot::Waiting) => turn.start(call),
                (_, CallProgressSlot::Started | CallProgressSlot::Done(_)) => {
                    return Err("a call starts a second time");
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
                let part = self.parts.last_mut().ok_or("nothing was asked before it")?;
                part.overhead.push(usage);
            }
            JournalRecord::Compacted { .. } if self.open_turn.is_some() => {
                return Err("the turn before it is still open");
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

    /// What a crash left open is closed as anything else is.
    fn finish(mut self) -> (Transcript, Vec<SessionRequest>) {
        self.close_unfinished_turn();
        self.close_open_turn();
        let mut transcript = Transcript::assemble(self.parts);
        // Its place was there when it was read, and what it stands for is whole without it.
        self.summary.map(|summary| transcript.apply_summary(summary));
        (transcript, self.requests)
    }

    /// Whether something new can happen in the newest request.
    fn check_in_progress(&self) -> TakenState {
        match (self.requests.last(), &self.open_turn) {
            (None, _) => Err("nothing was asked before it"),
            (Some(SessionRequest { ended: Some(_), .. }), _) => Err("the request is over"),
            (Some(SessionRequest { ended: None, .. }), Some(_)) => {
                Err("the turn before it is still open")
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

    fn add_result(&mut self, index: usize, result: ToolResult) -> TakenState {
        match self.open_call(index)? {
            (turn, CallProgressSlot::Waiting | CallProgressSlot::Started) => {
                turn.answer(index, result)
            }
            (_, CallProgressSlot::Done(_)) => return Err("a call finishes a second time"),
        }
        Ok(())
    }

    /// A result whose call is not in the open turn goes to the call that was left unanswered when
    /// the request began, if there is one, and is dropped otherwise: no provider takes a result
    /// without its call.
    fn finish_call(&mut self, index: usize, result: ToolResult) -> TakenState {
        if self.open_turn.as_ref().is_some_and(|turn| turn.progress(index).is_some()) {
            return self.add_result(index, result);
        }
        if let Some(left) = &mut self.unfinished_turn {
            left.answer(index, result);
        }
        Ok(())
    }

    fn close_open_turn(&mut self) {
        if let Some(turn) = self.open_turn.take() {
            self.add_turn(turn.close(CRASH_REASON));
        }
    }

    /// The turn before the newest request gets no more results.
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

    /// The newest summary counts; each extends the one before it.
    fn apply_summary(&mut self, summary: RollingSummary, usage: TokenUsage) -> TakenState {
        let TurnIndex { exchange, turn } = summary.until;
        let turns = self.parts.get(exchange).map_or(0, |part| part.turns.len());
        let is_there = exchange <= self.parts.len() && turn <= turns;
        let extends = self.summary.as_ref().is_none_or(|before| before.until < summary.until);
        let Some(part) = self.parts.last_mut().filter(|_| is_there && extends) else {
            return Err("the summary stands for what is not there");
        };
        part.overhead.push(usage);
        self.summary = Some(summary);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
