//! What happened, as JSON. The help of `cofferdam run` and the README describe the fields that
//! programs rely on.

use serde::Serialize;
use serde_json::{Value, json};

use super::EventRenderer;
use crate::agent::events::{AgentEvent, ContextFitting, DeniedCallSummary, Tier};
use crate::agent::ports::{ModelInfo, ResponseDelta};
use crate::agent::{RequestId, RequestOutcome};
use crate::cli::spending::SpentTotals;
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
    denied: Option<DeniedCallSummary>,
    /// Of the last command that it ran; null if that did not exit by itself, or there was none.
    exit_code: Option<i32>,
    duration_ms: u64,
}

impl CallSummary {
    pub(super) fn from_event(event: &AgentEvent<'_>) -> Option<Self> {
        let AgentEvent::CallFinished { call, tier, result, duration, denied, exit_code, .. } =
            event
        else {
            return None;
        };
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
pub(in crate::cli) struct JsonReport<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    /// Null if it did not start.
    request: Option<String>,
    /// Null if it is not recorded.
    session: Option<&'a SessionId>,
    outcome: &'static str,
    exit_code: u8,
    text: Option<&'a str>,
    /// Why the model stopped writing; anything but `end` says that the text may not be all of the
    /// answer.
    stop_reason: Option<&'a str>,
    error: Option<&'a str>,
    /// Null if the request did not start.
    model: Option<&'a ModelInfo>,
    turns: usize,
    calls: Vec<CallSummary>,
    #[serde(flatten)]
    pub(in crate::cli) spent: SpentTotals,
}

/// Sums a request up. The transcript holds this request as its last exchange.
pub(in crate::cli) fn build_report<'a>(
    request: &RequestId,
    session: Option<&'a SessionId>,
    outcome: &'a RequestOutcome,
    exit_code: u8,
    model: &'a ModelInfo,
    transcript: &'a Transcript,
    renderer: &EventRenderer,
) -> JsonReport<'a> {
    let turns = transcript.exchanges().last().map(|exchange| exchange.turns()).unwrap_or_default();
    let spent = transcript.exchanges().last().map_or_else(SpentTotals::zero, |exchange| {
        SpentTotals::spent_on(exchange, Some(&model.model))
    });
    let error = match outcome {
        RequestOutcome::ProviderError { message }
        | RequestOutcome::Overflow { message }
        | RequestOutcome::InternalError { message } => Some(message.as_str()),
        RequestOutcome::Answered { .. }
        | RequestOutcome::Limit { .. }
        | RequestOutcome::Empty
        | RequestOutcome::Rejected
        | RequestOutcome::Aborted
        | RequestOutcome::TimedOut { .. } => None,
    };
    JsonReport {
        kind: "result",
        request: Some(request.to_string()),
        session,
        outcome: outcome.kind(),
        exit_code,
        text: outcome.text(),
        stop_reason: turns.last().map(|turn| turn.stop_reason().name()),
        error,
        model: Some(model),
        turns: turns.len(),
        calls: renderer.calls(),
        spent,
    }
}

/// The line for a request that did not start: it has the same fields as that of any other.
pub(in crate::cli) fn not_started(exit_code: u8, error: &str) -> String {
    let report = JsonReport {
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
        spent: SpentTotals::zero(),
    };
    // Numbers, texts and lists of them can always be written.
    serde_json::to_string(&report).unwrap_or_default()
}

/// The lines of a run, one for each event.
#[derive(Debug)]
pub(super) struct JsonEventLines {
    session: Option<SessionId>,
    has_begun: bool,
}

impl JsonEventLines {
    /// For a run of this session; `None` if it is not recorded.
    pub(super) fn new(session: Option<SessionId>) -> Self {
        Self { session, has_begun: false }
    }

    /// The line for an event; some are of no use to a program. The first one names the session,
    /// whatever it is about.
    pub(super) fn event_line(&mut self, event: &AgentEvent<'_>) -> Option<Value> {
        let mut line = line(event)?;
        let names_session = !std::mem::replace(&mut self.has_begun, true)
            || matches!(event, AgentEvent::RequestStarted { .. });
        if let Some(fields) = line.as_object_mut().filter(|_| names_session) {
            fields.insert("session".into(), json!(self.session));
        }
        Some(line)
    }
}

fn line(event: &AgentEvent<'_>) -> Option<Value> {
    Some(match event {
        AgentEvent::RequestStarted { request, prompt, model } => {
            json!({"type": "request_started", "request": request, "prompt": prompt, "model": model})
        }
        AgentEvent::TurnStarted { turn } => json!({"type": "turn_started", "turn": turn}),
        AgentEvent::ContextFitting(ContextFitting::Pruned(pruned)) => {
            json!({"type": "pruned", "results": pruned.results, "tokens": pruned.tokens})
        }
        AgentEvent::ContextFitting(ContextFitting::Summarising) => json!({"type": "summarising"}),
        AgentEvent::ContextFitting(ContextFitting::Summarised {
            summary,
            tokens: (before, after),
            usage,
        }) => {
            json!({"type": "summarised", "turns": summary.turns, "tokens_before": before, "tokens_after": after, "usage": usage})
        }
        AgentEvent::Delta(ResponseDelta::Text(text)) => json!({"type": "text", "text": text}),
        AgentEvent::Delta(ResponseDelta::Reasoning(text)) => {
            json!({"type": "reasoning", "text": text})
        }
        AgentEvent::Delta(ResponseDelta::Retry { attempt, pause, reason }) => {
            json!({"type": "retry", "attempt": attempt, "pause_seconds": pause.as_secs_f64(), "reason": reason})
        }
        AgentEvent::CallStarted { call, tier, summary } => {
            json!({"type": "call_started", "id": call.id, "tool": call.name, "tier": tier, "summary": summary, "arguments": call.arguments})
        }
        AgentEvent::CallProgress { call, message } => {
            json!({"type": "call_progress", "id": call.id, "message": message})
        }
        AgentEvent::CallFinished { call, result, view, .. } => {
            let mut line =
                json!({"type": "call_finished", "content": result.content, "view": view});
            if let (Some(fields), Some(Value::Object(summary))) = (
                line.as_object_mut(),
                CallSummary::from_event(event)
                    .and_then(|summary| serde_json::to_value(summary).ok()),
            ) {
                fields.extend(summary);
                fields.insert("arguments".into(), Value::String(call.arguments.clone()));
            }
            line
        }
        AgentEvent::SubAgentTurn { call, usage } => {
            json!({"type": "sub_agent_turn", "id": call.id, "usage": usage})
        }
        AgentEvent::Discarded { usage } => json!({"type": "discarded", "usage": usage}),
        AgentEvent::Notice(text) => json!({"type": "notice", "text": text}),
        AgentEvent::Delta(ResponseDelta::ToolCallStart(_))
        | AgentEvent::Answered(_)
        | AgentEvent::CallsRequested(_)
        | AgentEvent::TurnFinished(_)
        | AgentEvent::RequestFinished { .. } => return None,
    })
}

impl JsonReport<'_> {
    /// The same in one line for people.
    pub(in crate::cli) fn describe(&self) -> String {
        let failed = self.calls.iter().filter(|call| call.status != ResultStatus::Ok).count();
        let mut words = vec![
            self.outcome.to_owned(),
            count_noun(self.turns, "turn"),
            count_noun(self.calls.len(), "call"),
        ];
        if failed > 0 {
            words.push(format!("{failed} not done"));
        }
        words.extend(self.spent.describe());
        words.extend(self.session.map(|id| format!("session {id}")));
        console::style(words.join(" · ")).dim().for_stderr().to_string()
    }
}

/// A number of things.
pub(in crate::cli) fn count_noun(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_run_names_its_session() {
        let id: SessionId = serde_json::from_value(json!("0123456789ab")).expect("an id");
        let started = AgentEvent::RequestStarted { request: "1", prompt: "Go.", model: "m" };
        let mut lines = JsonEventLines::new(Some(id));
        let notice = lines.event_line(&AgentEvent::Notice("It is cold.")).expect("a line");
        assert_eq!(
            notice,
            json!({"type": "notice", "text": "It is cold.", "session": "0123456789ab"})
        );
        assert_eq!(lines.event_line(&started).expect("a line")["session"], "0123456789ab");
        assert_eq!(
            lines.event_line(&AgentEvent::TurnStarted { turn: 1 }),
            Some(json!({"type": "turn_started", "turn": 1}))
        );
        let unrecorded = JsonEventLines::new(None).event_line(&started).expect("a line");
        assert_eq!(
            unrecorded,
            json!({"type": "request_started", "request": "1", "prompt": "Go.", "model": "m", "session": null})
        );
    }
}
