//! A change as a unified diff, for the user.

use std::fmt::Write as _;
use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};

/// Lines around a change.
const CONTEXT: usize = 3;
/// A view is looked at; the file is there for the rest.
const MAX_LINES: usize = 500;
/// In characters.
const MAX_LINE: usize = 500;
/// Of the part from the first change to the last, old and new; what is longer gets no diff, for the
/// memory that it takes.
const MAX_BYTES: usize = 2 << 20;
/// What a hard one may take. It then says more than is needed, never something wrong.
const MAX_TIME: Duration = Duration::from_millis(500);

pub(crate) fn of_change(path: &str, before: &str, after: &str) -> String {
    let mut out = format!("--- a/{path}\n+++ b/{path}\n");
    let (start, old, new) = changed(before, after, CONTEXT);
    if old.len() + new.len() > MAX_BYTES {
        out.push_str("… too many changes to show\n");
        return out;
    }
    let skipped = before[..start].matches('\n').count();
    let diff =
        TextDiff::configure().algorithm(Algorithm::Myers).timeout(MAX_TIME).diff_lines(old, new);
    let mut lines = 0_usize;
    for group in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let old = range(skipped, first.old_range().start, last.old_range().end);
        let new = range(skipped, first.new_range().start, last.new_range().end);
        if lines < MAX_LINES {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "@@ -{old} +{new} @@");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            lines += 1;
            if lines > MAX_LINES {
                continue;
            }
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let value = change.value();
            let body = value.strip_suffix('\n').unwrap_or(value);
            let body = body.strip_suffix('\r').unwrap_or(body);
            let end = body.char_indices().nth(MAX_LINE).map_or(body.len(), |(end, _)| end);
            let cut = if end < body.len() { "…" } else { "" };
            let _ = writeln!(out, "{sign}{}{cut}", &body[..end]);
            if change.missing_newline() {
                out.push_str("\\ No newline at end of file\n");
            }
        }
    }
    if lines > MAX_LINES {
        let _ = writeln!(out, "… {} more lines", lines - MAX_LINES);
    }
    out
}

/// How many lines were removed and added.
pub(crate) fn changed_lines(before: &str, after: &str) -> (usize, usize) {
    let (_, old, new) = changed(before, after, 0);
    (old.lines().count(), new.lines().count())
}

/// Leaves out the lines that both begin and end with, but for some around the change; and says
/// where it begins.
fn changed<'t>(before: &'t str, after: &'t str, context: usize) -> (usize, &'t str, &'t str) {
    let common = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let start = line_start(&before.as_bytes()[..common]);
    let rest = (before.len() - start).min(after.len() - start);
    let tail = before
        .bytes()
        .rev()
        .zip(after.bytes().rev())
        .take(rest)
        .take_while(|(a, b)| a == b)
        .count();
    // The first common line may begin in the middle of another one.
    let common = &before.as_bytes()[before.len() - tail..];
    let starts = |text: &str| text.len() == tail || text.as_bytes()[text.len() - tail - 1] == b'\n';
    let whole = starts(before) && starts(after);
    let tail = if whole {
        tail
    } else {
        common.iter().position(|&byte| byte == b'\n').map_or(0, |end| tail - end - 1)
    };

    let mut from = start;
    for _ in 0..context {
        from = line_start(&before.as_bytes()[..from.saturating_sub(1)]);
    }
    let kept: usize =
        before[before.len() - tail..].split_inclusive('\n').take(context).map(str::len).sum();
    let tail = tail - kept;
    (from, &before[from..before.len() - tail], &after[from..after.len() - tail])
}

/// Where the last line begins.
fn line_start(text: &[u8]) -> usize {
    text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
}

/// As a hunk has it: a range of no lines is named by the line before it.
fn range(skipped: usize, start: usize, end: usize) -> String {
    let count = end - start;
    let first = skipped + start + usize::from(count > 0);
    format!("{first},{count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, after: &str) -> String {
        match of_change("f", before, after).strip_prefix("--- a/f\n+++ b/f\n") {
            Some(hunks) => hunks.to_owned(),
            None => panic!("no header"),
        }
    }

    #[test]
    fn r118_a_change_has_three_lines_around_it() {
        let before: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let after = before.replace("10\n", "ten\n").replace("20\n", "20");
        let expected = "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n\
                        @@ -17,4 +17,4 @@\n 17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n";
        assert_eq!(diff(&before, &after), expected);
    }

    #[test]
    fn beginnings_ends_and_repeated_lines() {
        for (before, after, expected) in [
            ("a\n", "", "@@ -1,1 +0,0 @@\n-a\n"),
            ("a\nb\n", "b\n", "@@ -1,2 +1,1 @@\n-a\n b\n"),
            ("a\na\n", "a\na\na\n", "@@ -1,2 +1,3 @@\n a\n a\n+a\n"),
            ("xa\n", "ya\n", "@@ -1,1 +1,1 @@\n-xa\n+ya\n"),
            ("a\r\nb\r\n", "a\r\nc\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
            ("é\n", "è\n", "@@ -1,1 +1,1 @@\n-é\n+è\n"),
        ] {
            assert_eq!(diff(before, after), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn lines_are_counted_without_their_surroundings() {
        assert_eq!(changed_lines("a\nb\nc\n", "a\nc\n"), (1, 0));
        assert_eq!(changed_lines("a\nb\nc\n", "a\nx\ny\nc\n"), (1, 2));
        assert_eq!(changed_lines("a\na\n", "a\na\na\n"), (0, 1));
        assert_eq!(changed_lines("ax", "bx"), (1, 1));
    }

    #[test]
    fn what_is_long_is_cut() {
        let long = "é".repeat(9999);
        assert!(diff(&long, "a").len() < 2000);
        let before = "a\n".repeat(1000);
        let cut = diff(&before, &before.replace('a', "b"));
        assert!(cut.ends_with("-a\n… 1500 more lines\n"), "{}", &cut[cut.len() - 50..]);
        let large = "a\n".repeat(MAX_BYTES / 2);
        assert_eq!(diff(&large, &large.replace('a', "b")), "… too many changes to show\n");
    }
}
