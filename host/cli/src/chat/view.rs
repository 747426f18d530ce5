//! The display of a running request: streamed text, a line per call, and below them the status,
//! queued input and the input line.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use console::style;

use super::edit_line::EditLine;
use super::prose::{ProseTextStyle, ProseWriter};
use super::screen::{ChatScreen, LiveRows};
use crate::print::print_line;
use crate::render::lines::{self, FinishedCall};
use crate::wrap::{self, TerminalSize};
use cofferdam::agent::events::{AgentEvent, ContextFitting, Observer};
use cofferdam::agent::ports::ResponseDelta;
use cofferdam::conversation::{AssistantTurn, TokenUsage};
use cofferdam::terminal_escape;

/// Maximum number of rows of streaming text, of queued lines, and of the input line.
const MAX_TEXT_ROWS: usize = 8;
const MAX_QUEUED_ROWS: usize = 4;
const MAX_TYPED_ROWS: usize = 6;
/// The frames of the spinner; ten per second.
const SPINNER_FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// The prompt marker.
pub(super) const PROMPT_MARK: &str = "› ";

/// Displays a chat. The request reports events to it; the event loop reports input.
pub(super) struct ChatView {
    state: Mutex<ViewState>,
}

/// How a chat is displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChatRenderMode {
    /// With live rows at the bottom.
    Drawn,
    /// Line by line: the model's text unchanged on standard output, everything else on standard
    /// error.
    Plain,
}

struct ViewState {
    render_mode: ChatRenderMode,
    screen: ChatScreen,
    prose: ProseWriter,
    status_area: ChatStatusArea,
    /// The running calls: ID and description.
    running: Vec<(String, String)>,
    progress: Option<String>,
    started_at: Instant,
    status: String,
    queued: Vec<String>,
    typed: EditLine,
    /// Billed items that [`ChatView::take_billed`] has not returned yet.
    billed: Vec<BilledItem>,
    /// Whether text of this turn was displayed.
    text_shown: bool,
    /// Lines that are withheld until the dialog closes.
    deferred: Vec<String>,
}

/// Usage that a provider bills.
#[derive(Clone, Debug)]
pub(super) enum BilledItem {
    /// A turn of the conversation.
    Turn(AssistantTurn),
    /// Usage outside the conversation: a turn of a sub-agent, a summary, a discarded response.
    OutsideTurn(TokenUsage),
}

/// The content of the live rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatStatusArea {
    /// Only the prompt, which the editor draws.
    Idle,
    /// A request is running.
    Running,
    /// The user has cancelled the request.
    Stopping,
    /// A dialog is open, with a prompt and the answer so far.
    Asking { prompt: &'static str, answer: EditLine },
}

impl ChatView {
    pub(super) fn new(render_mode: ChatRenderMode) -> Self {
        let text_style = if render_mode == ChatRenderMode::Drawn && console::colors_enabled_stderr()
        {
            ProseTextStyle::Styled
        } else {
            ProseTextStyle::Plain
        };
        let state = ViewState {
            render_mode,
            screen: ChatScreen::default(),
            prose: ProseWriter::new(text_style),
            status_area: ChatStatusArea::Idle,
            running: Vec::new(),
            progress: None,
            started_at: Instant::now(),
            status: String::new(),
            queued: Vec::new(),
            typed: EditLine::default(),
            billed: Vec::new(),
            text_shown: false,
            deferred: Vec::new(),
        };
        Self { state: Mutex::new(state) }
    }

    /// Prints a line that is not part of a dialog.
    pub(super) fn print_line(&self, line: &str) {
        let mut state = self.lock_state();
        state.print_wrapped(line);
        state.redraw(true);
    }

    /// Prints a line of a dialog at once, before the withheld lines.
    pub(super) fn print_dialog_line(&self, line: &str) {
        let mut state = self.lock_state();
        state.finish_text();
        state.screen.push_line(line);
        state.redraw(true);
    }

    /// Changes the content of the live rows. Prints withheld lines when a dialog closes.
    pub(super) fn set_status_area(&self, status_area: ChatStatusArea) {
        let mut state = self.lock_state();
        if status_area == ChatStatusArea::Running && state.status_area == ChatStatusArea::Idle {
            state.started_at = Instant::now();
        }
        let was_asking = matches!(state.status_area, ChatStatusArea::Asking { .. });
        state.status_area = status_area;
        if state.status_area == ChatStatusArea::Idle {
            state.progress = None;
        }
        if was_asking && !matches!(state.status_area, ChatStatusArea::Asking { .. }) {
            for line in std::mem::take(&mut state.deferred) {
                state.screen.push_line(&line);
            }
        }
        state.redraw(true);
    }

    /// Updates the input line and the queue.
    pub(super) fn set_input(&self, typed: &EditLine, queued: &[String]) {
        let mut state = self.lock_state();
        if state.render_mode == ChatRenderMode::Plain && queued.len() > state.queued.len() {
            let new: Vec<String> =
                queued.iter().skip(state.queued.len()).map(|line| format_queued(line)).collect();
            // Printed without ending the streaming line of text.
            new.iter().for_each(|line| state.screen.push_line(line));
        }
        state.typed = typed.clone();
        state.queued = queued.to_vec();
        state.redraw(true);
    }

    pub(super) fn set_status(&self, status: String) {
        let mut state = self.lock_state();
        state.status = status;
        state.redraw(true);
    }

    /// Advances the spinner and draws pending changes.
    pub(super) fn tick(&self) {
        self.lock_state().redraw(false);
    }

    /// Returns the billed items since the last call.
    pub(super) fn take_billed(&self) -> Vec<BilledItem> {
        std::mem::take(&mut self.lock_state().billed)
    }
}

impl ChatView {
    fn lock_state(&self) -> MutexGuard<'_, ViewState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for ChatView {
    fn observe(&self, event: &AgentEvent<'_>) {
        let mut state = self.lock_state();
        state.observe(event);
        state.redraw(false);
    }
}

impl ViewState {
    fn observe(&mut self, event: &AgentEvent<'_>) {
        match event {
            AgentEvent::Delta(ResponseDelta::Text(text)) => self.write_text(text),
            AgentEvent::Delta(ResponseDelta::Retry { attempt, pause, reason }) => {
                self.print_wrapped(&lines::retry_line(*attempt, *pause, reason))
            }
            AgentEvent::CallStarted { call, summary, .. } => {
                self.finish_text();
                self.running.push((call.id.to_string(), lines::describe_call(call, summary)));
            }
            AgentEvent::CallProgress { call, message } => {
                self.progress = Some(lines::progress_line(&call.name, message));
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
                let id = call.id.to_string();
                self.running.retain(|(running, _)| *running != id);
                self.progress = None;
                let finished = FinishedCall {
                    call,
                    tier: *tier,
                    summary,
                    result,
                    view: *view,
                    duration: *duration,
                };
                for line in finished.lines() {
                    self.print_wrapped(&line);
                }
            }
            AgentEvent::ContextFitting(ContextFitting::Summarising) => {
                self.progress = Some("summarizing the conversation".to_owned())
            }
            AgentEvent::ContextFitting(ContextFitting::Summarised {
                summary,
                tokens: (before, after),
                usage,
            }) => {
                self.billed.push(BilledItem::OutsideTurn(*usage));
                self.progress = None;
                self.print_line(lines::compaction_line(summary.turns, *before, *after));
            }
            AgentEvent::Notice(text) => self.print_wrapped(&lines::notice_line(text)),
            AgentEvent::SubAgentTurn { usage, .. } | AgentEvent::Discarded { usage } => {
                self.billed.push(BilledItem::OutsideTurn(*usage))
            }
            AgentEvent::TurnStarted { .. } => self.text_shown = false,
            AgentEvent::TurnFinished(turn) => {
                self.billed.push(BilledItem::Turn((*turn).clone()));
                self.finish_text();
            }
            AgentEvent::RequestFinished { outcome } => {
                // Prints an answer that was not streamed, such as a summary.
                if let (Some(text), false) = (outcome.text(), self.text_shown) {
                    self.write_text(text);
                }
                self.finish_text();
                self.running.clear();
                self.progress = None;
            }
            AgentEvent::Delta(ResponseDelta::Reasoning(_) | ResponseDelta::ToolCallStart(_))
            | AgentEvent::ContextFitting(ContextFitting::Pruned(_))
            | AgentEvent::RequestStarted { .. }
            | AgentEvent::Answered(_)
            | AgentEvent::CallsRequested(_) => {}
            _ => {}
        }
    }

    /// Prints a line that is not model text, wrapped between words if the terminal is redrawn.
    fn print_wrapped(&mut self, line: &str) {
        match self.render_mode {
            ChatRenderMode::Drawn => {
                self.print_line(wrap::wrap_text(line, wrap::terminal_size().columns))
            }
            ChatRenderMode::Plain => self.print_line(line.to_owned()),
        }
    }

    fn print_line(&mut self, line: String) {
        self.finish_text();
        self.print_rows(vec![line]);
    }

    /// Prints streamed text of the model.
    fn write_text(&mut self, text: &str) {
        let rows = self.prose.push(text, self.columns());
        self.print_text_rows(rows);
    }

    fn finish_text(&mut self) {
        if self.prose.has_begun() {
            self.text_shown = true;
            let rows = self.prose.finish(self.columns());
            self.print_text_rows(rows);
        }
    }

    /// Returns the maximum width of a row of text.
    fn columns(&self) -> usize {
        match self.render_mode {
            ChatRenderMode::Drawn => wrap::terminal_size().columns,
            ChatRenderMode::Plain => usize::MAX,
        }
    }

    fn print_text_rows(&mut self, rows: Vec<String>) {
        match self.render_mode {
            ChatRenderMode::Drawn => self.print_rows(rows),
            ChatRenderMode::Plain => {
                self.screen.flush();
                for row in rows {
                    let _ = print_line(&row);
                }
            }
        }
    }

    fn print_rows(&mut self, rows: Vec<String>) {
        match self.status_area {
            ChatStatusArea::Asking { .. } => self.deferred.extend(rows),
            ChatStatusArea::Idle | ChatStatusArea::Running | ChatStatusArea::Stopping => {
                rows.iter().for_each(|row| self.screen.push_line(row))
            }
        }
    }

    fn redraw(&mut self, force: bool) {
        if self.render_mode == ChatRenderMode::Plain {
            self.screen.flush();
            return;
        }
        let now = Instant::now();
        if !force && !self.screen.is_redraw_due(now) {
            return;
        }
        let TerminalSize { columns, rows: height } = wrap::terminal_size();
        match self.status_area {
            ChatStatusArea::Idle => self.screen.clear(columns),
            ChatStatusArea::Running | ChatStatusArea::Stopping | ChatStatusArea::Asking { .. } => {
                let rows = self.rows(columns, height, now);
                self.screen.draw(rows, columns, now);
            }
        }
    }

    fn rows(&self, columns: usize, height: usize, now: Instant) -> LiveRows {
        let width = columns.saturating_sub(1).max(1);
        if let ChatStatusArea::Asking { prompt: mark, answer } = &self.status_area {
            let mut rows = LiveRows::default();
            push_input_rows(&mut rows, mark, answer, width);
            return rows;
        }
        let mut rows = LiveRows {
            rows: self.prose.pending_rows(columns, MAX_TEXT_ROWS.min(height / 2)),
            cursor: (0, 0),
        };
        let seconds = now.duration_since(self.started_at).as_millis() / 100;
        let frame =
            SPINNER_FRAMES[usize::try_from(seconds).unwrap_or_default() % SPINNER_FRAMES.len()];
        let doing = self
            .progress
            .clone()
            .unwrap_or_else(|| lines::describe_wait(&self.running, self.prose.has_begun()));
        let doing = match self.status_area {
            ChatStatusArea::Stopping => "stopping … (Ctrl-C again leaves)".to_owned(),
            ChatStatusArea::Idle | ChatStatusArea::Running | ChatStatusArea::Asking { .. } => {
                format!("{doing} · {} s · Esc stops", seconds / 10)
            }
        };
        rows.rows.push(dim_row(&format!("{frame} {doing}"), width));
        for line in self.queued.iter().take(MAX_QUEUED_ROWS) {
            rows.rows.push(dim_row(&format_queued(line), width));
        }
        if self.queued.len() > MAX_QUEUED_ROWS {
            rows.rows.push(dim_row(
                &format!("  … and {} more", self.queued.len() - MAX_QUEUED_ROWS),
                width,
            ));
        }
        rows.rows.push(dim_row(&self.status, width));
        push_input_rows(&mut rows, PROMPT_MARK, &self.typed, width);
        let surplus = rows.rows.len().saturating_sub(height.saturating_sub(1).max(1));
        rows.rows.drain(..surplus);
        rows.cursor.0 = rows.cursor.0.saturating_sub(surplus);
        rows
    }
}

/// Formats a queued line.
fn format_queued(line: &str) -> String {
    format!("  next {PROMPT_MARK}{}", terminal_escape::escape_line(line, 400))
}

/// Adds the rows of an input line and places the cursor.
fn push_input_rows(rows: &mut LiveRows, mark: &str, line: &EditLine, width: usize) {
    let indent = console::measure_text_width(mark);
    let text_width = width.saturating_sub(indent).max(1);
    let (lines, row, column) = line.lines_and_cursor();
    let first = (row + 1).saturating_sub(MAX_TYPED_ROWS);
    for (n, text) in lines.iter().enumerate().skip(first).take(MAX_TYPED_ROWS) {
        let before = if n == first { mark.to_owned() } else { " ".repeat(indent) };
        // Scrolls a long line so that the cursor is visible.
        let skip = if n == row { column.saturating_sub(text_width.saturating_sub(1)) } else { 0 };
        let text = terminal_escape::escape_text(text);
        let text = skip_columns(&text, skip);
        rows.rows.push(wrap::truncate(&format!("{before}{text}"), width));
        if n == row {
            rows.cursor = (rows.rows.len() - 1, indent + column - skip);
        }
    }
}

fn skip_columns(text: &str, columns: usize) -> &str {
    let mut width = 0;
    for (at, c) in text.char_indices() {
        if width >= columns {
            return &text[at..];
        }
        width += unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
    }
    if width >= columns && columns > 0 { "" } else { text }
}

fn dim_row(text: &str, width: usize) -> String {
    style(wrap::truncate(text, width)).dim().for_stderr().to_string()
}
