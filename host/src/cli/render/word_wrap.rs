//! The model's text as it comes, broken between words on a terminal that cannot be drawn on anew: a
//! word is written once it is whole, and never moved. Code goes as it is, so that it can be copied.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::cli::chat::{fence_mark, hanging_indent};
use crate::terminal_escape;

/// A text on its way to a terminal of so many columns.
pub(super) struct WordWrap {
    columns: usize,
    stream: terminal_escape::EscapedStream,
    /// What was written of the line, or would have been if it were not broken.
    line: String,
    /// Where the cursor is.
    column: usize,
    /// Blanks that are written with the next word, unless it begins a row.
    pending_blanks: usize,
    /// The word that is not whole yet.
    word: String,
    /// What closes the block of code that is open.
    closing_fence: Option<String>,
}

impl WordWrap {
    pub(super) fn new(columns: usize) -> Self {
        // The last column stays free: some terminals begin a new row once it is written.
        let columns = columns.saturating_sub(1).max(20);
        Self {
            columns,
            stream: terminal_escape::EscapedStream::default(),
            line: String::new(),
            column: 0,
            pending_blanks: 0,
            word: String::new(),
            closing_fence: None,
        }
    }

    /// More of the text; what can be written by now.
    pub(super) fn push(&mut self, text: &str) -> String {
        let shown = self.stream.push_escaped(text);
        self.wrap(&shown)
    }

    /// The text is over: what is left of it. A new one begins on a new line.
    pub(super) fn finish(&mut self) -> String {
        let rest = self.stream.finish();
        let mut out = self.wrap(&rest);
        self.write_word(&mut out);
        *self = Self::new(self.columns + 1);
        out
    }

    fn wrap(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\n' => {
                    self.write_word(&mut out);
                    self.end_line();
                    out.push(c);
                }
                c if self.closing_fence.is_some() => out.push(c),
                ' ' => {
                    self.write_word(&mut out);
                    self.pending_blanks += 1;
                }
                // Between two of these a row may end.
                c if c.width() == Some(2) => {
                    self.write_word(&mut out);
                    self.word.push(c);
                    self.write_word(&mut out);
                }
                c => self.word.push(c),
            }
            if c != '\n' {
                self.line.push(c);
            }
        }
        out
    }

    /// Writes the word, on a new row if it does not fit into this one.
    fn write_word(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let (width, gap) = (self.word.width(), std::mem::take(&mut self.pending_blanks));
        let indent = hanging_indent(&self.line);
        if self.column + gap + width > self.columns && self.column > indent {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            self.column = indent;
        } else {
            out.push_str(&" ".repeat(gap));
            self.column += gap;
        }
        out.push_str(&std::mem::take(&mut self.word));
        // A word that is longer than a row is left to the terminal.
        self.column = if self.column + width > self.columns {
            (self.column + width) % self.columns
        } else {
            self.column + width
        };
    }

    fn end_line(&mut self) {
        self.closing_fence = match (self.closing_fence.take(), fence_mark(&self.line)) {
            (None, opening) => opening,
            (Some(open), Some(mark))
                if mark.starts_with(&open) && self.line.trim().len() == mark.len() =>
            {
                None
            }
            (Some(open), _) => Some(open),
        };
        self.line.clear();
        (self.column, self.pending_blanks) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of a text that comes in pieces of so many characters.
    fn wrap_in_pieces(text: &str, piece: usize, columns: usize) -> String {
        let (mut flow, mut out) = (WordWrap::new(columns), String::new());
        for piece in text.chars().collect::<Vec<_>>().chunks(piece) {
            out.push_str(&flow.push(&piece.iter().collect::<String>()));
        }
        out + &flow.finish()
    }

    const TEXT: &str = "The fare of a family is the sum of all and never more than that.\n\n- one \
        point that goes on in another row\n\
        日本語の長い文章はここで折り返されます\n```\nlet x = \"a line of code that is longer than the \
        screen\";\n```\nDone.\n";

    #[test]
    fn text_is_broken_between_words_and_code_is_not() {
        insta::assert_snapshot!(wrap_in_pieces(TEXT, 3, 31), @r#"
        The fare of a family is the
        sum of all and never more than
        that.

        - one point that goes on in
          another row
        日本語の長い文章はここで折り返
        されます
        ```
        let x = "a line of code that is longer than the screen";
        ```
        Done.
        "#);
    }

    #[test]
    fn in_pieces_or_whole_it_is_the_same_and_nothing_is_lost() {
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        for columns in [0, 31, 80, 200] {
            let whole = wrap_in_pieces(TEXT, usize::MAX, columns);
            assert_eq!(letters(&whole), letters(TEXT));
            for piece in [1, 2, 7] {
                assert_eq!(
                    wrap_in_pieces(TEXT, piece, columns),
                    whole,
                    "pieces of {piece} at {columns}"
                );
            }
        }
        assert_eq!(wrap_in_pieces("  a  b\n", 1, 80), "  a  b\n", "blanks stay");
        assert_eq!(wrap_in_pieces("a\u{1b}[2J\rb", 1, 80), "a\\u{1b}[2J\\u{d}b");
    }
}
