//! No file names the host of a package registry: each ecosystem's own client knows where its
//! registry is, and a mirror or an offline machine has another one.

use std::fs;
use std::path::{Path, PathBuf};

use super::sources::workspace_root;

/// In parts, so that this file is none that names them.
const HOSTS: [[&str; 2]; 12] = [
    ["crates", "io"],
    ["static.rust-lang", "org"],
    ["sh.rustup", "rs"],
    ["pypi", "org"],
    ["pythonhosted", "org"],
    ["npmjs", "org"],
    ["npmjs", "com"],
    ["proxy.golang", "org"],
    ["sum.golang", "org"],
    ["deb.debian", "org"],
    ["security.debian", "org"],
    ["rubygems", "org"],
];

#[test]
fn no_file_names_the_host_of_a_package_registry() {
    let hosts = HOSTS.map(|parts| parts.join("."));
    let mut files = Vec::new();
    collect(&workspace_root(), &mut files);
    assert!(
        files.iter().any(|path| path.ends_with("tests/languages/run")) && files.len() > 300,
        "{} files",
        files.len()
    );
    let mut found = Vec::new();
    for path in files {
        // What is no text names nothing that a person reads.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (line, text) in text.lines().enumerate() {
            if hosts.iter().any(|host| text.contains(host.as_str())) {
                found.push(format!("{}:{}: {text}", path.display(), line + 1));
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

/// The files of the repository, but for what is built and what cargo writes.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("it can be listed").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_own = [".git", "target", "Cargo.lock", "node_modules", ".venv"]
            .iter()
            .all(|other| name != *other);
        if is_own && entry.file_type().expect("it is known").is_dir() {
            collect(&path, files);
        } else if is_own {
            files.push(path);
        }
    }
}
