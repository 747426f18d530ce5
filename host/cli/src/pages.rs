//! Layout of questions so that all of the text was on the screen before a yes counts: wrapped into
//! rows, and paged if it is longer than the screen. Long runs of blanks, which could push text off
//! the screen, are shown as a count.

use console::{Style, style};
use unicode_width::UnicodeWidthChar as _;

use cofferdam::terminal_escape;

/// The prefix of the first row of a line and of its continued rows. Untrusted text is never printed
/// in these columns, so it cannot imitate another kind of row.
const LINE_MARK: &str = "    ";
const CONTINUATION_MARK: &str = "  ↳ ";
/// The prefix of a row that replaces omitted text.
const OMISSION_MARK: &str = "  ⋮ ";
/// Maximum number of consecutive empty lines, and of consecutive spaces or tabs in a line, that are
/// shown unchanged.
const MAX_EMPTY_LINES: usize = 2;
const MAX_BLANKS: usize = 40;
/// The replacement for a tab.
const TAB_SPACES: &str = "    ";
/// Minimum size of the layout, in columns and rows; smaller terminals scroll.
const MIN_COLUMNS: usize = 20;
const MIN_ROWS: usize = 8;

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

    /// Returns the pages for a screen of this size, without final line breaks. Only the last page
    /// offers the choices.
    pub(super) fn layout(&self, (columns, rows): (usize, usize)) -> Vec<String> {
        let columns = columns.saturating_sub(1).max(MIN_COLUMNS);
        // The answer takes a row.
        let rows = rows.saturating_sub(1).max(MIN_ROWS);
        let mut above = vec![String::new()];
        if !self.headline.is_empty() {
            above.extend(wrap_line(
                &self.headline,
                &format!("{} ", style("?").yellow().bold().for_stderr()),
                "  ",
                columns,
            ));
            above.push(String::new());
        }
        above.extend(wrap_lines(&self.lines, columns));
        let below = |repeated: &[String]| {
            let warnings = repeated.iter().chain(&self.notices).flat_map(|notice| {
                let rows = wrap_line(notice, "  ", "    ", columns);
                rows.into_iter().map(|row| style(row).yellow().bold().for_stderr().to_string())
            });
            let choices =
                self.choices.iter().flat_map(|choice| wrap_line(choice, "", "     ", columns));
            [String::new()].into_iter().chain(warnings).chain(choices).collect::<Vec<_>>()
        };
        let end = below(&[]);
        if above.len() + end.len() <= rows {
            above.extend(end);
            return vec![above.join("\n")];
        }
        let all = above.len();
        let state = |from: usize, until: usize| {
            wrap_line(
                &format!("rows {from}–{until} of {all} · {}", self.more_prompt),
                "  ",
                "  ",
                columns,
            )
        };
        let rows_of_page = rows.saturating_sub(1 + state(all, all).len()).max(1);
        let mut pages: Vec<Vec<String>> =
            above.chunks(rows_of_page).map(<[String]>::to_vec).collect();
        let count = pages.len();
        let last_page_note = format!("! End of {count} pages ({all} rows).");
        let repeated: Vec<String> =
            [last_page_note].into_iter().chain(self.reminders.iter().cloned()).collect();
        let end = below(&repeated);
        match pages.last_mut() {
            Some(last) if last.len() + end.len() <= rows => last.extend(end),
            Some(_) | None => pages.push(end),
        }
        let mut until = 0;
        let last = pages.len() - 1;
        for page in &mut pages[..last] {
            let from = until + 1;
            until += page.len();
            page.push(String::new());
            page.extend(
                state(from, until)
                    .into_iter()
                    .map(|row| style(row).yellow().bold().for_stderr().to_string()),
            );
        }
        pages.into_iter().map(|page| page.join("\n")).collect()
    }
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
            for part in split_segments(&line.text) {
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

/// A segment of a line.
enum LineSegment<'a> {
    Text(&'a str),
    /// The number of omitted spaces and tabs.
    Blanks(usize),
}

/// Splits a line at long runs of spaces or tabs.
fn split_segments(line: &str) -> Vec<LineSegment<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < line.len() {
        let rest = &line[at..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if blanks > MAX_BLANKS {
            if at > start {
                parts.push(LineSegment::Text(&line[start..at]));
            }
            parts.push(LineSegment::Blanks(blanks));
            start = at + blanks;
        }
        at += blanks.max(rest.chars().next().map_or(1, char::len_utf8));
    }
    if start < line.len() || parts.is_empty() {
        parts.push(LineSegment::Text(&line[start..]));
    }
    parts
}

/// Wraps a line: after a space if there is one in the second half of the row, otherwise anywhere.
fn wrap_line(text: &str, first_prefix: &str, next_prefix: &str, columns: usize) -> Vec<String> {
    let text = text.replace('\t', TAB_SPACES);
    let text_width = |prefix: &str| {
        columns.saturating_sub(console::measure_text_width(prefix)).max(MIN_COLUMNS / 2)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lay_out_text(text: &str, size: (usize, usize)) -> Vec<String> {
        let pages = PagedText {
            headline: "bash wants to run this command:".into(),
            lines: text.split('\n').map(DialogPageLine::plain).collect(),
            notices: vec!["! Mind this.".into()],
            choices: vec!["  1  yes".into(), "  3  no".into()],
            more_prompt: "Enter shows more",
            ..PagedText::default()
        };
        pages.layout(size).iter().map(|page| console::strip_ansi_codes(page).into_owned()).collect()
    }

    #[test]
    fn a_text_that_fits_is_one_page() {
        insta::assert_snapshot!(lay_out_text("cargo test\n\n\techo done", (80, 24)).concat(), @r"

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
        insta::assert_snapshot!(lay_out_text(&text, (80, 24)).concat(), @r"

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
    fn r042_a_long_text_is_paged_and_complete() {
        let one_line = |page: &str| page.split_whitespace().collect::<Vec<_>>().join(" ");
        let text: String =
            (1..=60).map(|n| format!("line {n} {}\n", "of a long text ".repeat(n % 9))).collect();
        for size in [(80, 24), (40, 12), (200, 50), (0, 0)] {
            let pages = lay_out_text(text.trim_end(), size);
            assert!(pages.len() > 1, "{size:?}");
            let (last, others) = pages.split_last().expect("there are some");
            assert!(
                last.contains("  1  yes")
                    && last.contains("! Mind this.")
                    && last.contains("! End of "),
                "{last}"
            );
            for (n, page) in pages.iter().enumerate() {
                let rows: Vec<&str> = page.lines().collect();
                assert!(
                    rows.len() < size.1.max(MIN_ROWS + 1),
                    "page {n} of {size:?}: {}",
                    rows.len()
                );
                assert!(
                    rows.iter()
                        .all(|row| console::measure_text_width(row) < size.0.max(MIN_COLUMNS + 1)),
                    "{size:?}: {page}"
                );
            }
            assert!(
                others
                    .iter()
                    .all(|page| !page.contains("1  yes")
                        && one_line(page).ends_with("Enter shows more")),
                "{others:?}"
            );
            let all: Vec<&str> = pages.iter().flat_map(|page| page.split_whitespace()).collect();
            let (mut all, mut missing) = (all.iter(), text.split_whitespace());
            assert_eq!(missing.find(|word| !all.any(|shown| shown == word)), None, "{size:?}");
        }
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
