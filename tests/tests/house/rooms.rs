//! Who may import whom, and who may name what.

use std::collections::BTreeMap;

use super::sources::{Source, host};

/// Each room with the rooms it may import. `main` and `lib` name everything and do nothing.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("agent", &["conversation"]),
    ("audit", &["agent", "conversation", "policy", "private", "session", "tools"]),
    ("authoring", &["policy", "sandbox"]),
    ("chance", &[]),
    (
        "cli",
        &[
            "agent",
            "audit",
            "authoring",
            "chance",
            "config",
            "conversation",
            "model",
            "plugins",
            "policy",
            "sandbox",
            "session",
            "shown",
            "tools",
        ],
    ),
    ("config", &["agent", "policy", "tools"]),
    ("conversation", &["picture"]),
    ("model", &["agent", "chance", "conversation", "shown"]),
    ("picture", &[]),
    ("plugins", &["config", "sandbox", "tools"]),
    ("policy", &[]),
    ("private", &[]),
    ("sandbox", &["picture", "policy", "private", "shown"]),
    ("session", &["agent", "chance", "conversation", "private"]),
    ("shown", &[]),
    ("tools", &["agent", "chance", "conversation", "policy", "private", "sandbox"]),
];

/// Words that only these rooms may use.
const ONLY_IN: &[(&str, &[&str])] = &[
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
    ("Question { tool", &["policy"]),
    ("println!", &[]),
    ("eprintln!", &[]),
];

/// Words that a pure room has no use for.
const NOT_IN_PURE: &[&str] = &["std::fs", "std::net", "std::env", "Instant::now", "SystemTime", "tokio", "std::process", "std::thread"];
const PURE: &[&str] = &["conversation", "policy"];

fn broken(rule: impl Fn(&Source, &str) -> Option<String>) -> Vec<String> {
    let mut broken = Vec::new();
    for source in host() {
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
    let table: BTreeMap<_, _> = MAY_IMPORT.iter().copied().collect();
    let problems = broken(|source, code| {
        if source.room == "main" || source.room == "lib" {
            return None;
        }
        let Some(allowed) = table.get(source.room.as_str()) else { return Some(format!("{} is a room without a rule", source.room)) };
        code.match_indices("crate::").find_map(|(at, word)| {
            let other: String = code[at + word.len()..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            (other != source.room && !allowed.contains(&other.as_str())).then(|| format!("{} may not import {other}", source.room))
        })
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn some_words_belong_to_one_room() {
    let problems = broken(|source, code| {
        let foreign = ONLY_IN.iter().find(|(word, rooms)| code.contains(word) && !rooms.contains(&source.room.as_str()));
        foreign.map(|(word, rooms)| format!("`{word}` belongs to {rooms:?}"))
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn pure_rooms_know_neither_files_nor_clocks() {
    let problems = broken(|source, code| {
        let word = NOT_IN_PURE.iter().find(|word| PURE.contains(&source.room.as_str()) && code.contains(*word));
        word.map(|word| format!("{} is pure and names `{word}`", source.room))
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_file_says_what_it_is() {
    let silent: Vec<String> = host()
        .into_iter()
        .filter(|source| !source.lines.first().is_some_and(|line| line.starts_with("//! ")))
        .map(|source| source.path)
        .collect();
    assert!(silent.is_empty(), "without a first line that begins with `//! `: {silent:?}");
}

#[test]
fn every_file_holds_one_idea() {
    const MOST_LINES: usize = 400;
    let long: Vec<String> = host().into_iter().filter(|source| source.lines.len() > MOST_LINES).map(|source| source.path).collect();
    assert!(long.is_empty(), "longer than {MOST_LINES} lines: {long:?}");
}

/// Words on both sides of eight blanks or more, in a text: what is left of a line that was broken without a backslash. Columns are
/// nearer to each other.
#[test]
fn no_text_has_blanks_in_mid_sentence() {
    let problems = broken(|_, code| {
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
