//! Output of a run in three formats. An observer never fails and never affects the run.

mod json;
pub(super) mod lines;
mod text;
mod word_wrap;

use std::sync::Mutex;

use super::args::OutputFormat;
use cofferdam::agent::events::{AgentEvent, Observer};
use cofferdam::session::SessionId;

pub(super) use json::{CallSummary, build_report, count_noun, not_started};

/// Renders the events of a run.
pub(super) struct EventRenderer {
    style: Mutex<OutputStyle>,
}

enum OutputStyle {
    Text(text::TextRenderer),
    /// Prints nothing before the end; calls are collected for the report.
    Json(Vec<CallSummary>),
    StreamJson(Vec<CallSummary>, json::JsonEventLines),
}

/// Pauses the spinner until it is dropped.
pub(super) struct PausedProgress<'a> {
    renderer: &'a EventRenderer,
}

impl EventRenderer {
    /// Creates a renderer. `session` is `None` if the session is not recorded.
    pub(super) fn new(output: OutputFormat, session: Option<&SessionId>) -> Self {
        let style = match output {
            OutputFormat::Text => OutputStyle::Text(text::TextRenderer::new()),
            OutputFormat::Json => OutputStyle::Json(Vec::new()),
            OutputFormat::StreamJson => {
                OutputStyle::StreamJson(Vec::new(), json::JsonEventLines::new(session.cloned()))
            }
        };
        Self { style: Mutex::new(style) }
    }

    /// Hides the spinner for a dialog.
    pub(super) fn pause(&self) -> PausedProgress<'_> {
        if let OutputStyle::Text(text) = &mut *self.lock_style() {
            text.pause();
        }
        PausedProgress { renderer: self }
    }

    /// Returns the finished calls, for the report.
    pub(super) fn calls(&self) -> Vec<CallSummary> {
        match &*self.lock_style() {
            OutputStyle::Text(text) => text.calls().to_vec(),
            OutputStyle::Json(calls) | OutputStyle::StreamJson(calls, _) => calls.clone(),
        }
    }

    fn lock_style(&self) -> std::sync::MutexGuard<'_, OutputStyle> {
        self.style.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for PausedProgress<'_> {
    fn drop(&mut self) {
        if let OutputStyle::Text(text) = &mut *self.renderer.lock_style() {
            text.resume();
        }
    }
}

impl Observer for EventRenderer {
    fn observe(&self, event: &AgentEvent<'_>) {
        match &mut *self.lock_style() {
            OutputStyle::Text(text) => text.observe(event),
            OutputStyle::Json(calls) => {
                calls.extend(CallSummary::from_event(event));
                // The report has no field for notices.
                if let AgentEvent::Notice(text) = event {
                    super::print::eprint_line(&cofferdam::terminal_escape::escape_line(text, 400));
                }
            }
            OutputStyle::StreamJson(calls, lines) => {
                calls.extend(CallSummary::from_event(event));
                if let Some(line) = lines.event_line(event) {
                    super::print::print_line(&super::json_text::json_line(&line));
                }
            }
        }
    }

    fn is_live(&self) -> bool {
        match &*self.lock_style() {
            OutputStyle::Text(text) => text.is_live(),
            OutputStyle::Json(_) => false,
            OutputStyle::StreamJson(..) => true,
        }
    }
}
