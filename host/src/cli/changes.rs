//! Changes of files for the person who decides on them: what is risky first, then every line that changes.

use std::io::Write as _;

use console::style;

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
    /// Lines without an indent.
    pub(super) text: String,
    /// The whole diff, where it was cut. It is there until this is dropped.
    _whole: Option<tempfile::NamedTempFile>,
}

/// What a tool wants to do, in a few words for a headline.
pub(super) fn headline(changes: &Changes) -> String {
    match changes.iter().collect::<Vec<_>>().as_slice() {
        [only] => shown::line(&only.to_string(), 400),
        _ => counts(changes),
    }
}

/// Everything there is to know.
pub(super) fn describe(changes: &Changes) -> Described {
    let mut lines: Vec<String> = risks(changes).into_iter().map(|risk| style(risk).yellow().for_stderr().to_string()).collect();
    if changes.len() > 1 {
        lines.extend(changes.iter().take(MOST_LINES).map(|change| shown::line(&change.to_string(), MOST_CHARS)));
        if changes.len() > MOST_LINES {
            lines.push(format!("… and {} more", changes.len() - MOST_LINES));
        }
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    let diff = diffs(changes);
    let diff_lines: Vec<&str> = diff.lines().collect();
    let mut whole = None;
    if diff_lines.len() <= MOST_LINES {
        lines.extend(diff_lines.iter().map(|line| coloured(line)));
    } else {
        let head = MOST_LINES - TAIL_LINES;
        lines.extend(diff_lines[..head].iter().map(|line| coloured(line)));
        let left_out = diff_lines.len() - MOST_LINES;
        whole = save(&changes.diff());
        let place = whole.as_ref().map_or(String::new(), |file| format!("; the whole is in {}", file.path().display()));
        lines.push(style(format!("… {left_out} of {} lines left out{place} …", diff_lines.len())).bold().for_stderr().to_string());
        lines.extend(diff_lines[diff_lines.len() - TAIL_LINES..].iter().map(|line| coloured(line)));
    }
    Described { text: lines.join("\n"), _whole: whole }
}

/// What somebody may overlook among many lines.
fn risks(changes: &Changes) -> Vec<String> {
    let named = |what: &str, is: &dyn Fn(&Change) -> bool| {
        let paths: Vec<String> = changes.iter().filter(|change| is(change)).map(|change| shown::line(change.path.as_str(), 100)).collect();
        let more = if paths.len() > MOST_NAMED { format!(" and {} more", paths.len() - MOST_NAMED) } else { String::new() };
        let some = paths.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
        (!paths.is_empty()).then(|| format!("! {what}: {some}{more}"))
    };
    let is_run = |change: &Change| {
        let path = change.path.as_str();
        path.split('/').any(|part| part.eq_ignore_ascii_case(".github") || part.eq_ignore_ascii_case(".gitlab-ci.yml"))
    };
    let no_text = |change: &Change| change.diff.is_none() && matches!(change.act, Act::Create { .. } | Act::Modify { .. });
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

fn diffs(changes: &Changes) -> String {
    let texts: String = changes.iter().filter_map(|change| change.diff.as_deref()).collect();
    shown::block(&texts)
}

fn coloured(line: &str) -> String {
    let cut: String = line.chars().take(MOST_CHARS).collect();
    let cut = if cut.len() < line.len() { format!("{cut}…") } else { cut };
    let styled = match line.chars().next() {
        Some('+') => style(cut).green(),
        Some('-') => style(cut).red(),
        _ => style(cut).dim(),
    };
    styled.for_stderr().to_string()
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
    use super::*;
    use crate::policy::{Content, WorkspacePath};

    fn change(path: &str, act: Act, diff: Option<&str>) -> Change {
        Change { path: WorkspacePath::parse(path, None).unwrap(), act, diff: diff.map(str::to_owned) }
    }

    fn after(size: u64) -> Content {
        Content { size, digest: String::new() }
    }

    fn plain(changes: Vec<Change>) -> String {
        console::strip_ansi_codes(&describe(&Changes::new(changes)).text).into_owned()
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
    fn a_long_diff_is_cut_in_the_middle_and_whole_in_a_file() {
        let diff: String = (0..500).map(|n| format!("+line {n}\n")).collect();
        let described = describe(&Changes::new(vec![change("a", Act::Create { after: after(1) }, Some(&diff))]));
        let text = console::strip_ansi_codes(&described.text).into_owned();
        assert!(text.contains("… 340 of 500 lines left out; the whole is in "), "{text}");
        assert!(text.starts_with("+line 0\n") && text.ends_with("+line 499"));
        let file = described._whole.as_ref().expect("it is kept");
        assert_eq!(std::fs::read_to_string(file.path()).expect("it is there"), diff);
    }
}
