//! Changes of files for the person who decides on them: what is risky first, then every line that changes.

use std::io::Write as _;

use console::Style;

use super::pages::Line;
use crate::policy::{Act, Change, Changes};
use crate::shown;

/// Lines of a diff that are shown; of a longer one the head and the tail.
const MOST_LINES: usize = 160;
const TAIL_LINES: usize = 40;
/// Of one line.
const MOST_CHARS: usize = 400;
/// Paths that are named in one fact.
const MOST_NAMED: usize = 5;

/// Changes in words, escaped and coloured.
pub(super) struct Described {
    pub(super) lines: Vec<Line>,
    /// What somebody may overlook among many lines; it is the first of them.
    pub(super) risks: Vec<String>,
    /// What is not shown, and where it is.
    pub(super) notices: Vec<String>,
    /// All changes and the whole diff, where anything was cut. It is there until this is dropped.
    pub(super) whole: Option<tempfile::NamedTempFile>,
}

/// What a tool wants to do, in a few words for a headline.
pub(super) fn headline(changes: &Changes) -> String {
    match changes.iter().collect::<Vec<_>>().as_slice() {
        [only] => shown::name(&only.to_string(), usize::MAX),
        _ => counts(changes),
    }
}

/// Everything there is to know. What is too much to look through is cut, if all of it can be looked up in a file.
pub(super) fn describe(changes: &Changes) -> Described {
    let diff = diffs(changes);
    let diff_lines: Vec<&str> = diff.lines().collect();
    let named: Vec<String> = changes.iter().map(|change| shown::name(&change.to_string(), usize::MAX)).collect();
    let is_long = |line: &str| line.chars().count() > MOST_CHARS;
    // A single change is named by the headline, in full.
    let listed = if named.len() > 1 { &named[..] } else { &[] };
    let long = listed.iter().map(String::as_str).chain(diff_lines.iter().copied()).filter(|line| is_long(line)).count();
    let is_too_much = diff_lines.len() > MOST_LINES || listed.len() > MOST_LINES || long > 0;
    let whole = if is_too_much { save(&format!("{}\n\n{diff}", named.join("\n"))) } else { None };
    let most = if whole.is_some() { MOST_LINES } else { usize::MAX };
    let cut = |line: &str| if whole.is_some() { cut(line) } else { line.to_owned() };

    let risks = risks(changes);
    let mut lines: Vec<Line> = risks.iter().map(|risk| Line::styled(risk, Style::new().yellow())).collect();
    lines.extend(listed.iter().take(most).map(|line| Line::plain(cut(line))));
    if listed.len() > most {
        lines.push(Line::left_out(format!("{} of {} changes left out", listed.len() - most, listed.len())));
    }
    if !lines.is_empty() {
        lines.push(Line::plain(""));
    }
    let head = if diff_lines.len() > most { most - TAIL_LINES } else { diff_lines.len() };
    let left_out = diff_lines.len().saturating_sub(most);
    lines.extend(diff_lines[..head].iter().map(|line| coloured(&cut(line))));
    if left_out > 0 {
        lines.push(Line::left_out(format!("{left_out} of {} lines left out", diff_lines.len())));
    }
    lines.extend(diff_lines[head + left_out..].iter().map(|line| coloured(&cut(line))));

    let mut notices = Vec::new();
    if let Some(file) = &whole {
        notices.push(format!(
            "! Not all of it is shown above; all of it is in {}",
            shown::name(&file.path().display().to_string(), usize::MAX)
        ));
        let facts = [(left_out, "lines of the diff"), (listed.len().saturating_sub(most), "changes"), (long, "ends of long lines")];
        let facts: Vec<String> = facts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        notices.push(format!("! Not shown: {}", facts.join(", ")));
    }
    if changes.iter().filter_map(|change| change.diff.as_deref()).any(ends_in_cr_lf) {
        notices.push("! All lines that are shown of a file end in CR LF.".to_owned());
    }
    Described { lines, risks, notices, whole }
}

/// What somebody may overlook among many lines.
fn risks(changes: &Changes) -> Vec<String> {
    let named = |what: &str, is: &dyn Fn(&Change) -> bool| {
        let paths: Vec<String> = changes.iter().filter(|change| is(change)).map(|change| shown::name(change.path.as_str(), 100)).collect();
        let more = if paths.len() > MOST_NAMED { format!(" and {} more", paths.len() - MOST_NAMED) } else { String::new() };
        let some = paths.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
        (!paths.is_empty()).then(|| format!("! {what}: {some}{more}"))
    };
    let is_run = |change: &Change| {
        let path = change.path.as_str();
        path.split('/').any(|part| part.eq_ignore_ascii_case(".github") || part.eq_ignore_ascii_case(".gitlab-ci.yml"))
    };
    let no_text =
        |change: &Change| change.diff.is_none() && matches!(change.act, Act::Create { .. } | Act::Modify { .. } | Act::Move { .. });
    [
        named("deletes", &|change| matches!(change.act, Act::Delete { .. } | Act::RemoveDirectory | Act::Unlink)),
        named("makes links", &|change| matches!(change.act, Act::Link { .. })),
        named("changes what your forge runs", &is_run),
        named("is no text, or too large to show", &no_text),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// All of them, each line with its sign on a line of its own.
fn diffs(changes: &Changes) -> String {
    let mut text = String::new();
    for diff in changes.iter().filter_map(|change| change.diff.as_deref()) {
        let shows_ends = has_two_kinds_of_ends(diff);
        for line in diff.split_terminator('\n') {
            // What ends all lines alike is no news, and would be in the way.
            let line = if shows_ends { line } else { line.strip_suffix('\r').unwrap_or(line) };
            // Of a line that is as it was, a blank at its end is no news.
            let line = if line.starts_with(' ') { line.trim_end_matches(' ') } else { line };
            text.push_str(&shown::exact(line));
            text.push('\n');
        }
    }
    text
}

/// Whether some lines of a diff end in CR LF and others in LF alone: then that may be what changes.
fn has_two_kinds_of_ends(diff: &str) -> bool {
    let lines: Vec<&str> = diff.split_terminator('\n').collect();
    let has_end = |number: usize| !lines.get(number + 1).is_some_and(|next| next.starts_with('\\'));
    let with_ends = lines.iter().enumerate().skip(2).filter(|(number, line)| line.starts_with([' ', '+', '-']) && has_end(*number));
    let mut kinds = with_ends.map(|(_, line)| line.ends_with('\r'));
    kinds.next().is_some_and(|first| kinds.any(|other| other != first))
}

/// Whether all lines of a diff end in CR LF, which is not shown then.
fn ends_in_cr_lf(diff: &str) -> bool {
    let mut lines = diff.split_terminator('\n').skip(2).filter(|line| line.starts_with([' ', '+', '-']));
    lines.any(|line| line.ends_with('\r')) && !has_two_kinds_of_ends(diff)
}

fn cut(line: &str) -> String {
    let cut: String = line.chars().take(MOST_CHARS).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}

fn coloured(line: &str) -> Line {
    let style = match line.chars().next() {
        Some('+') => Style::new().green(),
        Some('-') => Style::new().red(),
        _ => Style::new().dim(),
    };
    Line::styled(line, style)
}

/// For this user alone; `None` where there is no room for it.
fn save(diff: &str) -> Option<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("cofferdam-").suffix(".diff").tempfile().ok()?;
    file.write_all(diff.as_bytes()).ok()?;
    Some(file)
}

fn counts(changes: &Changes) -> String {
    let count = |is: &dyn Fn(&Act) -> bool| changes.iter().filter(|change| is(&change.act)).count();
    let words = [
        (count(&|act| matches!(act, Act::Delete { .. } | Act::RemoveDirectory | Act::Unlink)), "delete"),
        (count(&|act| matches!(act, Act::Move { .. })), "move"),
        (count(&|act| matches!(act, Act::Modify { .. })), "change"),
        (count(&|act| matches!(act, Act::Create { .. } | Act::CreateDirectory | Act::Link { .. })), "create"),
    ];
    let words: Vec<String> = words.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{word} {count}")).collect();
    format!("{} ({} paths)", words.join(", "), changes.len())
}

#[cfg(test)]
mod tests {
    use super::super::pages::Pages;
    use super::*;
    use crate::policy::{Content, WorkspacePath};

    fn change(path: &str, act: Act, diff: Option<&str>) -> Change {
        Change { path: WorkspacePath::parse(path, None).unwrap(), act, diff: diff.map(str::to_owned) }
    }

    fn after(size: u64) -> Content {
        Content { size, digest: String::new() }
    }

    fn plain(changes: Vec<Change>) -> String {
        text(describe(&Changes::new(changes)))
    }

    /// On a screen that is large enough.
    fn text(described: Described) -> String {
        let pages = Pages { lines: described.lines, notices: described.notices, ..Pages::default() };
        let pages = pages.laid_out((600, 1000)).concat();
        console::strip_ansi_codes(&pages)
            .lines()
            .map(|line| line.strip_prefix("    ").unwrap_or(line))
            .collect::<Vec<_>>()
            .join("\n")
            .trim()
            .to_owned()
    }

    #[test]
    fn what_is_risky_comes_first() {
        let changes = vec![
            change("a.rs", Act::Modify { before: 2, after: after(4) }, Some("--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-a\n+\u{1b}[2Jb\n")),
            change("old.rs", Act::Delete { before: 5 }, None),
            change(".github/workflows/ci.yml", Act::Create { after: after(1) }, None),
        ];
        assert_eq!(headline(&Changes::new(changes.clone())), "delete 1, change 1, create 1 (3 paths)");
        insta::assert_snapshot!(plain(changes), @r"
        ! deletes: old.rs
        ! changes what your forge runs: .github/workflows/ci.yml
        ! is no text, or too large to show: .github/workflows/ci.yml
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
    fn ends_of_lines_are_shown_where_they_differ_and_hide_nothing() {
        let shown = |diff: &str| diffs(&Changes::new(vec![change("a", Act::Modify { before: 2, after: after(4) }, Some(diff))]));
        let head = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n";
        let alike = format!("{head} a\r\n-b\r\n+c\n\\ No newline at end of file\n");
        assert_eq!(shown(&alike), format!("{head} a\n-b\n+c\n\\ No newline at end of file\n"));
        assert_eq!(shown(&format!("{head}-a\n-b\n+a\r\n+b\r\n")), format!("{head}-a\n-b\n+a\\u{{d}}\n+b\\u{{d}}\n"));
        assert_eq!(shown(&format!("{head} a\r\n+b\n")), format!("{head} a\\u{{d}}\n+b\n"));
        assert_eq!(shown(&format!("{head} # keep\r+b = 2\n")), format!("{head} # keep\\u{{d}}+b = 2\n"));
        let note = |diff: &str| plain(vec![change("a", Act::Create { after: after(1) }, Some(diff))]).contains("end in CR LF");
        assert!(note(&alike) && !note(&format!("{head} a\n+b\n")) && !note(&format!("{head} a\r\n+b\n")));
        assert_eq!(shown(&format!("{head} a  \n+b  \n")), format!("{head} a\n+b\\u{{20}}\\u{{20}}\n"));
        // One diff ends where the next one begins, whatever it ends with.
        let two = ["+a\r", "+b"].map(|end| change("a", Act::Create { after: after(1) }, Some(&format!("--- /dev/null\n+++ b/a\n{end}"))));
        assert_eq!(diffs(&Changes::new(two.into())).lines().filter(|line| line.starts_with("---")).count(), 2);
    }

    fn whole(described: &Described) -> String {
        std::fs::read_to_string(described.whole.as_ref().expect("it is kept").path()).expect("it is there")
    }

    #[test]
    fn r042_whatever_is_cut_is_whole_in_a_file() {
        let long = format!("+{}the end\n", "x".repeat(1000));
        let described = describe(&Changes::new(vec![change("a", Act::Create { after: after(1) }, Some(&long))]));
        assert!(whole(&described).contains("the end"));
        let text = self::text(described);
        assert!(!text.contains("the end") && text.contains("! Not all of it is shown above; all of it is in /"), "{text}");
        assert!(text.ends_with("! Not shown: 1 ends of long lines"), "{text}");
        let many = (0..200).map(|n| change(&format!("f{n:03}"), Act::Create { after: after(1) }, None)).collect();
        let described = describe(&Changes::new(many));
        assert!(whole(&described).contains("create f199 (1 bytes)\n"));
        let text = self::text(described);
        assert!(
            !text.contains("f199") && text.contains("⋮ 40 of 200 changes left out") && text.ends_with("! Not shown: 40 changes"),
            "{text}"
        );
        let name = format!("{}/end", "n".repeat(250).as_str());
        let path = format!("{name}/{name}");
        let long = change(&path, Act::Delete { before: 1 }, None);
        assert!(headline(&Changes::new(vec![long.clone()])).contains(&path));
        let described = describe(&Changes::new(vec![long, change("b", Act::Delete { before: 1 }, None)]));
        assert!(whole(&described).contains(&path));
    }

    #[test]
    fn what_cannot_be_shown_is_told_of_moves_too() {
        let from = WorkspacePath::parse("old", None).unwrap();
        let changes = vec![change("new", Act::Move { from, after: after(3) }, None)];
        insta::assert_snapshot!(plain(changes), @"! is no text, or too large to show: new");
    }

    #[test]
    fn a_long_diff_is_cut_in_the_middle_and_whole_in_a_file() {
        let diff: String = (0..500).map(|n| format!("+line {n}\n")).collect();
        let described = describe(&Changes::new(vec![change("a", Act::Create { after: after(1) }, Some(&diff))]));
        assert_eq!(whole(&described), format!("create a (1 bytes)\n\n{diff}"));
        let text = text(described);
        assert!(text.starts_with("+line 0\n") && text.contains("⋮ 340 of 500 lines left out\n+line 460\n"), "{text}");
        // What is not shown is said last, right above the answers.
        let (_, end) = text.split_once("+line 499\n\n").expect("the last line");
        assert!(
            end.starts_with("  ! Not all of it is shown above; all of it is in /") && end.ends_with("! Not shown: 340 lines of the diff"),
            "{end}"
        );
    }
}
