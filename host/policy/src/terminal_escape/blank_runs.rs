//! Long runs of blanks, which could push the rest of a text out of sight.

/// The number of empty lines up to which a run of them is shown.
pub const MAX_EMPTY_LINES: usize = 2;
/// The number of spaces or tabs up to which a run of them is shown.
const MAX_BLANKS: usize = 40;

/// A segment of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSegment<'a> {
    /// Text with at most short runs of blanks.
    Text(&'a str),
    /// A long run of spaces and tabs: their number.
    Blanks(usize),
}

/// Splits a line at long runs of spaces or tabs. An empty line is one empty text.
///
/// # Examples
///
/// ```
/// use cofferdam_policy::terminal_escape::{LineSegment, split_at_blanks};
///
/// let line = format!("a{}b", " ".repeat(50));
/// let segments = [LineSegment::Text("a"), LineSegment::Blanks(50), LineSegment::Text("b")];
/// assert_eq!(split_at_blanks(&line), segments);
/// ```
pub fn split_at_blanks(line: &str) -> Vec<LineSegment<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < line.len() {
        let rest = &line[at..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if blanks > MAX_BLANKS {
            if at > start {
                parts.push(LineSegment::Text(&line[start..at]));
            }
            parts.push(LineSegment::Blanks(blanks));
            start = at + blanks;
        }
        at += blanks.max(rest.chars().next().map_or(1, char::len_utf8));
    }
    if start < line.len() || parts.is_empty() {
        parts.push(LineSegment::Text(&line[start..]));
    }
    parts
}

/// Replaces long runs of empty lines and of blanks by lines that say how long they are.
///
/// # Examples
///
/// ```
/// use cofferdam_policy::terminal_escape::shorten_blanks;
///
/// assert_eq!(shorten_blanks("a\n\n\n\nb"), "a\n⋮ 3 empty lines\nb");
/// ```
pub fn shorten_blanks(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let is_empty = |line: &str| line.trim().is_empty();
    let mut shortened: Vec<String> = Vec::with_capacity(lines.len());
    for run in lines.chunk_by(|one, next| is_empty(one) && is_empty(next)) {
        if run.len() > MAX_EMPTY_LINES {
            shortened.push(format!("⋮ {} empty lines", run.len()));
            continue;
        }
        for line in run {
            shortened.extend(split_at_blanks(line).into_iter().map(|part| match part {
                LineSegment::Text(text) => text.to_owned(),
                LineSegment::Blanks(count) => format!("⋮ {count} spaces or tabs omitted"),
            }));
        }
    }
    shortened.join("\n")
}

/// Replaces long runs of empty lines in a unified diff by lines that say how many were added or
/// removed.
///
/// # Examples
///
/// ```
/// use cofferdam_policy::terminal_escape::shorten_diff_blanks;
///
/// assert_eq!(shorten_diff_blanks("+a\n+\n+\n+ \n+b"), "+a\n⋮ 3 empty lines added\n+b");
/// ```
pub fn shorten_diff_blanks(diff: &str) -> String {
    let lines: Vec<&str> = diff.split('\n').collect();
    let empty_kind = |line: &str| {
        let mut chars = line.chars();
        let kind = match chars.next()? {
            '+' => "added",
            '-' => "removed",
            _ => return None,
        };
        chars.as_str().trim().is_empty().then_some(kind)
    };
    let mut shortened: Vec<String> = Vec::with_capacity(lines.len());
    for run in lines.chunk_by(|one, next| empty_kind(one) == empty_kind(next)) {
        match run.first().and_then(|line| empty_kind(line)) {
            Some(kind) if run.len() > MAX_EMPTY_LINES => {
                shortened.push(format!("⋮ {} empty lines {kind}", run.len()));
            }
            _ => shortened.extend(run.iter().map(|line| (*line).to_owned())),
        }
    }
    shortened.join("\n")
}
