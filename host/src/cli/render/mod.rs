//! Showing what happens, in one of three ways. Watching never fails and never changes what happens.

mod flow;
mod json;
pub(super) mod lines;
mod text;

use std::sync::Mutex;

use super::args::Output;
use crate::agent::events::{Event, Observer};
use crate::session::SessionId;

pub(super) use json::{CallSummary, count, not_started, report};

/// Shows events.
pub(super) struct Renderer {
    face: Mutex<Face>,
}

enum Face {
    Text(text::Text),
    /// Nothing until the end; the calls are collected for the report.
    Json(Vec<CallSummary>),
    StreamJson(Vec<CallSummary>, json::EventLines),
}

/// While this lives, nothing moves on the screen.
pub(super) struct Paused<'a> {
    renderer: &'a Renderer,
}

impl Renderer {
    /// For a run of this session; `None` if it is not recorded.
    pub(super) fn new(output: Output, session: Option<&SessionId>) -> Self {
        let face = match output {
            Output::Text => Face::Text(text::Text::new()),
            Output::Json => Face::Json(Vec::new()),
            Output::StreamJson => Face::StreamJson(Vec::new(), json::EventLines::of(session.cloned())),
        };
        Self { face: Mutex::new(face) }
    }

    /// Takes the spinner away for a dialog.
    pub(super) fn pause(&self) -> Paused<'_> {
        if let Face::Text(text) = &mut *self.face() {
            text.pause();
        }
        Paused { renderer: self }
    }

    /// The calls that were seen, for the report.
    pub(super) fn calls(&self) -> Vec<CallSummary> {
        match &*self.face() {
            Face::Text(text) => text.calls().to_vec(),
            Face::Json(calls) | Face::StreamJson(calls, _) => calls.clone(),
        }
    }

    fn face(&self) -> std::sync::MutexGuard<'_, Face> {
        self.face.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        if let Face::Text(text) = &mut *self.renderer.face() {
            text.resume();
        }
    }
}

impl Observer for Renderer {
    fn observe(&self, event: &Event<'_>) {
        match &mut *self.face() {
            Face::Text(text) => text.observe(event),
            Face::Json(calls) => {
                calls.extend(CallSummary::of(event));
                // The one object at the end has no room for it.
                if let Event::Notice(text) = event {
                    super::print::stderr_line(&crate::shown::line(text, 400));
                }
            }
            Face::StreamJson(calls, lines) => {
                calls.extend(CallSummary::of(event));
                if let Some(line) = lines.line(event) {
                    super::print::stdout_line(&line.to_string());
                }
            }
        }
    }

    fn is_live(&self) -> bool {
        match &*self.face() {
            Face::Text(text) => text.is_live(),
            Face::Json(_) => false,
            Face::StreamJson(..) => true,
        }
    }
}
