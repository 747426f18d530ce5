//! Lines of a text and their numbers.

use std::ops::Range;

/// A line: where it begins, its text without its ending, and where the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    pub(crate) start: usize,
    pub(crate) body: &'t str,
    pub(crate) next: usize,
}

impl Line<'_> {
    /// Without the ending.
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start + self.body.len()
    }
}

/// All of them; a file of ten megabytes may have ten million, which fit into memory only if they
/// are counted first.
pub(crate) fn collect(text: &str) -> Vec<Line<'_>> {
    let mut all = Vec::with_capacity(text.matches('\n').count() + 1);
    all.extend(lines(text));
    all
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let body = line.strip_suffix('\n').unwrap_or(line);
        let body =
            if body.len() < line.len() { body.strip_suffix('\r').unwrap_or(body) } else { body };
        let line = Line { start, body, next: start + line.len() };
        start = line.next;
        line
    })
}

/// The numbers of the lines with these places, which come in order.
pub(crate) fn numbers_of(text: &str, places: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut number = 1;
    let mut counted = 0;
    places
        .map(|place| {
            number += text[counted..place].matches('\n').count();
            counted = place;
            number
        })
        .collect()
}

/// Numbers in words, not too many of them, and each once.
pub(crate) fn numbers(numbers: &[usize]) -> String {
    const SHOWN: usize = 10;
    let mut numbers = numbers.to_vec();
    numbers.dedup();
    let shown: Vec<String> = numbers.iter().take(SHOWN).map(ToString::to_string).collect();
    match (shown.split_last(), numbers.len().saturating_sub(SHOWN)) {
        (Some((last, [])), 0) => last.clone(),
        (Some((last, before)), 0) => format!("{} and {last}", before.join(", ")),
        (_, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_where_they_are() {
        let found: Vec<_> = lines("a\r\n\nbc\r").collect();
        let expected = [(0, "a", 3), (3, "", 4), (4, "bc\r", 7)].map(|(start, body, next)| Line {
            start,
            body,
            next,
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_are_counted_and_told() {
        assert_eq!(numbers_of("a\nb\n\nc", [0, 2, 2, 5].into_iter()), [1, 2, 2, 4]);
        assert_eq!(numbers(&[1]), "1");
        assert_eq!(numbers(&[1, 1, 2]), "1 and 2");
        assert_eq!(numbers(&[1, 2, 3]), "1, 2 and 3");
        assert_eq!(
            numbers(&(1..=12).collect::<Vec<_>>()),
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more"
        );
    }
}
