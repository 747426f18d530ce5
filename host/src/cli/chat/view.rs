//! What is seen while a request runs: the text as it comes, a line for each call, and below them
//! what is going on, what is queued, and what is being typed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use console::style;

use super::edit_line::EditLine;
use super::prose::{ProseTextStyle, ProseWriter};
use super::screen::{ChatScreen, LiveRows};
use crate::agent::events::{AgentEvent, ContextFitting, Observer};
use crate::agent::ports::ResponseDelta;
use crate::cli::print::print_line;
use crate::cli::render::lines::{self, FinishedCall};
use crate::cli::wrap;
use crate::conversation::{AssistantTurn, TokenUsage};
use crate::terminal_escape;

/// Rows of the paragraph that is streaming in, of queued words, and of what is being typed, at
/// most.
const MAX_TEXT_ROWS: usize = 8;
const MAX_QUEUED_ROWS: usize = 4;
const MAX_TYPED_ROWS: usize = 6;
/// The spinner, a picture for each tenth of a second.
const SPINNER_FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// What stands before the user's words.
pub(super) const PROMPT_MARK: &str = "› ";

/// Shows a chat. The request tells it what happens, whoever reads the keyboard tells it what is
/// typed.
pub(super) struct ChatView {
    state: Mutex<ViewState>,
}

/// How a chat is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChatRenderMode {
    /// With rows at the bottom that are drawn anew.
    Drawn,
    /// Line by line: what the model says on standard output as it is, the rest on standard error.
    Plain,
}

struct ViewState {
    render_mode: ChatRenderMode,
    screen: ChatScreen,
    prose: ProseWriter,
    status_area: ChatStatusArea,
    /// The calls that run, each with its id.
    running: Vec<(String, String)>,
    progress: Option<String>,
    started_at: Instant,
    status: String,
    queued: Vec<String>,
    typed: EditLine,
    /// What was taken and not asked for yet.
    billed: Vec<BilledItem>,
    /// Whether text of this turn, or the answer, went by.
    text_shown: bool,
    /// What would disturb a dialog, kept until it is over.
    deferred: Vec<String>,
}

/// Something that a provider is paid for.
#[derive(Clone, Debug)]
pub(super) enum BilledItem {
    /// A turn of the conversation.
    Turn(AssistantTurn),
    /// What is no part of it: a turn of a sub-agent, a summary, a response of no use.
    OutsideTurn(TokenUsage),
}

/// What the rows at the bottom are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChatStatusArea {
    /// There is nothing but the prompt, which is not drawn here.
    Idle,
    /// A request runs.
    Running,
    /// The user wants it to stop.
    Stopping,
    /// A dialog is open: words before the cursor, and what was typed for an answer.
    Asking { prompt: &'static str, answer: EditLine },
}

impl ChatView {
    pub(super) fn new(face: ChatRenderMode) -> Self {
        let look = if face == ChatRenderMode::Drawn && console::colors_enabled_stderr() {
            ProseTextStyle::Styled
        } else {
            ProseTextStyle::Plain
        };
        let state = ViewState {
            render_mode: face,
            screen: ChatScreen::default(),
            prose: ProseWriter::new(look),
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

    /// A line that stays.
    pub(super) fn print_line(&self, line: &str) {
        let mut state = self.lock_state();
        state.print_wrapped(line);
        state.redraw(true);
    }

    /// A line of a dialog, past what is kept until it is over.
    pub(super) fn print_dialog_line(&self, line: &str) {
        let mut state = self.lock_state();
        state.finish_text();
        state.screen.push_line(line);
        state.redraw(true);
    }

    /// Changes what the rows at the bottom are about.
    pub(super) fn set_status_area(&self, scene: ChatStatusArea) {
        let mut state = self.lock_state();
        if scene == ChatStatusArea::Running && state.status_area == ChatStatusArea::Idle {
            state.started_at = Instant::now();
        }
        let was_asking = matches!(state.status_area, ChatStatusArea::Asking { .. });
        state.status_area = scene;
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

    /// What was typed meanwhile.
    pub(super) fn set_input(&self, typed: &EditLine, queued: &[String]) {
        let mut state = self.lock_state();
        if state.render_mode == ChatRenderMode::Plain && queued.len() > state.queued.len() {
            let new: Vec<String> =
                queued.iter().skip(state.queued.len()).map(|words| format_queued(words)).collect();
            // Past the line of text that is on its way, which stays whole.
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

    /// Time passes: the spinner turns, and what waited for its picture is drawn.
    pub(super) fn tick(&self) {
        self.lock_state().redraw(false);
    }

    /// What was taken since the last time.
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
                self.progress = Some(format!(
                    "{}: {}",
                    terminal_escape::escape_line(&call.name, 64),
                    terminal_escape::escape_line(message, 200)
                ));
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
                self.progress = Some("summarising the conversation".to_owned())
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
                // An answer that did not come as text, such as a summary.
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
        }
    }

    /// What is no text of the model is broken between words, where there is a width to keep to.
    fn print_wrapped(&mut self, line: &str) {
        match self.render_mode {
            ChatRenderMode::Drawn => {
                self.print_line(wrap::wrap_text(line, wrap::terminal_size().0))
            }
            ChatRenderMode::Plain => self.print_line(line.to_owned()),
        }
    }

    fn print_line(&mut self, line: String) {
        self.finish_text();
        self.print_rows(vec![line]);
    }

    /// What the model says.
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

    /// How wide a row of text may be.
    fn columns(&self) -> usize {
        match self.render_mode {
            ChatRenderMode::Drawn => wrap::terminal_size().0,
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

    fn redraw(&mut self, now_in_any_case: bool) {
        if self.render_mode == ChatRenderMode::Plain {
            self.screen.flush();
            return;
        }
        let now = Instant::now();
        if !now_in_any_case && !self.screen.is_redraw_due(now) {
            return;
        }
        let (columns, height) = wrap::terminal_size();
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
            ChatStatusArea::Stopping => "stopping … (Ctrl-C again to leave)".to_owned(),
            ChatStatusArea::Idle | ChatStatusArea::Running | ChatStatusArea::Asking { .. } => {
                format!("{doing} · {} s · Esc stops", seconds / 10)
            }
        };
        rows.rows.push(dim_row(&format!("{frame} {doing}"), width));
        for words in self.queued.iter().take(MAX_QUEUED_ROWS) {
            rows.rows.push(dim_row(&format_queued(words), width));
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

/// Words that wait for their turn.
fn format_queued(words: &str) -> String {
    format!("  next {PROMPT_MARK}{}", terminal_escape::escape_line(words, 400))
}

/// Adds what is being typed, and puts the cursor there.
fn push_input_rows(rows: &mut LiveRows, mark: &str, line: &EditLine, width: usize) {
    let indent = console::measure_text_width(mark);
    let room = width.saturating_sub(indent).max(1);
    let (lines, row, column) = line.lines_and_cursor();
    let first = (row + 1).saturating_sub(MAX_TYPED_ROWS);
    for (n, text) in lines.iter().enumerate().skip(first).take(MAX_TYPED_ROWS) {
        let before = if n == first { mark.to_owned() } else { " ".repeat(indent) };
        // A line that is too long is shown from where its end, or the cursor, can be seen.
        let skip = if n == row { column.saturating_sub(room.saturating_sub(1)) } else { 0 };
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
