//! Compares two file contents for the user: text as a unified diff, anything else only by its size.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use similar::TextDiff;

/// The largest content that is compared, in bytes per side. Nobody reads a longer diff.
pub(super) const MAX_COMPARED_BYTES: u64 = 1 << 20;
/// The time for an exact diff. A diff that takes longer has coarser hunks.
const DIFF_TIMEOUT: Duration = Duration::from_millis(300);
const CONTEXT_LINES: usize = 3;

/// Returns a diff as `git diff` shows it, or `None` if one side is not text. After `until` the diff
/// has the coarsest hunks.
pub(super) fn diff(
    old: Option<(&str, &[u8])>,
    new: Option<(&str, &[u8])>,
    until: Instant,
) -> Option<String> {
    let (old_text, new_text) = (
        as_text(old.map_or(&[], |(_, bytes)| bytes))?,
        as_text(new.map_or(&[], |(_, bytes)| bytes))?,
    );
    let name = |side: Option<(&str, &[u8])>, letter: char| {
        side.map_or("/dev/null".to_owned(), |(path, _)| quote_path(&format!("{letter}/{path}")))
    };
    // An empty file or a file that only moved has no lines to show.
    let mut shown = format!("--- {}\n+++ {}\n", name(old, 'a'), name(new, 'b'));
    // Lines end only at `\n`, as in git and in the terminal. Other tools also end lines at a lone
    // `\r`; the diff shows it as part of the line.
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (old_text.split_inclusive('\n').collect(), new_text.split_inclusive('\n').collect());
    let deadline = until.min(Instant::now() + DIFF_TIMEOUT);
    let text_diff = TextDiff::configure().deadline(deadline).diff_slices(&old_lines, &new_lines);
    for hunk in text_diff.unified_diff().context_radius(CONTEXT_LINES).iter_hunks() {
        // Writing to a string cannot fail.
        let _ = writeln!(shown, "{}", hunk.header());
        for change in hunk.iter_changes() {
            let _ = write!(shown, "{}{}", change.tag(), change.value());
            if !change.value().ends_with('\n') {
                shown.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    Some(shown)
}

/// Quotes a path as git does if it contains characters that do not fit into one line.
fn quote_path(name: &str) -> String {
    if !name.contains(|c: char| c.is_control() || matches!(c, '"' | '\\')) {
        return name.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in name.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => {
                c.to_string().bytes().for_each(|byte| quoted.push_str(&format!("\\{byte:03o}")))
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn as_text(bytes: &[u8]) -> Option<&str> {
    if bytes.contains(&0) { None } else { std::str::from_utf8(bytes).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_compared_by_lines() {
        let diff = |old, new| diff(old, new, Instant::now() + DIFF_TIMEOUT);
        let shown =
            diff(Some(("f", b"a\nb\nc\n")), Some(("f", b"a\nB\nc"))).expect("both are text");
        insta::assert_snapshot!(shown, @r"
        --- a/f
        +++ b/f
        @@ -1,3 +1,3 @@
         a
        -b
        -c
        +B
        +c
        \ No newline at end of file
        ");
        let forged = "f\n@@ -1 +1 @@\n-a\n+harmless";
        assert_eq!(
            diff(None, Some((forged, b""))).as_deref(),
            Some("--- /dev/null\n+++ \"b/f\\n@@ -1 +1 @@\\n-a\\n+harmless\"\n")
        );
        assert_eq!(quote_path("b/\"\\\u{1b}ü"), r#""b/\"\\\033ü""#);
        assert_eq!(diff(None, Some(("f", b""))).as_deref(), Some("--- /dev/null\n+++ b/f\n"));
        assert_eq!(diff(Some(("f", b"a")), Some(("f", b"\0"))), None);
        assert_eq!(diff(Some(("f", b"\xff")), None), None);
    }

    #[test]
    fn a_lone_carriage_return_does_not_end_a_line() {
        let (old, new) = ("a = 1\n# keep\rb = 2\nc\n", "a = 1\n# keep\rimport os\rb = 2\nc\n");
        let shown = diff(
            Some(("f", old.as_bytes())),
            Some(("f", new.as_bytes())),
            Instant::now() + DIFF_TIMEOUT,
        )
        .expect("both are text");
        let expected = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a = 1\n-# keep\rb = 2\n+# \
            keep\rimport os\rb = 2\n c\n";
        assert_eq!(shown, expected);
        let shown =
            diff(None, Some(("f", b"a\r")), Instant::now() + DIFF_TIMEOUT).expect("it is text");
        assert!(shown.ends_with("\n+a\r\n\\ No newline at end of file\n"), "{shown:?}");
    }

    #[test]
    fn a_diff_after_its_deadline_is_complete_but_coarser() {
        let lines = |salt: u32| {
            (0..30_000u32)
                .map(|n| format!("{}\n", (n ^ salt).wrapping_mul(2_654_435_761) % 50))
                .collect::<String>()
        };
        let (old, new) = (lines(0), lines(0x5a5a));
        let began = Instant::now();
        let shown = diff(Some(("f", old.as_bytes())), Some(("f", new.as_bytes())), began)
            .expect("both are text");
        assert!(began.elapsed() < DIFF_TIMEOUT, "{:?}", began.elapsed());
        let side = |sign: char| {
            shown
                .lines()
                .skip(2)
                .filter_map(|line| {
                    line.strip_prefix(['+', '-', ' ']).filter(|_| line.starts_with([sign, ' ']))
                })
                .count()
        };
        assert!(side('-') >= 29_000 && side('+') >= 29_000);
    }
}
