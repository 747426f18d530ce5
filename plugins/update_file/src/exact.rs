//! Where a text is in another, letter by letter.

use std::borrow::Cow;
use std::ops::Range;

use crate::endings;

/// Where `old` is, in the first of its spellings that is there at all. In order, and without
/// overlaps.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found<'o> {
    pub(crate) places: Vec<Range<usize>>,
    /// `old` with the line endings that were found.
    pub(crate) spelling: Cow<'o, str>,
    /// With a single place: whether `old` is there a second time, overlapping the first.
    pub(crate) overlaps: bool,
}

/// Looks for `old` as it stands, then with the other kind of line endings.
pub(crate) fn find<'o>(text: &str, old: &'o str) -> Option<Found<'o>> {
    let spellings = [Cow::Borrowed(old), endings::to_crlf(old), endings::to_lf(old)];
    spellings.into_iter().find_map(|spelling| {
        let places: Vec<_> = text
            .match_indices(spelling.as_ref())
            .map(|(start, found)| start..start + found.len())
            .filter(|place| {
                !endings::is_inside(text, place.start) && !endings::is_inside(text, place.end)
            })
            .collect();
        let first = places.first()?;
        let step = spelling.chars().next().map_or(1, char::len_utf8);
        let overlaps = places.len() == 1 && text[first.start + step..].contains(spelling.as_ref());
        Some(Found { places, spelling, overlaps })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str, old: &str) -> Vec<(usize, usize)> {
        find(text, old)
            .map(|found| found.places)
            .unwrap_or_default()
            .into_iter()
            .map(|place| (place.start, place.end))
            .collect()
    }

    #[test]
    fn every_place_is_found_in_order() {
        assert_eq!(places("abcabc", "bc"), [(1, 3), (4, 6)]);
        assert_eq!(places("abc", "x"), []);
    }

    #[test]
    fn an_overlap_is_a_second_place() {
        assert_eq!(find("éééx", "éé").map(|found| found.overlaps), Some(true));
        assert_eq!(find("ééx", "éé").map(|found| found.overlaps), Some(false));
    }

    #[test]
    fn r118_line_endings_need_not_be_the_file_s() {
        assert_eq!(places("a\r\nb\r\n", "a\nb\n"), [(0, 6)]);
        assert_eq!(places("a\nb\n", "a\r\nb"), [(0, 3)]);
    }

    #[test]
    fn r118_a_line_ending_is_never_cut_in_two() {
        assert_eq!(places("a\r\nb", "\nb"), [(1, 4)]);
        assert_eq!(places("a\r\nb", "a\r"), []);
    }
}
