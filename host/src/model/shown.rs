//! Texts of strangers, made fit for a terminal.

/// The text on one line and without anything that could move the cursor, hide or reorder what is shown; cut to so
/// many characters.
pub(super) fn shown(text: &str, max_chars: usize) -> String {
    let mut out = String::new();
    for (n, c) in text.trim().chars().enumerate() {
        if n == max_chars {
            out.push('…');
            break;
        }
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            c if c.is_control() || is_invisible(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Zero-width, direction-changing and tag characters.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_unescaped() {
        assert_eq!(shown(" two\nlines\t ", 80), "two lines");
        assert_eq!(shown("\u{1b}[2J", 80), "\\u{1b}[2J");
        assert_eq!(shown("a\u{202e}b\u{9b}c\u{e0041}", 80), "a\\u{202e}b\\u{9b}c\\u{e0041}");
        assert_eq!(shown("grüße 🦀", 80), "grüße 🦀");
        assert_eq!(shown("abcdef", 3), "abc…");
    }
}
