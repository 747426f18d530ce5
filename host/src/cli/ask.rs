//! A question before anything runs, to be answered with yes or no at the terminal.

use std::io::{BufRead as _, BufReader, IsTerminal as _};

use super::print::{stderr_line, stderr_piece};

/// The answer; `None` where nobody can be asked. Only a yes is one.
pub(super) fn yes_or_no(shown: &str, question: &str) -> Option<bool> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let terminal = std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
    // What was typed before the question was there is no answer to it.
    let _ = rustix::termios::tcflush(&terminal, rustix::termios::QueueSelector::IFlush);
    stderr_line(shown);
    stderr_piece(&format!("\n{question} [y/N] "));
    let mut answer = String::new();
    BufReader::new(terminal).read_line(&mut answer).ok()?;
    Some(matches!(answer.trim(), "y" | "Y" | "yes"))
}
