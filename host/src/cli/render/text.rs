//! For people: the model's text as it comes, a line for each call, and a spinner while there is something to wait for.
//!
//! Standard output gets the answer and nothing else when it is not a terminal; what happens goes to standard error.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::flow::Flow;
use super::json::CallSummary;
use super::lines::{self, Finished};
use crate::agent::Outcome;
use crate::agent::events::{Event, Fitting};
use crate::agent::ports::Delta;
use crate::cli::print::{can_be_drawn_on, stderr_line, stdout_line, stdout_piece};
use crate::cli::wrap;
use crate::shown;

pub(super) struct Text {
    /// The model's text, if it is shown as it comes.
    live: Option<Flow>,
    spinner: Option<ProgressBar>,
    running: Vec<(String, String)>,
    /// The live text so far of this turn.
    streamed: String,
    /// Whether the final answer went by as live text.
    answer_shown: bool,
    calls: Vec<CallSummary>,
}

impl Text {
    pub(super) fn new() -> Self {
        let spinner = can_be_drawn_on().then(|| {
            let spinner = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner:.dim} {wide_msg:.dim}") {
                spinner.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
            }
            spinner
        });
        Self {
            live: std::io::stdout().is_terminal().then(|| Flow::new(wrap::size().0)),
            spinner,
            running: Vec::new(),
            streamed: String::new(),
            answer_shown: false,
            calls: Vec::new(),
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    pub(super) fn calls(&self) -> &[CallSummary] {
        &self.calls
    }

    pub(super) fn pause(&mut self) {
        self.finish_text();
        if let Some(spinner) = &self.spinner {
            spinner.disable_steady_tick();
            spinner.finish_and_clear();
        }
    }

    pub(super) fn resume(&mut self) {
        self.spin();
    }

    pub(super) fn observe(&mut self, event: &Event<'_>) {
        self.calls.extend(CallSummary::of(event));
        match event {
            Event::TurnStarted { .. } => self.spin(),
            Event::Delta(Delta::Text(text)) => self.text(text),
            Event::Delta(Delta::Reasoning(_) | Delta::CallBegun(_))
            | Event::RequestStarted { .. }
            | Event::CallsProposed(_)
            | Event::SubAgentTurn { .. }
            | Event::Discarded { .. }
            | Event::TurnFinished(_) => {}
            Event::Delta(Delta::Retry { attempt, pause, reason }) => {
                self.say(&lines::retry(*attempt, *pause, reason));
            }
            Event::Fitting(Fitting::Pruned(_)) => {}
            Event::Fitting(Fitting::Summarising) => {
                if let Some(spinner) = &self.spinner {
                    spinner.set_message("summarising the conversation");
                }
            }
            Event::Fitting(Fitting::Summarised { summary, tokens: (before, after), .. }) => {
                self.say(&lines::summarised(summary.turns, *before, *after));
            }
            Event::CallStarted { call, summary, .. } => {
                self.running.push((call.id.to_string(), lines::what(call, summary)));
                self.spin();
            }
            Event::CallProgress { call, message } => {
                if let Some(spinner) = &self.spinner {
                    spinner.set_message(format!("{}: {}", shown::line(&call.name, 64), shown::line(message, 200)));
                }
            }
            Event::CallFinished { call, tier, summary, result, view, duration, remembered: _ } => {
                self.finished(&Finished { call, tier: *tier, summary, result, view: *view, duration: *duration });
            }
            Event::Answered(_) => {
                self.answer_shown = self.is_live();
                self.finish_text();
            }
            Event::Notice(text) => self.say(&lines::notice(text)),
            Event::RequestFinished { outcome } => self.end(outcome),
        }
    }

    fn text(&mut self, text: &str) {
        if !self.is_live() || (self.streamed.is_empty() && text.trim().is_empty()) {
            return;
        }
        if self.streamed.is_empty() {
            self.clear();
        }
        self.streamed.push_str(text);
        if let Some(flow) = &mut self.live {
            stdout_piece(&flow.push(text));
        }
    }

    fn finish_text(&mut self) {
        if let Some(flow) = &mut self.live {
            stdout_piece(&flow.finish());
        }
        if !self.streamed.is_empty() && !self.streamed.ends_with('\n') {
            stdout_piece("\n");
        }
        self.streamed.clear();
    }

    fn finished(&mut self, finished: &Finished<'_>) {
        let id = finished.call.id.to_string();
        self.running.retain(|(running, _)| *running != id);
        for line in finished.lines() {
            self.say(&line);
        }
        self.spin();
    }

    fn end(&mut self, outcome: &Outcome) {
        let shown_already = self.answer_shown || !self.streamed.is_empty();
        self.finish_text();
        self.clear();
        if let Some(text) = outcome.text()
            && !shown_already
            && !text.is_empty()
        {
            let text = self.live.as_mut().map_or_else(|| text.to_owned(), |flow| flow.push(text) + &flow.finish());
            stdout_line(text.strip_suffix('\n').unwrap_or(&text));
        }
        let Some(problem) = lines::problem(outcome) else { return };
        let hint = if matches!(outcome, Outcome::Limit { .. }) { "; raise --max-tool-iterations to let it go on" } else { "" };
        stderr_line(&format!("cofferdam: {}{hint}", shown::block(&problem)));
    }

    fn say(&mut self, line: &str) {
        self.finish_text();
        match &self.spinner {
            Some(spinner) if !spinner.is_finished() => spinner.suspend(|| stderr_line(line)),
            Some(_) | None => stderr_line(line),
        }
    }

    /// Waits for what comes next. It is drawn over the row that the cursor is in, so that text comes to its end first.
    fn spin(&mut self) {
        self.finish_text();
        let message = lines::waiting_for(&self.running, false);
        if let Some(spinner) = &self.spinner {
            spinner.reset();
            spinner.set_message(message);
            spinner.enable_steady_tick(Duration::from_millis(100));
        }
    }

    fn clear(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.disable_steady_tick();
            spinner.finish_and_clear();
        }
    }
}
