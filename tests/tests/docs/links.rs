//! Relative links of the pages, with their anchors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::markdown::prose;
use super::{name, pages, read};

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let mut problems = Vec::new();
    for page in pages() {
        let text = read(&page);
        for (line, target) in links(&text) {
            if let Some(problem) = problem(&page, &target) {
                problems.push(format!("{}:{line}: `{target}` {problem}", name(&page)));
            }
        }
    }
    assert!(problems.is_empty(), "links that lead nowhere:\n{}", problems.join("\n"));
}

#[test]
fn the_index_names_every_page() {
    for directory in ["host/docs", "sdk/docs"] {
        let docs = super::root().join(directory);
        let index = read(&docs.join("README.md"));
        let linked: BTreeSet<String> =
            links(&index).into_iter().map(|(_, target)| target).collect();
        let missing: Vec<String> = pages()
            .iter()
            .filter_map(|page| page.strip_prefix(&docs).ok())
            .map(|page| page.display().to_string())
            .filter(|page| page != "README.md" && !linked.contains(page))
            .collect();
        assert!(missing.is_empty(), "pages that {directory}/README.md does not name: {missing:?}");
    }
}

/// What is wrong with a link of a page, if anything.
fn problem(page: &Path, target: &str) -> Option<&'static str> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let directory = page.parent().expect("a page is in a directory");
    let file = if path.is_empty() { page.to_owned() } else { directory.join(path) };
    if !file.exists() {
        return Some("does not exist");
    }
    let is_page = file.extension().is_some_and(|extension| extension == "md");
    if anchor.is_empty() || !is_page {
        return None;
    }
    let found = anchors(&read(&file)).contains(anchor);
    (!found).then_some("names no heading of that page")
}

/// The targets of relative links, each with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(&line);
        let bracket = line.trim_start().strip_prefix('[');
        let definition = bracket.and_then(|rest| rest.split_once("]: "));
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let targets = inline.chain(definition.map(|(_, target)| target));
        let targets = targets.filter_map(|target| target.split_whitespace().next());
        let is_relative = |target: &&str| !target.contains("://") && !target.starts_with("mailto:");
        found.extend(targets.filter(is_relative).map(|target| (number, target.to_owned())));
    }
    found
}

/// A line without what stands between backquotes.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The anchors that GitHub gives to the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).into_iter().filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        let is_heading = title.len() < line.len() && title.starts_with(' ');
        is_heading.then(|| slug(title.trim()))
    });
    let mut anchors = BTreeSet::new();
    for slug in headings {
        let times = seen.entry(slug.clone()).or_default();
        anchors.insert(if *times == 0 { slug } else { format!("{slug}-{times}") });
        *times += 1;
    }
    anchors
}

fn slug(title: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    title.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn anchors_are_those_of_github() {
    let text = "# Use `a.toml`: now\n## Two\n## Two\n```text\n# no\n```\n#no\n";
    let expected = ["two", "two-1", "use-atoml-now"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
}

#[test]
fn links_in_code_are_text() {
    let text = "See [a](b.md#c \"title\") and `[x](y)`.\n[d]: e.md\n[f](https://example.com)\n";
    let expected = [(1, "b.md#c".to_owned()), (2, "e.md".to_owned())];
    assert_eq!(links(text), expected);
}
