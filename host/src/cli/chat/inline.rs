//! How a line of Markdown looks: which of its characters are emphasised, code, or mere marks. The characters stay.

use console::Style;

/// How a character looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Face {
    bold: bool,
    italic: bool,
    code: bool,
    mark: bool,
}

/// As many bytes of a line that grows may still change their look: a mark and the character after it, or what begins a line.
const UNSETTLED: usize = 12;

/// The look of each byte of a line, which may grow. What opens an emphasis opens it at once: what follows does not change what
/// was before, or a line could not be shown until it is complete. So what was looked at once is not looked at again.
#[derive(Clone, Debug, Default)]
pub(super) struct Faces {
    faces: Vec<Face>,
    /// Up to where they are certain, and the look from there on.
    settled: usize,
    now: Face,
}

impl Faces {
    /// Of this line, which begins with what it was the last time.
    pub(super) fn follow(&mut self, line: &str) {
        self.faces.truncate(self.settled);
        let (mut now, mut at) = (self.now, self.settled);
        if at == 0 {
            (now, at) = self.begin(line);
        }
        while at < line.len() {
            // By then what begins the line is certain too.
            if at > 0 && at + UNSETTLED <= line.len() {
                (self.settled, self.now) = (at, now);
            }
            let rest = &line[at..];
            let before = line[..at].chars().next_back();
            let (length, next) = match mark(rest, before, now) {
                Some((length, next)) => (length, Some(next)),
                None => (rest.chars().next().map_or(1, char::len_utf8), None),
            };
            self.faces.extend(std::iter::repeat_n(Face { mark: next.is_some(), ..now }, length));
            now = next.unwrap_or(now);
            at += length;
        }
    }

    /// Spaces, and the mark of a heading or of a list: the look after them, and where that is.
    fn begin(&mut self, line: &str) -> (Face, usize) {
        let text = line.trim_start();
        if line.len() - text.len() > UNSETTLED {
            // Too deep for either; and a line of nothing but spaces is gone through once.
            return (Face::default(), 0);
        }
        let hashes = text.bytes().take_while(|byte| *byte == b'#').count();
        let heading = (1..=6).contains(&hashes) && text[hashes..].starts_with(' ');
        let indent = line.len() - text.len();
        let list = ["- ", "* ", "+ ", "> "].iter().any(|mark| text.starts_with(mark));
        let skip = if heading { hashes } else { usize::from(list) };
        let now = Face { bold: heading, ..Face::default() };
        self.faces.extend(std::iter::repeat_n(now, indent));
        self.faces.extend(std::iter::repeat_n(Face { mark: true, ..now }, skip));
        (now, indent + skip)
    }

    /// Of these bytes.
    pub(super) fn of(&self, bytes: std::ops::Range<usize>) -> &[Face] {
        self.faces.get(bytes).unwrap_or_default()
    }
}

/// A mark at the beginning of this text: its length, and the look after it.
fn mark(text: &str, before: Option<char>, now: Face) -> Option<(usize, Face)> {
    let after = |length: usize| text[length..].chars().next();
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_solid = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
    if text.starts_with('`') {
        return Some((1, Face { code: !now.code, ..now }));
    }
    if now.code {
        return None;
    }
    for double in ["**", "__"] {
        if text.starts_with(double) {
            let closes = now.bold && is_solid(before);
            let opens = !now.bold && !is_word(before) && (is_word(after(2)) || matches!(after(2), Some('`' | '*' | '_' | '"' | '(' | '[')));
            return (closes || opens).then_some((2, Face { bold: !now.bold, ..now }));
        }
    }
    if text.starts_with(['*', '_']) {
        let closes = now.italic && is_solid(before) && !is_word(after(1));
        let opens = !now.italic && !is_word(before) && is_word(after(1));
        return (closes || opens).then_some((1, Face { italic: !now.italic, ..now }));
    }
    None
}

/// A part of a line with the look of its bytes.
pub(super) fn dress(text: &str, faces: &[Face]) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut start = 0;
    for (at, _) in text.char_indices().skip(1).chain([(text.len(), ' ')]) {
        if at == text.len() || faces.get(at) != faces.get(start) {
            let face = faces.get(start).copied().unwrap_or_default();
            out.push_str(&face.style().apply_to(&text[start..at]).to_string());
            start = at;
        }
    }
    out
}

/// A line of a block of code.
pub(super) fn code(line: &str) -> String {
    Face { code: true, ..Face::default() }.style().apply_to(line).to_string()
}

impl Face {
    fn style(self) -> Style {
        let mut style = Style::new().for_stderr();
        if self.mark {
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
    fn look(line: &str) -> String {
        let mut faces = Faces::default();
        faces.follow(line);
        let faces = faces.faces;
        let letter = |face: &Face| match face {
            Face { mark: true, .. } => '.',
            Face { code: true, .. } => 'c',
            Face { bold: true, .. } => 'b',
            Face { italic: true, .. } => 'i',
            Face { .. } => ' ',
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
            assert_eq!(look(line), expected, "{line}");
        }
    }

    #[test]
    fn a_line_that_grows_looks_like_the_whole_and_is_not_looked_at_again() {
        let line = "   ## A **bold** and *thin* `code` of snake_case, ü*b*ü, 日本**語** __x__ ``y`` ".repeat(20);
        for line in [&line[..], line.trim_start(), &line[6..], "- one *two*", "#", "######## *no*", "**", "a*"] {
            let mut grown = Faces::default();
            for (at, c) in line.char_indices() {
                let so_far = &line[..at + c.len_utf8()];
                grown.follow(so_far);
                let mut whole = Faces::default();
                whole.follow(so_far);
                assert_eq!(grown.faces, whole.faces, "{so_far}");
            }
            assert!(line.len() < 50 || grown.settled + 20 > line.len(), "{} of {}", grown.settled, line.len());
        }
    }
}
