//! A conversation line by line: at a terminal that cannot be drawn on, such as `TERM=dumb`, and
//! where what is said does not come from a terminal at all. Nothing is written that moves a cursor
//! or has a colour.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::termios::{QueueSelector, tcflush};

use super::edit_line::LineEdit;
use super::keyboard::{KeyPress, PromptEntry};
use super::signals::ProcessSignals;
use super::view::PROMPT_MARK;
use crate::cli::print::{eprint_line, eprint_text};
use crate::cli::stdin;
use crate::terminal_escape;

/// How long a line is waited for before something else is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// What stands before a line that goes on with the one before it.
const CONTINUATION_PROMPT: &str = "  ";
/// Lines that are read before anybody asks for them.
const READ_AHEAD: usize = 16;

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineSource {
    /// Somebody who can be asked, and who sees what they type.
    Terminal,
    /// A file or another program. Its lines are taken one after the other; nobody can be asked.
    Pipe,
}

/// Reads lines. The terminal stays as it is: it echoes, edits, and turns Ctrl-C into a signal.
pub(super) struct PipedLineReader {
    lines: mpsc::Receiver<String>,
    /// There are no more since one of them was too long.
    is_too_long: Arc<AtomicBool>,
    source: LineSource,
    signals: ProcessSignals,
    /// What was read and not handed out yet.
    keys: VecDeque<KeyPress>,
}

/// What comes instead of a line.
enum PipedLineEvent {
    Line(String),
    Interrupt,
    /// There are no more lines, or the program is told to end.
    End,
}

impl PipedLineReader {
    pub(super) fn new(source: LineSource, signals: ProcessSignals) -> Self {
        let (sender, lines) = mpsc::sync_channel(READ_AHEAD);
        let is_too_long = Arc::new(AtomicBool::new(false));
        let found_too_long = Arc::clone(&is_too_long);
        // It ends with the input, or with the program.
        std::thread::spawn(move || {
            let mut line = Vec::new();
            loop {
                match stdin::read_line(&mut io::stdin().lock(), &mut line) {
                    Ok(true) => {}
                    Err(error) if error.to_string() == stdin::LINE_TOO_LONG => {
                        return found_too_long.store(true, Ordering::Release);
                    }
                    Ok(false) | Err(_) => return,
                }
                let text = String::from_utf8_lossy(&line);
                if sender.send(text.trim_end_matches(['\n', '\r']).to_owned()).is_err() {
                    return;
                }
            }
        });
        Self { lines, is_too_long, source, signals, keys: VecDeque::new() }
    }

    /// Reads what is said next. A backslash at the end of a line goes on with the next one.
    pub(super) fn read_prompt(
        &mut self,
        unsent: &str,
        status: &dyn Fn() -> String,
    ) -> io::Result<PromptEntry> {
        let is_terminal = self.source == LineSource::Terminal;
        if is_terminal {
            // It cannot be put into the line again.
            unsent.lines().for_each(|line| {
                eprint_line(&format!("not sent: {}", terminal_escape::escape_text(line)))
            });
            eprint_line(&status());
        }
        let (mut text, mut leaving) = (String::new(), false);
        loop {
            if is_terminal {
                eprint_text(if text.is_empty() { PROMPT_MARK } else { CONTINUATION_PROMPT });
            }
            match self.next_line() {
                PipedLineEvent::Line(line) => match line.strip_suffix('\\') {
                    Some(begun) => text.push_str(&format!("{begun}\n")),
                    None => {
                        text.push_str(&line);
                        if !is_terminal && !text.trim().is_empty() {
                            eprint_line(&format!(
                                "{PROMPT_MARK}{}",
                                terminal_escape::escape_text(&text).replace('\n', "\n  ")
                            ));
                        }
                        return Ok(PromptEntry::Line(text));
                    }
                },
                PipedLineEvent::Interrupt if is_terminal && !leaving => {
                    leaving = text.is_empty();
                    text.clear();
                    eprint_line(if leaving { "\nCtrl-C again, or Ctrl-D, leaves" } else { "" });
                }
                PipedLineEvent::End if self.is_too_long.load(Ordering::Acquire) => {
                    return Err(io::Error::other(stdin::LINE_TOO_LONG));
                }
                PipedLineEvent::End if !text.trim().is_empty() => {
                    return Ok(PromptEntry::Line(text));
                }
                PipedLineEvent::Interrupt | PipedLineEvent::End => {
                    eprint_text(if is_terminal { "\n" } else { "" });
                    return Ok(PromptEntry::Exit);
                }
            }
        }
    }

    fn next_line(&mut self) -> PipedLineEvent {
        loop {
            if self.signals.should_exit() {
                return PipedLineEvent::End;
            }
            if self.signals.take_interrupt() {
                return PipedLineEvent::Interrupt;
            }
            match self.lines.recv_timeout(POLL_INTERVAL) {
                Ok(line) => return PipedLineEvent::Line(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return PipedLineEvent::End,
            }
        }
    }

    /// What is typed while a request runs. Lines of a pipe stay where they are until it is their
    /// turn.
    pub(super) fn next_key(&mut self, patience: Duration) -> Option<KeyPress> {
        if self.source == LineSource::Terminal {
            return self.next_typed_key(patience, None);
        }
        std::thread::sleep(patience);
        self.signals.take_interrupt().then_some(KeyPress::Interrupt)
    }

    /// What is typed for an answer. Who has nothing more to say rejects.
    pub(super) fn next_answer_key(&mut self, patience: Duration) -> Option<KeyPress> {
        self.next_typed_key(patience, Some(KeyPress::Escape))
    }

    fn next_typed_key(
        &mut self,
        patience: Duration,
        at_the_end: Option<KeyPress>,
    ) -> Option<KeyPress> {
        if self.signals.take_interrupt() {
            return Some(KeyPress::Interrupt);
        }
        if let Some(key) = self.keys.pop_front() {
            return Some(key);
        }
        match self.lines.recv_timeout(patience) {
            Ok(line) => {
                self.keys.push_back(KeyPress::Enter);
                Some(KeyPress::Edit(LineEdit::Insert(line)))
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(patience);
                at_the_end
            }
        }
    }

    /// Drops what is typed until nothing has come for so long: it is no answer to what is asked
    /// now.
    pub(super) fn discard_typed(&mut self, settle: Duration, is_over: &dyn Fn() -> bool) {
        self.keys.clear();
        let mut quiet_since = Instant::now();
        while quiet_since.elapsed() < settle && !is_over() {
            let _ = tcflush(io::stdin(), QueueSelector::IFlush);
            match self
                .lines
                .recv_timeout(settle.saturating_sub(quiet_since.elapsed()).min(POLL_INTERVAL))
            {
                Ok(_) => quiet_since = Instant::now(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
}
