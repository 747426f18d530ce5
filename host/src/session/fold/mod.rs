//! Reading a journal: all of it or nothing.

use std::io::{self, BufRead};

use serde::Serialize;

use super::HeldWith;
use super::record::{AnyHeader, Header, Record, VERSION};
use crate::agent::events::Remembered;
use crate::conversation::{OpenTurn, Part, Place, Slot, Summary, ToolResult, Transcript, Turn, Usage};

/// Why calls that a crash kept from starting never will.
const CRASHED: &str = "the program ended before its turn came";

/// What a journal holds.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// The first line; `None` if a crash came before it was written.
    pub header: Option<Header>,
    /// Valid, whatever the journal's last record is.
    pub transcript: Transcript,
    /// From the oldest to the newest.
    pub requests: Vec<Request>,
    /// What calls have left to later ones, in order.
    pub remembered: Vec<Remembered>,
    /// How many bytes of the file are whole lines.
    pub(super) whole: u64,
    /// What closes the turn that a crash left open. Until it is on record nothing but a request may follow.
    pub(super) missing: Option<Record>,
}

/// A request of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
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
    pub ended: Option<Ended>,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ended {
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
pub(super) enum Unreadable {
    Io(io::ErrorKind),
    Newer { version: u32 },
    Damaged { line: usize, problem: String },
}

impl Saved {
    /// Reads the bytes of a journal.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        Self::read_from(bytes)
    }

    /// Reads a journal line by line. What follows the last newline was torn by a crash and is passed over.
    pub(super) fn read_from(mut journal: impl BufRead) -> Result<Self, Unreadable> {
        let mut line = Vec::new();
        let mut next = |line: &mut Vec<u8>| {
            line.clear();
            journal.read_until(b'\n', line).map(|_| line.ends_with(b"\n")).map_err(|error| Unreadable::Io(error.kind()))
        };
        if !next(&mut line)? {
            return Ok(Self::default());
        }
        let header = read_header(&line)?;
        let (mut number, mut whole) = (1, line.len() as u64);
        let mut fold = Fold::default();
        while next(&mut line)? {
            number += 1;
            let damaged = |problem: String| Unreadable::Damaged { line: number, problem };
            let record = serde_json::from_slice(&line).map_err(|error| damaged(error.to_string()))?;
            fold.take(record).map_err(|problem| damaged(problem.to_owned()))?;
            whole += line.len() as u64;
        }
        let remembered = std::mem::take(&mut fold.remembered);
        let on_record = fold.open.as_ref().map(OpenTurn::answered);
        let (transcript, requests) = fold.finish();
        let missing = on_record.zip(transcript.last_turn()).map(|(on_record, turn)| Record::closed(&on_record, turn));
        Ok(Self { header: Some(header), transcript, requests, remembered, whole, missing })
    }

    /// Whom the newest request went to, if that was written down.
    pub fn held_with(&self) -> Option<HeldWith> {
        let Request { model, provider, address, .. } = self.requests.last()?;
        Some(HeldWith { provider: provider.clone()?, model: model.clone()?, address: address.clone() })
    }

    /// How many turns the assistant took.
    pub fn turns(&self) -> usize {
        self.requests.iter().map(|request| request.turns).sum()
    }
}

fn read_header(line: &[u8]) -> Result<Header, Unreadable> {
    let damaged = |problem: String| Unreadable::Damaged { line: 1, problem };
    let unreadable = |error: serde_json::Error| damaged(format!("this is not the beginning of a session: {error}"));
    match serde_json::from_slice(line).map_err(unreadable)? {
        AnyHeader { cofferdam_session: 0 } => Err(damaged("there is no version 0".into())),
        AnyHeader { cofferdam_session: version } if version > VERSION => Err(Unreadable::Newer { version }),
        AnyHeader { .. } => serde_json::from_slice(line).map_err(unreadable),
    }
}

/// What has happened so far.
#[derive(Default)]
struct Fold {
    parts: Vec<Part>,
    summary: Option<Summary>,
    requests: Vec<Request>,
    open: Option<OpenTurn>,
    /// The turn that was open when the newest request began, as long as nothing but results came since.
    left: Option<OpenTurn>,
    remembered: Vec<Remembered>,
}

type Taken = Result<(), &'static str>;

impl Fold {
    fn take(&mut self, record: Record) -> Taken {
        if !matches!(record, Record::Finished { .. }) {
            self.close_left();
        }
        match record {
            Record::Request { id, prompt, model, provider, address, at } => {
                self.left = self.open.take();
                self.requests.push(Request { id, prompt: prompt.clone(), model, provider, address, at, turns: 0, ended: None });
                self.parts.push(Part { prompt, ..Part::default() });
            }
            Record::Response(response) => {
                self.under_way()?;
                self.open = Some(OpenTurn::new(response).map_err(|_| "a response without calls opens no turn")?);
            }
            Record::Started { call } => match self.call(call)? {
                (turn, Slot::Waiting) => turn.start(call),
                (_, Slot::Started | Slot::Done(_)) => return Err("a call starts a second time"),
            },
            Record::Finished { call, result, remembered } => {
                self.finished(call, result)?;
                self.remembered.extend(remembered);
            }
            Record::Closed { .. } if self.open.is_none() => return Err("no turn is open"),
            Record::Closed { rest } => {
                for (call, result) in rest {
                    self.answer(call, result)?;
                }
                self.close();
            }
            Record::Turn(turn) => {
                self.under_way()?;
                self.add(turn);
            }
            Record::Spent(usage) => {
                let part = self.parts.last_mut().ok_or("nothing was asked before it")?;
                part.overhead.push(usage);
            }
            Record::Compacted { .. } if self.open.is_some() => return Err("the turn before it is still open"),
            Record::Compacted { summary, usage, .. } => self.compact(summary, usage)?,
            Record::Outcome { kind, message, at } => {
                self.under_way()?;
                if let Some(request) = self.requests.last_mut() {
                    request.ended = Some(Ended { outcome: kind, message, at });
                }
            }
        }
        Ok(())
    }

    /// What a crash left open is closed as anything else is.
    fn finish(mut self) -> (Transcript, Vec<Request>) {
        self.close_left();
        self.close();
        let mut transcript = Transcript::assemble(self.parts);
        // Its place was there when it was read, and what it stands for is whole without it.
        self.summary.map(|summary| transcript.summarise(summary));
        (transcript, self.requests)
    }

    /// Whether something new can happen in the newest request.
    fn under_way(&self) -> Taken {
        match (self.requests.last(), &self.open) {
            (None, _) => Err("nothing was asked before it"),
            (Some(Request { ended: Some(_), .. }), _) => Err("the request is over"),
            (Some(Request { ended: None, .. }), Some(_)) => Err("the turn before it is still open"),
            (Some(Request { ended: None, .. }), None) => Ok(()),
        }
    }

    fn call(&mut self, index: usize) -> Result<(&mut OpenTurn, Slot), &'static str> {
        let turn = self.open.as_mut().ok_or("no turn is open")?;
        let slot = turn.progress(index).ok_or("the open turn has no such call")?.clone();
        Ok((turn, slot))
    }

    fn answer(&mut self, index: usize, result: ToolResult) -> Taken {
        match self.call(index)? {
            (turn, Slot::Waiting | Slot::Started) => turn.answer(index, result),
            (_, Slot::Done(_)) => return Err("a call finishes a second time"),
        }
        Ok(())
    }

    /// A result whose call is not in the open turn goes to the call that was left unanswered when the request began, if there
    /// is one, and is dropped otherwise: no provider takes a result without its call.
    fn finished(&mut self, index: usize, result: ToolResult) -> Taken {
        if self.open.as_ref().is_some_and(|turn| turn.progress(index).is_some()) {
            return self.answer(index, result);
        }
        if let Some(left) = &mut self.left {
            left.answer(index, result);
        }
        Ok(())
    }

    fn close(&mut self) {
        if let Some(turn) = self.open.take() {
            self.add(turn.close(CRASHED));
        }
    }

    /// The turn before the newest request gets no more results.
    fn close_left(&mut self) {
        if let Some(turn) = self.left.take() {
            self.add_to(self.requests.len().saturating_sub(2), turn.close(CRASHED));
        }
    }

    fn add(&mut self, turn: Turn) {
        self.add_to(self.requests.len().saturating_sub(1), turn);
    }

    fn add_to(&mut self, request: usize, turn: Turn) {
        if let (Some(part), Some(request)) = (self.parts.get_mut(request), self.requests.get_mut(request)) {
            part.turns.push(turn);
            request.turns += 1;
        }
    }

    /// The newest summary counts; each extends the one before it.
    fn compact(&mut self, summary: Summary, usage: Usage) -> Taken {
        let Place { exchange, turn } = summary.until;
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
