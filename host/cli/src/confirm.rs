//! A yes-or-no question at the terminal, before a command does anything.

use super::pages::{DialogPageLine, PagedText};
use super::paging::{AnswerRules, PagingChoice, TypedAnswer, ask_in_pages};
use super::settle::{AskingTerminal, LineQuestion, SETTLE};

/// The prompt below a page that is not the last one.
const MORE_PROMPT: &str = "Enter shows more; n declines";

/// Shows a text page by page and asks a yes-or-no question. Returns `None` if there is no terminal.
///
/// Only an explicit yes after the last page returns true.
pub(super) fn confirm(text: &str, question: &str) -> Option<bool> {
    let mut terminal = AskingTerminal::of_this_process(SETTLE)?;
    let text = paged_text(text, question);
    match ask_in_pages(&text, &mut LineQuestion::new(&mut terminal, &|| false), rules()).ok()? {
        TypedAnswer::Answer(is_yes) => Some(is_yes),
        TypedAnswer::Rejected | TypedAnswer::Cancelled => Some(false),
    }
}

fn paged_text(text: &str, question: &str) -> PagedText {
    let mut pages = PagedText {
        lines: text.trim_start_matches('\n').lines().map(DialogPageLine::unmarked).collect(),
        choices: vec![question.to_owned()],
        more_prompt: MORE_PROMPT,
        ..PagedText::default()
    };
    pages.warn_text_direction();
    pages
}

fn rules() -> AnswerRules<'static, bool> {
    AnswerRules { parse_step, parse: &parse_confirmation, no: false, prompt: "[y/N] " }
}

fn parse_step(line: &str) -> Result<PagingChoice, &'static str> {
    match line.trim().to_lowercase().as_str() {
        "" => Ok(PagingChoice::More),
        "n" | "no" => Ok(PagingChoice::No),
        _ => Err("There are more pages. Press Enter to see them, or type n to decline."),
    }
}

/// Parses the answer. Digits are neither: in approval dialogs some mean yes, so here they must not
/// mean no.
fn parse_confirmation(line: &str) -> Result<bool, &'static str> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "" | "n" | "no" => Ok(false),
        _ => Err("Type y or n, and Enter."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paging::tests::ScriptedTerminal;
    use crate::wrap::TerminalSize;

    fn confirmed(text: &str, typed: &[&str]) -> bool {
        let mut terminal = ScriptedTerminal::new(TerminalSize { columns: 80, rows: 24 }, typed);
        match ask_in_pages(&paged_text(text, "Well?"), &mut terminal, rules()).expect("it asks") {
            TypedAnswer::Answer(is_yes) => is_yes,
            TypedAnswer::Rejected | TypedAnswer::Cancelled => false,
        }
    }

    #[test]
    fn r042_a_yes_counts_only_after_all_pages() {
        let two_pages = "line\n".repeat(30);
        for (typed, expected) in [
            (&["", "y"][..], true),
            (&["y", "yes", "1", "", "y"], true),
            (&["y", "n", "y"], false),
            (&["y"], false),
            (&[], false),
        ] {
            assert_eq!(confirmed(&two_pages, typed), expected, "{typed:?}");
        }
    }

    #[test]
    fn r128_a_digit_does_not_answer_a_yes_or_no_question() {
        let table = [
            (&["y"][..], true),
            (&[" YES "], true),
            (&["n"], false),
            (&[""], false),
            (&[], false),
            (&["1", "y"], true),
            (&["1", "n"], false),
            (&["2", "3", "0", "sure", "yes"], true),
            (&["3"], false),
        ];
        for (typed, expected) in table {
            assert_eq!(confirmed("text", typed), expected, "{typed:?}");
        }
    }
}
