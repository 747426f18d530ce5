//! Formats file changes for approval: risks first, then the diff.

use std::io::Write as _;

use console::Style;

use super::contents::UndiffedContents;
use super::pages::DialogPageLine;
use cofferdam::policy::{ChangeKind, ChangeSet, FileChange};
use cofferdam::terminal_escape;

/// Maximum number of diff lines shown. A longer diff is truncated in the middle.
const MAX_LINES: usize = 160;
const TAIL_LINES: usize = 40;
/// Maximum number of characters shown of one line.
const MAX_LINE_CHARS: usize = 400;
/// Maximum number of paths named in one risk.
const MAX_NAMED_PATHS: usize = 5;

/// A formatted set of changes, escaped and coloured.
pub(super) struct DescribedChanges {
    pub(super) lines: Vec<DialogPageLine>,
    /// Risks that a reader may overlook. They are also the first lines of `lines`.
    pub(super) risks: Vec<String>,
    /// Notices about omitted lines and where to find them.
    pub(super) notices: Vec<String>,
    /// The full list and diff, if anything was omitted. Dropping this deletes the file.
    pub(super) full_diff_file: Option<tempfile::NamedTempFile>,
}

/// Summarizes changes for a headline: the single change, or counts by kind.
pub(super) fn format_headline(changes: &ChangeSet) -> String {
    match changes.iter().collect::<Vec<_>>().as_slice() {
        [only] => terminal_escape::escape_name(&only.to_string(), usize::MAX),
        _ => describe_counts(changes),
    }
}

/// Formats all changes. Long parts are truncated only if the full text could be saved to a file.
pub(super) fn describe(changes: &ChangeSet) -> DescribedChanges {
    let diffs = full_diff(changes);
    let contents = UndiffedContents::read(changes);
    let diff = format!("{diffs}{}", contents.text);
    let diff_lines: Vec<&str> = diff.lines().collect();
    let named: Vec<String> = changes
        .iter()
        .map(|change| terminal_escape::escape_name(&change.to_string(), usize::MAX))
        .collect();
    let is_long = |line: &str| line.chars().count() > MAX_LINE_CHARS;
    // A single change is named by the headline, in full.
    let listed = if named.len() > 1 { &named[..] } else { &[] };
    let long = listed
        .iter()
        .map(String::as_str)
        .chain(diff_lines.iter().copied())
        .filter(|line| is_long(line))
        .count();
    let is_too_much = diff_lines.len() > MAX_LINES
        || listed.len() > MAX_LINES
        || long > 0
        || contents.bytes_left_out > 0;
    let diff_file = if is_too_much {
        save_diff(&format!("{}\n\n{diffs}", named.join("\n")), changes)
    } else {
        None
    };
    let max_lines = if diff_file.is_some() { MAX_LINES } else { usize::MAX };
    let cut = |line: &str| if diff_file.is_some() { truncate_line(line) } else { line.to_owned() };

    let risks: Vec<String> =
        changes.risks().map(|(risk, of)| name_paths(risk.describe(), &of)).collect();
    let mut lines: Vec<DialogPageLine> =
        risks.iter().map(|risk| DialogPageLine::styled(risk, Style::new().yellow())).collect();
    lines.extend(listed.iter().take(max_lines).map(|line| DialogPageLine::plain(cut(line))));
    if listed.len() > max_lines {
        lines.push(DialogPageLine::omission(format!(
            "{} of {} changes omitted",
            listed.len() - max_lines,
            listed.len()
        )));
    }
    if !lines.is_empty() {
        lines.push(DialogPageLine::plain(""));
    }
    let head = if diff_lines.len() > max_lines { max_lines - TAIL_LINES } else { diff_lines.len() };
    let left_out = diff_lines.len().saturating_sub(max_lines);
    lines.extend(diff_lines[..head].iter().map(|line| styled_line(&cut(line))));
    if left_out > 0 {
        lines.push(DialogPageLine::omission(format!(
            "{left_out} of {} lines omitted",
            diff_lines.len()
        )));
    }
    lines.extend(diff_lines[head + left_out..].iter().map(|line| styled_line(&cut(line))));

    let mut notices = Vec::new();
    if let Some(file) = &diff_file {
        notices.push(format!(
            "! The change is not shown completely; the whole change is in {}",
            terminal_escape::escape_name(&file.path().display().to_string(), usize::MAX)
        ));
        let bytes = usize::try_from(contents.bytes_left_out).unwrap_or(usize::MAX);
        let facts = [
            (left_out, "lines of the diff"),
            (bytes, "bytes of new contents"),
            (listed.len().saturating_sub(max_lines), "changes"),
            (long, "ends of long lines"),
        ];
        let facts: Vec<String> = facts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        notices.push(format!("! Not shown: {}", facts.join(", ")));
    } else if contents.bytes_left_out > 0 {
        notices.push(format!(
            "! Not shown: {} bytes of new contents (cannot write them to a temporary file)",
            contents.bytes_left_out
        ));
    }
    let has_crlf = |change: &&FileChange| change.diff.as_deref().is_some_and(has_crlf_line_endings);
    let with_crlf: Vec<_> = changes.iter().filter(has_crlf).collect();
    if !with_crlf.is_empty() {
        notices.push(name_paths("all lines shown use CRLF line endings", &with_crlf));
    }
    DescribedChanges { lines, risks, notices, full_diff_file: diff_file }
}

/// Returns a line with the paths of these changes.
fn name_paths(what: &str, of: &[&FileChange]) -> String {
    let some: Vec<String> = of
        .iter()
        .take(MAX_NAMED_PATHS)
        .map(|change| terminal_escape::escape_name(change.path.as_str(), 100))
        .collect();
    let more = match of.len().checked_sub(MAX_NAMED_PATHS) {
        Some(more @ 1..) => format!(" and {more} more"),
        Some(0) | None => String::new(),
    };
    format!("! {what}: {}{more}", some.join(", "))
}

/// Concatenates all diffs, escaped. A CR at a line end is omitted if all lines have one.
pub(super) fn full_diff(changes: &ChangeSet) -> String {
    let mut text = String::new();
    for diff in changes.iter().filter_map(|change| change.diff.as_deref()) {
        let shows_ends = has_mixed_line_endings(diff);
        for line in diff.split_terminator('\n') {
            // What ends all lines alike is no news, and would be in the way.
            let line = if shows_ends { line } else { line.strip_suffix('\r').unwrap_or(line) };
            // Of a line that is as it was, a blank at its end is no news.
            let line = if line.starts_with(' ') { line.trim_end_matches(' ') } else { line };
            text.push_str(&terminal_escape::escape_exact(line));
            text.push('\n');
        }
    }
    text
}

/// Returns whether a diff mixes CR LF and LF, in which case line endings may be the change.
fn has_mixed_line_endings(diff: &str) -> bool {
    let lines: Vec<&str> = diff.split_terminator('\n').collect();
    let has_end = |number: usize| !lines.get(number + 1).is_some_and(|next| next.starts_with('\\'));
    let with_ends = lines
        .iter()
        .enumerate()
        .skip(2)
        .filter(|(number, line)| line.starts_with([' ', '+', '-']) && has_end(*number));
    let mut kinds = with_ends.map(|(_, line)| line.ends_with('\r'));
    kinds.next().is_some_and(|first| kinds.any(|other| other != first))
}

/// Returns whether all lines of a diff end in CR LF, in which case the CR is not shown.
fn has_crlf_line_endings(diff: &str) -> bool {
    let mut lines =
        diff.split_terminator('\n').skip(2).filter(|line| line.starts_with([' ', '+', '-']));
    lines.any(|line| line.ends_with('\r')) && !has_mixed_line_endings(diff)
}

fn truncate_line(line: &str) -> String {
    let cut: String = line.chars().take(MAX_LINE_CHARS).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}

fn styled_line(line: &str) -> DialogPageLine {
    DialogPageLine::styled(line, line_style(line))
}

/// Returns the style of a line of a diff.
pub(super) fn line_style(line: &str) -> Style {
    match line.chars().next() {
        Some('+') => Style::new().green(),
        Some('-') => Style::new().red(),
        _ => Style::new().dim(),
    }
}

/// For this user alone; `None` where there is no room for it.
fn save_diff(diff: &str, changes: &ChangeSet) -> Option<tempfile::NamedTempFile> {
    let file = tempfile::Builder::new().prefix("cofferdam-").suffix(".diff").tempfile().ok()?;
    let mut writer = std::io::BufWriter::new(&file);
    writer.write_all(diff.as_bytes()).ok()?;
    UndiffedContents::write_all(changes, &mut writer).ok()?;
    writer.flush().ok()?;
    drop(writer);
    Some(file)
}

fn describe_counts(changes: &ChangeSet) -> String {
    let count =
        |is: &dyn Fn(&ChangeKind) -> bool| changes.iter().filter(|change| is(&change.kind)).count();
    let words = [
        (
            count(&|act| {
                matches!(
                    act,
                    ChangeKind::Delete { .. } | ChangeKind::RemoveDirectory | ChangeKind::Unlink
                )
            }),
            "delete",
        ),
        (count(&|act| matches!(act, ChangeKind::Move { .. })), "move"),
        (count(&|act| matches!(act, ChangeKind::Modify { .. })), "change"),
        (count(&|act| matches!(act, ChangeKind::SetMode { .. })), "set permissions of"),
        (
            count(&|act| {
                matches!(
                    act,
                    ChangeKind::Create { .. }
                        | ChangeKind::CreateDirectory
                        | ChangeKind::Link { .. }
                )
            }),
            "create",
        ),
    ];
    let words: Vec<String> = words
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{word} {count}"))
        .collect();
    format!("{} ({} paths)", words.join(", "), changes.len())
}

#[cfg(test)]
mod tests {
    use super::super::pages::{PagedText, whole_page};
    use super::super::wrap::TerminalSize;
    use super::*;
    use cofferdam::policy::{ContentDigest, WorkspacePath};

    fn test_change(path: &str, act: ChangeKind, diff: Option<&str>) -> FileChange {
        FileChange {
            path: WorkspacePath::parse(path, None).unwrap(),
            kind: act,
            diff: diff.map(str::to_owned),
        }
    }

    fn content_of_size(size: u64) -> ContentDigest {
        ContentDigest { size, digest: String::new() }
    }

    fn plain_text(changes: Vec<FileChange>) -> String {
        rendered_text(describe(&ChangeSet::new(changes)))
    }

    /// Renders on a screen that fits everything.
    fn rendered_text(described: DescribedChanges) -> String {
        let pages = PagedText {
            lines: described.lines,
            notices: described.notices,
            ..PagedText::default()
        };
        whole_page(&pages, TerminalSize { columns: 600, rows: 1000 })
            .lines()
            .map(|line| line.strip_prefix("    ").unwrap_or(line))
            .collect::<Vec<_>>()
            .join("\n")
            .trim()
            .to_owned()
    }

    #[test]
    fn risks_are_listed_first() {
        let changes = vec![
            test_change(
                "a.rs",
                ChangeKind::Modify { before: 2, after: content_of_size(4) },
                Some("--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-a\n+\u{1b}[2Jb\n"),
            ),
            test_change("old.rs", ChangeKind::Delete { before: 5 }, None),
            test_change(
                ".github/workflows/ci.yml",
                ChangeKind::Create { after: content_of_size(1) },
                None,
            ),
        ];
        assert_eq!(
            format_headline(&ChangeSet::new(changes.clone())),
            "delete 1, change 1, create 1 (3 paths)"
        );
        insta::assert_snapshot!(plain_text(changes), @r"
        ! deletes: old.rs
        ! changes files that programs run code from: .github/workflows/ci.yml
        ! not text, or too large for a diff: .github/workflows/ci.yml
        create .github/workflows/ci.yml (1 bytes)
        change a.rs (2 → 4 bytes)
        delete old.rs (5 bytes)

        --- a/a.rs
        +++ b/a.rs
        @@ -1 +1 @@
        -a
        +\u{1b}[2Jb
        ");
    }

    #[test]
    fn line_endings_are_shown_if_they_differ() {
        let shown = |diff: &str| {
            full_diff(&ChangeSet::new(vec![test_change(
                "a",
                ChangeKind::Modify { before: 2, after: content_of_size(4) },
                Some(diff),
            )]))
        };
        let head = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n";
        let alike = format!("{head} a\r\n-b\r\n+c\n\\ No newline at end of file\n");
        assert_eq!(shown(&alike), format!("{head} a\n-b\n+c\n\\ No newline at end of file\n"));
        assert_eq!(
            shown(&format!("{head}-a\n-b\n+a\r\n+b\r\n")),
            format!("{head}-a\n-b\n+a\\u{{d}}\n+b\\u{{d}}\n")
        );
        assert_eq!(shown(&format!("{head} a\r\n+b\n")), format!("{head} a\\u{{d}}\n+b\n"));
        assert_eq!(
            shown(&format!("{head} # keep\r+b = 2\n")),
            format!("{head} # keep\\u{{d}}+b = 2\n")
        );
        let note = |diff: &str| {
            plain_text(vec![test_change(
                "a",
                ChangeKind::Create { after: content_of_size(1) },
                Some(diff),
            )])
            .contains("all lines shown use CRLF line endings: ")
        };
        assert!(
            note(&alike)
                && !note(&format!("{head} a\n+b\n"))
                && !note(&format!("{head} a\r\n+b\n"))
        );
        assert_eq!(
            shown(&format!("{head} a  \n+b  \n")),
            format!("{head} a\n+b\\u{{20}}\\u{{20}}\n")
        );
        // One diff ends where the next one begins, whatever it ends with.
        let two = ["+a\r", "+b"].map(|end| {
            test_change(
                "a",
                ChangeKind::Create { after: content_of_size(1) },
                Some(&format!("--- /dev/null\n+++ b/a\n{end}")),
            )
        });
        assert_eq!(
            full_diff(&ChangeSet::new(two.into()))
                .lines()
                .filter(|line| line.starts_with("---"))
                .count(),
            2
        );
    }

    fn full_diff_text(described: &DescribedChanges) -> String {
        std::fs::read_to_string(described.full_diff_file.as_ref().expect("it is kept").path())
            .expect("read the file")
    }

    #[test]
    fn r042_a_truncated_change_is_complete_in_a_file() {
        let long = format!("+{}the end\n", "x".repeat(1000));
        let described = describe(&ChangeSet::new(vec![test_change(
            "a",
            ChangeKind::Create { after: content_of_size(1) },
            Some(&long),
        )]));
        assert!(full_diff_text(&described).contains("the end"));
        let text = self::rendered_text(described);
        assert!(
            !text.contains("the end")
                && text.contains("! The change is not shown completely; the whole change is in /"),
            "{text}"
        );
        assert!(text.ends_with("! Not shown: 1 ends of long lines"), "{text}");
        let many = (0..200)
            .map(|n| {
                test_change(
                    &format!("f{n:03}"),
                    ChangeKind::Create { after: content_of_size(1) },
                    None,
                )
            })
            .collect();
        let described = describe(&ChangeSet::new(many));
        assert!(full_diff_text(&described).contains("create f199 (1 bytes)\n"));
        let text = self::rendered_text(described);
        assert!(
            !text.contains("f199")
                && text.contains("⋮ 40 of 200 changes omitted")
                && text.ends_with("! Not shown: 40 changes"),
            "{text}"
        );
        let name = format!("{}/end", "n".repeat(250).as_str());
        let path = format!("{name}/{name}");
        let long = test_change(&path, ChangeKind::Delete { before: 1 }, None);
        assert!(format_headline(&ChangeSet::new(vec![long.clone()])).contains(&path));
        let described = describe(&ChangeSet::new(vec![
            long,
            test_change("b", ChangeKind::Delete { before: 1 }, None),
        ]));
        assert!(full_diff_text(&described).contains(&path));
    }

    #[test]
    fn moves_without_a_diff_are_reported() {
        let from = WorkspacePath::parse("old", None).unwrap();
        let changes =
            vec![test_change("new", ChangeKind::Move { from, after: content_of_size(3) }, None)];
        insta::assert_snapshot!(plain_text(changes), @"! not text, or too large for a diff: new");
    }

    #[test]
    fn a_long_diff_is_truncated_in_the_middle_and_complete_in_a_file() {
        let diff: String = (0..500).map(|n| format!("+line {n}\n")).collect();
        let described = describe(&ChangeSet::new(vec![test_change(
            "a",
            ChangeKind::Create { after: content_of_size(1) },
            Some(&diff),
        )]));
        assert_eq!(full_diff_text(&described), format!("create a (1 bytes)\n\n{diff}"));
        let text = rendered_text(described);
        assert!(
            text.starts_with("+line 0\n")
                && text.contains("⋮ 340 of 500 lines omitted\n+line 460\n"),
            "{text}"
        );
        // What is not shown is said last, right above the answers.
        let (_, end) = text.split_once("+line 499\n\n").expect("the last line");
        assert!(
            end.starts_with("  ! The change is not shown completely; the whole change is in /")
                && end.ends_with("! Not shown: 340 lines of the diff"),
            "{end}"
        );
    }
}
