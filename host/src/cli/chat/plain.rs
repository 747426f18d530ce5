//! A conversation line by line: at a terminal that cannot be drawn on, such as `TERM=dumb`, and where what is said does not come
//! from a terminal at all. Nothing is written that moves a cursor or has a colour.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::termios::{QueueSelector, tcflush};

use super::keyboard::{Entered, Key};
use super::line::Edit;
use super::signals::Signals;
use super::view::MARK;
use crate::cli::print::{stderr_line, stderr_piece};
use crate::cli::stdin;
use crate::shown;

/// How long a line is waited for before something else is looked at.
const GLANCE: Duration = Duration::from_millis(50);
/// What stands before a line that goes on with the one before it.
const GOES_ON: &str = "  ";
/// Lines that are read before anybody asks for them.
const READ_AHEAD: usize = 16;

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Somebody who can be asked, and who sees what they type.
    Terminal,
    /// A file or another program. Its lines are taken one after the other; nobody can be asked.
    Pipe,
}

/// Reads lines. The terminal stays as it is: it echoes, edits, and turns Ctrl-C into a signal.
pub(super) struct Lines {
    lines: mpsc::Receiver<String>,
    /// There are no more since one of them was too long.
    is_too_long: Arc<AtomicBool>,
    source: Source,
    signals: Signals,
    /// What was read and not handed out yet.
    keys: VecDeque<Key>,
}

/// What comes instead of a line.
enum Came {
    Line(String),
    Interrupt,
    /// There are no more lines, or the program is told to end.
    End,
}

impl Lines {
    pub(super) fn new(source: Source, signals: Signals) -> Self {
        let (sender, lines) = mpsc::sync_channel(READ_AHEAD);
        let is_too_long = Arc::new(AtomicBool::new(false));
        let found_too_long = Arc::clone(&is_too_long);
        // It ends with the input, or with the program.
        std::thread::spawn(move || {
            let mut line = Vec::new();
            loop {
                match stdin::read_line(&mut io::stdin().lock(), &mut line) {
                    Ok(true) => {}
                    Err(error) if error.to_string() == stdin::LINE_TOO_LONG => return found_too_long.store(true, Ordering::Release),
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
    pub(super) fn prompt(&mut self, unsent: &str, status: &dyn Fn() -> String) -> io::Result<Entered> {
        let is_terminal = self.source == Source::Terminal;
        if is_terminal {
            // It cannot be put into the line again.
            unsent.lines().for_each(|line| stderr_line(&format!("not sent: {}", shown::block(line))));
            stderr_line(&status());
        }
        let (mut text, mut leaving) = (String::new(), false);
        loop {
            if is_terminal {
                stderr_piece(if text.is_empty() { MARK } else { GOES_ON });
            }
            match self.line() {
                Came::Line(line) => match line.strip_suffix('\\') {
                    Some(begun) => text.push_str(&format!("{begun}\n")),
                    None => {
                        text.push_str(&line);
                        if !is_terminal && !text.trim().is_empty() {
                            stderr_line(&format!("{MARK}{}", shown::block(&text).replace('\n', "\n  ")));
                        }
                        return Ok(Entered::Line(text));
                    }
                },
                Came::Interrupt if is_terminal && !leaving => {
                    leaving = text.is_empty();
                    text.clear();
                    stderr_line(if leaving { "\nCtrl-C again, or Ctrl-D, leaves" } else { "" });
                }
                Came::End if self.is_too_long.load(Ordering::Acquire) => return Err(io::Error::other(stdin::LINE_TOO_LONG)),
                Came::End if !text.trim().is_empty() => return Ok(Entered::Line(text)),
                Came::Interrupt | Came::End => {
                    stderr_piece(if is_terminal { "\n" } else { "" });
                    return Ok(Entered::Leave);
                }
            }
        }
    }

    fn line(&mut self) -> Came {
        loop {
            if self.signals.leave() {
                return Came::End;
            }
            if self.signals.was_interrupted() {
                return Came::Interrupt;
            }
            match self.lines.recv_timeout(GLANCE) {
                Ok(line) => return Came::Line(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Came::End,
            }
        }
    }

    /// What is typed while a request runs. Lines of a pipe stay where they are until it is their turn.
    pub(super) fn next(&mut self, patience: Duration) -> Option<Key> {
        if self.source == Source::Terminal {
            return self.next_typed(patience, None);
        }
        std::thread::sleep(patience);
        self.signals.was_interrupted().then_some(Key::Interrupt)
    }

    /// What is typed for an answer. Who has nothing more to say rejects.
    pub(super) fn next_answer(&mut self, patience: Duration) -> Option<Key> {
        self.next_typed(patience, Some(Key::Escape))
    }

    fn next_typed(&mut self, patience: Duration, at_the_end: Option<Key>) -> Option<Key> {
        if self.signals.was_interrupted() {
            return Some(Key::Interrupt);
        }
        if let Some(key) = self.keys.pop_front() {
            return Some(key);
        }
        match self.lines.recv_timeout(patience) {
            Ok(line) => {
                self.keys.push_back(Key::Enter);
                Some(Key::Edit(Edit::Insert(line)))
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(patience);
                at_the_end
            }
        }
    }

    /// Drops what is typed until nothing has come for so long: it is no answer to what is asked now.
    pub(super) fn forget(&mut self, settle: Duration, is_over: &dyn Fn() -> bool) {
        self.keys.clear();
        let mut quiet_since = Instant::now();
        while quiet_since.elapsed() < settle && !is_over() {
            let _ = tcflush(io::stdin(), QueueSelector::IFlush);
            match self.lines.recv_timeout(settle.saturating_sub(quiet_since.elapsed()).min(GLANCE)) {
                Ok(_) => quiet_since = Instant::now(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
}
