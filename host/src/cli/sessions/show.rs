//! `cofferdam sessions show`: for people, what was said and done; for programs, the requests.

use std::process::ExitCode;

use console::style;
use serde::Serialize;
use serde_json::json;

use super::{local_time, spent, summary, workspace_of};
use crate::cli::error::Done;
use crate::cli::print::stdout_line;
use crate::cli::render::count;
use crate::cli::spent::Spent;
use crate::conversation::{AnsweredCall, Block, Exchange, ResultStatus};
use crate::session::{Entry, Request, Saved};
use crate::shown;

pub(super) fn run(entry: &Entry, as_json: bool) -> Done {
    let saved = entry.look()?;
    stdout_line(&if as_json { requests(entry, &saved) } else { text(entry, &saved) });
    Ok(ExitCode::SUCCESS)
}

fn requests(entry: &Entry, saved: &Saved) -> String {
    let mut all = summary(entry, saved);
    all["requests"] = saved.requests.iter().zip(spent(saved)).map(|(request, spent)| json!(OneRequest { request, spent })).collect();
    shown::json(&format!("{all:#}"))
}

/// A request with what it used.
#[derive(Serialize)]
struct OneRequest<'a> {
    #[serde(flatten)]
    request: &'a Request,
    #[serde(flatten)]
    spent: Spent,
}

fn text(entry: &Entry, saved: &Saved) -> String {
    let place = shown::line(workspace_of(saved).unwrap_or("an unknown folder"), 400);
    let mut lines = vec![format!("session {} in {place}, last changed {}", entry.id, local_time(entry.changed))];
    let spent: Vec<Spent> = spent(saved).collect();
    for (n, exchange) in saved.transcript.exchanges().iter().enumerate() {
        lines.push(String::new());
        lines.extend(said_and_done(exchange));
        lines.extend(saved.requests.get(n).zip(spent.get(n)).map(|(request, spent)| ended(request, spent)));
    }
    if spent.len() > 1 {
        let all = [count(spent.len(), "request"), count(saved.turns(), "turn")].into_iter().chain(Spent::sum(spent).in_words());
        lines.extend([String::new(), style(format!("in all: {}", all.collect::<Vec<_>>().join(" · "))).dim().to_string()]);
    }
    if let Some(summary) = saved.transcript.summary() {
        lines.push(String::new());
        lines.push(
            style(format!("(The oldest turns, {} of them, are sent to the model as this summary.)", summary.turns)).dim().to_string(),
        );
        lines.push(shown::block(summary.text.trim()));
    }
    lines.join("\n")
}

/// An exchange in lines.
pub(in crate::cli) fn said_and_done(exchange: &Exchange) -> Vec<String> {
    let mut lines: Vec<String> =
        shown::block(exchange.prompt()).lines().map(|line| style(format!("> {line}")).bold().to_string()).collect();
    for block in exchange.turns().iter().flat_map(|turn| turn.blocks()) {
        match block {
            Block::Text(text) => lines.push(shown::block(text.trim())),
            Block::Call(answered) => lines.extend(done(answered)),
            Block::Reasoning(_) => {}
        }
    }
    lines
}

fn done(answered: &AnsweredCall) -> Vec<String> {
    let AnsweredCall { call, result } = answered;
    let mark = match result.status {
        ResultStatus::Ok => style("✓").green(),
        ResultStatus::Error => style("✗").red(),
        ResultStatus::Rejected | ResultStatus::NotRun | ResultStatus::Interrupted => style("–").yellow(),
    };
    let mut lines = vec![format!("  {mark} {} {}", shown::line(&call.name, 64), style(shown::line(&call.arguments, 120)).dim())];
    if result.status.is_error() {
        lines.push(format!("      {}", style(shown::line(&result.text(), 200)).dim()));
    }
    lines
}

fn ended(request: &Request, spent: &Spent) -> String {
    let words = match &request.ended {
        None => "unfinished".to_owned(),
        Some(ended) => match &ended.message {
            None => ended.outcome.clone(),
            Some(message) => format!("{}: {message}", ended.outcome),
        },
    };
    let words: Vec<String> = [shown::line(&words, 400)].into_iter().chain(spent.in_words()).collect();
    style(format!("({})", words.join(" · "))).dim().to_string()
}
