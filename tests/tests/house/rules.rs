//! Which tests carry which rule: `tests/RULES.md`, which has to agree with the names of the tests.
//!
//! A test of a rule has the rule's number for a name, as in `r050_every_call_has_one_result`, or several. After a new one,
//! or another name, `UPDATE_RULES=1 cargo test -p cofferdam-tests --test house rules` writes the table anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::sources::{collect, root};

/// Below this heading stand the rules whose part of the program is not there.
const NOT_YET: &str = "## Not yet";

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    /// Such as `R-15b`.
    rule: String,
    words: String,
    tests: BTreeSet<String>,
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq)]
enum Line {
    Row(Row),
    Other(String),
}

fn parse(line: &str) -> Line {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    match cells[..] {
        ["", rule, words, tests, ""] if rule.starts_with("R-") => Line::Row(Row {
            rule: rule.to_owned(),
            words: words.to_owned(),
            tests: tests.split(", ").filter(|name| !name.is_empty()).map(|name| name.trim_matches('`').to_owned()).collect(),
        }),
        _ => Line::Other(line.to_owned()),
    }
}

fn print(line: &Line) -> String {
    match line {
        Line::Other(text) => text.clone(),
        Line::Row(Row { rule, words, tests }) => {
            let tests: Vec<String> = tests.iter().map(|name| format!("`{name}`")).collect();
            format!("| {rule} | {words} | {} |", tests.join(", ")).replace("|  |", "| |")
        }
    }
}

/// `R-15b` of `r015b_…`, and where the name goes on.
fn number(name: &str) -> Option<(String, &str)> {
    let digits = name.strip_prefix('r')?.get(..3)?;
    let number: u32 = digits.parse().ok()?;
    let rest = &name[4..];
    let (letter, rest) = rest.strip_prefix('b').map_or(("", rest), |rest| ("b", rest));
    Some((format!("R-{number:02}{letter}"), rest.strip_prefix('_')?))
}

/// The rules in the name of a function.
fn rules(mut name: &str) -> Vec<String> {
    let mut found = Vec::new();
    while let Some((rule, rest)) = number(name) {
        found.push(rule);
        name = rest;
    }
    found
}

/// The rules that tests carry.
fn carried() -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    for folder in ["host", "plugins", "sdk", "tests"] {
        collect(&root().join(folder), &mut files);
    }
    let mut carried: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.components().any(|part| part.as_os_str() == "target")) {
        let text = fs::read_to_string(file).expect("it can be read");
        let names = text.lines().filter_map(|line| line.trim_start().trim_start_matches("async ").strip_prefix("fn "));
        for name in names.filter_map(|rest| rest.split(['(', '<']).next()) {
            for rule in rules(name) {
                carried.entry(rule).or_default().insert(name.to_owned());
            }
        }
    }
    carried
}

/// The file as it should be: each row with its tests, and none of a rule that has tests below [`NOT_YET`].
fn update(lines: &[Line], carried: &BTreeMap<String, BTreeSet<String>>) -> Vec<Line> {
    let mut after: Vec<Line> = Vec::new();
    let mut moved = Vec::new();
    let mut not_yet = false;
    for line in lines {
        not_yet |= *line == Line::Other(NOT_YET.to_owned());
        match line {
            Line::Other(_) => after.push(line.clone()),
            Line::Row(row) => {
                let row = Row { tests: carried.get(&row.rule).cloned().unwrap_or_default(), ..row.clone() };
                if not_yet && !row.tests.is_empty() { moved.push(row) } else { after.push(Line::Row(row)) }
            }
        }
    }
    for row in moved {
        let order = |line: &Line| match line {
            Line::Row(Row { rule, .. }) => Some(key(rule)),
            Line::Other(_) => None,
        };
        let end = after.iter().position(|line| *line == Line::Other(NOT_YET.to_owned())).unwrap_or(after.len());
        let before = after[..end].iter().rposition(|line| order(line).is_some_and(|at| at < key(&row.rule)));
        after.insert(before.map_or(end, |before| before + 1), Line::Row(row));
    }
    after
}

/// In the order of the numbers.
fn key(rule: &str) -> (u32, bool) {
    let digits: String = rule.chars().filter(char::is_ascii_digit).collect();
    (digits.parse().unwrap_or(u32::MAX), rule.ends_with('b'))
}

/// What is wrong with the table, in words.
fn problems(lines: &[Line], carried: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    let mut not_yet = false;
    for line in lines {
        not_yet |= *line == Line::Other(NOT_YET.to_owned());
        let Line::Row(Row { rule, tests, .. }) = line else { continue };
        let real = carried.get(rule).cloned().unwrap_or_default();
        match (not_yet, real.is_empty()) {
            (false, true) => problems.push(format!("{rule} has no test")),
            (true, false) => problems.push(format!("{rule} has tests, so that it does not belong below {NOT_YET:?}")),
            (false, false) | (true, true) if *tests != real => problems.push(format!("{rule}: the table has other tests than there are")),
            (false, false) | (true, true) => {}
        }
        if !seen.insert(rule.clone()) {
            problems.push(format!("{rule} stands twice"));
        }
    }
    problems.extend(carried.keys().filter(|rule| !seen.contains(*rule)).map(|rule| format!("{rule} has tests and stands nowhere")));
    problems
}

#[test]
fn the_table_of_rules_and_the_tests_agree() {
    let path: &Path = &root().join("tests/RULES.md");
    let text = fs::read_to_string(path).expect("it can be read");
    let mut lines: Vec<Line> = text.lines().map(parse).collect();
    let carried = carried();
    if std::env::var_os("UPDATE_RULES").is_some() {
        lines = update(&lines, &carried);
        fs::write(path, lines.iter().map(print).collect::<Vec<_>>().join("\n") + "\n").expect("it can be written");
    }
    let problems = problems(&lines, &carried);
    assert!(problems.is_empty(), "{problems:#?}\nUPDATE_RULES=1 cargo test -p cofferdam-tests --test house rules writes the table anew");
}

#[test]
fn names_of_tests_hold_one_rule_or_several() {
    let table: [(&str, &[&str]); 6] = [
        ("r050_every_call", &["R-50"]),
        ("r015b_a_read", &["R-15b"]),
        ("r005_r009_r126b_all_of_it", &["R-05", "R-09", "R-126b"]),
        ("r100_r5_short", &["R-100"]),
        ("render_it", &[]),
        ("r05_short", &[]),
    ];
    for (name, expected) in table {
        assert_eq!(rules(name), expected, "{name}");
    }
}

#[test]
fn a_table_that_disagrees_is_told_and_mended() {
    let text = "# Rules\n| R-01 | One. | `r001_old` |\n| R-03 | Three. | `r003_a` |\n\n## Not yet\n| R-02 | Two. | |\n| R-04 | Four. | |";
    let lines: Vec<Line> = text.lines().map(parse).collect();
    assert_eq!(lines.iter().map(print).collect::<Vec<_>>().join("\n"), text);
    let carried: BTreeMap<String, BTreeSet<String>> = [("R-01", "r001_new"), ("R-02", "r002_b"), ("R-03", "r003_a")]
        .map(|(rule, test)| (rule.to_owned(), BTreeSet::from([test.to_owned()])))
        .into();
    let expected = ["R-01: the table has other tests than there are", "R-02 has tests, so that it does not belong below \"## Not yet\""];
    assert_eq!(problems(&lines, &carried), expected);
    let mended = update(&lines, &carried);
    assert_eq!(problems(&mended, &carried), [""; 0]);
    assert_eq!(mended[2], parse("| R-02 | Two. | `r002_b` |"));

    let without: BTreeMap<_, _> = carried.clone().into_iter().filter(|(rule, _)| rule != "R-03").collect();
    assert!(problems(&mended, &without).contains(&"R-03 has no test".to_owned()));
    let more: BTreeMap<_, _> = carried.into_iter().chain([("R-99".to_owned(), BTreeSet::from(["r099_x".to_owned()]))]).collect();
    assert_eq!(problems(&mended, &more), ["R-99 has tests and stands nowhere"]);
}
