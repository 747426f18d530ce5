//! One line of a file, as it is shown.

use std::ops::Range;

/// Characters of a line that are shown at most.
const SHOWN: usize = 500;
/// Of these, how many stand before the match in a line that is cut.
const BEFORE: usize = 100;
/// Bytes in which this many characters surely fit.
const fn bytes(characters: usize) -> usize {
    characters * 4
}

/// Appends a line without its ending. A long one is cut to the surroundings of the byte at `focus`.
pub(crate) fn push(out: &mut String, line: &[u8], focus: impl FnOnce(&[u8]) -> usize) {
    let line = trim(line);
    if line.len() <= SHOWN {
        out.push_str(&String::from_utf8_lossy(line));
        return;
    }
    if line.len() <= bytes(SHOWN) {
        let text = String::from_utf8_lossy(line);
        if text.chars().count() <= SHOWN {
            out.push_str(&text);
            return;
        }
    }
    let focus = focus(line).min(line.len());
    let before =
        String::from_utf8_lossy(&line[boundary(line, focus.saturating_sub(bytes(BEFORE)))..focus])
            .into_owned();
    let start = before.char_indices().rev().nth(BEFORE - 1).map_or(0, |(start, _)| start);
    let before = &before[start..];
    let room = SHOWN - before.chars().count();
    let after: Range<usize> = focus..boundary(line, line.len().min(focus + bytes(room)));
    let after: String = String::from_utf8_lossy(&line[after]).chars().take(room).collect();
    if focus > before.len() {
        out.push('…');
    }
    out.push_str(before);
    out.push_str(&after);
    if focus + after.len() < line.len() {
        out.push('…');
    }
    out.push_str(&format!(" [cut from {} bytes]", line.len()));
}

pub(crate) fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The next place from `at` on where a character of UTF-8 begins.
fn boundary(line: &[u8], at: usize) -> usize {
    let inside = line[at..].iter().take(3).take_while(|&&byte| byte & 0xC0 == 0x80).count();
    at + inside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str, focus: usize) -> String {
        let mut out = String::new();
        push(&mut out, line.as_bytes(), |_| focus);
        out
    }

    #[test]
    fn a_line_loses_its_ending() {
        assert_eq!(shown("a\n", 0), "a");
        assert_eq!(shown("a\r\n", 0), "a");
        assert_eq!(shown("é\u{FFFD}", 0), "é\u{FFFD}");
    }

    #[test]
    fn a_long_line_is_cut_around_the_match() {
        let line = format!("{}NEEDLE{}", "é".repeat(1000), "ü".repeat(1000));
        let cut = format!("…{}NEEDLE{}… [cut from 4006 bytes]", "é".repeat(100), "ü".repeat(394));
        assert_eq!(shown(&line, 2000), cut);
    }

    #[test]
    fn a_long_line_is_cut_at_one_end_only_where_the_match_is_near_the_other() {
        let line = "x".repeat(501);
        assert_eq!(shown(&line, 0), format!("{}… [cut from 501 bytes]", "x".repeat(500)));
        assert_eq!(shown(&line, 500), format!("…{} [cut from 501 bytes]", "x".repeat(101)));
    }

    #[test]
    fn characters_count_and_not_bytes() {
        let line = "é".repeat(500);
        assert_eq!(shown(&line, 0), line);
    }
}
