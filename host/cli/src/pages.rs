//! Layout of questions: the text is wrapped into rows for a window. Long runs of blanks, which
//! could push text off the screen, are shown as a count.

use console::{Style, style};
use unicode_width::UnicodeWidthChar as _;

use super::wrap::TerminalSize;
use cofferdam::terminal_escape::{self, LineSegment, MAX_EMPTY_LINES, split_at_blanks};

/// The prefix of the first row of a line and of its continued rows. Untrusted text is never printed
/// in these columns, so it cannot imitate another kind of row.
const LINE_MARK: &str = "    ";
const CONTINUATION_MARK: &str = "  ↳ ";
/// The prefix of a row that replaces omitted text.
const OMISSION_MARK: &str = "  ⋮ ";
/// The replacement for a tab.
const TAB_SPACES: &str = "    ";
/// Minimum columns of text in a row, in addition to its prefix.
const MIN_TEXT_COLUMNS: usize = 10;
/// The line before a text that was printed before.
const REPEATED_NOTE: &str = "! The window is smaller than before, so the text begins again.";

/// An escaped line of a question.
#[derive(Clone, Debug)]
pub(super) struct DialogPageLine {
    text: String,
    style: Style,
    prefix: &'static str,
}

impl DialogPageLine {
    /// Creates a line without a style.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self::styled(text, Style::new())
    }

    /// Creates a line with a style.
    pub(super) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style: style.for_stderr(), prefix: LINE_MARK }
    }

    /// Creates a line of this program about omitted text.
    pub(super) fn omission(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: Style::new().bold().for_stderr(), prefix: OMISSION_MARK }
    }

    /// Creates a line without a prefix, for text of this program in which untrusted lines are
    /// already indented.
    pub(super) fn unmarked(text: &str) -> Self {
        Self { text: text.to_owned(), style: Style::new(), prefix: "" }
    }

    /// Returns the escaped text.
    #[cfg(test)]
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn is_empty(&self) -> bool {
        self.prefix != OMISSION_MARK && self.text.trim_matches([' ', '\t']).is_empty()
    }
}

/// A question: its text, and what follows the text on the last page.
#[derive(Clone, Debug, Default)]
pub(super) struct PagedText {
    /// One line that introduces the question.
    pub(super) headline: String,
    /// The text to decide on.
    pub(super) lines: Vec<DialogPageLine>,
    /// Lines of the text that are repeated on the last of several pages.
    pub(super) reminders: Vec<String>,
    /// Warnings that are not part of the text.
    pub(super) notices: Vec<String>,
    /// The choices of the question.
    pub(super) choices: Vec<String>,
    /// The hint below each page except the last.
    pub(super) more_prompt: &'static str,
}

impl PagedText {
    /// Adds untrusted text, escaped.
    pub(super) fn push_text(&mut self, text: &str) {
        self.lines.extend(terminal_escape::escape_exact(text).lines().map(DialogPageLine::plain));
    }

    /// Adds a warning if a line contains right-to-left text, which terminals may reorder.
    pub(super) fn warn_text_direction(&mut self) {
        if self.lines.iter().any(|line| terminal_escape::has_right_to_left(&line.text)) {
            self.notices.push(
                "! This text contains right-to-left letters: your terminal may show parts of a \
                    line in another order."
                    .to_owned(),
            );
        }
    }

    /// Wraps the question for a window of this size. `is_repeated` adds a note that the text begins
    /// again.
    pub(super) fn lay_out(&self, size: TerminalSize, is_repeated: bool) -> LaidOutText {
        // In the last column, a terminal may or may not begin a new row. The prompt takes a row.
        let (columns, room) = (size.columns.saturating_sub(1), size.rows.saturating_sub(1));
        let mut rows = vec![String::new()];
        if is_repeated {
            rows.extend(wrap_warning(REPEATED_NOTE, "  ", columns));
        }
        if !self.headline.is_empty() {
            let mark = format!("{} ", style("?").yellow().bold().for_stderr());
            rows.extend(wrap_line(&self.headline, &mark, "  ", columns));
            rows.push(String::new());
        }
        rows.extend(wrap_lines(&self.lines, columns));
        let choices: Vec<Vec<String>> =
            self.choices.iter().map(|choice| wrap_line(choice, "", "     ", columns)).collect();
        let choice_rows = choices.iter().map(Vec::len).sum();
        let mut warnings = self.wrap_warnings(&[], columns);
        if rows.len() + warnings.len() + choice_rows > room {
            let note = format!("! End of the text ({} rows).", rows.len());
            let repeated: Vec<String> =
                [note].into_iter().chain(self.reminders.iter().cloned()).collect();
            warnings = self.wrap_warnings(&repeated, columns);
        }
        // In a small window, the last page has fewer of these lines, but it always has the end.
        let last_line = choices.last().map_or(1, Vec::len);
        let last_rows = [warnings.len() + choice_rows, choice_rows, last_line]
            .into_iter()
            .find(|count| (1..=room).contains(count))
            .unwrap_or(1);
        rows.extend(warnings);
        rows.extend(choices.into_iter().flatten());
        LaidOutText { columns, rows, last_rows }
    }

    /// Wraps the lines between the text and the choices.
    fn wrap_warnings(&self, repeated: &[String], columns: usize) -> Vec<String> {
        let notices = repeated.iter().chain(&self.notices);
        let warnings = notices.flat_map(|notice| wrap_warning(notice, "    ", columns));
        [String::new()].into_iter().chain(warnings).collect()
    }
}

/// A question, wrapped for a number of columns.
#[derive(Clone, Debug)]
pub(super) struct LaidOutText {
    /// The columns that a row may take.
    pub(super) columns: usize,
    pub(super) rows: Vec<String>,
    /// The number of rows that the last page has at least, such as those of the choices.
    pub(super) last_rows: usize,
}

/// Formats what follows the rows of a page that is not the last one. `numbers` are the first, the
/// last and the total number of the rows.
pub(super) fn format_page_end(
    more_prompt: &str,
    numbers: Option<(usize, usize, usize)>,
    columns: usize,
) -> Vec<String> {
    match numbers {
        Some((from, until, all)) => {
            let text = format!("rows {from}–{until} of {all} · {more_prompt}");
            let mut rows = vec![String::new()];
            rows.extend(wrap_warning(&text, "  ", columns));
            rows
        }
        None => wrap_warning(more_prompt, "  ", columns),
    }
}

/// Wraps a line of this program that needs attention.
fn wrap_warning(text: &str, next_prefix: &str, columns: usize) -> Vec<String> {
    let rows = wrap_line(text, "  ", next_prefix, columns);
    rows.into_iter().map(|row| style(row).yellow().bold().for_stderr().to_string()).collect()
}

/// Wraps lines into rows and replaces long runs of empty lines.
fn wrap_lines(lines: &[DialogPageLine], columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for run in lines.chunk_by(|one, next| one.is_empty() && next.is_empty()) {
        if run.len() > MAX_EMPTY_LINES {
            rows.push(omission_row(&format!("{} empty lines", run.len())));
            continue;
        }
        for line in run {
            let mut first_prefix = line.prefix;
            for part in split_at_blanks(&line.text) {
                match part {
                    LineSegment::Text(text) => {
                        let dressed = |row: &String| {
                            line.style.apply_to(row.trim_end_matches(' ')).to_string()
                        };
                        rows.extend(
                            wrap_line(text, first_prefix, CONTINUATION_MARK, columns)
                                .iter()
                                .map(dressed),
                        );
                    }
                    LineSegment::Blanks(count) => {
                        rows.push(omission_row(&format!("{count} spaces or tabs omitted")))
                    }
                }
                first_prefix = CONTINUATION_MARK;
            }
        }
    }
    rows
}

fn omission_row(what: &str) -> String {
    style(format!("{OMISSION_MARK}{what}")).yellow().bold().for_stderr().to_string()
}

/// Wraps a line: after a space if there is one in the second half of the row, otherwise anywhere.
fn wrap_line(text: &str, first_prefix: &str, next_prefix: &str, columns: usize) -> Vec<String> {
    let text = text.replace('\t', TAB_SPACES);
    let text_width = |prefix: &str| {
        columns.saturating_sub(console::measure_text_width(prefix)).max(MIN_TEXT_COLUMNS)
    };
    let mut rows = Vec::new();
    let (mut prefix, mut start, mut width, mut break_at) = (first_prefix, 0, 0, None);
    for (at, c) in text.char_indices() {
        // The emoji variation selector widens the character before it.
        let char_width = if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) };
        if width + char_width > text_width(prefix) && at > start {
            let end = break_at
                .filter(|(_, before)| *before > text_width(prefix) / 2)
                .map_or(at, |(end, _)| end);
            rows.push(format!("{prefix}{}", &text[start..end]));
            (prefix, start, break_at) = (next_prefix, end, None);
            width = text[end..at].chars().filter_map(char::width).sum();
        }
        width += char_width;
        if c == ' ' {
            break_at = Some((at + 1, width));
        }
    }
    rows.push(format!("{prefix}{}", &text[start..]));
    rows
}

/// Returns a question that fits on one page, without styles.
#[cfg(test)]
pub(super) fn whole_page(text: &PagedText, size: TerminalSize) -> String {
    let layout = text.lay_out(size, false);
    assert!(layout.rows.len() < size.rows, "{} rows", layout.rows.len());
    console::strip_ansi_codes(&layout.rows.join("\n")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_page(text: &str) -> String {
        let text = PagedText {
            headline: "bash wants to run this command:".into(),
            lines: text.split('\n').map(DialogPageLine::plain).collect(),
            notices: vec!["! Mind this.".into()],
            choices: vec!["  1  yes".into(), "  3  no".into()],
            more_prompt: "Enter shows more",
            ..PagedText::default()
        };
        whole_page(&text, TerminalSize { columns: 80, rows: 24 })
    }

    #[test]
    fn a_text_that_fits_is_one_page() {
        insta::assert_snapshot!(one_page("cargo test\n\n\techo done"), @r"

        ? bash wants to run this command:

            cargo test

                echo done

          ! Mind this.
          1  yes
          3  no
        ");
    }

    #[test]
    fn r042_blank_text_cannot_push_other_text_off_the_screen() {
        let text = format!("rm -rf x{}echo y;{}echo harmless", "\n".repeat(44), " ".repeat(4000));
        insta::assert_snapshot!(one_page(&text), @r"

        ? bash wants to run this command:

            rm -rf x
          ⋮ 43 empty lines
            echo y;
          ⋮ 4000 spaces or tabs omitted
          ↳ echo harmless

          ! Mind this.
          1  yes
          3  no
        ");
    }

    #[test]
    fn untrusted_text_cannot_imitate_the_prefix_of_a_row() {
        let text = format!("{}\n  ⋮ 3 empty lines\n  ↳ x", "x".repeat(150));
        let rows: Vec<String> =
            wrap_lines(&text.split('\n').map(DialogPageLine::plain).collect::<Vec<_>>(), 79);
        assert_eq!(rows[0], format!("    {}", "x".repeat(75)));
        assert_eq!(rows[1], format!("  ↳ {}", "x".repeat(75)));
        assert_eq!(rows[2..], ["      ⋮ 3 empty lines", "      ↳ x"]);
        assert_eq!(
            wrap_line("日本語日本語 x", "    ", CONTINUATION_MARK, 14),
            ["    日本語日本", "  ↳ 語 x"]
        );
    }
}
