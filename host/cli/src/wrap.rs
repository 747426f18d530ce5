//! Truncation and word wrapping for terminals.

/// The size of a terminal window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TerminalSize {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl TerminalSize {
    /// The size of a terminal that does not tell its size.
    const DEFAULT: Self = Self { columns: 80, rows: 24 };

    /// Returns whether a window of this size shows all that a window of the other size shows.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.columns >= other.columns && self.rows >= other.rows
    }
}

/// Truncates a text to `columns` columns, including an ellipsis.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    console::truncate_str(text, columns, "…").into_owned()
}

/// Wraps lines between words to fit into `columns` columns. Continued rows have the indentation of
/// their line. Words longer than a row are not split, and colours continue after a break.
pub(crate) fn wrap_text(text: &str, columns: usize) -> String {
    text.split('\n')
        .map(|line| wrap_line(line, columns.saturating_sub(1).max(1)))
        .collect::<Vec<_>>()
        .join("\n")
}

fn wrap_line(line: &str, columns: usize) -> String {
    if console::measure_text_width(line) <= columns {
        return line.to_owned();
    }
    let plain = console::strip_ansi_codes(line);
    let indent = plain.len() - plain.trim_start_matches(' ').len();
    let indent = " ".repeat(if indent < columns / 2 { indent } else { 0 });
    let (mut out, mut width, mut is_begun) = (String::new(), 0, false);
    for word in line.split_inclusive(' ') {
        let word_width = console::measure_text_width(word.trim_end_matches(' '));
        if is_begun && width + word_width > columns {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&indent);
            width = indent.len();
        }
        is_begun |= word_width > 0;
        out.push_str(word);
        width += console::measure_text_width(word);
    }
    out
}

/// Returns the current size of the terminal.
pub(crate) fn terminal_size() -> TerminalSize {
    let stderr_size = rustix::termios::tcgetwinsize(std::io::stderr());
    match stderr_size.or_else(|_| rustix::termios::tcgetwinsize(std::io::stdout())) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            TerminalSize { columns: size.ws_col.into(), rows: size.ws_row.into() }
        }
        Ok(_) | Err(_) => TerminalSize::DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_are_indented_like_the_first() {
        let cases = [
            ("short", "short"),
            ("one two three four", "one two\nthree four"),
            ("  one two three", "  one two\n  three"),
            ("a unbreakable-word b", "a\nunbreakable-word\nb"),
            ("日本語 日本語 日本語", "日本語\n日本語\n日本語"),
            ("\u{1b}[2mone two three\u{1b}[0m", "\u{1b}[2mone two\nthree\u{1b}[0m"),
            ("first\none two three", "first\none two\nthree"),
        ];
        for (line, expected) in cases {
            assert_eq!(wrap_text(line, 12), expected, "{line:?}");
        }
        for columns in 0..30 {
            assert_eq!(
                wrap_text("one two three", columns).split_whitespace().collect::<Vec<_>>(),
                ["one", "two", "three"]
            );
        }
    }
}
