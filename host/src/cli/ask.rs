//! A question before anything runs, to be answered with yes or no at the terminal.

use std::io::{self, BufRead, BufReader, IsTerminal as _};

use super::print::{stderr_line, stderr_piece};

/// The answer; `None` where nobody can be asked. Only a yes is one.
pub(super) fn yes_or_no(shown: &str, question: &str) -> Option<bool> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let terminal = std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
    // What was typed before the question was there is no answer to it.
    let _ = rustix::termios::tcflush(&terminal, rustix::termios::QueueSelector::IFlush);
    stderr_line(shown);
    converse(&mut BufReader::new(terminal), question).ok()
}

/// Asks until it is a yes or a no. A digit is neither: elsewhere some stand for yes, and so they must not mean no here.
fn converse(terminal: &mut impl BufRead, question: &str) -> io::Result<bool> {
    loop {
        stderr_piece(&format!("\n{question} [y/N] "));
        let mut answer = String::new();
        // Nobody is there any more.
        if terminal.read_line(&mut answer)? == 0 {
            return Ok(false);
        }
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "" | "n" | "no" => return Ok(false),
            _ => stderr_line("Type y or n, and Enter."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r128_no_digit_is_an_answer_where_yes_and_no_are_asked_for() {
        let table = [
            ("y\n", true),
            (" YES \n", true),
            ("n\n", false),
            ("\n", false),
            ("", false),
            ("1\ny\n", true),
            ("1\nn\n", false),
            ("2\n3\n0\nsure\nyes\n", true),
            ("3\n", false),
        ];
        for (typed, expected) in table {
            assert_eq!(converse(&mut typed.as_bytes(), "Well?").expect("it can be read"), expected, "{typed:?}");
        }
    }
}
