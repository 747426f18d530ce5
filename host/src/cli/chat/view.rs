//! What is seen while a request runs: the text as it comes, a line for each call, and below them what is going on, what is
//! queued, and what is being typed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use console::style;

use super::line::Line;
use super::prose::{Look, Prose};
use super::screen::{Rows, Screen};
use crate::agent::events::{Event, Fitting, Observer};
use crate::agent::ports::Delta;
use crate::cli::print::stdout_line;
use crate::cli::render::lines::{self, Finished};
use crate::cli::wrap;
use crate::conversation::{Turn, Usage};
use crate::shown;

/// Rows of the paragraph that is streaming in, of queued words, and of what is being typed, at most.
const MOST_TEXT: usize = 8;
const MOST_QUEUED: usize = 4;
const MOST_TYPED: usize = 6;
/// The spinner, a picture for each tenth of a second.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// What stands before the user's words.
pub(super) const MARK: &str = "› ";

/// Shows a chat. The request tells it what happens, whoever reads the keyboard tells it what is typed.
pub(super) struct View {
    state: Mutex<State>,
}

/// How a chat is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// With rows at the bottom that are drawn anew.
    Drawn,
    /// Line by line: what the model says on standard output as it is, the rest on standard error.
    Plain,
}

struct State {
    face: Face,
    screen: Screen,
    prose: Prose,
    scene: Scene,
    /// The calls that run, each with its id.
    running: Vec<(String, String)>,
    progress: Option<String>,
    began: Instant,
    status: String,
    queued: Vec<String>,
    typed: Line,
    /// What was taken and not asked for yet.
    taken: Vec<Taken>,
    /// Whether text of this turn, or the answer, went by.
    seen: bool,
    /// What would disturb a dialog, kept until it is over.
    kept: Vec<String>,
}

/// Something that a provider is paid for.
#[derive(Clone, Debug)]
pub(super) enum Taken {
    /// A turn of the conversation.
    Turn(Turn),
    /// What is no part of it: a turn of a sub-agent, a summary, a response of no use.
    Beside(Usage),
}

/// What the rows at the bottom are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scene {
    /// There is nothing but the prompt, which is not drawn here.
    Still,
    /// A request runs.
    Running,
    /// The user wants it to stop.
    Stopping,
    /// A dialog is open: words before the cursor, and what was typed for an answer.
    Asking { mark: &'static str, answer: Line },
}

impl View {
    pub(super) fn new(face: Face) -> Self {
        let look = if face == Face::Drawn && console::colors_enabled_stderr() { Look::Styled } else { Look::Plain };
        let state = State {
            face,
            screen: Screen::default(),
            prose: Prose::new(look),
            scene: Scene::Still,
            running: Vec::new(),
            progress: None,
            began: Instant::now(),
            status: String::new(),
            queued: Vec::new(),
            typed: Line::default(),
            taken: Vec::new(),
            seen: false,
            kept: Vec::new(),
        };
        Self { state: Mutex::new(state) }
    }

    /// A line that stays.
    pub(super) fn say(&self, line: &str) {
        let mut state = self.state();
        state.remark(line);
        state.draw_if(true);
    }

    /// A line of a dialog, past what is kept until it is over.
    pub(super) fn say_in_dialog(&self, line: &str) {
        let mut state = self.state();
        state.finish_text();
        state.screen.settle(line);
        state.draw_if(true);
    }

    /// Changes what the rows at the bottom are about.
    pub(super) fn set_scene(&self, scene: Scene) {
        let mut state = self.state();
        if scene == Scene::Running && state.scene == Scene::Still {
            state.began = Instant::now();
        }
        let was_asking = matches!(state.scene, Scene::Asking { .. });
        state.scene = scene;
        if state.scene == Scene::Still {
            state.progress = None;
        }
        if was_asking && !matches!(state.scene, Scene::Asking { .. }) {
            for line in std::mem::take(&mut state.kept) {
                state.screen.settle(&line);
            }
        }
        state.draw_if(true);
    }

    /// What was typed meanwhile.
    pub(super) fn set_typed(&self, typed: &Line, queued: &[String]) {
        let mut state = self.state();
        if state.face == Face::Plain && queued.len() > state.queued.len() {
            let new: Vec<String> = queued.iter().skip(state.queued.len()).map(|words| next_up(words)).collect();
            // Past the line of text that is on its way, which stays whole.
            new.iter().for_each(|line| state.screen.settle(line));
        }
        state.typed = typed.clone();
        state.queued = queued.to_vec();
        state.draw_if(true);
    }

    pub(super) fn set_status(&self, status: String) {
        let mut state = self.state();
        state.status = status;
        state.draw_if(true);
    }

    /// Time passes: the spinner turns, and what waited for its picture is drawn.
    pub(super) fn tick(&self) {
        self.state().draw_if(false);
    }

    /// What was taken since the last time.
    pub(super) fn taken(&self) -> Vec<Taken> {
        std::mem::take(&mut self.state().taken)
    }
}

impl View {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for View {
    fn observe(&self, event: &Event<'_>) {
        let mut state = self.state();
        state.observe(event);
        state.draw_if(false);
    }
}

impl State {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Delta(Delta::Text(text)) => self.tell(text),
            Event::Delta(Delta::Retry { attempt, pause, reason }) => self.remark(&lines::retry(*attempt, *pause, reason)),
            Event::CallStarted { call, summary, .. } => {
                self.finish_text();
                self.running.push((call.id.to_string(), lines::what(call, summary)));
            }
            Event::CallProgress { call, message } => {
                self.progress = Some(format!("{}: {}", shown::line(&call.name, 64), shown::line(message, 200)));
            }
            Event::CallFinished { call, tier, summary, result, view, duration, remembered: _ } => {
                let id = call.id.to_string();
                self.running.retain(|(running, _)| *running != id);
                self.progress = None;
                let finished = Finished { call, tier: *tier, summary, result, view: *view, duration: *duration };
                for line in finished.lines() {
                    self.remark(&line);
                }
            }
            Event::Fitting(Fitting::Summarising) => self.progress = Some("summarising the conversation".to_owned()),
            Event::Fitting(Fitting::Summarised { summary, tokens: (before, after), usage }) => {
                self.taken.push(Taken::Beside(*usage));
                self.progress = None;
                self.say(lines::summarised(summary.turns, *before, *after));
            }
            Event::Notice(text) => self.remark(&lines::notice(text)),
            Event::SubAgentTurn { usage, .. } | Event::Discarded { usage } => self.taken.push(Taken::Beside(*usage)),
            Event::TurnStarted { .. } => self.seen = false,
            Event::TurnFinished(turn) => {
                self.taken.push(Taken::Turn((*turn).clone()));
                self.finish_text();
            }
            Event::RequestFinished { outcome } => {
                // An answer that did not come as text, such as a summary.
                if let (Some(text), false) = (outcome.text(), self.seen) {
                    self.tell(text);
                }
                self.finish_text();
                self.running.clear();
                self.progress = None;
            }
            Event::Delta(Delta::Reasoning(_) | Delta::CallBegun(_))
            | Event::Fitting(Fitting::Pruned(_))
            | Event::RequestStarted { .. }
            | Event::Answered(_)
            | Event::CallsProposed(_) => {}
        }
    }

    /// What is no text of the model is broken between words, where there is a width to keep to.
    fn remark(&mut self, line: &str) {
        match self.face {
            Face::Drawn => self.say(wrap::wrapped(line, wrap::size().0)),
            Face::Plain => self.say(line.to_owned()),
        }
    }

    fn say(&mut self, line: String) {
        self.finish_text();
        self.settle(vec![line]);
    }

    /// What the model says.
    fn tell(&mut self, text: &str) {
        let rows = self.prose.push(text, self.columns());
        self.settle_told(rows);
    }

    fn finish_text(&mut self) {
        if self.prose.has_begun() {
            self.seen = true;
            let rows = self.prose.finish(self.columns());
            self.settle_told(rows);
        }
    }

    /// How wide a row of text may be.
    fn columns(&self) -> usize {
        match self.face {
            Face::Drawn => wrap::size().0,
            Face::Plain => usize::MAX,
        }
    }

    fn settle_told(&mut self, rows: Vec<String>) {
        match self.face {
            Face::Drawn => self.settle(rows),
            Face::Plain => {
                self.screen.write();
                for row in rows {
                    let _ = stdout_line(&row);
                }
            }
        }
    }

    fn settle(&mut self, rows: Vec<String>) {
        match self.scene {
            Scene::Asking { .. } => self.kept.extend(rows),
            Scene::Still | Scene::Running | Scene::Stopping => rows.iter().for_each(|row| self.screen.settle(row)),
        }
    }

    fn draw_if(&mut self, now_in_any_case: bool) {
        if self.face == Face::Plain {
            self.screen.write();
            return;
        }
        let now = Instant::now();
        if !now_in_any_case && !self.screen.is_due(now) {
            return;
        }
        let (columns, height) = wrap::size();
        match self.scene {
            Scene::Still => self.screen.clear(columns),
            Scene::Running | Scene::Stopping | Scene::Asking { .. } => {
                let rows = self.rows(columns, height, now);
                self.screen.draw(rows, columns, now);
            }
        }
    }

    fn rows(&self, columns: usize, height: usize, now: Instant) -> Rows {
        let width = columns.saturating_sub(1).max(1);
        if let Scene::Asking { mark, answer } = &self.scene {
            let mut rows = Rows::default();
            typed(&mut rows, mark, answer, width);
            return rows;
        }
        let mut rows = Rows { rows: self.prose.rest(columns, MOST_TEXT.min(height / 2)), cursor: (0, 0) };
        let seconds = now.duration_since(self.began).as_millis() / 100;
        let frame = FRAMES[usize::try_from(seconds).unwrap_or_default() % FRAMES.len()];
        let doing = self.progress.clone().unwrap_or_else(|| lines::waiting_for(&self.running, self.prose.has_begun()));
        let doing = match self.scene {
            Scene::Stopping => "stopping … (Ctrl-C again to leave)".to_owned(),
            Scene::Still | Scene::Running | Scene::Asking { .. } => format!("{doing} · {} s · Esc stops", seconds / 10),
        };
        rows.rows.push(dim(&format!("{frame} {doing}"), width));
        for words in self.queued.iter().take(MOST_QUEUED) {
            rows.rows.push(dim(&next_up(words), width));
        }
        if self.queued.len() > MOST_QUEUED {
            rows.rows.push(dim(&format!("  … and {} more", self.queued.len() - MOST_QUEUED), width));
        }
        rows.rows.push(dim(&self.status, width));
        typed(&mut rows, MARK, &self.typed, width);
        let surplus = rows.rows.len().saturating_sub(height.saturating_sub(1).max(1));
        rows.rows.drain(..surplus);
        rows.cursor.0 = rows.cursor.0.saturating_sub(surplus);
        rows
    }
}

/// Words that wait for their turn.
fn next_up(words: &str) -> String {
    format!("  next {MARK}{}", shown::line(words, 400))
}

/// Adds what is being typed, and puts the cursor there.
fn typed(rows: &mut Rows, mark: &str, line: &Line, width: usize) {
    let indent = console::measure_text_width(mark);
    let room = width.saturating_sub(indent).max(1);
    let (lines, row, column) = line.lines();
    let first = (row + 1).saturating_sub(MOST_TYPED);
    for (n, text) in lines.iter().enumerate().skip(first).take(MOST_TYPED) {
        let before = if n == first { mark.to_owned() } else { " ".repeat(indent) };
        // A line that is too long is shown from where its end, or the cursor, can be seen.
        let skip = if n == row { column.saturating_sub(room.saturating_sub(1)) } else { 0 };
        let text = shown::block(text);
        let text = after_columns(&text, skip);
        rows.rows.push(wrap::fit(&format!("{before}{text}"), width));
        if n == row {
            rows.cursor = (rows.rows.len() - 1, indent + column - skip);
        }
    }
}

fn after_columns(text: &str, columns: usize) -> &str {
    let mut width = 0;
    for (at, c) in text.char_indices() {
        if width >= columns {
            return &text[at..];
        }
        width += unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
    }
    if width >= columns && columns > 0 { "" } else { text }
}

fn dim(text: &str, width: usize) -> String {
    style(wrap::fit(text, width)).dim().for_stderr().to_string()
}
