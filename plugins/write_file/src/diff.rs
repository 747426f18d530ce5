//! A new file as a unified diff, for the user.

use std::fmt::Write as _;

/// A view is looked at; the file is there for the rest.
const MAX_LINES: usize = 500;
/// In characters.
const MAX_LINE: usize = 500;

pub(crate) fn of_new(path: &str, content: &str) -> String {
    let mut diff = format!("--- /dev/null\n+++ b/{path}\n");
    let lines = content.lines().count();
    if lines == 0 {
        return diff;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(diff, "@@ -0,0 +1,{lines} @@");
    for line in content.lines().take(MAX_LINES) {
        let end = line.char_indices().nth(MAX_LINE).map_or(line.len(), |(end, _)| end);
        let cut = if end < line.len() { "…" } else { "" };
        let _ = writeln!(diff, "+{}{cut}", &line[..end]);
    }
    if lines > MAX_LINES {
        let _ = writeln!(diff, "… {} more lines", lines - MAX_LINES);
    } else if !content.ends_with('\n') {
        diff.push_str("\\ No newline at end of file\n");
    }
    diff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_new() {
        assert_eq!(
            of_new("d/f", "a\r\n\nb\n"),
            "--- /dev/null\n+++ b/d/f\n@@ -0,0 +1,3 @@\n+a\n+\n+b\n"
        );
        assert_eq!(
            of_new("f", "a"),
            "--- /dev/null\n+++ b/f\n@@ -0,0 +1,1 @@\n+a\n\\ No newline at end of file\n"
        );
        assert_eq!(of_new("f", ""), "--- /dev/null\n+++ b/f\n");
    }

    #[test]
    fn a_large_file_is_cut() {
        let diff = of_new("f", &format!("{}\n", "é".repeat(9999)).repeat(9999));
        assert!(diff.ends_with("é…\n… 9499 more lines\n"));
        assert!(diff.len() < 1 << 20);
    }
}
