//! Escaping of untrusted text for the terminal.
//!
//! Text from a plugin, a model, a command or a file name cannot move the cursor, change colors,
//! hide a part of itself or reverse its order. Every invisible character is replaced by an escape
//! such as `\u{200b}`.

mod blank_runs;
mod visibility;

pub use blank_runs::{
    LineSegment, MAX_EMPTY_LINES, shorten_blanks, shorten_diff_blanks, split_at_blanks,
};
use icu_properties::CodePointMapData;
use icu_properties::props::BidiClass;

use visibility::{VisibleContext, is_other_space, needs_next_char};

/// Returns the text on one line, cut to `max_chars` characters.
pub fn escape_line(text: &str, max_chars: usize) -> String {
    let (mut out, mut sight) = (String::new(), VisibleContext::default());
    let mut chars =
        text.trim_matches(|c: char| c.is_ascii_whitespace()).chars().enumerate().peekable();
    while let Some((n, c)) = chars.next() {
        if n == max_chars {
            out.push('…');
            break;
        }
        match c {
            '\n' | '\r' | '\t' => {
                sight.reset();
                out.push(' ');
            }
            c => push(&mut out, &mut sight, c, chars.peek().map(|(_, c)| *c)),
        }
    }
    out
}

/// Returns a name on one line, cut to `max_chars` characters. Spaces that a reader could miss are
/// escaped: those at either end and those next to other whitespace.
pub fn escape_name(text: &str, max_chars: usize) -> String {
    let (mut out, mut sight) = (String::new(), VisibleContext::default());
    let (mut before, mut chars) = (None, text.chars().enumerate().peekable());
    while let Some((n, c)) = chars.next() {
        if n == max_chars {
            out.push('…');
            break;
        }
        let after = chars.peek().map(|(_, c)| *c);
        let is_visible =
            |beside: Option<char>| beside.is_some_and(|beside| !beside.is_whitespace());
        match c {
            ' ' if !is_visible(before) || !is_visible(after) => {
                sight.reset();
                out.extend(c.escape_unicode());
            }
            c => push(&mut out, &mut sight, c, after),
        }
        before = Some(c);
    }
    out
}

/// Returns a text for reading, complete and with its lines and tabs. Spaces of all widths stay as
/// they are, and CR LF becomes LF.
pub fn escape_text(text: &str) -> String {
    let mut stream = EscapedStream::default();
    stream.push_escaped(text) + &stream.finish()
}

/// Returns a text for a decision, complete and with its lines and tabs. The only other whitespace
/// is the space, and only a line feed ends a line. Any other whitespace is escaped, and so is
/// whitespace at the end of a line.
pub fn escape_exact(text: &str) -> String {
    let (mut out, mut sight) = (String::with_capacity(text.len()), VisibleContext::default());
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            out.push('\n');
        }
        sight.reset();
        let seen = line.trim_end_matches([' ', '\t']);
        let mut chars = seen.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\t' => {
                    sight.reset();
                    out.push(c);
                }
                c => push(&mut out, &mut sight, c, chars.peek().copied()),
            }
        }
        // Whitespace on an otherwise empty line hides nothing.
        if !seen.is_empty() {
            out.extend(line[seen.len()..].chars().flat_map(char::escape_unicode));
        }
    }
    out
}

/// An escaper for text that arrives in pieces. Its output equals that of [`escape_text`].
#[derive(Clone, Debug, Default)]
pub struct EscapedStream {
    context: VisibleContext,
    /// The last character so far, if its visibility depends on the next one.
    pending: Option<char>,
}

impl EscapedStream {
    /// Adds a piece of the text, and returns the output that is complete so far.
    pub fn push_escaped(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut chars = self.pending.take().into_iter().chain(text.chars()).peekable();
        while let Some(c) = chars.next() {
            let after = chars.peek().copied();
            if after.is_none() && (c == '\r' || needs_next_char(c)) {
                self.pending = Some(c);
                break;
            }
            self.push_char(&mut out, c, after);
        }
        out
    }

    /// Ends the text, and returns the remaining output.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        if let Some(c) = self.pending.take() {
            self.push_char(&mut out, c, None);
        }
        self.context.reset();
        out
    }

    fn push_char(&mut self, out: &mut String, c: char, after: Option<char>) {
        match c {
            '\r' if after == Some('\n') => {}
            c if matches!(c, '\n' | '\t') || is_other_space(c) => {
                self.context.reset();
                out.push(c);
            }
            c => push(out, &mut self.context, c, after),
        }
    }
}

/// Returns equivalent JSON without characters that affect a terminal.
pub fn escape_json(text: &str) -> String {
    let (mut out, mut sight) = (String::with_capacity(text.len()), VisibleContext::default());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\n' {
            sight.reset();
            out.push(c);
        } else if sight.is_visible(c, chars.peek().copied()) {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// Returns whether a terminal may show parts of this text in another order. Letters that are
/// written from right to left also move the punctuation between them.
pub fn has_right_to_left(text: &str) -> bool {
    let class = CodePointMapData::<BidiClass>::new();
    text.chars().any(|c| {
        !c.is_ascii()
            && matches!(
                class.get(c),
                BidiClass::RightToLeft | BidiClass::ArabicLetter | BidiClass::ArabicNumber
            )
    })
}

fn push(out: &mut String, sight: &mut VisibleContext, c: char, after: Option<char>) {
    if sight.is_visible(c, after) { out.push(c) } else { out.extend(c.escape_unicode()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_unescaped() {
        assert_eq!(escape_line(" two\nlines\t ", 80), "two lines");
        assert_eq!(escape_line("\u{1b}[2J", 80), "\\u{1b}[2J");
        assert_eq!(escape_line("a\u{202e}b\u{9b}c\u{e0041}", 80), "a\\u{202e}b\\u{9b}c\\u{e0041}");
        assert_eq!(escape_line("grüße 🦀", 80), "grüße 🦀");
        assert_eq!(escape_line("abcdef", 3), "abc…");
    }

    #[test]
    fn a_joiner_is_let_through_between_two_pictures_and_nowhere_else() {
        for picture in ["👩\u{200d}👩\u{200d}👧", "👨🏽\u{200d}💻", "❤\u{fe0f}\u{200d}🔥"]
        {
            assert_eq!(
                (escape_text(picture), escape_line(picture, 80)),
                (picture.to_owned(), picture.to_owned())
            );
        }
        assert_eq!(
            escape_text("a\u{200d}b 👩\u{200d}x \u{200d}👩 \u{200d}\u{200d}"),
            "a\\u{200d}b 👩\\u{200d}x \\u{200d}👩 \\u{200d}\\u{200d}"
        );
        assert_eq!(escape_line("👩\u{200d}", 80), "👩\\u{200d}");
    }

    #[test]
    fn letters_that_nobody_sees_are_written_out_and_pictures_are_not() {
        assert_eq!(escape_text("const { t,\u{3164}} = q"), "const { t,\\u{3164}} = q");
        for c in [
            '\u{115f}',
            '\u{1160}',
            '\u{ffa0}',
            '\u{34f}',
            '\u{2800}',
            '\u{17b4}',
            '\u{fe00}',
            '\u{fe0f}',
            '\u{e0100}',
        ] {
            assert_eq!(
                escape_text(&format!("a{c}b")),
                format!("a{}b", c.escape_unicode()),
                "{c:?}"
            );
        }
        for picture in ["❤\u{fe0f}", "1\u{fe0f}\u{20e3}", "⚠\u{fe0f} careful", "ℹ\u{fe0f}"] {
            assert_eq!(
                (escape_text(picture), escape_line(picture, 80)),
                (picture.to_owned(), picture.to_owned())
            );
        }
    }

    #[test]
    fn a_name_has_no_blank_that_can_be_overlooked() {
        assert_eq!(escape_name("create the directory a b", 80), "create the directory a b");
        assert_eq!(escape_name("create the directory a b ", 80), "create the directory a b\\u{20}");
        assert_eq!(escape_name("delete  a (5 bytes)", 80), "delete\\u{20}\\u{20}a (5 bytes)");
        assert_eq!(escape_name("\u{3000}a\u{a0}b\t\n", 80), "\\u{3000}a\\u{a0}b\\u{9}\\u{a}");
        assert_eq!(escape_name("abcdef", 3), "abc…");
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let text = "a\u{202e}\u{9b}\u{7f}\u{e0041}🦀\u{1b}\n\"";
        let shown = escape_json(&serde_json::to_string_pretty(&[text]).expect("it is data"));
        assert!(shown.chars().all(|c| c == '\n' || c == '🦀' || matches!(c, ' '..='~')), "{shown}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).expect("it is JSON"), [text]);
    }

    #[test]
    fn what_is_decided_by_has_no_blank_but_the_space_and_no_end_of_line_but_one() {
        assert_eq!(escape_exact("true \r\nrm -rf x"), "true \\u{d}\nrm -rf x");
        assert_eq!(
            escape_exact("a\u{a0}b\u{2003}c\u{3000}d\u{1680}e"),
            "a\\u{a0}b\\u{2003}c\\u{3000}d\\u{1680}e"
        );
        assert_eq!(
            escape_exact("a\u{70f}\u{1bca0}\u{1bca3}\u{1d159}"),
            "a\\u{70f}\\u{1bca0}\\u{1bca3}\\u{1d159}"
        );
        assert_eq!(escape_exact("ls \\ \n\tx \t\n  \n"), "ls \\\\u{20}\n\tx\\u{20}\\u{9}\n\n");
        // For reading, these characters stay as in print.
        assert_eq!(
            escape_text("10\u{a0}000\u{202f}€\u{3000}日本\r\n"),
            "10\u{a0}000\u{202f}€\u{3000}日本\n"
        );
        assert_eq!(
            (escape_line("a\u{3000}b", 9), escape_name("a\u{3000}b", 9)),
            ("a\\u{3000}b".to_owned(), "a\\u{3000}b".to_owned())
        );
    }

    #[test]
    fn a_text_in_pieces_looks_like_the_whole() {
        let text = "e\u{301}\r\n👩\u{200d}👧 x\u{200d}y 1\u{fe0f}\u{20e3} 2\u{fe0f} a\rb \u{1b}[2J \
            ❤\u{fe0f}\u{200d}";
        for at in text.char_indices().map(|(at, _)| at) {
            let mut stream = EscapedStream::default();
            assert_eq!(
                stream.push_escaped(&text[..at])
                    + &stream.push_escaped(&text[at..])
                    + &stream.finish(),
                escape_text(text),
                "{at}"
            );
        }
    }

    #[test]
    fn writing_from_right_to_left_is_found() {
        assert!(has_right_to_left("echo א; rm -rf ב") && has_right_to_left("سلام"));
        assert!(!has_right_to_left("Grüße 日本語 👩\u{200d}💻 1 + 1"));
    }

    #[test]
    fn a_block_keeps_its_lines_and_nothing_that_goes_back_over_them() {
        assert_eq!(escape_text("a\r\nb\tc\n"), "a\nb\tc\n");
        assert_eq!(escape_text("safe\roverwritten\u{8}"), "safe\\u{d}overwritten\\u{8}");
    }
}
