//! `grep` and `glob` beside ripgrep, on trees that nobody thought of: the same files, the same
//! lines, in the same order.
//!
//! Where the two differ on purpose, the trees here do not go:
//!
//! - ripgrep looks at a file buffer by buffer, so that what it makes of a NUL depends on where the
//!   buffers end: a match in an earlier one is found. `grep` leaves a file out if there is a NUL in
//!   its first 64 KiB, and otherwise finds what is before the first one. So files with a NUL have
//!   no line end in their first three bytes, which are a buffer of their own to ripgrep; and where
//!   a NUL comes late, `grep` names the file if ripgrep does, and also where ripgrep happens not
//!   to. Counts of such files are given by neither.
//! - Lines of more than 500 characters are cut around the match; so trees with such lines are only
//!   asked for paths and counts.
//! - The carriage return at the end of a line is no part of what `grep` shows of it, though it is
//!   of what is searched, as in ripgrep.
//! - `-g '#x'` is a comment to ripgrep, and lets every file through.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::process::Command;

use cofferdam_tests::prerequisites;
use cofferdam_tests::program::TestHome;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::new_home;

/// How many trees of each kind.
const CASES: u32 = 30;

const DIRECTORIES: [&str; 8] =
    ["", "src/", "src/deep/", "src/deep/est/", ".cfg/", "target/", "docs/", "with space/"];
const NAMES: [&str; 9] =
    ["a.rs", "b.txt", "c.md", ".hid", "#x#", "sp ace.txt", "grün.rs", "Makefile", "d.RS"];
const LINES: [&str; 10] = [
    "needle",
    "a needle here, and a needle there",
    "Needle of another case",
    "needles and needle_work",
    "the næedle is none",
    "grün: needle",
    "",
    "    indented\tneedle  ",
    "nothing to see",
    "a.b*c (needle) [x]",
];
const RULES: [&str; 12] = [
    "*.md",
    "target/",
    "/src/deep",
    "!c.md",
    "docs/*.txt",
    "**/b.*",
    "# needle",
    "\\#x#",
    "!src/deep/",
    "sp ace.txt",
    "deep",
    "*.r[st]",
];
const GLOBS: [&str; 16] = [
    "*.rs",
    "src/**",
    "**/*.txt",
    "!*.md",
    "{a,b}.*",
    "*.{rs,md}",
    "/a.rs",
    "[ab].*",
    "deep",
    "!src/deep",
    ".*",
    "**/deep/**",
    "*",
    "src/*",
    "!**/.hid",
    "*.RS",
];
const PATTERNS: [&str; 10] = [
    "needle",
    "needle$",
    "^needle",
    r"n\w+e\b",
    "(?i)NEEDLE",
    "a.b*c",
    "e+d|grün",
    r"\s+needle\s",
    "",
    "næedle",
];

/// The tools never look there, and ripgrep does if a glob says so.
const NOT_GIT: [&str; 2] = ["-g", "!.git"];

#[derive(Clone, Debug)]
struct TreeFile {
    path: String,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
struct FileTree {
    files: Vec<TreeFile>,
    /// Files with ignore rules, by path.
    rules: Vec<(String, String)>,
    /// Links, and what they point to.
    links: Vec<(String, String)>,
    is_repository: bool,
}

#[derive(Clone, Copy, Debug)]
enum TextEncoding {
    Utf8,
    Utf8WithBom,
    Utf16Le,
    Utf16Be,
    Latin1,
    Binary,
}

fn encode_text(text: &str, encoding: TextEncoding) -> Vec<u8> {
    let utf16 = |mark: [u8; 2], bytes: fn(u16) -> [u8; 2]| {
        mark.into_iter().chain(text.encode_utf16().flat_map(bytes)).collect()
    };
    match encoding {
        TextEncoding::Utf8 => text.as_bytes().to_vec(),
        TextEncoding::Utf8WithBom => [b"\xEF\xBB\xBF", text.as_bytes()].concat(),
        TextEncoding::Utf16Le => utf16([0xFF, 0xFE], u16::to_le_bytes),
        TextEncoding::Utf16Be => utf16([0xFE, 0xFF], u16::to_be_bytes),
        TextEncoding::Latin1 => {
            text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
        }
        TextEncoding::Binary => [b"BIN ", text.as_bytes(), b"\0", text.as_bytes()].concat(),
    }
}

fn file_contents(long_lines: bool) -> impl Strategy<Value = Vec<u8>> {
    let line = if long_lines {
        prop_oneof![
            3 => select(&LINES[..]).prop_map(str::to_owned),
            1 => (0usize..20_000, 0usize..20_000).prop_map(|(before, after)| {
                format!("{}needle{}", "x".repeat(before), "y ".repeat(after))
            }),
        ]
        .boxed()
    } else {
        select(&LINES[..]).prop_map(str::to_owned).boxed()
    };
    let encoding = prop_oneof![
        6 => Just(TextEncoding::Utf8),
        1 => Just(TextEncoding::Utf8WithBom),
        1 => Just(TextEncoding::Utf16Le),
        1 => Just(TextEncoding::Utf16Be),
        1 => Just(TextEncoding::Latin1),
        1 => Just(TextEncoding::Binary),
    ];
    (prop::collection::vec(line, 0..8), select(&["\n", "\r\n"][..]), any::<bool>(), encoding)
        .prop_map(|(lines, end, ended, encoding)| {
            let mut text = lines.join(end);
            if ended {
                text.push_str(end);
            }
            encode_text(&text, encoding)
        })
}

fn file_trees(long_lines: bool) -> impl Strategy<Value = FileTree> {
    let path = || {
        (select(&DIRECTORIES[..]), select(&NAMES[..]))
            .prop_map(|(directory, name)| format!("{directory}{name}"))
    };
    let file =
        (path(), file_contents(long_lines)).prop_map(|(path, bytes)| TreeFile { path, bytes });
    let rules = (
        select(&DIRECTORIES[..]),
        select(&[".gitignore", ".ignore"][..]),
        subsequence(&RULES[..], 0..4),
    )
        .prop_map(|(directory, name, rules)| {
            (format!("{directory}{name}"), rules.join("\n") + "\n")
        });
    let link = (0..3u8, select(&["src", "b.txt", "..", "nowhere", "src/deep/a.rs"][..]))
        .prop_map(|(number, target)| (format!("link{number}.rs"), target.to_owned()));
    (
        prop::collection::vec(file, 0..14),
        prop::collection::vec(rules, 0..4),
        prop::collection::vec(link, 0..3),
        any::<bool>(),
    )
        .prop_map(|(files, rules, links, is_repository)| FileTree {
            files,
            rules,
            links,
            is_repository,
        })
}

impl FileTree {
    fn write(&self) -> TestHome {
        let mut home = new_home();
        for TreeFile { path, bytes } in &self.files {
            home = home.with_file(path, bytes);
        }
        for (path, rules) in &self.rules {
            home = home.with_file(path, rules);
        }
        for (path, target) in &self.links {
            // The same name twice is the same link.
            let _ = symlink(target, home.workspace().join(path));
        }
        if self.is_repository {
            home = home.with_file(".git/HEAD", "ref: refs/heads/main\nneedle\n");
        }
        home
    }

    /// Files that look like text as far as `grep` looks for that, and have a NUL later on.
    fn files_with_late_nul(&self) -> BTreeSet<String> {
        // Of two files with one path the second is there.
        let files: BTreeMap<&str, &[u8]> =
            self.files.iter().map(|file| (file.path.as_str(), file.bytes.as_slice())).collect();
        let is_wide =
            |bytes: &[u8]| bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
        let is_late = |bytes: &[u8]| {
            !is_wide(bytes)
                && bytes.iter().position(|byte| *byte == 0).is_some_and(|nul| nul >= 64 << 10)
        };
        files
            .into_iter()
            .filter(|(_, bytes)| is_late(bytes))
            .map(|(path, _)| path.to_owned())
            .collect()
    }
}

/// What ripgrep prints, with bytes that are no text replaced; `None` if it refused the arguments.
fn run_ripgrep(home: &TestHome, arguments: &[String]) -> Option<String> {
    let mut command = Command::new("rg");
    home.configure(&mut command);
    let output = command
        .args(["--no-config", "--sort", "path", "--no-messages"])
        .args(arguments)
        .args(NOT_GIT)
        .output()
        .expect("it starts");
    let is_refusal = output.status.code() == Some(2) && output.stdout.is_empty();
    (!is_refusal).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a tool answers.
fn run_tool(home: &TestHome, tool: &str, input: &Value) -> String {
    let ran = home.run(&["tools", "call", tool, &input.to_string()]);
    assert_eq!(ran.exit_code, 0, "{input}: {ran:?}");
    ran.stdout
}

/// Runs a comparison on many cases. It says of each whether ripgrep found anything; a comparison of
/// nothing shows nothing.
fn run_cases<T: std::fmt::Debug>(
    cases: impl Strategy<Value = T>,
    test: impl Fn(T) -> Result<bool, TestCaseError>,
) {
    // Once, and not anew for each smaller case that fails for the same reason.
    prerequisites::require();
    let config = Config {
        cases: CASES,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    };
    let compared = Cell::new(0);
    let count = |case| test(case).map(|found| compared.set(compared.get() + u32::from(found)));
    if let Err(failure) = TestRunner::new(config).run(&cases, count) {
        panic!("{failure}");
    }
    assert!(compared.get() >= 2, "ripgrep found something in {} of {CASES} cases", compared.get());
}

/// Flags that both have.
#[derive(Clone, Debug)]
struct SearchFlags {
    hidden: bool,
    no_ignore: bool,
}

fn search_flags() -> impl Strategy<Value = SearchFlags> {
    any::<(bool, bool)>().prop_map(|(hidden, no_ignore)| SearchFlags { hidden, no_ignore })
}

impl SearchFlags {
    fn ripgrep_arguments(&self) -> Vec<String> {
        let flags = [(self.hidden, "--hidden"), (self.no_ignore, "--no-ignore")];
        flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| (*flag).to_owned()).collect()
    }
}

#[test]
fn r121_glob_finds_the_files_that_ripgrep_finds() {
    run_cases((file_trees(false), select(&GLOBS[..]), search_flags()), |(tree, glob, flags)| {
        let home = tree.write();
        let mut arguments = vec!["--files".to_owned(), "-g".to_owned(), glob.to_owned()];
        arguments.extend(flags.ripgrep_arguments());
        let Some(theirs) = run_ripgrep(&home, &arguments) else { return Ok(false) };
        let input = json!({
            "pattern": glob, "hidden": flags.hidden, "no_ignore": flags.no_ignore, "limit": 2000,
        });
        let ours = run_tool(&home, "glob", &input);
        let ours = if ours.starts_with("no files match") { String::new() } else { ours };
        prop_assert_eq!(&ours, &theirs, "{}", input);
        Ok(!theirs.is_empty())
    });
}

#[test]
fn r121_grep_finds_the_lines_that_ripgrep_finds() {
    let how =
        (select(&PATTERNS[..]), any::<[bool; 3]>(), 0..3u8, prop::option::of(select(&GLOBS[..])));
    run_cases(
        (file_trees(false), search_flags(), how),
        |(tree, flags, (pattern, [ignore_case, fixed, word], context, glob))| {
            let home = tree.write();
            let mut arguments: Vec<String> =
                ["--no-heading", "-n", "--color", "never", "-C", &context.to_string()]
                    .map(str::to_owned)
                    .to_vec();
            arguments.extend(flags.ripgrep_arguments());
            for (is_set, flag) in [(ignore_case, "-i"), (fixed, "-F"), (word, "-w")] {
                arguments.extend(is_set.then(|| flag.to_owned()));
            }
            arguments.extend(glob.iter().flat_map(|glob| ["-g".to_owned(), (*glob).to_owned()]));
            arguments.extend(["-e".to_owned(), pattern.to_owned()]);
            let Some(theirs) =
                run_ripgrep(&home, &arguments).map(|theirs| theirs.replace("\r\n", "\n"))
            else {
                return Ok(false);
            };
            let input = json!({
                "pattern": pattern, "ignore_case": ignore_case, "fixed_strings": fixed,
                "word": word, "context": context, "hidden": flags.hidden,
                "no_ignore": flags.no_ignore, "limit": 2000,
                "glob": glob.into_iter().collect::<Vec<_>>(),
            });
            let ours = run_tool(&home, "grep", &input);
            let ours = if ours.starts_with("No matches.") { String::new() } else { ours };
            prop_assert_eq!(&ours, &theirs, "{}", input);
            Ok(!theirs.is_empty())
        },
    );
}

#[test]
fn r121_grep_counts_what_ripgrep_counts_however_long_the_lines() {
    run_cases(
        (file_trees(true), search_flags(), select(&PATTERNS[..]), any::<bool>()),
        |(tree, flags, pattern, counts)| {
            let home = tree.write();
            let (flag, mode) = if counts { ("-c", "count") } else { ("-l", "files") };
            let mut arguments = vec![flag.to_owned(), "-e".to_owned(), pattern.to_owned()];
            arguments.extend(flags.ripgrep_arguments());
            let Some(theirs) = run_ripgrep(&home, &arguments) else { return Ok(false) };
            let input = json!({
                "pattern": pattern, "output_mode": mode, "hidden": flags.hidden,
                "no_ignore": flags.no_ignore, "limit": 2000,
            });
            let ours = run_tool(&home, "grep", &input);
            let ours = if ours.starts_with("No matches.") { String::new() } else { ours };
            if counts {
                prop_assert_eq!(&ours, &theirs, "{}", input);
                return Ok(!theirs.is_empty());
            }
            let late = tree.files_with_late_nul();
            let missing: Vec<&str> =
                theirs.lines().filter(|path| !ours.lines().any(|ours| ours == *path)).collect();
            prop_assert_eq!(missing, Vec::<&str>::new(), "{}", input);
            let without_late = |paths: &str| {
                paths
                    .lines()
                    .filter(|path| !late.contains(*path))
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            prop_assert_eq!(without_late(&ours), without_late(&theirs), "{}", input);
            Ok(!theirs.is_empty())
        },
    );
}

#[test]
fn r121_a_glob_that_looks_like_a_comment_finds_files_by_that_name() {
    let home = new_home().with_file("#x#", "needle\n").with_file("a.rs", "needle\n");
    assert_eq!(run_tool(&home, "glob", &json!({"pattern": "#x#"})), "#x#\n");
    assert_eq!(
        run_tool(&home, "grep", &json!({"pattern": "needle", "glob": ["#*"]})),
        "#x#:1:needle\n"
    );
}
