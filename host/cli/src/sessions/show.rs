//! `cofferdam sessions show`: shows the conversation as text, or its requests as JSON.

use std::process::ExitCode;

use console::style;
use serde::Serialize;
use serde_json::json;

use super::{format_local_time, request_totals, summary_json, workspace_path};
use crate::error::CommandResult;
use crate::json_text::json_page;
use crate::print::print_line;
use crate::render::count_noun;
use crate::spending::SpentTotals;
use cofferdam::conversation::{AnsweredCall, ResultStatus, TurnContentBlock, UserExchange};
use cofferdam::session::{SavedSession, SessionRequest, StoredSession};
use cofferdam::terminal_escape;

pub(super) fn run(entry: &StoredSession, as_json: bool) -> CommandResult {
    let saved = entry.load()?;
    print_line(&if as_json { requests_json(entry, &saved) } else { format_session(entry, &saved) });
    Ok(ExitCode::SUCCESS)
}

fn requests_json(entry: &StoredSession, saved: &SavedSession) -> String {
    let mut all = summary_json(entry, saved);
    all["requests"] = saved
        .requests
        .iter()
        .zip(request_totals(saved))
        .map(|(request, spent)| json!(RequestUsage { request, spent }))
        .collect();
    json_page(&all)
}

/// A request with its usage and cost.
#[derive(Serialize)]
struct RequestUsage<'a> {
    #[serde(flatten)]
    request: &'a SessionRequest,
    #[serde(flatten)]
    spent: SpentTotals,
}

fn format_session(entry: &StoredSession, saved: &SavedSession) -> String {
    let place =
        terminal_escape::escape_line(workspace_path(saved).unwrap_or("an unknown directory"), 400);
    let mut lines = vec![format!(
        "session {} in {place}, last changed {}",
        entry.id,
        format_local_time(entry.modified)
    )];
    let spent: Vec<SpentTotals> = request_totals(saved).collect();
    for (n, exchange) in saved.transcript.exchanges().iter().enumerate() {
        lines.push(String::new());
        lines.extend(exchange_lines(exchange));
        lines.extend(
            saved
                .requests
                .get(n)
                .zip(spent.get(n))
                .map(|(request, spent)| format_request_end(request, spent)),
        );
    }
    if spent.len() > 1 {
        let all = [count_noun(spent.len(), "request"), count_noun(saved.turn_count(), "turn")]
            .into_iter()
            .chain(SpentTotals::sum(spent).describe());
        lines.extend([
            String::new(),
            style(format!("total: {}", all.collect::<Vec<_>>().join(" · "))).dim().to_string(),
        ]);
    }
    if let Some(summary) = saved.transcript.summary() {
        lines.push(String::new());
        lines.push(
            style(format!(
                "(The model receives this summary in place of the oldest {}.)",
                count_noun(summary.turns, "turn")
            ))
            .dim()
            .to_string(),
        );
        lines.push(terminal_escape::escape_text(summary.text.trim()));
    }
    lines.join("\n")
}

/// Formats an exchange as lines.
pub(crate) fn exchange_lines(exchange: &UserExchange) -> Vec<String> {
    let mut lines: Vec<String> = terminal_escape::escape_text(exchange.prompt())
        .lines()
        .map(|line| style(format!("> {line}")).bold().to_string())
        .collect();
    for block in exchange.turns().iter().flat_map(|turn| turn.blocks()) {
        match block {
            TurnContentBlock::Text(text) => lines.push(terminal_escape::escape_text(text.trim())),
            TurnContentBlock::Call(answered) => lines.extend(call_lines(answered)),
            TurnContentBlock::Reasoning(_) => {}
        }
    }
    lines
}

fn call_lines(answered: &AnsweredCall) -> Vec<String> {
    let AnsweredCall { call, result } = answered;
    let mark = match result.status {
        ResultStatus::Ok => style("✓").green(),
        ResultStatus::Error => style("✗").red(),
        ResultStatus::Rejected | ResultStatus::NotRun | ResultStatus::Interrupted => {
            style("–").yellow()
        }
    };
    let mut lines = vec![format!(
        "  {mark} {} {}",
        terminal_escape::escape_line(&call.name, 64),
        style(terminal_escape::escape_line(&call.arguments, 120)).dim()
    )];
    if result.status.is_error() {
        lines.push(format!(
            "      {}",
            style(terminal_escape::escape_line(&result.text(), 200)).dim()
        ));
    }
    lines
}

fn format_request_end(request: &SessionRequest, spent: &SpentTotals) -> String {
    let words = match &request.ended {
        None => "unfinished".to_owned(),
        Some(ended) => match &ended.message {
            None => ended.outcome.clone(),
            Some(message) => format!("{}: {message}", ended.outcome),
        },
    };
    let words: Vec<String> =
        [terminal_escape::escape_line(&words, 400)].into_iter().chain(spent.describe()).collect();
    style(format!("({})", words.join(" · "))).dim().to_string()
}
