//! Texts of strangers, made fit for a terminal: what a plugin, a model, a command or a file name says cannot move the
//! cursor, change the colour, hide a part of itself or turn it around.

/// On one line, cut to so many characters.
pub fn line(text: &str, max_chars: usize) -> String {
    let mut out = String::new();
    let (mut before, mut chars) = (None, text.trim().chars().enumerate().peekable());
    while let Some((n, c)) = chars.next() {
        if n == max_chars {
            out.push('…');
            break;
        }
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            JOINER if joins(before, chars.peek().map(|(_, c)| *c)) => out.push(c),
            c => push(&mut out, c),
        }
        before = Some(c);
    }
    out
}

/// With its lines and tabs, in full.
pub fn block(text: &str) -> String {
    block_after(None, text)
}

/// The same for a text that goes on after this character.
pub fn block_after(mut before: Option<char>, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            JOINER if joins(before, chars.peek().copied()) => out.push(c),
            c => push(&mut out, c),
        }
        before = Some(c);
    }
    out
}

/// JSON that says the same without a character that could do anything to a terminal.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            c if c.is_control() || is_invisible(c) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out
}

fn push(out: &mut String, c: char) {
    if c.is_control() || is_invisible(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
}

/// Makes one picture of two, such as a family of its members.
pub const JOINER: char = '\u{200D}';

/// Whether a joiner stands between two pictures. There it hides nothing; anywhere else it could.
fn joins(before: Option<char>, after: Option<char>) -> bool {
    let is_picture = |c: char| matches!(c, '\u{2600}'..='\u{27BF}' | '\u{1F300}'..='\u{1FAFF}');
    before.is_some_and(|c| is_picture(c) || c == '\u{FE0F}') && after.is_some_and(is_picture)
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
        assert_eq!(line(" two\nlines\t ", 80), "two lines");
        assert_eq!(line("\u{1b}[2J", 80), "\\u{1b}[2J");
        assert_eq!(line("a\u{202e}b\u{9b}c\u{e0041}", 80), "a\\u{202e}b\\u{9b}c\\u{e0041}");
        assert_eq!(line("grüße 🦀", 80), "grüße 🦀");
        assert_eq!(line("abcdef", 3), "abc…");
    }

    #[test]
    fn a_joiner_is_let_through_between_two_pictures_and_nowhere_else() {
        for picture in ["👩\u{200d}👩\u{200d}👧", "👨🏽\u{200d}💻", "❤\u{fe0f}\u{200d}🔥"] {
            assert_eq!((block(picture), line(picture, 80)), (picture.to_owned(), picture.to_owned()));
        }
        assert_eq!(block("a\u{200d}b 👩\u{200d}x \u{200d}👩 \u{200d}\u{200d}"), "a\\u{200d}b 👩\\u{200d}x \\u{200d}👩 \\u{200d}\\u{200d}");
        assert_eq!(line("👩\u{200d}", 80), "👩\\u{200d}");
    }

    #[test]
    fn json_says_the_same() {
        let text = "a\u{202e}\u{9b}\u{7f}\u{e0041}🦀\u{1b}\n\"";
        let shown = json(&serde_json::to_string_pretty(&[text]).expect("it is data"));
        assert!(shown.chars().all(|c| c == '\n' || !(c.is_control() || is_invisible(c))), "{shown}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).expect("it is JSON"), [text]);
    }

    #[test]
    fn a_block_keeps_its_lines_and_nothing_that_goes_back_over_them() {
        assert_eq!(block("a\r\nb\tc\n"), "a\nb\tc\n");
        assert_eq!(block("safe\roverwritten\u{8}"), "safe\\u{d}overwritten\\u{8}");
    }
}
