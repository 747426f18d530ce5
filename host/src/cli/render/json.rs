//! What happened, as JSON. The help of `cofferdam run` and the README describe the fields that programs rely on.

use serde::Serialize;
use serde_json::{Value, json};

use super::Renderer;
use crate::agent::events::{DeniedCall, Event, Fitting, Tier};
use crate::agent::ports::{Delta, ModelInfo};
use crate::agent::{Outcome, RequestId};
use crate::cli::spent::Spent;
use crate::conversation::{ResultStatus, Transcript};
use crate::session::SessionId;

/// A call that finished.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cli) struct CallSummary {
    id: String,
    tool: String,
    tier: Option<Tier>,
    pub(in crate::cli) status: ResultStatus,
    /// Null unless it was denied.
    denied: Option<DeniedCall>,
    /// Of the last command that it ran; null if that did not exit by itself, or there was none.
    exit_code: Option<i32>,
    duration_ms: u64,
}

impl CallSummary {
    pub(super) fn of(event: &Event<'_>) -> Option<Self> {
        let Event::CallFinished { call, tier, result, duration, denied, exit_code, .. } = event else { return None };
        Some(Self {
            id: call.id.to_string(),
            tool: call.name.clone(),
            tier: *tier,
            status: result.status,
            denied: denied.cloned(),
            exit_code: *exit_code,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

/// The end of a request.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct Report<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    /// Null if it did not start.
    request: Option<String>,
    /// Null if it is not recorded.
    session: Option<&'a SessionId>,
    outcome: &'static str,
    exit_code: u8,
    text: Option<&'a str>,
    /// Why the model stopped writing; anything but `end` says that the text may not be all of the answer.
    stop_reason: Option<&'a str>,
    error: Option<&'a str>,
    /// Null if the request did not start.
    model: Option<&'a ModelInfo>,
    turns: usize,
    calls: Vec<CallSummary>,
    #[serde(flatten)]
    pub(in crate::cli) spent: Spent,
}

/// Sums a request up. The transcript holds this request as its last exchange.
pub(in crate::cli) fn report<'a>(
    request: &RequestId,
    session: Option<&'a SessionId>,
    outcome: &'a Outcome,
    exit_code: u8,
    model: &'a ModelInfo,
    transcript: &'a Transcript,
    renderer: &Renderer,
) -> Report<'a> {
    let turns = transcript.exchanges().last().map(|exchange| exchange.turns()).unwrap_or_default();
    let spent = transcript.exchanges().last().map_or_else(Spent::nothing, |exchange| Spent::on(exchange, Some(&model.model)));
    let error = match outcome {
        Outcome::ProviderError { message } | Outcome::Overflow { message } | Outcome::InternalError { message } => Some(message.as_str()),
        Outcome::Answered { .. }
        | Outcome::Limit { .. }
        | Outcome::Empty
        | Outcome::Rejected
        | Outcome::Aborted
        | Outcome::TimedOut { .. } => None,
    };
    Report {
        kind: "result",
        request: Some(request.to_string()),
        session,
        outcome: outcome.kind(),
        exit_code,
        text: outcome.text(),
        stop_reason: turns.last().map(|turn| turn.stop().name()),
        error,
        model: Some(model),
        turns: turns.len(),
        calls: renderer.calls(),
        spent,
    }
}

/// The line for a request that did not start: it has the same fields as that of any other.
pub(in crate::cli) fn not_started(exit_code: u8, error: &str) -> String {
    let report = Report {
        kind: "result",
        request: None,
        session: None,
        outcome: "not-started",
        exit_code,
        text: None,
        stop_reason: None,
        error: Some(error),
        model: None,
        turns: 0,
        calls: Vec::new(),
        spent: Spent::nothing(),
    };
    // Numbers, texts and lists of them can always be written.
    serde_json::to_string(&report).unwrap_or_default()
}

/// The lines of a run, one for each event.
#[derive(Debug)]
pub(super) struct EventLines {
    session: Option<SessionId>,
    has_begun: bool,
}

impl EventLines {
    /// For a run of this session; `None` if it is not recorded.
    pub(super) fn of(session: Option<SessionId>) -> Self {
        Self { session, has_begun: false }
    }

    /// The line for an event; some are of no use to a program. The first one names the session, whatever it is about.
    pub(super) fn line(&mut self, event: &Event<'_>) -> Option<Value> {
        let mut line = line(event)?;
        let names_session = !std::mem::replace(&mut self.has_begun, true) || matches!(event, Event::RequestStarted { .. });
        if let Some(fields) = line.as_object_mut().filter(|_| names_session) {
            fields.insert("session".into(), json!(self.session));
        }
        Some(line)
    }
}

fn line(event: &Event<'_>) -> Option<Value> {
    Some(match event {
        Event::RequestStarted { request, prompt, model } => {
            json!({"type": "request_started", "request": request, "prompt": prompt, "model": model})
        }
        Event::TurnStarted { turn } => json!({"type": "turn_started", "turn": turn}),
        Event::Fitting(Fitting::Pruned(pruned)) => json!({"type": "pruned", "results": pruned.results, "tokens": pruned.tokens}),
        Event::Fitting(Fitting::Summarising) => json!({"type": "summarising"}),
        Event::Fitting(Fitting::Summarised { summary, tokens: (before, after), usage }) => {
            json!({"type": "summarised", "turns": summary.turns, "tokens_before": before, "tokens_after": after, "usage": usage})
        }
        Event::Delta(Delta::Text(text)) => json!({"type": "text", "text": text}),
        Event::Delta(Delta::Reasoning(text)) => json!({"type": "reasoning", "text": text}),
        Event::Delta(Delta::Retry { attempt, pause, reason }) => {
            json!({"type": "retry", "attempt": attempt, "pause_seconds": pause.as_secs_f64(), "reason": reason})
        }
        Event::CallStarted { call, tier, summary } => {
            json!({"type": "call_started", "id": call.id, "tool": call.name, "tier": tier, "summary": summary, "arguments": call.arguments})
        }
        Event::CallProgress { call, message } => json!({"type": "call_progress", "id": call.id, "message": message}),
        Event::CallFinished { call, result, view, .. } => {
            let mut line = json!({"type": "call_finished", "content": result.content, "view": view});
            if let (Some(fields), Some(Value::Object(summary))) =
                (line.as_object_mut(), CallSummary::of(event).and_then(|summary| serde_json::to_value(summary).ok()))
            {
                fields.extend(summary);
                fields.insert("arguments".into(), Value::String(call.arguments.clone()));
            }
            line
        }
        Event::SubAgentTurn { call, usage } => json!({"type": "sub_agent_turn", "id": call.id, "usage": usage}),
        Event::Discarded { usage } => json!({"type": "discarded", "usage": usage}),
        Event::Notice(text) => json!({"type": "notice", "text": text}),
        Event::Delta(Delta::CallBegun(_))
        | Event::Answered(_)
        | Event::CallsProposed(_)
        | Event::TurnFinished(_)
        | Event::RequestFinished { .. } => return None,
    })
}

impl Report<'_> {
    /// The same in one line for people.
    pub(in crate::cli) fn in_words(&self) -> String {
        let failed = self.calls.iter().filter(|call| call.status != ResultStatus::Ok).count();
        let mut words = vec![self.outcome.to_owned(), count(self.turns, "turn"), count(self.calls.len(), "call")];
        if failed > 0 {
            words.push(format!("{failed} not done"));
        }
        words.extend(self.spent.in_words());
        words.extend(self.session.map(|id| format!("session {id}")));
        console::style(words.join(" · ")).dim().for_stderr().to_string()
    }
}

/// A number of things.
pub(in crate::cli) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_run_names_its_session() {
        let id: SessionId = serde_json::from_value(json!("0123456789ab")).expect("an id");
        let started = Event::RequestStarted { request: "1", prompt: "Go.", model: "m" };
        let mut lines = EventLines::of(Some(id));
        let notice = lines.line(&Event::Notice("It is cold.")).expect("a line");
        assert_eq!(notice, json!({"type": "notice", "text": "It is cold.", "session": "0123456789ab"}));
        assert_eq!(lines.line(&started).expect("a line")["session"], "0123456789ab");
        assert_eq!(lines.line(&Event::TurnStarted { turn: 1 }), Some(json!({"type": "turn_started", "turn": 1})));
        let unrecorded = EventLines::of(None).line(&started).expect("a line");
        assert_eq!(unrecorded, json!({"type": "request_started", "request": "1", "prompt": "Go.", "model": "m", "session": null}));
    }
}
