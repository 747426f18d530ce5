//! Questions page by page, at a terminal whose window may change its size.
//!
//! A yes counts only if each row of the question was printed in a window that had room for it, and
//! the window has not become smaller since.

use std::io;

use super::pages::{LaidOutText, PagedText, format_page_end};
use super::wrap::TerminalSize;

/// The smallest window in which a question can be approved. It has room for the prompt, the line
/// below a page, and three rows of the text.
const MIN_SIZE: TerminalSize = TerminalSize { columns: 20, rows: 6 };
/// The rows of the text on a page that has room for the row numbers too.
const MIN_NUMBERED_ROWS: usize = 3;

/// A page that is ready to be printed, without the final line break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DialogPage {
    /// A part of the question, or a request to enlarge the window. It cannot be answered with yes.
    Partial(String),
    /// The end of the question. All pages before it were printed.
    Last(String),
}

/// The pages of an open question. Each page is made for the size of the window when it is printed.
/// If the window becomes smaller, the pages begin again, since rows may have scrolled off.
#[derive(Debug)]
pub(super) struct PageSequence<'a> {
    text: &'a PagedText,
    /// The pages that were printed; `None` before the first one.
    printed: Option<PrintedPages>,
    /// Whether pages were printed before and begin again.
    is_repeated: bool,
}

#[derive(Debug)]
struct PrintedPages {
    layout: LaidOutText,
    /// The number of rows that were printed.
    printed_rows: usize,
    /// The size of the window when the last page was printed.
    size: TerminalSize,
}

impl<'a> PageSequence<'a> {
    pub(super) fn new(text: &'a PagedText) -> Self {
        Self { text, printed: None, is_repeated: false }
    }

    /// Returns the next page for a window of this size, and counts it as printed.
    pub(super) fn next_page(&mut self, size: TerminalSize) -> DialogPage {
        self.check_size(size);
        let page = match size.covers(MIN_SIZE) {
            true => self.print_rows(size),
            false => None,
        };
        page.unwrap_or_else(|| {
            self.restart();
            DialogPage::Partial(self.too_small())
        })
    }

    /// Returns whether the window still has room for the page that was printed last. Otherwise the
    /// pages begin again.
    pub(super) fn check_size(&mut self, size: TerminalSize) -> bool {
        let has_room = self.printed.as_ref().is_none_or(|printed| size.covers(printed.size));
        if !has_room {
            self.restart();
        }
        has_room
    }

    fn restart(&mut self) {
        self.is_repeated |= self.printed.take().is_some();
    }

    fn print_rows(&mut self, size: TerminalSize) -> Option<DialogPage> {
        let printed = self.printed.get_or_insert_with(|| PrintedPages {
            layout: self.text.lay_out(size, self.is_repeated),
            printed_rows: 0,
            size,
        });
        printed.size = size;
        let (layout, first) = (&printed.layout, printed.printed_rows);
        let rest = &layout.rows[first..];
        // The prompt takes a row.
        let room = size.rows - 1;
        if rest.len() <= room {
            printed.printed_rows = layout.rows.len();
            return Some(DialogPage::Last(rest.join("\n")));
        }
        let most = room.min(rest.len() - layout.last_rows);
        let end = |count: usize, is_numbered: bool| {
            let all = layout.rows.len() - layout.last_rows;
            let numbers = is_numbered.then_some((first + 1, first + count, all));
            format_page_end(self.text.more_prompt, numbers, layout.columns)
        };
        let (count, end) = [(true, MIN_NUMBERED_ROWS.min(most)), (false, 1)]
            .into_iter()
            .flat_map(|(is_numbered, least)| {
                (least..=most).rev().map(move |count| (count, is_numbered))
            })
            .map(|(count, is_numbered)| (count, end(count, is_numbered)))
            .find(|(count, end)| count + end.len() <= room)?;
        printed.printed_rows += count;
        Some(DialogPage::Partial([&rest[..count], &end].concat().join("\n")))
    }

    fn too_small(&self) -> String {
        let TerminalSize { columns, rows } = MIN_SIZE;
        format!(
            "\n! Enlarge the window: approval needs {columns} columns and {rows} rows. {}.",
            self.text.more_prompt
        )
    }
}

/// The choice on a page that is not the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PagingChoice {
    More,
    No,
}

/// What a user typed, or why there is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypedAnswer<T> {
    Answer(T),
    /// The terminal was closed, or a key rejected.
    Rejected,
    /// Nobody waits for an answer anymore.
    Cancelled,
}

/// The answers that a question accepts.
pub(super) struct AnswerRules<'a, C> {
    /// Parses a line on a page that is not the last one.
    pub(super) parse_step: fn(&str) -> Result<PagingChoice, &'static str>,
    /// Parses a line on the last page.
    pub(super) parse: &'a dyn Fn(&str) -> Result<C, &'static str>,
    /// The choice that is always possible.
    pub(super) no: C,
    /// The prompt on the last page.
    pub(super) prompt: &'static str,
}

/// The prompt on the other pages, and the usual one on the last page.
pub(super) const ANSWER_PROMPT: &str = "> ";

/// A terminal that asks a question.
pub(super) trait QuestionTerminal {
    /// Returns the current size of the window.
    fn size(&self) -> TerminalSize;
    /// Prints a page, and discards what was typed before a user could read it.
    fn show_page(&mut self, page: &str) -> io::Result<()>;
    /// Prints a line about an invalid answer.
    fn show_hint(&mut self, hint: &str);
    /// Reads a line after a prompt of one row.
    fn read_line(&mut self, prompt: &'static str) -> io::Result<TypedAnswer<String>>;
}

/// Shows a question page by page and reads the answer.
///
/// Only the last page accepts another choice than no, and only if the window has not become
/// smaller. Otherwise the question is shown again.
pub(super) fn ask_in_pages<C: PartialEq>(
    text: &PagedText,
    terminal: &mut impl QuestionTerminal,
    rules: AnswerRules<'_, C>,
) -> io::Result<TypedAnswer<C>> {
    let mut pages = PageSequence::new(text);
    'pages: loop {
        let page = pages.next_page(terminal.size());
        match &page {
            DialogPage::Partial(rows) | DialogPage::Last(rows) => terminal.show_page(rows)?,
        }
        // The window may have changed while the page was printed.
        if !pages.check_size(terminal.size()) {
            continue;
        }
        loop {
            let prompt = match page {
                DialogPage::Partial(_) => ANSWER_PROMPT,
                DialogPage::Last(_) => rules.prompt,
            };
            let line = match terminal.read_line(prompt)? {
                TypedAnswer::Answer(line) => line,
                TypedAnswer::Rejected => return Ok(TypedAnswer::Rejected),
                TypedAnswer::Cancelled => return Ok(TypedAnswer::Cancelled),
            };
            let hint = match page {
                DialogPage::Partial(_) => match (rules.parse_step)(&line) {
                    Ok(PagingChoice::More) => continue 'pages,
                    Ok(PagingChoice::No) => return Ok(TypedAnswer::Answer(rules.no)),
                    Err(hint) => hint,
                },
                DialogPage::Last(_) => match (rules.parse)(&line) {
                    Ok(choice) if choice == rules.no || pages.check_size(terminal.size()) => {
                        return Ok(TypedAnswer::Answer(choice));
                    }
                    Ok(_) => continue 'pages,
                    Err(hint) => hint,
                },
            };
            terminal.show_hint(hint);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use super::super::pages::DialogPageLine;
    use super::*;

    /// A terminal that keeps the rows that a user sees. The user types fixed lines.
    pub(crate) struct ScriptedTerminal {
        size: TerminalSize,
        rows: Vec<String>,
        typed: VecDeque<String>,
        /// Whether the user goes on after these lines, and approves as soon as that is possible.
        approves: bool,
        /// The screens at the times when an answer was possible.
        seen: Vec<String>,
        /// The sizes that the window gets: while a page with this number is printed, and before
        /// the answer with this number.
        while_printing: Vec<(usize, TerminalSize)>,
        before_answer: Vec<(usize, TerminalSize)>,
        pages: usize,
        last_page: String,
    }

    impl ScriptedTerminal {
        pub(crate) fn new(size: TerminalSize, typed: &[&str]) -> Self {
            Self {
                size,
                rows: Vec::new(),
                typed: typed.iter().map(|line| (*line).to_owned()).collect(),
                approves: false,
                seen: Vec::new(),
                while_printing: Vec::new(),
                before_answer: Vec::new(),
                pages: 0,
                last_page: String::new(),
            }
        }

        fn approving(size: TerminalSize) -> Self {
            Self { approves: true, ..Self::new(size, &[]) }
        }

        fn print(&mut self, text: &str) {
            for line in console::strip_ansi_codes(text).split('\n') {
                let mut row = String::new();
                for c in line.chars() {
                    if row.chars().count() == self.size.columns {
                        self.rows.push(std::mem::take(&mut row));
                    }
                    row.push(c);
                }
                self.rows.push(row);
            }
        }

        fn resize_to(&mut self, changes: &[(usize, TerminalSize)], number: usize) {
            if let Some((_, size)) = changes.iter().find(|(at, _)| *at == number) {
                self.size = *size;
            }
        }

        fn words(&self) -> BTreeSet<&str> {
            self.seen.iter().flat_map(|screen| screen.split_whitespace()).collect()
        }
    }

    impl QuestionTerminal for ScriptedTerminal {
        fn size(&self) -> TerminalSize {
            self.size
        }

        fn show_page(&mut self, page: &str) -> io::Result<()> {
            self.resize_to(&self.while_printing.clone(), self.pages);
            self.pages += 1;
            assert!(self.pages < 2000, "the question does not end: {page}");
            self.print(page);
            page.clone_into(&mut self.last_page);
            Ok(())
        }

        fn show_hint(&mut self, hint: &str) {
            self.print(hint);
        }

        fn read_line(&mut self, prompt: &'static str) -> io::Result<TypedAnswer<String>> {
            let from = (self.rows.len() + 1).saturating_sub(self.size.rows);
            self.print(prompt);
            let screen = self.rows[from..].join("\n");
            let is_stuck = self.last_page.contains("! Enlarge") && self.before_answer.is_empty();
            let line = self.typed.pop_front().or_else(|| {
                self.approves.then(|| match (screen.contains("Type 1"), is_stuck) {
                    (true, _) => "1".to_owned(),
                    (false, true) => "3".to_owned(),
                    (false, false) => String::new(),
                })
            });
            self.seen.push(screen);
            let reads = self.seen.len() - 1;
            let changes = std::mem::take(&mut self.before_answer);
            self.resize_to(&changes, reads);
            self.before_answer = changes.into_iter().filter(|(at, _)| *at > reads).collect();
            Ok(line.map_or(TypedAnswer::Rejected, TypedAnswer::Answer))
        }
    }

    /// A question whose words are all different, each short enough for any row.
    fn long_question() -> PagedText {
        let words = |letter: char, count: usize| {
            (0..count).map(|n| format!("{letter}{n:02}")).collect::<Vec<_>>().join(" ")
        };
        let mut text = PagedText {
            headline: words('h', 12),
            reminders: vec![words('r', 8)],
            notices: vec![words('n', 8)],
            choices: vec![
                format!("  1  {}", words('y', 12)),
                format!("  3  {}", words('z', 12)),
                "Type 1 or 3, and Enter.".to_owned(),
            ],
            more_prompt: "Enter shows more; 3 rejects",
            ..PagedText::default()
        };
        text.lines = (0..30).map(|n| DialogPageLine::plain(format!("l{n:02}"))).collect();
        text.lines.push(DialogPageLine::plain(words('w', 99)));
        text
    }

    fn rules() -> AnswerRules<'static, bool> {
        AnswerRules {
            parse_step: |line| match line {
                "" => Ok(PagingChoice::More),
                "3" => Ok(PagingChoice::No),
                _ => Err("There are more pages."),
            },
            parse: &|line| match line {
                "1" => Ok(true),
                "3" => Ok(false),
                _ => Err("Type 1 or 3, and Enter."),
            },
            no: false,
            prompt: ANSWER_PROMPT,
        }
    }

    /// Asks, and returns whether the user could approve. Then each word was visible.
    fn ask(text: &PagedText, terminal: &mut ScriptedTerminal) -> bool {
        let answer = ask_in_pages(text, terminal, rules()).expect("it asks");
        let is_approved = answer == TypedAnswer::Answer(true);
        if is_approved {
            let seen = terminal.words();
            let lines = text.lines.iter().map(DialogPageLine::text);
            let others = [&text.headline].into_iter().chain(&text.notices).chain(&text.choices);
            let all = lines.chain(others.map(String::as_str)).flat_map(str::split_whitespace);
            let missing: Vec<&str> = all.filter(|word| !seen.contains(word)).collect();
            assert!(missing.is_empty(), "{missing:?} of {:?}\n{:#?}", terminal.size, terminal.seen);
        }
        is_approved
    }

    const fn size(columns: usize, rows: usize) -> TerminalSize {
        TerminalSize { columns, rows }
    }

    #[test]
    fn r042_in_each_window_the_whole_question_is_visible_before_a_yes_counts() {
        let text = long_question();
        let widths = (1..=45).chain([60, 80, 100, 130]);
        for (columns, rows) in
            widths.flat_map(|columns| (1..=30).chain([40, 60]).map(move |rows| (columns, rows)))
        {
            let mut terminal = ScriptedTerminal::approving(size(columns, rows));
            let is_approved = ask(&text, &mut terminal);
            assert_eq!(is_approved, columns >= 20 && rows >= 6, "{columns} columns, {rows} rows");
        }
    }

    #[test]
    fn r042_a_window_that_changes_its_size_hides_nothing() {
        let text = long_question();
        let mut state = 7_u64;
        let mut random = |until: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).expect("31 bits") % until
        };
        let mut approved = 0;
        for _ in 0..3000 {
            let mut any_size = || size(15 + random(90), 3 + random(40));
            let mut terminal = ScriptedTerminal::approving(any_size());
            let sizes: Vec<_> = (0..6).map(|_| any_size()).collect();
            let changes: Vec<_> = sizes.into_iter().map(|size| (random(12), size)).collect();
            let (printing, answers) = changes.split_at(3);
            (terminal.while_printing, terminal.before_answer) = (printing.into(), answers.into());
            approved += usize::from(ask(&text, &mut terminal));
        }
        assert!(approved > 500, "{approved}");
    }

    #[test]
    fn r042_a_smaller_window_begins_the_text_again_and_a_larger_one_does_not() {
        let text = long_question();
        let answer_after = |changed: TerminalSize, at: usize| {
            let mut terminal = ScriptedTerminal::approving(size(80, 24));
            terminal.before_answer = vec![(at, changed)];
            assert!(ask(&text, &mut terminal));
            terminal.seen
        };
        let pages = answer_after(size(80, 24), 0).len();
        for at in [0, pages - 1] {
            for smaller in [size(80, 12), size(40, 30), size(79, 24)] {
                let seen = answer_after(smaller, at);
                assert!(seen[at + 1].contains("h00"), "{at}: {seen:#?}");
                assert!(seen[at + 1].contains("smaller"), "{at}: {seen:#?}");
            }
            let seen = answer_after(size(120, 40), at);
            assert!(seen.len() <= pages && !seen.concat().contains("again"), "{at}: {seen:#?}");
        }
    }

    #[test]
    fn r042_a_window_that_is_too_small_only_rejects() {
        let text = long_question();
        let typed = ["1", "2", "y", "", "1", "3"];
        let mut terminal = ScriptedTerminal::new(size(80, 5), &typed);
        assert!(!ask(&text, &mut terminal));
        assert_eq!(terminal.seen.len(), typed.len());
        let first = terminal.seen[0].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            first,
            "! Enlarge the window: approval needs 20 columns and 6 rows. Enter shows more; 3 \
                rejects. >"
        );
        // A user who enlarges it sees the question.
        let mut terminal = ScriptedTerminal::approving(size(80, 5));
        terminal.before_answer = vec![(0, size(80, 24))];
        assert!(ask(&text, &mut terminal));
    }

    #[test]
    fn r042_only_the_last_page_accepts_a_yes() {
        let text = long_question();
        for (typed, expected) in [
            (&["1", "1", "", "1"][..], None),
            (&["1", "3"], Some(false)),
            (&[""], None),
            (&["", "", "", "1"], Some(true)),
        ] {
            let mut terminal = ScriptedTerminal::new(size(80, 24), typed);
            let answer = ask_in_pages(&text, &mut terminal, rules()).expect("it asks");
            let expected = expected.map_or(TypedAnswer::Rejected, TypedAnswer::Answer);
            assert_eq!(answer, expected, "{typed:?}: {:#?}", terminal.seen);
        }
    }
}
