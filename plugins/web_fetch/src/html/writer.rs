//! Text in the making: words, and what stands between them.

/// What comes before the next word. Of several the widest counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    #[default]
    None,
    Space,
    Line,
    Paragraph,
}

/// Deeper ones stay where these are.
const DEEPEST: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Writer {
    text: String,
    gap: Gap,
    /// What the next line begins with, such as a bullet. Without a word after it it is not written.
    marker: String,
    indent: usize,
    quotes: usize,
    in_code: bool,
}

impl Writer {
    /// Words, with one space for all that is white; code as it is.
    pub(super) fn words(&mut self, text: &str) {
        if self.in_code {
            self.text.push_str(if self.text.ends_with("```\n") {
                text.strip_prefix('\n').unwrap_or(text)
            } else {
                text
            });
            return;
        }
        let mut rest = text;
        while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
            if start > 0 {
                self.gap(Gap::Space);
            }
            rest = &rest[start..];
            let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
            self.begin();
            self.text.push_str(word);
            rest = after;
        }
        if !rest.is_empty() {
            self.gap(Gap::Space);
        }
    }

    pub(super) fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    pub(super) fn line_break(&mut self) {
        if self.in_code {
            self.text.push('\n');
        } else {
            self.gap(if self.gap == Gap::Line { Gap::Paragraph } else { Gap::Line });
        }
    }

    pub(super) fn marker(&mut self, marker: &str) {
        self.marker.push_str(marker);
    }

    /// Ends what had a marker.
    pub(super) fn end_marked(&mut self, gap: Gap) {
        self.marker.clear();
        self.gap(gap);
    }

    pub(super) fn indent(&mut self, depth: usize) {
        self.indent = depth.min(DEEPEST);
    }

    pub(super) fn quote(&mut self, begins: bool) {
        self.gap(Gap::Paragraph);
        self.quotes =
            if begins { (self.quotes + 1).min(DEEPEST) } else { self.quotes.saturating_sub(1) };
    }

    pub(super) fn begin_code(&mut self) {
        if !self.in_code {
            self.gap(Gap::Paragraph);
            self.begin();
            self.text.push_str("```\n");
            self.in_code = true;
        }
    }

    pub(super) fn end_code(&mut self) {
        if std::mem::take(&mut self.in_code) {
            let line = if self.text.ends_with('\n') { "" } else { "\n" };
            self.text.push_str(line);
            self.text.push_str("```");
            self.gap(Gap::Paragraph);
        }
    }

    /// Before and after code among words.
    pub(super) fn tick(&mut self) {
        if !self.in_code {
            self.begin();
            self.text.push('`');
        }
    }

    /// Writes what opens something, and tells where that stands.
    pub(super) fn open(&mut self, sign: &str) -> usize {
        if !self.in_code {
            self.begin();
        }
        let start = self.text.len();
        self.text.push_str(sign);
        start
    }

    /// Writes what closes something that was opened there; if nothing is in it, neither is left.
    pub(super) fn close(&mut self, start: usize, sign: &str) {
        if self.text.len() <= start + 1 {
            self.text.truncate(start);
            if self.text.ends_with(' ') {
                self.text.pop();
                self.gap(Gap::Space);
            }
        } else {
            self.text.push_str(sign);
        }
    }

    pub(super) fn length(&self) -> usize {
        self.text.len()
    }

    pub(super) fn finish(mut self) -> String {
        self.end_code();
        self.text
    }

    /// Writes what is due before a word.
    fn begin(&mut self) {
        let gap = std::mem::take(&mut self.gap);
        let at_start = self.text.is_empty();
        let breaks = match gap {
            _ if at_start => "",
            Gap::None if self.marker.is_empty() => "",
            Gap::Space if self.marker.is_empty() => " ",
            Gap::None | Gap::Space | Gap::Line => "\n",
            Gap::Paragraph => "\n\n",
        };
        self.text.push_str(breaks);
        if at_start || breaks.starts_with('\n') {
            self.text.push_str(&"> ".repeat(self.quotes));
            self.text.push_str(&"  ".repeat(self.indent));
        }
        self.text.push_str(&std::mem::take(&mut self.marker));
    }
}
