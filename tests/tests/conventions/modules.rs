//! What the compiler does not hold: imports between the modules of the library, and words that only
//! one package or module may use.

use std::collections::BTreeMap;

use super::sources::{SourceFile, host_sources};

/// Each module of the library with the modules that it may import.
const ALLOWED_IMPORTS: &[(&str, &[&str])] = &[
    ("agent", &["conversation", "policy"]),
    ("audit", &["agent", "bounded_json", "conversation", "policy", "session", "tools"]),
    ("bounded_json", &[]),
    ("config", &["agent", "policy"]),
    ("conversation", &["image_type"]),
    (
        "host",
        &[
            "agent",
            "audit",
            "config",
            "conversation",
            "model",
            "plugins",
            "policy",
            "random",
            "sandbox",
            "session",
            "tools",
        ],
    ),
    ("image_type", &[]),
    ("model", &["agent", "bounded_json", "conversation", "random"]),
    ("plugins", &["config", "policy", "sandbox", "tools"]),
    ("random", &[]),
    ("sandbox", &["image_type", "policy"]),
    ("session", &["agent", "conversation", "policy", "random"]),
    ("tools", &["agent", "bounded_json", "conversation", "policy", "random", "sandbox"]),
];

/// What each module may use: parts of the packages below the library.
const SHARED: &[&str] = &["own_file", "private_dir", "terminal_escape"];

/// Words with the packages, or modules of the library, that may use them. A package whose manifest
/// does not name a crate needs no row.
const RESTRICTED_WORDS: &[(&str, &[&str])] = &[
    ("wasmtime::", &["sandbox"]),
    ("wasmtime_wasi::", &["sandbox"]),
    ("wasmtime_wasi_http::", &["sandbox"]),
    // The sandbox connects for tools, to an address that it has checked itself.
    ("reqwest::", &["model", "plugins", "sandbox"]),
    ("wit_bindgen_", &["authoring"]),
    ("wit_component::", &["authoring"]),
    // Only the front end for MCP knows its SDK.
    ("rmcp::", &["mcp"]),
    // A helper process ends with its task.
    ("std::process::exit", &["cli", "host", "os"]),
    ("println!", &[]),
    ("eprintln!", &[]),
];

/// Words that a package or module without input and output has no use for.
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
const PURE: &[&str] = &["conversation", "policy"];

/// What reads the environment of the process, the home directory, the directory for temporary files
/// or the current directory. `cofferdam-confine` and the library get them as values.
const READS_ENVIRONMENT: &[&str] = &[
    "env::",
    "use std::env",
    "etcetera::",
    // These take the directory for temporary files from the environment.
    "NamedTempFile::new()",
    "tempdir()",
    "tempfile()",
];

/// What the packages without access to the environment may use of `std::env` all the same.
const ALLOWED_OF_ENVIRONMENT: &[&str] = &[
    // The command line of a helper process, which no caller can pass on: the process has to become
    // a helper before anything else runs in it.
    "env::args_os",
    // Facts about the platform that are known when the program is built.
    "env::consts::",
    // The program file, which runs again as a helper process.
    "env::current_exe",
    // Parses a value.
    "env::split_paths",
];

fn find_violations(rule: impl Fn(&SourceFile, &str) -> Option<String>) -> Vec<String> {
    let mut broken = Vec::new();
    for source in host_sources() {
        for (number, line) in source.lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if let Some(problem) = rule(&source, code) {
                broken.push(format!("host/{}:{}: {problem}", source.path, number + 1));
            }
        }
    }
    broken
}

impl SourceFile {
    fn is_in(&self, names: &[&str]) -> bool {
        names.contains(&self.package.as_str()) || names.contains(&self.module.as_str())
    }
}

#[test]
fn modules_of_the_library_import_only_the_modules_that_they_may() {
    let table: BTreeMap<_, _> = ALLOWED_IMPORTS.iter().copied().collect();
    let problems = find_violations(|source, code| {
        if source.package != "core" || source.module == "lib" {
            return None;
        }
        let Some(allowed) = table.get(source.module.as_str()) else {
            return Some(format!("{} is a module without a rule", source.module));
        };
        code.match_indices("crate::").find_map(|(at, word)| {
            let other: String = code[at + word.len()..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            let is_allowed = other == source.module
                || allowed.contains(&other.as_str())
                || SHARED.contains(&other.as_str());
            (!is_allowed).then(|| format!("{} may not import {other}", source.module))
        })
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn some_words_belong_to_one_package_or_module() {
    let problems = find_violations(|source, code| {
        let foreign = RESTRICTED_WORDS
            .iter()
            .find(|(word, names)| code.contains(word) && !source.is_in(names));
        foreign.map(|(word, names)| format!("`{word}` belongs to {names:?}"))
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// What makes text of a value, or escapes such text. In the program, one module does both, so that
/// no JSON reaches a terminal without escapes.
const MAKES_JSON: &[&str] =
    &["escape_json", "serde_json::to_string", "serde_json::to_vec", "serde_json::to_writer"];
/// The module, and one that writes a file that only the program reads.
const MAY_MAKE_JSON: &[&str] = &["cli/src/json_text.rs", "cli/src/chat/history.rs"];

#[test]
fn one_module_makes_json_for_the_user() {
    let problems = find_violations(|source, code| {
        if source.package != "cli" || MAY_MAKE_JSON.contains(&source.path.as_str()) {
            return None;
        }
        let word = MAKES_JSON.iter().find(|word| code.contains(**word));
        word.map(|word| format!("`{word}` belongs to `json_text`"))
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_policy_and_the_conversation_know_neither_files_nor_clocks() {
    let problems = find_violations(|source, code| {
        let word = FORBIDDEN_IN_PURE
            .iter()
            .find(|word| source.package != "cli" && source.is_in(PURE) && code.contains(*word));
        word.map(|word| format!("it names `{word}`"))
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_library_and_the_command_sandbox_get_the_environment_as_values() {
    let problems = find_violations(|source, code| {
        if !["confine", "core", "mcp"].contains(&source.package.as_str()) {
            return None;
        }
        let code = ALLOWED_OF_ENVIRONMENT
            .iter()
            .fold(code.to_owned(), |code, allowed| code.replace(allowed, ""));
        let word = READS_ENVIRONMENT.iter().find(|word| code.contains(**word));
        word.map(|word| format!("it names `{word}`"))
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
    const MOST_LINES: usize = 500;
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
            let is_word = matches!(
                before[..],
                [c, d, e]
                    if (c.is_alphabetic() || ",;:".contains(c)) && d != '\\' && e != '\\'
            );
            is_in_text && is_word && after.is_some_and(char::is_alphabetic)
        });
        gap.map(|(at, _)| format!("blanks in mid-sentence behind `{}`", &text[..at]))
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
