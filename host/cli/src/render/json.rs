//! JSON output of runs. The help of `cofferdam run` and the README document the fields that
//! programs rely on.

use serde::Serialize;
use serde_json::{Value, json};

use super::EventRenderer;
use crate::json_text::json_line;
use crate::spending::SpentTotals;
use cofferdam::agent::events::{AgentEvent, ContextFitting, DeniedCallSummary};
use cofferdam::agent::ports::{ModelInfo, ResponseDelta};
use cofferdam::agent::{RequestId, RequestOutcome};
use cofferdam::conversation::{ResultStatus, Transcript};
use cofferdam::policy::Tier;
use cofferdam::session::SessionId;

/// A finished call, as in the report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CallSummary {
    id: String,
    tool: String,
    tier: Option<Tier>,
    pub(crate) status: ResultStatus,
    /// The denial; null if the call was not denied.
    denied: Option<DeniedCallSummary>,
    /// Exit code of the last command that the call ran; null if there was none or it did not exit
    /// by itself.
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

/// The result object at the end of a request.
#[derive(Debug, Serialize)]
pub(crate) struct JsonReport<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    /// The ID of the request; null if it did not start.
    request: Option<String>,
    /// The ID of the session; null if it is not recorded.
    session: Option<&'a SessionId>,
    outcome: &'static str,
    exit_code: u8,
    text: Option<&'a str>,
    /// The reason why the model stopped. With any value except `end`, the text may be incomplete.
    stop_reason: Option<&'a str>,
    error: Option<&'a str>,
    /// The model; null if the request did not start.
    model: Option<&'a ModelInfo>,
    turns: usize,
    calls: Vec<CallSummary>,
    #[serde(flatten)]
    pub(crate) spent: SpentTotals,
}

/// Builds the report of a request, which must be the last exchange of the transcript.
pub(crate) fn build_report<'a>(
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

/// Returns the report of a request that did not start, with the same fields as any other.
pub(crate) fn not_started(exit_code: u8, error: &str) -> String {
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
    json_line(&report)
}

/// Converts the events of a run to JSON lines.
#[derive(Debug)]
pub(super) struct JsonEventLines {
    session: Option<SessionId>,
    has_begun: bool,
}

impl JsonEventLines {
    /// Creates a converter. `session` is `None` if the session is not recorded.
    pub(super) fn new(session: Option<SessionId>) -> Self {
        Self { session, has_begun: false }
    }

    /// Returns the line for an event, or `None` if programs have no use for it. The first line
    /// contains the session.
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
            json!({
                "type": "summarised",
                "turns": summary.turns,
                "tokens_before": before,
                "tokens_after": after,
                "usage": usage,
            })
        }
        AgentEvent::Delta(ResponseDelta::Text(text)) => json!({"type": "text", "text": text}),
        AgentEvent::Delta(ResponseDelta::Reasoning(text)) => {
            json!({"type": "reasoning", "text": text})
        }
        AgentEvent::Delta(ResponseDelta::Retry { attempt, pause, reason }) => {
            json!({
                "type": "retry",
                "attempt": attempt,
                "pause_seconds": pause.as_secs_f64(),
                "reason": reason,
            })
        }
        AgentEvent::CallStarted { call, tier, summary } => {
            json!({
                "type": "call_started",
                "id": call.id,
                "tool": call.name,
                "tier": tier,
                "summary": summary,
                "arguments": call.arguments,
            })
        }
        AgentEvent::CallProgress { call, message } => {
            json!({"type": "call_progress", "id": call.id, "message": message})
        }
        AgentEvent::CallFinished { call, result, view, structured, .. } => {
            let mut line = json!({
                "type": "call_finished",
                "content": result.content,
                "view": view,
                "structured": structured,
            });
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
        _ => return None,
    })
}

impl JsonReport<'_> {
    /// Formats the report in one line for display.
    pub(crate) fn describe(&self) -> String {
        let failed = self.calls.iter().filter(|call| call.status != ResultStatus::Ok).count();
        let mut words = vec![
            self.outcome.to_owned(),
            count_noun(self.turns, "turn"),
            count_noun(self.calls.len(), "call"),
        ];
        if failed > 0 {
            words.push(format!("{failed} unsuccessful"));
        }
        words.extend(self.spent.describe());
        words.extend(self.session.map(|id| format!("session {id}")));
        console::style(words.join(" · ")).dim().for_stderr().to_string()
    }
}

/// Formats a number with a noun, such as `1 turn` or `2 turns`.
pub(crate) fn count_noun(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_run_contains_the_session() {
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
            json!({
                "type": "request_started",
                "request": "1",
                "prompt": "Go.",
                "model": "m",
                "session": null,
            })
        );
    }
}
