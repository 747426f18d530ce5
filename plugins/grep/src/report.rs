//! The matches, as text and within limits.

use std::collections::VecDeque;
use std::fmt::{Display, Write};
use std::io;

use cofferdam_sdk::Output;
use cofferdam_sdk::listing::one_line;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};

use crate::{Input, OutputMode, line};

/// The largest text, in bytes. The host would cut more in the middle; a report ends where the next
/// one can begin.
const MAX_BYTES: usize = 256 << 10;
/// The number of listed problems.
const MAX_PROBLEMS: usize = 10;

/// Receives the matches of the searcher.
#[derive(Debug)]
pub(crate) struct Report<'m> {
    matcher: &'m RegexMatcher,
    mode: OutputMode,
    limit: u64,
    offset: u64,
    /// Lines of context before a match.
    before: usize,
    with_context: bool,

    text: String,
    /// Results so far, with those that were passed over.
    seen: u64,
    shown: u64,
    /// Whether there are results that are not shown and come after those that are.
    more: bool,
    problems: Vec<String>,
    more_problems: u64,

    path: String,
    /// Matching lines of this file.
    matches: u64,
    /// Whether the last match was shown, so that lines after it are too.
    in_group: bool,
    /// Whether a gap lies between what was shown last and what comes.
    gap: bool,
    /// Lines that are shown if a match follows that is.
    pending: VecDeque<String>,
}

impl<'m> Report<'m> {
    pub(crate) fn new(input: &Input, matcher: &'m RegexMatcher) -> Self {
        let (before, after) = input.context_lines();
        Self {
            matcher,
            mode: input.output_mode,
            limit: input.limit.into(),
            offset: input.offset.into(),
            before,
            with_context: before + after > 0,
            text: String::new(),
            seen: 0,
            shown: 0,
            more: false,
            problems: Vec::new(),
            more_problems: 0,
            path: String::new(),
            matches: 0,
            in_group: false,
            gap: false,
            pending: VecDeque::new(),
        }
    }

    pub(crate) fn matcher(&self) -> &'m RegexMatcher {
        self.matcher
    }

    /// Whether anything further would be left out.
    pub(crate) fn is_full(&self) -> bool {
        self.more
    }

    pub(crate) fn begin(&mut self, path: &str) {
        self.path.clear();
        // As other tools show names: one cannot pass for two lines, nor give orders to a terminal.
        if path.contains(char::is_control) {
            self.path.push_str(&one_line(path))
        } else {
            self.path.push_str(path)
        }
        self.matches = 0;
        self.in_group = false;
        self.gap = true;
        self.pending.clear();
    }

    /// Where a match is a file, the file is known to match by now.
    pub(crate) fn end(&mut self) {
        if self.matches == 0 || self.mode == OutputMode::Content || !self.accept() {
            return;
        }
        self.text.push_str(&self.path);
        if self.mode == OutputMode::Count {
            push(&mut self.text, format_args!(":{}", self.matches));
        }
        self.text.push('\n');
    }

    /// The file is binary from this byte on and was searched up to there.
    pub(crate) fn binary_from(&mut self, byte: u64) {
        if self.in_group && self.mode == OutputMode::Content {
            push(
                &mut self.text,
                format_args!(
                    "[{}: binary data at byte {byte}; the rest was not searched]\n",
                    self.path
                ),
            );
        }
        self.uncount();
    }

    /// The number of matches in a part of a file would be taken for that of the file; ripgrep gives
    /// none either. That there is a match in it is true all the same.
    fn uncount(&mut self) {
        if self.mode == OutputMode::Count {
            self.matches = 0;
        }
    }

    pub(crate) fn problem_in_file(&mut self, error: &dyn Display) {
        self.problem(format!("{}: {error}", self.path));
    }

    pub(crate) fn problem(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(one_line(&problem));
        } else {
            self.more_problems += 1;
        }
    }

    /// The text, with what the reader must know about it at its end.
    pub(crate) fn output(mut self) -> Output {
        if self.shown == 0 {
            self.text.push_str(&match self.seen {
                0 => "No matches.".to_owned(),
                seen => format!("No more matches; there are {seen} in total."),
            });
        }
        if self.more {
            let (one, many) = match self.mode {
                OutputMode::Content => ("match", "matches"),
                OutputMode::Files | OutputMode::Count => ("file", "files"),
            };
            let (first, last) = (self.offset + 1, self.offset + self.shown);
            let range = if first == last {
                format!("{one} {first}")
            } else {
                format!("{many} {first} to {last}")
            };
            push(
                &mut self.text,
                format_args!(
                    "[{range}; there are more: continue with offset {last}, or narrow the search]\n"
                ),
            );
        }
        if !self.problems.is_empty() {
            let lines = self.problems.join("\n");
            push(&mut self.text, format_args!("\n[not searched:\n{lines}"));
            if self.more_problems > 0 {
                push(&mut self.text, format_args!("\nand {} more", self.more_problems));
            }
            self.text.push_str("]\n");
        }
        let output = Output::text(self.text);
        if self.more { output.truncated() } else { output }
    }

    /// Counts a result, and says whether it is to be shown.
    fn accept(&mut self) -> bool {
        if self.seen < self.offset {
            self.seen += 1;
            return false;
        }
        if self.shown == self.limit || self.text.len() >= MAX_BYTES {
            self.more = true;
            return false;
        }
        self.seen += 1;
        self.shown += 1;
        true
    }

    /// A line with its place; `mark` is what tells matches from context.
    fn line(
        &self,
        mark: char,
        number: Option<u64>,
        bytes: &[u8],
        focus: impl FnOnce(&[u8]) -> usize,
    ) -> String {
        let mut text = String::with_capacity(self.path.len() + bytes.len().min(600) + 10);
        push(&mut text, format_args!("{}{mark}{}{mark}", self.path, number.unwrap_or_default()));
        line::push(&mut text, bytes, focus);
        text.push('\n');
        text
    }
}

impl Sink for &mut Report<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        match self.mode {
            OutputMode::Files => return Ok(false),
            OutputMode::Count => return Ok(true),
            OutputMode::Content => {}
        }
        self.in_group = self.accept();
        if !self.in_group {
            self.pending.clear();
            return Ok(!self.more);
        }
        if self.with_context && self.gap && !self.text.is_empty() {
            self.text.push_str("--\n");
        }
        self.gap = false;
        for pending in std::mem::take(&mut self.pending) {
            self.text.push_str(&pending);
        }
        for (number, bytes) in (found.line_number().unwrap_or_default()..).zip(found.lines()) {
            let matcher = self.matcher;
            let focus =
                |bytes: &[u8]| matcher.find(bytes).ok().flatten().map_or(0, |found| found.start());
            let text = self.line(':', Some(number), bytes, focus);
            self.text.push_str(&text);
            if self.text.len() >= MAX_BYTES {
                break;
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let text = self.line('-', context.line_number(), context.bytes(), |_| 0);
        if self.in_group && *context.kind() == SinkContextKind::After {
            self.text.push_str(&text);
            return Ok(true);
        }
        self.pending.push_back(text);
        if self.pending.len() > self.before {
            self.pending.pop_front();
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.gap = true;
        self.pending.clear();
        Ok(true)
    }

    /// A NUL that was not to be seen before UTF-16 was decoded.
    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        if finish.binary_byte_offset().is_some() {
            self.uncount();
        }
        Ok(())
    }
}

/// Writing to a string cannot fail.
fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(arguments);
}
