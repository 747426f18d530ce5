//! Which tests carry which rule: `tests/RULES.md`, which has to agree with the names of the tests.
//!
//! A test of a rule has the rule's number for a name, as in `r050_every_call_has_one_result`, or
//! several. After a new one, or another name, `UPDATE_RULES=1 cargo test -p cofferdam-tests --test
//! conventions` writes the table anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::sources::{collect_files, workspace_root};

/// Below this heading stand the rules whose part of the program is not there.
const NOT_IMPLEMENTED_HEADING: &str = "## Not yet";

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
struct RuleRow {
    /// Such as `R-15b`.
    rule: String,
    description: String,
    tests: BTreeSet<String>,
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq)]
enum RulesLine {
    Row(RuleRow),
    Other(String),
}

fn parse_line(line: &str) -> RulesLine {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    match cells[..] {
        ["", rule, words, tests, ""] if rule.starts_with("R-") => RulesLine::Row(RuleRow {
            rule: rule.to_owned(),
            description: words.to_owned(),
            tests: tests
                .split(", ")
                .filter(|name| !name.is_empty())
                .map(|name| name.trim_matches('`').to_owned())
                .collect(),
        }),
        _ => RulesLine::Other(line.to_owned()),
    }
}

fn format_line(line: &RulesLine) -> String {
    match line {
        RulesLine::Other(text) => text.clone(),
        RulesLine::Row(RuleRow { rule, description: words, tests }) => {
            let tests: Vec<String> = tests.iter().map(|name| format!("`{name}`")).collect();
            format!("| {rule} | {words} | {} |", tests.join(", ")).replace("|  |", "| |")
        }
    }
}

/// `R-15b` of `r015b_…`, and where the name goes on.
fn rule_number(name: &str) -> Option<(String, &str)> {
    let digits = name.strip_prefix('r')?.get(..3)?;
    let number: u32 = digits.parse().ok()?;
    let rest = &name[4..];
    let (letter, rest) = rest.strip_prefix('b').map_or(("", rest), |rest| ("b", rest));
    Some((format!("R-{number:02}{letter}"), rest.strip_prefix('_')?))
}

/// The rules in the name of a function.
fn rules_in_name(mut name: &str) -> Vec<String> {
    let mut found = Vec::new();
    while let Some((rule, rest)) = rule_number(name) {
        found.push(rule);
        name = rest;
    }
    found
}

/// The rules that tests carry.
fn tests_by_rule() -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    for folder in ["host", "plugins", "sdk", "tests"] {
        collect_files(&workspace_root().join(folder), &mut files);
    }
    let mut carried: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in
        files.iter().filter(|file| !file.components().any(|part| part.as_os_str() == "target"))
    {
        let text = fs::read_to_string(file).expect("it can be read");
        let names = text
            .lines()
            .filter_map(|line| line.trim_start().trim_start_matches("async ").strip_prefix("fn "));
        for name in names.filter_map(|rest| rest.split(['(', '<']).next()) {
            for rule in rules_in_name(name) {
                carried.entry(rule).or_default().insert(name.to_owned());
            }
        }
    }
    carried
}

/// The file as it should be: each row with its tests, and none of a rule that has tests below
/// [`NOT_IMPLEMENTED_HEADING`].
fn update_table(
    lines: &[RulesLine],
    carried: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<RulesLine> {
    let mut after: Vec<RulesLine> = Vec::new();
    let mut moved = Vec::new();
    let mut not_yet = false;
    for line in lines {
        not_yet |= *line == RulesLine::Other(NOT_IMPLEMENTED_HEADING.to_owned());
        match line {
            RulesLine::Other(_) => after.push(line.clone()),
            RulesLine::Row(row) => {
                let row = RuleRow {
                    tests: carried.get(&row.rule).cloned().unwrap_or_default(),
                    ..row.clone()
                };
                if not_yet && !row.tests.is_empty() {
                    moved.push(row)
                } else {
                    after.push(RulesLine::Row(row))
                }
            }
        }
    }
    for row in moved {
        let order = |line: &RulesLine| match line {
            RulesLine::Row(RuleRow { rule, .. }) => Some(sort_key(rule)),
            RulesLine::Other(_) => None,
        };
        let end = after
            .iter()
            .position(|line| *line == RulesLine::Other(NOT_IMPLEMENTED_HEADING.to_owned()))
            .unwrap_or(after.len());
        let before = after[..end]
            .iter()
            .rposition(|line| order(line).is_some_and(|at| at < sort_key(&row.rule)));
        after.insert(before.map_or(end, |before| before + 1), RulesLine::Row(row));
    }
    after
}

/// In the order of the numbers.
fn sort_key(rule: &str) -> (u32, bool) {
    let digits: String = rule.chars().filter(char::is_ascii_digit).collect();
    (digits.parse().unwrap_or(u32::MAX), rule.ends_with('b'))
}

/// What is wrong with the table, in words.
fn table_errors(lines: &[RulesLine], carried: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    let mut not_yet = false;
    for line in lines {
        not_yet |= *line == RulesLine::Other(NOT_IMPLEMENTED_HEADING.to_owned());
        let RulesLine::Row(RuleRow { rule, tests, .. }) = line else { continue };
        let real = carried.get(rule).cloned().unwrap_or_default();
        match (not_yet, real.is_empty()) {
            (false, true) => problems.push(format!("{rule} has no test")),
            (true, false) => problems.push(format!(
                "{rule} has tests, so that it does not belong below {NOT_IMPLEMENTED_HEADING:?}"
            )),
            (false, false) | (true, true) if *tests != real => {
                problems.push(format!("{rule}: the table has other tests than there are"))
            }
            (false, false) | (true, true) => {}
        }
        if !seen.insert(rule.clone()) {
            problems.push(format!("{rule} stands twice"));
        }
    }
    problems.extend(
        carried
            .keys()
            .filter(|rule| !seen.contains(*rule))
            .map(|rule| format!("{rule} has tests and stands nowhere")),
    );
    problems
}

#[test]
fn the_table_of_rules_and_the_tests_agree() {
    let path: &Path = &workspace_root().join("tests/RULES.md");
    let text = fs::read_to_string(path).expect("it can be read");
    let mut lines: Vec<RulesLine> = text.lines().map(parse_line).collect();
    let carried = tests_by_rule();
    if std::env::var_os("UPDATE_RULES").is_some() {
        lines = update_table(&lines, &carried);
        fs::write(path, lines.iter().map(format_line).collect::<Vec<_>>().join("\n") + "\n")
            .expect("it can be written");
    }
    let problems = table_errors(&lines, &carried);
    assert!(
        problems.is_empty(),
        "{problems:#?}\nUPDATE_RULES=1 cargo test -p cofferdam-tests --test conventions rules \
            writes the table anew"
    );
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
        assert_eq!(rules_in_name(name), expected, "{name}");
    }
}

#[test]
fn a_table_that_disagrees_is_told_and_mended() {
    let text = "# Rules\n| R-01 | One. | `r001_old` |\n| R-03 | Three. | `r003_a` |\n\n## Not \
        yet\n| R-02 | Two. | |\n| R-04 | Four. | |";
    let lines: Vec<RulesLine> = text.lines().map(parse_line).collect();
    assert_eq!(lines.iter().map(format_line).collect::<Vec<_>>().join("\n"), text);
    let carried: BTreeMap<String, BTreeSet<String>> =
        [("R-01", "r001_new"), ("R-02", "r002_b"), ("R-03", "r003_a")]
            .map(|(rule, test)| (rule.to_owned(), BTreeSet::from([test.to_owned()])))
            .into();
    let expected = [
        "R-01: the table has other tests than there are",
        "R-02 has tests, so that it does not belong below \"## Not yet\"",
    ];
    assert_eq!(table_errors(&lines, &carried), expected);
    let mended = update_table(&lines, &carried);
    assert_eq!(table_errors(&mended, &carried), [""; 0]);
    assert_eq!(mended[2], parse_line("| R-02 | Two. | `r002_b` |"));

    let without: BTreeMap<_, _> =
        carried.clone().into_iter().filter(|(rule, _)| rule != "R-03").collect();
    assert!(table_errors(&mended, &without).contains(&"R-03 has no test".to_owned()));
    let more: BTreeMap<_, _> = carried
        .into_iter()
        .chain([("R-99".to_owned(), BTreeSet::from(["r099_x".to_owned()]))])
        .collect();
    assert_eq!(table_errors(&mended, &more), ["R-99 has tests and stands nowhere"]);
}
