//! The documentation: its links lead somewhere, and its examples do what they say.
//!
//! `markdown.rs` describes how a page marks what is run.

#![expect(clippy::expect_used, reason = "a page that cannot be read fails the test")]

mod cli_reference;
mod examples;
mod links;
mod man_pages;
mod markdown;
mod output;
mod schema_keys;
mod schemas;

use std::path::{Path, PathBuf};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// Directories that hold no documentation of this repository.
const SKIPPED: [&str; 4] = [".git", "target", "node_modules", "vectors"];

/// The root of the repository.
fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the crate is in the workspace").to_owned()
}

/// All Markdown files of the repository, in a fixed order.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    collect(&root(), &mut pages);
    pages.sort();
    pages
}

fn collect(directory: &Path, pages: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).expect("a directory can be listed");
    for entry in entries.map(|entry| entry.expect("an entry can be read")) {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && !path.is_symlink() {
            if !SKIPPED.iter().any(|skipped| name == *skipped) {
                collect(&path, pages);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// The path of a page as a reader of a failure wants it.
fn name(page: &Path) -> String {
    page.strip_prefix(root()).unwrap_or(page).display().to_string()
}

fn read(page: &Path) -> String {
    std::fs::read_to_string(page).expect("a page is text")
}
