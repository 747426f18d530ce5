//! Renders the model's Markdown as it streams in: styled where colours are available, unchanged
//! elsewhere.
//!
//! Styles mark emphasis, headings, lists and code; the marks stay visible, dimmed. So the screen
//! shows what is stored (R-130), except for the line breaks of wrapped prose. The terminal itself
//! wraps code, and everything without colours, so that it can be copied unchanged.
//!
//! A row is returned as soon as later text cannot change it.

use std::ops::Range;

use unicode_width::UnicodeWidthChar as _;

use super::inline::{self, LineStyles};
use cofferdam::terminal_escape;

/// Maximum indentation of continued rows, in columns.
const MAX_INDENT: usize = 12;
/// Maximum length in bytes of a line that opens or closes a code block.
const MAX_FENCE_BYTES: usize = 1 << 10;
/// Maximum number of characters per column of a row. Characters without width would otherwise make
/// an endless row.
const MAX_CHARS_PER_COLUMN: usize = 16;

/// Splits a streamed text into rows.
#[derive(Debug)]
pub(super) struct ProseWriter {
    style: ProseTextStyle,
    /// Escapes control characters of the incoming text.
    stream: terminal_escape::EscapedStream,
    /// Blank text at the beginning; dropped if no other text follows.
    leading_blank: String,
    has_started: bool,
    /// The incomplete last line, escaped.
    line: String,
    /// The styles of `line`, unless the terminal wraps it.
    styles: LineStyles,
    /// Number of bytes of `line` that were already returned.
    emitted: usize,
    /// The fence that closes the open code block.
    closing_fence: Option<String>,
}

/// Whether text is styled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProseTextStyle {
    /// Plain text without any styles.
    Plain,
    /// Text with Markdown styles.
    Styled,
}

impl ProseWriter {
    pub(super) fn new(style: ProseTextStyle) -> Self {
        Self {
            style,
            stream: terminal_escape::EscapedStream::default(),
            leading_blank: String::new(),
            has_started: false,
            line: String::new(),
            styles: LineStyles::default(),
            emitted: 0,
            closing_fence: None,
        }
    }

    /// Adds text and returns the rows that it completes.
    pub(super) fn push(&mut self, text: &str, columns: usize) -> Vec<String> {
        let mut text = self.stream.push_escaped(text);
        if !self.has_started {
            self.has_started = !text.trim().is_empty();
            self.leading_blank.push_str(&text);
            if !self.has_started {
                return Vec::new();
            }
            text = std::mem::take(&mut self.leading_blank);
        }
        let mut rows = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece.trim_end_matches('\n'));
            if piece.ends_with('\n') {
                rows.extend(self.end_line(columns));
            }
        }
        if !self.is_terminal_wrapped() {
            let mut ready = self.wrap_from(columns, self.emitted);
            // Later text may still continue the last row or its last word.
            ready.pop();
            if let Some(last) = ready.last() {
                self.emitted = last.end;
            }
            self.styles.update(&self.line);
            rows.extend(ready.into_iter().map(|row| self.style_row(&row)));
        }
        rows
    }

    /// Ends the text and returns the remaining rows.
    pub(super) fn finish(&mut self, columns: usize) -> Vec<String> {
        let mut rows = Vec::new();
        if self.has_started {
            self.line.push_str(&self.stream.finish());
        }
        if !self.line.is_empty() {
            rows = self.end_line(columns);
        }
        *self = Self::new(self.style);
        rows
    }

    /// Returns whether any text arrived that is not blank.
    pub(super) fn has_begun(&self) -> bool {
        self.has_started
    }

    /// Returns at most `max_rows` last rows of the incomplete line.
    pub(super) fn pending_rows(&self, columns: usize, max_rows: usize) -> Vec<String> {
        if self.line.is_empty() {
            return Vec::new();
        }
        // The end of a long code line suffices; this runs for every redraw.
        let max_bytes = (max_rows + 1).saturating_mul(columns).saturating_mul(MAX_CHARS_PER_COLUMN);
        let from = if self.is_terminal_wrapped() {
            self.line.floor_char_boundary(self.line.len().saturating_sub(max_bytes))
        } else {
            self.emitted
        };
        let rows: Vec<String> = self
            .wrap_from(columns, from)
            .iter()
            .map(|row| self.style_row(row).replace('\t', "    "))
            .collect();
        rows[rows.len().saturating_sub(max_rows)..].to_vec()
    }

    fn end_line(&mut self, columns: usize) -> Vec<String> {
        let rows = if self.is_terminal_wrapped() {
            let line = if self.style == ProseTextStyle::Plain {
                self.line.clone()
            } else {
                inline::style_code_line(&self.line)
            };
            vec![line]
        } else {
            self.styles.update(&self.line);
            self.wrap_from(columns, self.emitted).iter().map(|row| self.style_row(row)).collect()
        };
        self.closing_fence = closing_fence_after(self.closing_fence.take(), &self.line);
        self.line.clear();
        self.styles = LineStyles::default();
        self.emitted = 0;
        rows
    }

    /// Returns whether the terminal wraps the line.
    fn is_terminal_wrapped(&self) -> bool {
        self.style == ProseTextStyle::Plain
            || self.closing_fence.is_some()
            || fence_mark(&self.line).is_some()
    }

    /// Wraps the line from a byte offset on into rows.
    fn wrap_from(&self, columns: usize, from: usize) -> Vec<ProseRow> {
        // The last column stays empty, because some terminals wrap as soon as it is written.
        let columns = columns.saturating_sub(1).max(20);
        let indent = if self.is_terminal_wrapped() { 0 } else { hanging_indent(&self.line) };
        let mut rows = Vec::new();
        let mut row =
            ProseRow { text: from..from, end: from, indent: if from > 0 { indent } else { 0 } };
        let (mut width, mut break_at) = (row.indent, None);
        let max_bytes = columns * MAX_CHARS_PER_COLUMN;
        let rest = self.line.get(from..).unwrap_or_default().char_indices();
        for (at, c) in rest.map(|(at, c)| (from + at, c)) {
            let char_width = if c == '\t' { 4 } else { c.width().unwrap_or(0) };
            // Possible breaks, as the end of this row and the start of the next: around a space and
            // before a wide character.
            match (c, char_width) {
                (' ', _) => break_at = Some((at, at + 1)),
                (_, 2) => break_at = Some((at, at)),
                _ => {}
            }
            let is_full = width + char_width > columns || at - row.text.start > max_bytes;
            if is_full && !row.text.is_empty() {
                // A word that is longer than a row is split.
                let (end, next) = break_at
                    .filter(|(end, _)| !self.is_terminal_wrapped() && *end > row.text.start)
                    .unwrap_or((at, at));
                rows.push(ProseRow { text: row.text.start..end, end: next, indent: row.indent });
                row = ProseRow { text: next..next, end: next, indent };
                width = indent
                    + self
                        .line
                        .get(next..at)
                        .unwrap_or_default()
                        .chars()
                        .filter_map(char::width)
                        .sum::<usize>();
                break_at = None;
                if next > at {
                    continue;
                }
            }
            width += char_width;
            row.text.end = at + c.len_utf8();
            row.end = row.text.end;
        }
        rows.push(row);
        rows
    }

    fn style_row(&self, row: &ProseRow) -> String {
        let text = self.line.get(row.text.clone()).unwrap_or_default();
        match self.style {
            ProseTextStyle::Plain => text.to_owned(),
            ProseTextStyle::Styled if self.is_terminal_wrapped() => inline::style_code_line(text),
            ProseTextStyle::Styled => {
                format!(
                    "{}{}",
                    " ".repeat(row.indent),
                    inline::apply_styles(text, self.styles.range(row.text.clone()))
                )
            }
        }
    }
}

/// A part of a line that is one row.
struct ProseRow {
    text: Range<usize>,
    /// The start of the next row.
    end: usize,
    indent: usize,
}

/// Returns the fence if the line opens or closes a code block.
fn fence_mark(line: &str) -> Option<String> {
    if line.len() > MAX_FENCE_BYTES {
        return None;
    }
    let text = line.trim_start();
    let mark = text.chars().next().filter(|c| "`~".contains(*c))?;
    let length = text.chars().take_while(|c| *c == mark).count();
    // A backtick after the fence makes it inline code.
    (length >= 3 && !(mark == '`' && text[length..].contains('`')))
        .then(|| mark.to_string().repeat(length))
}

/// Returns the fence that ends the code block after a line. `before` is that fence before the line;
/// `None` outside a code block.
pub(crate) fn closing_fence_after(before: Option<String>, line: &str) -> Option<String> {
    match (before, fence_mark(line)) {
        (None, opening) => opening,
        // A closing fence is at least as long as the opening one and has no text after it.
        (Some(open), Some(mark)) if mark.starts_with(&open) && line.trim().len() == mark.len() => {
            None
        }
        (Some(open), _) => Some(open),
    }
}

/// Returns the indentation of continued rows: below the text of a list item or quotation.
pub(crate) fn hanging_indent(line: &str) -> usize {
    let spaces = line.bytes().take(MAX_INDENT).take_while(|byte| *byte == b' ').count();
    let text = &line[spaces..];
    let digits = text.bytes().take(4).take_while(u8::is_ascii_digit).count();
    let mark = if ["- ", "* ", "+ ", "> ", "• "].iter().any(|mark| text.starts_with(mark)) {
        2
    } else if digits > 0
        && digits < 4
        && [". ", ") "].iter().any(|mark| text[digits..].starts_with(mark))
    {
        digits + 2
    } else {
        0
    };
    (spaces + mark).min(MAX_INDENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all rows of a text that arrives in pieces of `piece` characters.
    fn rows_in_pieces(
        style: ProseTextStyle,
        text: &str,
        piece: usize,
        columns: usize,
    ) -> Vec<String> {
        let mut prose = ProseWriter::new(style);
        let characters: Vec<char> = text.chars().collect();
        let mut rows = Vec::new();
        for piece in characters.chunks(piece) {
            rows.extend(prose.push(&piece.iter().collect::<String>(), columns));
            assert!(
                prose
                    .pending_rows(columns, 4)
                    .iter()
                    .all(|row| console::measure_text_width(row) < columns)
            );
        }
        rows.extend(prose.finish(columns));
        rows
    }

    const TEXT: &str = "# Fares\n\nThe **fare** of a family is `sum(adults) + half` and *never* \
        more than that, whatever src/**/*.rs says.\n\n\
        - one point that is so long that it has to go on in a second row\n- \
        日本語の長い文章はここで折り返されますがどこで折り返されるのでしょうか\n\n\
        ```rust\nfn main() { println!(\"a line of code that is longer than the screen is wide\"); \
        }\n```\nDone.";

    #[test]
    fn joined_emoji_stay_whole_in_pieces_of_any_size() {
        let family = "A family: 👩\u{200d}👩\u{200d}👧\u{200d}👦, a technician: 👩🏽\u{200d}💻, and no \
            trick\u{200d}.";
        for style in [ProseTextStyle::Plain, ProseTextStyle::Styled] {
            for piece in [1, 2, 3, usize::MAX] {
                let shown = rows_in_pieces(style, family, piece, 200).concat();
                assert_eq!(
                    console::strip_ansi_codes(&shown),
                    family.replace("trick\u{200d}", "trick\\u{200d}"),
                    "pieces of {piece}"
                );
            }
        }
    }

    #[test]
    fn r130_the_rows_do_not_depend_on_the_pieces() {
        for columns in [30, 80, 200] {
            let whole = rows_in_pieces(ProseTextStyle::Styled, TEXT, usize::MAX, columns);
            for piece in [1, 2, 7, 50] {
                assert_eq!(
                    rows_in_pieces(ProseTextStyle::Styled, TEXT, piece, columns),
                    whole,
                    "pieces of {piece} at {columns}"
                );
            }
        }
    }

    #[test]
    fn prose_is_wrapped_between_words_and_code_is_not_wrapped() {
        let rows: Vec<String> = rows_in_pieces(ProseTextStyle::Styled, TEXT, 3, 40)
            .iter()
            .map(|row| console::strip_ansi_codes(row).into_owned())
            .collect();
        insta::assert_snapshot!(rows.join("\n"), @r#"
        # Fares

        The **fare** of a family is
        `sum(adults) + half` and *never* more
        than that, whatever src/**/*.rs says.

        - one point that is so long that it has
          to go on in a second row
        - 日本語の長い文章はここで折り返されま
          すがどこで折り返されるのでしょうか

        ```rust
        fn main() { println!("a line of code that is longer than the screen is wide"); }
        ```
        Done.
        "#);
    }

    #[test]
    fn r130_no_text_is_lost() {
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        for columns in [21, 40, 80] {
            let shown = rows_in_pieces(ProseTextStyle::Styled, TEXT, 5, columns).concat();
            assert_eq!(letters(&console::strip_ansi_codes(&shown)), letters(TEXT));
        }
    }

    #[test]
    fn r130_without_colours_the_text_is_printed_byte_for_byte() {
        for text in [TEXT, "\n\n  begins late\n\n\nends late\n", "a\r\nb", "tab\there"] {
            for piece in [1, 3, usize::MAX] {
                assert_eq!(
                    rows_in_pieces(ProseTextStyle::Plain, text, piece, 40).join("\n"),
                    text.replace('\r', "").trim_end_matches('\n').to_owned()
                        + if text.ends_with("\n\n") { "\n" } else { "" }
                );
            }
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            rows_in_pieces(ProseTextStyle::Plain, "a\u{1b}[2Jb\rc\u{202e}", 1, 40),
            ["a\\u{1b}[2Jb\\u{d}c\\u{202e}"]
        );
    }

    #[test]
    fn r098_each_piece_of_an_endless_line_costs_the_same() {
        let table = [
            ("", "\u{301}"),
            ("", " "),
            ("x", " "),
            ("```", "a"),
            ("```", "`a"),
            ("", "a"),
            ("- ", "a\u{301}"),
            ("```\n", "a"),
            ("", "\u{65e5}"),
            ("", "*a"),
        ];
        for (begins, piece) in table {
            let mut prose = ProseWriter::new(ProseTextStyle::Styled);
            let started = std::time::Instant::now();
            prose.push(begins, 80);
            for n in 0..60_000 {
                prose.push(piece, 80);
                if n % 100 == 0 {
                    assert!(prose.pending_rows(80, 10).len() <= 10);
                }
            }
            assert!(
                started.elapsed() < std::time::Duration::from_secs(5),
                "{begins:?} {piece:?}: {:?}",
                started.elapsed()
            );
        }
    }

    #[test]
    fn blank_text_produces_no_rows() {
        let mut prose = ProseWriter::new(ProseTextStyle::Styled);
        assert_eq!(prose.push("\n \n", 80), [""; 0]);
        assert!(!prose.has_begun());
        assert_eq!(prose.finish(80), [""; 0]);
    }

    #[test]
    fn a_resize_in_the_middle_of_a_line_loses_no_text() {
        let mut prose = ProseWriter::new(ProseTextStyle::Styled);
        let mut rows = prose.push(&"word ".repeat(30), 80);
        rows.extend(prose.push(&"more ".repeat(30), 40));
        rows.extend(prose.finish(60));
        let words = rows.join(" ");
        assert_eq!((words.matches("word").count(), words.matches("more").count()), (30, 30));
    }
}
