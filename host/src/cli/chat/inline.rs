//! How a line of Markdown looks: which of its characters are emphasised, code, or mere marks. The
//! characters stay.

use console::Style;

/// How a character looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CharStyle {
    bold: bool,
    italic: bool,
    code: bool,
    is_mark: bool,
}

/// As many bytes of a line that grows may still change their look: a mark and the character after
/// it, or what begins a line.
const MAX_UNSETTLED_BYTES: usize = 12;

/// The look of each byte of a line, which may grow. What opens an emphasis opens it at once: what
/// follows does not change what was before, or a line could not be shown until it is complete. So
/// what was looked at once is not looked at again.
#[derive(Clone, Debug, Default)]
pub(super) struct LineStyles {
    styles: Vec<CharStyle>,
    /// Up to where they are certain, and the look from there on.
    settled: usize,
    current: CharStyle,
}

impl LineStyles {
    /// Of this line, which begins with what it was the last time.
    pub(super) fn update(&mut self, line: &str) {
        self.styles.truncate(self.settled);
        let (mut now, mut at) = (self.current, self.settled);
        if at == 0 {
            (now, at) = self.parse_line_start(line);
        }
        while at < line.len() {
            // By then what begins the line is certain too.
            if at > 0 && at + MAX_UNSETTLED_BYTES <= line.len() {
                (self.settled, self.current) = (at, now);
            }
            let rest = &line[at..];
            let before = line[..at].chars().next_back();
            let (length, next) = match parse_mark(rest, before, now) {
                Some((length, next)) => (length, Some(next)),
                None => (rest.chars().next().map_or(1, char::len_utf8), None),
            };
            self.styles
                .extend(std::iter::repeat_n(CharStyle { is_mark: next.is_some(), ..now }, length));
            now = next.unwrap_or(now);
            at += length;
        }
    }

    /// Spaces, and the mark of a heading or of a list: the look after them, and where that is.
    fn parse_line_start(&mut self, line: &str) -> (CharStyle, usize) {
        let text = line.trim_start();
        if line.len() - text.len() > MAX_UNSETTLED_BYTES {
            // Too deep for either; and a line of nothing but spaces is gone through once.
            return (CharStyle::default(), 0);
        }
        let hashes = text.bytes().take_while(|byte| *byte == b'#').count();
        let heading = (1..=6).contains(&hashes) && text[hashes..].starts_with(' ');
        let indent = line.len() - text.len();
        let list = ["- ", "* ", "+ ", "> "].iter().any(|mark| text.starts_with(mark));
        let skip = if heading { hashes } else { usize::from(list) };
        let now = CharStyle { bold: heading, ..CharStyle::default() };
        self.styles.extend(std::iter::repeat_n(now, indent));
        self.styles.extend(std::iter::repeat_n(CharStyle { is_mark: true, ..now }, skip));
        (now, indent + skip)
    }

    /// Of these bytes.
    pub(super) fn range(&self, bytes: std::ops::Range<usize>) -> &[CharStyle] {
        self.styles.get(bytes).unwrap_or_default()
    }
}

/// A mark at the beginning of this text: its length, and the look after it.
fn parse_mark(text: &str, before: Option<char>, now: CharStyle) -> Option<(usize, CharStyle)> {
    let after = |length: usize| text[length..].chars().next();
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_solid = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
    if text.starts_with('`') {
        return Some((1, CharStyle { code: !now.code, ..now }));
    }
    if now.code {
        return None;
    }
    for double in ["**", "__"] {
        if text.starts_with(double) {
            let closes = now.bold && is_solid(before);
            let opens = !now.bold
                && !is_word(before)
                && (is_word(after(2))
                    || matches!(after(2), Some('`' | '*' | '_' | '"' | '(' | '[')));
            return (closes || opens).then_some((2, CharStyle { bold: !now.bold, ..now }));
        }
    }
    if text.starts_with(['*', '_']) {
        let closes = now.italic && is_solid(before) && !is_word(after(1));
        let opens = !now.italic && !is_word(before) && is_word(after(1));
        return (closes || opens).then_some((1, CharStyle { italic: !now.italic, ..now }));
    }
    None
}

/// A part of a line with the look of its bytes.
pub(super) fn apply_styles(text: &str, faces: &[CharStyle]) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut start = 0;
    for (at, _) in text.char_indices().skip(1).chain([(text.len(), ' ')]) {
        if at == text.len() || faces.get(at) != faces.get(start) {
            let face = faces.get(start).copied().unwrap_or_default();
            out.push_str(&face.to_style().apply_to(&text[start..at]).to_string());
            start = at;
        }
    }
    out
}

/// A line of a block of code.
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

    /// A letter for each character: bold, italic, code, mark or plain.
    fn style_letters(line: &str) -> String {
        let mut faces = LineStyles::default();
        faces.update(line);
        let faces = faces.styles;
        let letter = |face: &CharStyle| match face {
            CharStyle { is_mark: true, .. } => '.',
            CharStyle { code: true, .. } => 'c',
            CharStyle { bold: true, .. } => 'b',
            CharStyle { italic: true, .. } => 'i',
            CharStyle { .. } => ' ',
        };
        line.char_indices().map(|(at, _)| letter(&faces[at])).collect()
    }

    #[test]
    fn emphasis_is_seen_and_stars_that_are_stars_are_not() {
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
    fn a_line_that_grows_looks_like_the_whole_and_is_not_looked_at_again() {
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
