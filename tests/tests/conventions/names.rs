//! Names of types and the width of lines.

use std::collections::BTreeMap;

use super::sources::{host_sources, workspace_root};

/// Types that may have the name of another type, each with the reason.
const SHARED_NAMES: &[(&str, &str)] = &[
    ("Data", "an associated type of `HasData`"),
    ("DetachedOverlay", "one for each operating system"),
    ("DirectMount", "one for each operating system"),
    ("Err", "an associated type of `FromStr`"),
    ("Error", "an associated type of `TryFrom` and of `http_body::Body`"),
    ("ForkedProcess", "one for each operating system"),
    ("Item", "an associated type of `Iterator`"),
    ("MountWatch", "one for each operating system"),
    ("NamespaceStart", "one for each operating system"),
    ("PausedProcesses", "one for each operating system"),
    ("PreparedSandbox", "one for each operating system"),
    ("Value", "an associated type of `Visitor`"),
    ("WorkspaceOverlay", "one for each operating system"),
];

#[test]
fn each_type_has_a_name_of_its_own() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in host_sources() {
        for line in &source.lines {
            let mut words = line.split_whitespace().filter(|word| !word.starts_with("pub"));
            let Some("struct" | "enum" | "trait" | "union" | "type") = words.next() else {
                continue;
            };
            let name: String = words
                .next()
                .unwrap_or_default()
                .chars()
                .take_while(|character| character.is_alphanumeric())
                .collect();
            places.entry(name).or_default().push(source.path.clone());
        }
    }
    places.retain(|name, paths| {
        paths.len() > 1 && !SHARED_NAMES.iter().any(|(shared, _)| shared == name)
    });
    assert!(places.is_empty(), "the same name for several types: {places:#?}");
}

#[test]
fn lines_have_at_most_100_columns() {
    const MAX_COLUMNS: usize = 100;
    let output = std::process::Command::new("git")
        .args(["ls-files", "-z", "*.rs"])
        .current_dir(workspace_root())
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git ls-files failed");
    let mut long = Vec::new();
    for name in String::from_utf8(output.stdout).expect("UTF-8").split_terminator('\0') {
        let Ok(text) = std::fs::read_to_string(workspace_root().join(name)) else { continue };
        for (number, line) in text.lines().enumerate() {
            if line.chars().count() > MAX_COLUMNS {
                long.push(format!("{name}:{}", number + 1));
            }
        }
    }
    assert!(long.is_empty(), "longer than {MAX_COLUMNS} columns:\n{}", long.join("\n"));
}
