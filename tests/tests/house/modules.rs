//! Who may import whom, and who may name what.

use std::collections::BTreeMap;

use super::sources::{SourceFile, host_sources};

/// Each room with the rooms it may import. `main` and `lib` name everything and do nothing.
const ALLOWED_IMPORTS: &[(&str, &[&str])] = &[
    ("agent", &["conversation"]),
    ("audit", &["agent", "conversation", "policy", "private_dir", "session", "tools"]),
    ("authoring", &["own_file", "policy", "sandbox"]),
    ("bounded_json", &[]),
    ("random", &[]),
    (
        "cli",
        &[
            "agent",
            "audit",
            "authoring",
            "random",
            "config",
            "conversation",
            "model",
            "own_file",
            "plugins",
            "policy",
            "sandbox",
            "session",
            "terminal_escape",
            "tools",
        ],
    ),
    ("config", &["agent", "own_file", "policy", "private_dir", "tools"]),
    ("conversation", &["image_type"]),
    ("model", &["agent", "random", "conversation", "terminal_escape"]),
    ("image_type", &[]),
    ("own_file", &["private_dir"]),
    ("plugins", &["config", "own_file", "sandbox", "tools"]),
    ("policy", &[]),
    ("private_dir", &[]),
    ("sandbox", &["image_type", "own_file", "policy", "private_dir", "terminal_escape"]),
    ("session", &["agent", "random", "conversation", "own_file", "private_dir"]),
    ("terminal_escape", &[]),
    (
        "tools",
        &[
            "agent",
            "bounded_json",
            "random",
            "conversation",
            "own_file",
            "policy",
            "private_dir",
            "sandbox",
        ],
    ),
];

/// Words that only these rooms may use.
const RESTRICTED_WORDS: &[(&str, &[&str])] = &[
    ("wasmtime::", &["sandbox"]),
    ("wasmtime_wasi::", &["sandbox"]),
    // The sandbox dials for tools, to an address that it has checked itself.
    ("reqwest::", &["model", "plugins", "sandbox"]),
    ("wasmtime_wasi_http::", &["sandbox"]),
    ("clap::", &["cli"]),
    ("indicatif::", &["cli"]),
    ("wit_bindgen_", &["authoring"]),
    ("wit_component::", &["authoring"]),
    ("reedline::", &["cli"]),
    ("crossterm::", &["cli"]),
    ("std::process::exit", &["cli"]),
    // Where these are made is where it is decided.
    ("Permit { effect", &["policy"]),
    ("ApprovalQuestion { tool", &["policy"]),
    ("PendingApproval {", &["policy"]),
    ("ScopeApproval {", &["policy"]),
    ("println!", &[]),
    ("eprintln!", &[]),
];

/// Words that a pure room has no use for.
const FORBIDDEN_IN_PURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::env",
    "Instant::now",
    "SystemTime",
    "tokio",
    "std::process",
    "std::thread",
];
const PURE_MODULES: &[&str] = &["conversation", "policy"];

fn find_violations(rule: impl Fn(&SourceFile, &str) -> Option<String>) -> Vec<String> {
    let mut broken = Vec::new();
    for source in host_sources() {
        for (number, line) in source.lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if let Some(problem) = rule(&source, code) {
                broken.push(format!("host/src/{}:{}: {problem}", source.path, number + 1));
            }
        }
    }
    broken
}

#[test]
fn rooms_import_only_whom_they_may() {
    let table: BTreeMap<_, _> = ALLOWED_IMPORTS.iter().copied().collect();
    let problems = find_violations(|source, code| {
        if source.module == "main" || source.module == "lib" {
            return None;
        }
        let Some(allowed) = table.get(source.module.as_str()) else {
            return Some(format!("{} is a room without a rule", source.module));
        };
        code.match_indices("crate::").find_map(|(at, word)| {
            let other: String = code[at + word.len()..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            (other != source.module && !allowed.contains(&other.as_str()))
                .then(|| format!("{} may not import {other}", source.module))
        })
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn some_words_belong_to_one_room() {
    let problems = find_violations(|source, code| {
        let foreign = RESTRICTED_WORDS
            .iter()
            .find(|(word, rooms)| code.contains(word) && !rooms.contains(&source.module.as_str()));
        foreign.map(|(word, rooms)| format!("`{word}` belongs to {rooms:?}"))
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn pure_rooms_know_neither_files_nor_clocks() {
    let problems = find_violations(|source, code| {
        let word = FORBIDDEN_IN_PURE
            .iter()
            .find(|word| PURE_MODULES.contains(&source.module.as_str()) && code.contains(*word));
        word.map(|word| format!("{} is pure and names `{word}`", source.module))
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_file_says_what_it_is() {
    let silent: Vec<String> = host_sources()
        .into_iter()
        .filter(|source| !source.lines.first().is_some_and(|line| line.starts_with("//! ")))
        .map(|source| source.path)
        .collect();
    assert!(silent.is_empty(), "without a first line that begins with `//! `: {silent:?}");
}

#[test]
fn every_file_holds_one_idea() {
    const MOST_LINES: usize = 400;
    let long: Vec<String> = host_sources()
        .into_iter()
        .filter(|source| source.lines.len() > MOST_LINES)
        .map(|source| source.path)
        .collect();
    assert!(long.is_empty(), "longer than {MOST_LINES} lines: {long:?}");
}

/// Words on both sides of eight blanks or more, in a text: what is left of a line that was broken
/// without a backslash. Columns are nearer to each other.
#[test]
fn no_text_has_blanks_in_mid_sentence() {
    let problems = find_violations(|_, code| {
        let text = code.trim_start();
        let gap = text.match_indices("        ").find(|(at, _)| {
            let before: Vec<char> = text[..*at].chars().rev().take(3).collect();
            let after = text[*at..].trim_start_matches(' ').chars().next();
            let is_in_text = text[..*at].matches('"').count() % 2 == 1;
            // An escape such as a new line is no word.
            let is_word = matches!(before[..], [c, d, e] if (c.is_alphabetic() || ",;:".contains(c)) && d != '\\' && e != '\\');
            is_in_text && is_word && after.is_some_and(char::is_alphabetic)
        });
        gap.map(|(at, _)| format!("blanks in mid-sentence behind `{}`", &text[..at]))
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
