//! Text output: the model's text as it streams, a line per call, and a spinner.
//!
//! If standard output is not a terminal, it gets only the answer. Everything else goes to standard
//! error.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::json::CallSummary;
use super::lines::{self, FinishedCall};
use super::word_wrap::WordWrap;
use crate::print::{eprint_line, print_line, print_text, supports_cursor};
use crate::wrap;
use cofferdam::agent::RequestOutcome;
use cofferdam::agent::events::{AgentEvent, ContextFitting};
use cofferdam::agent::ports::ResponseDelta;
use cofferdam::terminal_escape;

pub(super) struct TextRenderer {
    /// Wraps streamed text; `None` if text is not shown live.
    live: Option<WordWrap>,
    spinner: Option<ProgressBar>,
    running: Vec<(String, String)>,
    /// The live text of this turn so far.
    streamed_text: String,
    /// Whether the final answer was already shown live.
    answer_shown: bool,
    calls: Vec<CallSummary>,
}

impl TextRenderer {
    pub(super) fn new() -> Self {
        let spinner = supports_cursor().then(|| {
            let spinner = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner:.dim} {wide_msg:.dim}") {
                spinner.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
            }
            spinner
        });
        Self {
            live: std::io::stdout()
                .is_terminal()
                .then(|| WordWrap::new(wrap::terminal_size().columns)),
            spinner,
            running: Vec::new(),
            streamed_text: String::new(),
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
        self.show_spinner();
    }

    pub(super) fn observe(&mut self, event: &AgentEvent<'_>) {
        self.calls.extend(CallSummary::from_event(event));
        match event {
            AgentEvent::TurnStarted { .. } => self.show_spinner(),
            AgentEvent::Delta(ResponseDelta::Text(text)) => self.write_text(text),
            AgentEvent::Delta(ResponseDelta::Reasoning(_) | ResponseDelta::ToolCallStart(_))
            | AgentEvent::RequestStarted { .. }
            | AgentEvent::CallsRequested(_)
            | AgentEvent::SubAgentTurn { .. }
            | AgentEvent::Discarded { .. }
            | AgentEvent::TurnFinished(_) => {}
            AgentEvent::Delta(ResponseDelta::Retry { attempt, pause, reason }) => {
                self.print_line(&lines::retry_line(*attempt, *pause, reason));
            }
            AgentEvent::ContextFitting(ContextFitting::Pruned(_)) => {}
            AgentEvent::ContextFitting(ContextFitting::Summarising) => {
                if let Some(spinner) = &self.spinner {
                    spinner.set_message("summarizing the conversation");
                }
            }
            AgentEvent::ContextFitting(ContextFitting::Summarised {
                summary,
                tokens: (before, after),
                ..
            }) => {
                self.print_line(&lines::compaction_line(summary.turns, *before, *after));
            }
            AgentEvent::CallStarted { call, summary, .. } => {
                self.running.push((call.id.to_string(), lines::describe_call(call, summary)));
                self.show_spinner();
            }
            AgentEvent::CallProgress { call, message } => {
                if let Some(spinner) = &self.spinner {
                    spinner.set_message(lines::progress_line(&call.name, message));
                }
            }
            AgentEvent::CallFinished {
                call,
                tier,
                summary,
                result,
                view,
                duration,
                state_delta: _,
                denied: _,
                exit_code: _,
                structured: _,
            } => {
                self.print_call(&FinishedCall {
                    call,
                    tier: *tier,
                    summary,
                    result,
                    view: *view,
                    duration: *duration,
                });
            }
            AgentEvent::Answered(_) => {
                self.answer_shown = self.is_live();
                self.finish_text();
            }
            AgentEvent::Notice(text) => self.print_line(&lines::notice_line(text)),
            AgentEvent::RequestFinished { outcome } => self.finish_request(outcome),
            _ => {}
        }
    }

    fn write_text(&mut self, text: &str) {
        if !self.is_live() || (self.streamed_text.is_empty() && text.trim().is_empty()) {
            return;
        }
        if self.streamed_text.is_empty() {
            self.clear_spinner();
        }
        self.streamed_text.push_str(text);
        if let Some(word_wrap) = &mut self.live {
            print_text(&word_wrap.push(text));
        }
    }

    fn finish_text(&mut self) {
        if let Some(word_wrap) = &mut self.live {
            print_text(&word_wrap.finish());
        }
        if !self.streamed_text.is_empty() && !self.streamed_text.ends_with('\n') {
            print_text("\n");
        }
        self.streamed_text.clear();
    }

    fn print_call(&mut self, finished: &FinishedCall<'_>) {
        let id = finished.call.id.to_string();
        self.running.retain(|(running, _)| *running != id);
        for line in finished.lines() {
            self.print_line(&line);
        }
        self.show_spinner();
    }

    fn finish_request(&mut self, outcome: &RequestOutcome) {
        let shown_already = self.answer_shown || !self.streamed_text.is_empty();
        self.finish_text();
        self.clear_spinner();
        if let Some(text) = outcome.text()
            && !shown_already
            && !text.is_empty()
        {
            let text = self.live.as_mut().map_or_else(
                || text.to_owned(),
                |word_wrap| word_wrap.push(text) + &word_wrap.finish(),
            );
            print_line(text.strip_suffix('\n').unwrap_or(&text));
        }
        let Some(problem) = lines::outcome_error(outcome) else { return };
        let hint = if matches!(outcome, RequestOutcome::Limit { .. }) {
            "\nhint: raise --max-tool-iterations to allow more turns"
        } else {
            ""
        };
        eprint_line(&format!("cofferdam: {}{hint}", terminal_escape::escape_text(&problem)));
    }

    fn print_line(&mut self, line: &str) {
        self.finish_text();
        match &self.spinner {
            Some(spinner) if !spinner.is_finished() => spinner.suspend(|| eprint_line(line)),
            Some(_) | None => eprint_line(line),
        }
    }

    /// Shows the spinner. It is drawn over the row of the cursor, so pending text is finished
    /// first.
    fn show_spinner(&mut self) {
        self.finish_text();
        let message = lines::describe_wait(&self.running, false);
        if let Some(spinner) = &self.spinner {
            spinner.reset();
            spinner.set_message(message);
            spinner.enable_steady_tick(Duration::from_millis(100));
        }
    }

    fn clear_spinner(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.disable_steady_tick();
            spinner.finish_and_clear();
        }
    }
}
