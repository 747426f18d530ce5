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
            c => push(&mut out, before, c, chars.peek().map(|(_, c)| *c)),
        }
        before = Some(c);
    }
    out
}

/// A name on one line, cut to so many characters: with every blank in it that could be overlooked, at its ends and in a row.
pub fn name(text: &str, max_chars: usize) -> String {
    let mut out = String::new();
    let (mut before, mut chars) = (None, text.chars().enumerate().peekable());
    while let Some((n, c)) = chars.next() {
        if n == max_chars {
            out.push('…');
            break;
        }
        let after = chars.peek().map(|(_, c)| *c);
        let is_visible = |beside: Option<char>| beside.is_some_and(|beside| !beside.is_whitespace());
        match c {
            ' ' if is_visible(before) && is_visible(after) => out.push(c),
            c if c.is_whitespace() => out.extend(c.escape_unicode()),
            c => push(&mut out, before, c, after),
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
            c => push(&mut out, before, c, chars.peek().copied()),
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

fn push(out: &mut String, before: Option<char>, c: char, after: Option<char>) {
    let is_shown = match c {
        JOINER => joins(before, after),
        PICTURE => is_picture_of(before, after),
        c => !c.is_control() && !is_invisible(c),
    };
    if is_shown { out.push(c) } else { out.extend(c.escape_unicode()) }
}

/// Makes one picture of two, such as a family of its members.
pub const JOINER: char = '\u{200D}';

/// Whether a joiner stands between two pictures. There it hides nothing; anywhere else it could.
fn joins(before: Option<char>, after: Option<char>) -> bool {
    let is_picture = |c: char| matches!(c, '\u{2600}'..='\u{27BF}' | '\u{1F300}'..='\u{1FAFF}');
    before.is_some_and(|c| is_picture(c) || c == PICTURE) && after.is_some_and(is_picture)
}

/// Asks for the picture of a character that can be a letter too.
const PICTURE: char = '\u{FE0F}';

/// Whether there is a picture of what it stands behind. Behind anything else nobody sees it.
fn is_picture_of(before: Option<char>, after: Option<char>) -> bool {
    before.is_some_and(|c| match c {
        '\u{A9}' | '\u{AE}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}' => true,
        '\u{2190}'..='\u{27BF}' | '\u{2900}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}' => true,
        '0'..='9' | '#' | '*' => after == Some('\u{20E3}'),
        _ => false,
    })
}

/// Zero-width, direction-changing and tag characters, and letters and signs that look like a blank or like nothing at all: in
/// many languages they can be in a name.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}')
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
    fn letters_that_nobody_sees_are_written_out_and_pictures_are_not() {
        assert_eq!(block("const { t,\u{3164}} = q"), "const { t,\\u{3164}} = q");
        for c in ['\u{115f}', '\u{1160}', '\u{ffa0}', '\u{34f}', '\u{2800}', '\u{17b4}', '\u{fe00}', '\u{fe0f}', '\u{e0100}'] {
            assert_eq!(block(&format!("a{c}b")), format!("a{}b", c.escape_unicode()), "{c:?}");
        }
        for picture in ["❤\u{fe0f}", "1\u{fe0f}\u{20e3}", "⚠\u{fe0f} careful", "ℹ\u{fe0f}"] {
            assert_eq!((block(picture), line(picture, 80)), (picture.to_owned(), picture.to_owned()));
        }
    }

    #[test]
    fn a_name_has_no_blank_that_can_be_overlooked() {
        assert_eq!(name("create the directory a b", 80), "create the directory a b");
        assert_eq!(name("create the directory a b ", 80), "create the directory a b\\u{20}");
        assert_eq!(name("delete  a (5 bytes)", 80), "delete\\u{20}\\u{20}a (5 bytes)");
        assert_eq!(name("\u{3000}a\u{a0}b\t\n", 80), "\\u{3000}a\\u{a0}b\\u{9}\\u{a}");
        assert_eq!(name("abcdef", 3), "abc…");
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
