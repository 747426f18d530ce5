//! Inline Markdown styles: which characters of a line are emphasized, code, or marks. The
//! characters themselves do not change.

use console::Style;

/// The style of one character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CharStyle {
    bold: bool,
    italic: bool,
    code: bool,
    is_mark: bool,
}

/// Maximum number of bytes at the end of a growing line whose style may still change: a mark and
/// the character after it, or the beginning of a line.
const MAX_UNSETTLED_BYTES: usize = 12;

/// The style of each byte of a line that may grow.
///
/// An opening mark takes effect immediately, even if it is never closed. Later text therefore never
/// changes earlier styles, and settled bytes are not parsed again.
#[derive(Clone, Debug, Default)]
pub(super) struct LineStyles {
    styles: Vec<CharStyle>,
    /// The number of bytes whose style is final; `current` is the style after them.
    settled: usize,
    current: CharStyle,
}

impl LineStyles {
    /// Updates the styles for `line`, which must begin with the line of the previous call.
    pub(super) fn update(&mut self, line: &str) {
        self.styles.truncate(self.settled);
        let (mut current_style, mut at) = (self.current, self.settled);
        if at == 0 {
            (current_style, at) = self.parse_line_start(line);
        }
        while at < line.len() {
            // The beginning of the line is settled too at this point.
            if at > 0 && at + MAX_UNSETTLED_BYTES <= line.len() {
                (self.settled, self.current) = (at, current_style);
            }
            let rest = &line[at..];
            let before = line[..at].chars().next_back();
            let (length, next) = match parse_mark(rest, before, current_style) {
                Some((length, next)) => (length, Some(next)),
                None => (rest.chars().next().map_or(1, char::len_utf8), None),
            };
            self.styles.extend(std::iter::repeat_n(
                CharStyle { is_mark: next.is_some(), ..current_style },
                length,
            ));
            current_style = next.unwrap_or(current_style);
            at += length;
        }
    }

    /// Parses indentation and the mark of a heading or list. Returns the style after them and their
    /// length.
    fn parse_line_start(&mut self, line: &str) -> (CharStyle, usize) {
        let text = line.trim_start();
        if line.len() - text.len() > MAX_UNSETTLED_BYTES {
            // Too deep for a heading or a list. Returning here also avoids parsing a long line of
            // spaces again and again.
            return (CharStyle::default(), 0);
        }
        let hashes = text.bytes().take_while(|byte| *byte == b'#').count();
        let heading = (1..=6).contains(&hashes) && text[hashes..].starts_with(' ');
        let indent = line.len() - text.len();
        let list = ["- ", "* ", "+ ", "> "].iter().any(|mark| text.starts_with(mark));
        let skip = if heading { hashes } else { usize::from(list) };
        let current_style = CharStyle { bold: heading, ..CharStyle::default() };
        self.styles.extend(std::iter::repeat_n(current_style, indent));
        self.styles.extend(std::iter::repeat_n(CharStyle { is_mark: true, ..current_style }, skip));
        (current_style, indent + skip)
    }

    /// Returns the styles of a byte range.
    pub(super) fn range(&self, bytes: std::ops::Range<usize>) -> &[CharStyle] {
        self.styles.get(bytes).unwrap_or_default()
    }
}

/// Parses a mark at the beginning of `text`. Returns its length and the style after it.
fn parse_mark(
    text: &str,
    before: Option<char>,
    current_style: CharStyle,
) -> Option<(usize, CharStyle)> {
    let after = |length: usize| text[length..].chars().next();
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_solid = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
    if text.starts_with('`') {
        return Some((1, CharStyle { code: !current_style.code, ..current_style }));
    }
    if current_style.code {
        return None;
    }
    for double in ["**", "__"] {
        if text.starts_with(double) {
            let closes = current_style.bold && is_solid(before);
            let opens = !current_style.bold
                && !is_word(before)
                && (is_word(after(2))
                    || matches!(after(2), Some('`' | '*' | '_' | '"' | '(' | '[')));
            return (closes || opens)
                .then_some((2, CharStyle { bold: !current_style.bold, ..current_style }));
        }
    }
    if text.starts_with(['*', '_']) {
        let closes = current_style.italic && is_solid(before) && !is_word(after(1));
        let opens = !current_style.italic && !is_word(before) && is_word(after(1));
        return (closes || opens)
            .then_some((1, CharStyle { italic: !current_style.italic, ..current_style }));
    }
    None
}

/// Applies styles to a part of a line; `styles` has one style per byte.
pub(super) fn apply_styles(text: &str, styles: &[CharStyle]) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut start = 0;
    for (at, _) in text.char_indices().skip(1).chain([(text.len(), ' ')]) {
        if at == text.len() || styles.get(at) != styles.get(start) {
            let style = styles.get(start).copied().unwrap_or_default();
            out.push_str(&style.to_style().apply_to(&text[start..at]).to_string());
            start = at;
        }
    }
    out
}

/// Styles a line of a code block.
pub(super) fn style_code_line(line: &str) -> String {
    CharStyle { code: true, ..CharStyle::default() }.to_style().apply_to(line).to_string()
}

impl CharStyle {
    fn to_style(self) -> Style {
        let mut style = Style::new().for_stderr();
        if self.is_mark {
            return style.dim();
        }
        if self.bold {
            style = style.bold();
        }
        if self.italic {
            style = style.italic();
        }
        if self.code {
            style = style.cyan();
        }
        style
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one letter per character: bold, italic, code, mark (`.`) or plain.
    fn style_letters(line: &str) -> String {
        let mut styles = LineStyles::default();
        styles.update(line);
        let styles = styles.styles;
        let letter = |style: &CharStyle| match style {
            CharStyle { is_mark: true, .. } => '.',
            CharStyle { code: true, .. } => 'c',
            CharStyle { bold: true, .. } => 'b',
            CharStyle { italic: true, .. } => 'i',
            CharStyle { .. } => ' ',
        };
        line.char_indices().map(|(at, _)| letter(&styles[at])).collect()
    }

    #[test]
    fn emphasis_is_recognized_and_plain_stars_are_not() {
        let cases = [
            ("a **b** c", "  ..b..  "),
            ("a *b* c _d_", "  .i.   .i."),
            ("`**x**` **y**", ".ccccc. ..b.."),
            ("# Head *x*", ".bbbbbb.b."),
            ("- item", ".     "),
            ("2 * 3 * 4", "         "),
            ("snake_case_name", "               "),
            ("src/**/*.rs and *.toml", "                      "),
            ("**ü** x", "..b..  "),
            ("#hash", "     "),
        ];
        for (line, expected) in cases {
            assert_eq!(style_letters(line), expected, "{line}");
        }
    }

    #[test]
    fn a_growing_line_has_the_styles_of_the_whole_and_is_parsed_once() {
        let line =
            "   ## A **bold** and *thin* `code` of snake_case, ü*b*ü, 日本**語** __x__ ``y`` "
                .repeat(20);
        for line in [
            &line[..],
            line.trim_start(),
            &line[6..],
            "- one *two*",
            "#",
            "######## *no*",
            "**",
            "a*",
        ] {
            let mut grown = LineStyles::default();
            for (at, c) in line.char_indices() {
                let so_far = &line[..at + c.len_utf8()];
                grown.update(so_far);
                let mut whole = LineStyles::default();
                whole.update(so_far);
                assert_eq!(grown.styles, whole.styles, "{so_far}");
            }
            assert!(
                line.len() < 50 || grown.settled + 20 > line.len(),
                "{} of {}",
                grown.settled,
                line.len()
            );
        }
    }
}
