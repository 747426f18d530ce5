//! Benchmarks of the `grep` tool against ripgrep, on generated trees.

use std::path::Path;
use std::process::Command;

use cofferdam::sandbox::InstanceAllocation;
use tokio::runtime::Runtime;

use crate::calls::Bench;
use crate::measure::{Line, against};

/// Kinds of patterns: name, JSON arguments of the tool, arguments of `rg`.
const PATTERNS: [(&str, &str, &[&str]); 4] = [
    ("literal", r#""pattern":"needle_in_here""#, &["needle_in_here"]),
    ("regex", r#""pattern":"needle_[a-z]+_her[aeiou]""#, &["needle_[a-z]+_her[aeiou]"]),
    (
        "ignoring case",
        r#""pattern":"NEEDLE_in_HERE","ignore_case":true"#,
        &["-i", "NEEDLE_in_HERE"],
    ),
    (
        "alternation",
        r#""pattern":"needle_in_here|thread_of_gold|lost_button""#,
        &["needle_in_here|thread_of_gold|lost_button"],
    ),
];

pub(crate) fn run(runtime: &Runtime, small_only: bool) {
    if Command::new("rg").arg("--version").output().is_err() {
        println!("rg is not installed: nothing to compare with");
        return;
    }
    tree(runtime, "small", 200, 22_000, 20, "≤ 0.6×");
    if !small_only {
        tree(runtime, "big", 20_000, 10_000, 5, "≤ 1.0×");
    }
}

fn tree(runtime: &Runtime, name: &str, files: usize, bytes: usize, rounds: usize, target: &str) {
    let directory = tempfile::tempdir().expect("a folder");
    grow(directory.path(), files, bytes);
    let bench = Bench::new(InstanceAllocation::Pooled, directory.path());
    // The host reads on one thread while the guest searches on another.
    for (class, input, arguments) in PATTERNS {
        let line = format!("{name} tree ({files} files), {class}");
        let ours = || {
            bench.call(runtime, "grep", &format!("{{{input},\"limit\":2000}}"));
        };
        let native = || {
            let rg = Command::new("rg")
                .args(["-n", "-j2"])
                .args(arguments)
                .arg(".")
                .current_dir(directory.path())
                .output();
            assert!(rg.expect("it starts").status.success(), "rg finds it too");
        };
        against(&Line { name: &line, target }, rounds, ours, native);
    }
}

/// Generates `files` files of about `bytes` bytes of random words. Every hundredth file contains
/// the needle.
fn grow(directory: &Path, files: usize, bytes: usize) {
    const WORDS: [&str; 12] = [
        "return",
        "value",
        "needle",
        "thread",
        "const",
        "match",
        "index",
        "buffer",
        "string",
        "error",
        "result",
        "hereafter",
    ];
    let mut state = 0x9e37_79b9_u32;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as usize
    };
    for file in 0..files {
        let parent = directory.join(format!("d{}", file % 97)).join(format!("e{}", file % 7));
        std::fs::create_dir_all(&parent).expect("it is made");
        let mut text = String::with_capacity(bytes + 100);
        while text.len() < bytes {
            for _ in 0..8 {
                text.push_str(WORDS[next() % WORDS.len()]);
                text.push(' ');
            }
            text.push('\n');
        }
        if file % 100 == 0 {
            text.push_str("let x = needle_in_here();\n");
        }
        std::fs::write(parent.join(format!("f{file}.rs")), text).expect("it is written");
    }
}
