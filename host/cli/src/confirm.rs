//! A yes-or-no question at the terminal, before a command does anything.

use std::io::{self, BufRead};

use super::pages::{DialogPageLine, PagedText};
use super::print::{eprint_line, eprint_text};
use super::settle::{AskingTerminal, SETTLE};
use super::wrap;

/// The prompt below a page that is not the last one.
const MORE_PROMPT: &str = "Enter shows more; n declines";

/// Shows a text page by page and asks a yes-or-no question. Returns `None` if there is no terminal.
///
/// Only an explicit yes after the last page returns true.
pub(super) fn confirm(text: &str, question: &str) -> Option<bool> {
    let mut terminal = AskingTerminal::of_this_process(SETTLE)?;
    let mut pages = PagedText {
        lines: text.trim_start_matches('\n').lines().map(DialogPageLine::unmarked).collect(),
        more_prompt: MORE_PROMPT,
        ..PagedText::default()
    };
    pages.warn_text_direction();
    let (columns, rows) = wrap::terminal_size();
    // The question takes two rows.
    let pages = pages.layout((columns, rows.saturating_sub(2)));
    for (n, page) in pages.iter().enumerate() {
        terminal.show(page.trim_end_matches('\n'));
        if n + 1 < pages.len() && !read_page_step(terminal.input()).ok()? {
            return Some(false);
        }
    }
    read_confirmation(terminal.input(), question).ok()
}

/// Waits until the user continues (true) or declines (false).
fn read_page_step(terminal: &mut impl BufRead) -> io::Result<bool> {
    loop {
        eprint_text("> ");
        let mut answer = String::new();
        if terminal.read_line(&mut answer)? == 0 {
            return Ok(false);
        }
        match answer.trim().to_lowercase().as_str() {
            "" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => {
                eprint_line("There are more pages. Press Enter to see them, or type n to decline.")
            }
        }
    }
}

/// Asks until the answer is yes or no. Digits are neither: in approval dialogs some mean yes, so
/// here they must not mean no.
fn read_confirmation(terminal: &mut impl BufRead, question: &str) -> io::Result<bool> {
    loop {
        eprint_text(&format!("\n{question} [y/N] "));
        let mut answer = String::new();
        // The terminal is closed.
        if terminal.read_line(&mut answer)? == 0 {
            return Ok(false);
        }
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "" | "n" | "no" => return Ok(false),
            _ => eprint_line("Type y or n, and Enter."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r042_a_yes_counts_only_after_all_pages() {
        for (typed, expected) in
            [("\n", true), ("y\nyes\n1\n\n", true), ("y\nn\n", false), ("y\n", false), ("", false)]
        {
            assert_eq!(
                read_page_step(&mut typed.as_bytes()).expect("it can be read"),
                expected,
                "{typed:?}"
            );
        }
    }

    #[test]
    fn r128_a_digit_does_not_answer_a_yes_or_no_question() {
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
            assert_eq!(
                read_confirmation(&mut typed.as_bytes(), "Well?").expect("it can be read"),
                expected,
                "{typed:?}"
            );
        }
    }
}
