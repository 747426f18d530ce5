//! Line-by-line input, for terminals without cursor control (`TERM=dumb`) and for pipes. It writes
//! neither cursor movements nor colours.

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
use crate::print::{eprint_line, eprint_text};
use crate::stdin;
use cofferdam::terminal_escape;

/// Maximum wait for a line before signals are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The prompt of a continuation line.
const CONTINUATION_PROMPT: &str = "  ";
/// Number of lines that the reader thread buffers.
const READ_AHEAD: usize = 16;

/// The source of input lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineSource {
    /// A terminal, whose user can answer questions and sees their own input.
    Terminal,
    /// A file or another program. Its lines run one after the other, and no user can answer
    /// questions.
    Pipe,
}

/// Reads input line by line. The terminal stays in its normal mode: it echoes, edits, and turns
/// Ctrl-C into a signal.
pub(super) struct PipedLineReader {
    lines: mpsc::Receiver<String>,
    /// Set when reading ended because a line was too long.
    is_too_long: Arc<AtomicBool>,
    source: LineSource,
    signals: ProcessSignals,
    /// Keys that were read but not returned yet.
    keys: VecDeque<KeyPress>,
}

/// An event of line input.
enum PipedLineEvent {
    Line(String),
    Interrupt,
    /// The input ended, or a signal ended the program.
    End,
}

impl PipedLineReader {
    pub(super) fn new(source: LineSource, signals: ProcessSignals) -> Self {
        let (sender, lines) = mpsc::sync_channel(READ_AHEAD);
        let is_too_long = Arc::new(AtomicBool::new(false));
        let found_too_long = Arc::clone(&is_too_long);
        // The thread ends with the input or with the program.
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

    /// Reads the next prompt. A backslash at the end of a line continues it on the next one.
    pub(super) fn read_prompt(
        &mut self,
        unsent: &str,
        status: &dyn Fn() -> String,
    ) -> io::Result<PromptEntry> {
        let is_terminal = self.source == LineSource::Terminal;
        if is_terminal {
            // Unsent text cannot be put back into the line, so it is printed.
            unsent.lines().for_each(|line| {
                eprint_line(&format!("not sent: {}", terminal_escape::escape_text(line)))
            });
            eprint_line(&status());
        }
        let (mut text, mut exit_on_interrupt) = (String::new(), false);
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
                PipedLineEvent::Interrupt if is_terminal && !exit_on_interrupt => {
                    exit_on_interrupt = text.is_empty();
                    text.clear();
                    eprint_line(if exit_on_interrupt {
                        "\nCtrl-C again, or Ctrl-D, leaves the chat"
                    } else {
                        ""
                    });
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

    /// Returns the next key typed while a request runs. Lines of a pipe stay in the buffer until
    /// the request is over.
    pub(super) fn next_key(&mut self, timeout: Duration) -> Option<KeyPress> {
        if self.source == LineSource::Terminal {
            return self.next_typed_key(timeout, None);
        }
        std::thread::sleep(timeout);
        self.signals.take_interrupt().then_some(KeyPress::Interrupt)
    }

    /// Returns the next key of an answer. The end of input rejects.
    pub(super) fn next_answer_key(&mut self, timeout: Duration) -> Option<KeyPress> {
        self.next_typed_key(timeout, Some(KeyPress::Escape))
    }

    fn next_typed_key(&mut self, timeout: Duration, end_key: Option<KeyPress>) -> Option<KeyPress> {
        if self.signals.take_interrupt() {
            return Some(KeyPress::Interrupt);
        }
        if let Some(key) = self.keys.pop_front() {
            return Some(key);
        }
        match self.lines.recv_timeout(timeout) {
            Ok(line) => {
                self.keys.push_back(KeyPress::Enter);
                Some(KeyPress::Edit(LineEdit::Insert(line)))
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(timeout);
                end_key
            }
        }
    }

    /// Discards input until none has arrived for `settle`, since it cannot be an answer to a new
    /// question.
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
