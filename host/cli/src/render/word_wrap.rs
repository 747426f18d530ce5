//! Streaming word wrap for terminals that are not redrawn: each word is written once it is complete
//! and never moved. Code is not wrapped, so that it can be copied.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::chat::{closing_fence_after, hanging_indent};
use cofferdam::terminal_escape;

/// Wraps a streamed text.
pub(super) struct WordWrap {
    columns: usize,
    stream: terminal_escape::EscapedStream,
    /// The current line before wrapping.
    line: String,
    /// The column of the cursor.
    column: usize,
    /// Number of spaces before the next word; dropped at the beginning of a row.
    pending_blanks: usize,
    /// The word that is still incomplete.
    word: String,
    /// The fence that closes the open code block.
    closing_fence: Option<String>,
}

impl WordWrap {
    pub(super) fn new(columns: usize) -> Self {
        // The last column stays empty, because some terminals wrap as soon as it is written.
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

    /// Adds text and returns what can be written.
    pub(super) fn push(&mut self, text: &str) -> String {
        let shown = self.stream.push_escaped(text);
        self.wrap(&shown)
    }

    /// Ends the text and returns the rest. The next text begins on a new line.
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
                // A row may end between two wide characters.
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

    /// Writes the pending word, on a new row if it does not fit.
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
        // The terminal wraps a word that is longer than a row.
        self.column = if self.column + width > self.columns {
            (self.column + width) % self.columns
        } else {
            self.column + width
        };
    }

    fn end_line(&mut self) {
        self.closing_fence = closing_fence_after(self.closing_fence.take(), &self.line);
        self.line.clear();
        (self.column, self.pending_blanks) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wraps a text that arrives in pieces of `piece` characters.
    fn wrap_in_pieces(text: &str, piece: usize, columns: usize) -> String {
        let (mut word_wrap, mut out) = (WordWrap::new(columns), String::new());
        for piece in text.chars().collect::<Vec<_>>().chunks(piece) {
            out.push_str(&word_wrap.push(&piece.iter().collect::<String>()));
        }
        out + &word_wrap.finish()
    }

    const TEXT: &str = "The fare of a family is the sum of all and never more than that.\n\n- one \
        point that goes on in another row\n\
        日本語の長い文章はここで折り返されます\n```\nlet x = \"a line of code that is longer than the \
        screen\";\n```\nDone.\n";

    #[test]
    fn prose_is_wrapped_between_words_and_code_is_not_wrapped() {
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
    fn the_output_is_complete_and_independent_of_the_pieces() {
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
