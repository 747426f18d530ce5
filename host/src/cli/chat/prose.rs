//! The model's text as it streams in: Markdown with a look of its own where there are colours, as it is where there are none.
//!
//! Nothing of the text is taken away or moved: emphasis, headings, lists and code change how it looks, and their marks stay,
//! dimmed. So what is on the screen is what is stored (R-130), apart from the line breaks of wrapped prose, and a star that
//! was meant as a star is still there. Code, and everything where there are no colours, is left to the terminal to wrap, so
//! that it can be copied as it is.
//!
//! A row is given away as soon as nothing that follows can change it.

use std::ops::Range;

use unicode_width::UnicodeWidthChar as _;

use super::inline::{self, Faces};
use crate::shown;

/// How deep continued rows of a list are indented at most.
const DEEPEST: usize = 12;

/// A text on its way.
#[derive(Debug)]
pub(super) struct Prose {
    look: Look,
    /// What has come so far, as it is shown.
    stream: shown::Stream,
    /// Blank text at the beginning, which may remain all there is.
    blank: String,
    begun: bool,
    /// The line that is not complete yet, escaped.
    line: String,
    /// How it looks, unless it is left to the terminal.
    faces: Faces,
    /// How much of it has been given away, in bytes.
    given: usize,
    /// What closes the block of code that is open.
    fence: Option<String>,
}

/// How text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// As it is.
    Plain,
    /// With emphasis.
    Styled,
}

impl Prose {
    pub(super) fn new(look: Look) -> Self {
        Self {
            look,
            stream: shown::Stream::default(),
            blank: String::new(),
            begun: false,
            line: String::new(),
            faces: Faces::default(),
            given: 0,
            fence: None,
        }
    }

    /// More text. What is complete comes out, row by row.
    pub(super) fn push(&mut self, text: &str, columns: usize) -> Vec<String> {
        let mut text = self.stream.push(text);
        if !self.begun {
            self.begun = !text.trim().is_empty();
            self.blank.push_str(&text);
            if !self.begun {
                return Vec::new();
            }
            text = std::mem::take(&mut self.blank);
        }
        let mut rows = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece.trim_end_matches('\n'));
            if piece.ends_with('\n') {
                rows.extend(self.end_line(columns));
            }
        }
        if !self.is_raw() {
            let mut ready = self.wrapped(columns);
            // What follows may belong to the last row, or to the last word of it.
            ready.pop();
            if let Some(last) = ready.last() {
                self.given = last.end;
            }
            self.faces.follow(&self.line);
            rows.extend(ready.into_iter().map(|row| self.dress(&row)));
        }
        rows
    }

    /// The text is over: what is left of it.
    pub(super) fn finish(&mut self, columns: usize) -> Vec<String> {
        let mut rows = Vec::new();
        if self.begun {
            self.line.push_str(&self.stream.finish());
        }
        if !self.line.is_empty() {
            rows = self.end_line(columns);
        }
        *self = Self::new(self.look);
        rows
    }

    /// Whether there is any text that is not blank.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// The rows of the line that is not complete: the last ones of them, if there are many.
    pub(super) fn rest(&self, columns: usize, most: usize) -> Vec<String> {
        if self.line.is_empty() {
            return Vec::new();
        }
        let rows: Vec<String> = self.wrapped(columns).iter().map(|row| self.dress(row).replace('\t', "    ")).collect();
        rows[rows.len().saturating_sub(most)..].to_vec()
    }

    fn end_line(&mut self, columns: usize) -> Vec<String> {
        let rows = if self.is_raw() {
            let line = if self.look == Look::Plain { self.line.clone() } else { inline::code(&self.line) };
            vec![line]
        } else {
            self.faces.follow(&self.line);
            self.wrapped(columns).iter().map(|row| self.dress(row)).collect()
        };
        self.fence = match (self.fence.take(), fence(&self.line)) {
            (None, opening) => opening,
            // A closing fence is as long as the opening one, and has no words behind it.
            (Some(open), Some(mark)) if mark.starts_with(&open) && self.line.trim().len() == mark.len() => None,
            (Some(open), _) => Some(open),
        };
        self.line.clear();
        self.faces = Faces::default();
        self.given = 0;
        rows
    }

    /// Whether the line is left to the terminal to wrap.
    fn is_raw(&self) -> bool {
        self.look == Look::Plain || self.fence.is_some() || fence(&self.line).is_some()
    }

    /// What has not been given away, cut into rows.
    fn wrapped(&self, columns: usize) -> Vec<Row> {
        // The last column stays free: some terminals begin a new row once it is written.
        let columns = columns.saturating_sub(1).max(20);
        let indent = if self.is_raw() { 0 } else { hanging(&self.line) };
        let mut rows = Vec::new();
        let mut row = Row { text: self.given..self.given, end: self.given, indent: if self.given > 0 { indent } else { 0 } };
        let (mut width, mut seam) = (row.indent, None);
        let rest = self.line.get(self.given..).unwrap_or_default().char_indices();
        for (at, c) in rest.map(|(at, c)| (self.given + at, c)) {
            let wide = if c == '\t' { 4 } else { c.width().unwrap_or(0) };
            // Where the row may end and where the next one begins then: around a space, and before a wide character.
            match (c, wide) {
                (' ', _) => seam = Some((at, at + 1)),
                (_, 2) => seam = Some((at, at)),
                _ => {}
            }
            if width + wide > columns && !row.text.is_empty() {
                // A word that is longer than a row is cut.
                let (end, next) = seam.filter(|(end, _)| !self.is_raw() && *end > row.text.start).unwrap_or((at, at));
                rows.push(Row { text: row.text.start..end, end: next, indent: row.indent });
                row = Row { text: next..next, end: next, indent };
                width = indent + self.line.get(next..at).unwrap_or_default().chars().filter_map(char::width).sum::<usize>();
                seam = None;
                if next > at {
                    continue;
                }
            }
            width += wide;
            row.text.end = at + c.len_utf8();
            row.end = row.text.end;
        }
        rows.push(row);
        rows
    }

    fn dress(&self, row: &Row) -> String {
        let text = self.line.get(row.text.clone()).unwrap_or_default();
        match self.look {
            Look::Plain => text.to_owned(),
            Look::Styled if self.is_raw() => inline::code(text),
            Look::Styled => {
                format!("{}{}", " ".repeat(row.indent), inline::dress(text, self.faces.of(row.text.clone())))
            }
        }
    }
}

/// A part of a line that stands on a row of its own.
struct Row {
    text: Range<usize>,
    /// Where the next row begins.
    end: usize,
    indent: usize,
}

/// The mark that opens or closes a block of code, if the line is one.
pub(in crate::cli) fn fence(line: &str) -> Option<String> {
    let text = line.trim_start();
    let mark = text.chars().next().filter(|c| "`~".contains(*c))?;
    let length = text.chars().take_while(|c| *c == mark).count();
    // A backtick in what follows makes it code within a line.
    (length >= 3 && !(mark == '`' && text[length..].contains('`'))).then(|| mark.to_string().repeat(length))
}

/// How far the continuation of a line is indented: below the words of a list, or of a quotation.
pub(in crate::cli) fn hanging(line: &str) -> usize {
    let spaces = line.len() - line.trim_start_matches(' ').len();
    let text = &line[spaces..];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = if ["- ", "* ", "+ ", "> ", "• "].iter().any(|mark| text.starts_with(mark)) {
        2
    } else if digits > 0 && digits < 4 && [". ", ") "].iter().any(|mark| text[digits..].starts_with(mark)) {
        digits + 2
    } else {
        0
    };
    (spaces + mark).min(DEEPEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All rows of a text that comes in pieces of so many characters.
    fn rows(look: Look, text: &str, piece: usize, columns: usize) -> Vec<String> {
        let mut prose = Prose::new(look);
        let characters: Vec<char> = text.chars().collect();
        let mut rows = Vec::new();
        for piece in characters.chunks(piece) {
            rows.extend(prose.push(&piece.iter().collect::<String>(), columns));
            assert!(prose.rest(columns, 4).iter().all(|row| console::measure_text_width(row) < columns));
        }
        rows.extend(prose.finish(columns));
        rows
    }

    const TEXT: &str = "# Fares\n\nThe **fare** of a family is `sum(adults) + half` and *never* more than that, whatever src/**/*.rs says.\n\n\
        - one point that is so long that it has to go on in a second row\n- 日本語の長い文章はここで折り返されますがどこで折り返されるのでしょうか\n\n\
        ```rust\nfn main() { println!(\"a line of code that is longer than the screen is wide\"); }\n```\nDone.";

    #[test]
    fn a_picture_of_several_arrives_whole_however_it_is_cut() {
        let family = "A family: 👩\u{200d}👩\u{200d}👧\u{200d}👦, a technician: 👩🏽\u{200d}💻, and no trick\u{200d}.";
        for look in [Look::Plain, Look::Styled] {
            for piece in [1, 2, 3, usize::MAX] {
                let shown = rows(look, family, piece, 200).concat();
                assert_eq!(console::strip_ansi_codes(&shown), family.replace("trick\u{200d}", "trick\\u{200d}"), "pieces of {piece}");
            }
        }
    }

    #[test]
    fn r130_in_pieces_or_whole_the_rows_are_the_same() {
        for columns in [30, 80, 200] {
            let whole = rows(Look::Styled, TEXT, usize::MAX, columns);
            for piece in [1, 2, 7, 50] {
                assert_eq!(rows(Look::Styled, TEXT, piece, columns), whole, "pieces of {piece} at {columns}");
            }
        }
    }

    #[test]
    fn prose_is_wrapped_between_words_and_code_is_not() {
        let rows: Vec<String> = rows(Look::Styled, TEXT, 3, 40).iter().map(|row| console::strip_ansi_codes(row).into_owned()).collect();
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
    fn r130_nothing_of_the_text_is_lost() {
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        for columns in [21, 40, 80] {
            let shown = rows(Look::Styled, TEXT, 5, columns).concat();
            assert_eq!(letters(&console::strip_ansi_codes(&shown)), letters(TEXT));
        }
    }

    #[test]
    fn r130_without_colours_the_text_is_what_is_stored_byte_for_byte() {
        for text in [TEXT, "\n\n  begins late\n\n\nends late\n", "a\r\nb", "tab\there"] {
            for piece in [1, 3, usize::MAX] {
                assert_eq!(
                    rows(Look::Plain, text, piece, 40).join("\n"),
                    text.replace('\r', "").trim_end_matches('\n').to_owned() + if text.ends_with("\n\n") { "\n" } else { "" }
                );
            }
        }
    }

    #[test]
    fn what_could_move_the_cursor_is_shown_as_what_it_is() {
        assert_eq!(rows(Look::Plain, "a\u{1b}[2Jb\rc\u{202e}", 1, 40), ["a\\u{1b}[2Jb\\u{d}c\\u{202e}"]);
    }

    #[test]
    fn blank_text_is_no_text() {
        let mut prose = Prose::new(Look::Styled);
        assert_eq!(prose.push("\n \n", 80), [""; 0]);
        assert!(!prose.has_begun());
        assert_eq!(prose.finish(80), [""; 0]);
    }

    #[test]
    fn a_window_that_changes_its_width_in_the_middle_of_a_line_costs_no_letter() {
        let mut prose = Prose::new(Look::Styled);
        let mut rows = prose.push(&"word ".repeat(30), 80);
        rows.extend(prose.push(&"more ".repeat(30), 40));
        rows.extend(prose.finish(60));
        let words = rows.join(" ");
        assert_eq!((words.matches("word").count(), words.matches("more").count()), (30, 30));
    }
}
