//! The public interface of each library crate: `host/*/public-api.txt` has to agree with the code.
//!
//! `UPDATE_PUBLIC_API=1 cargo test -p cofferdam-tests --test conventions public_api` writes the
//! files anew.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::sources::workspace_root;

/// The directories below `host` with the names of their crates.
const LIBRARIES: [(&str, &str); 4] = [
    ("policy", "cofferdam-policy"),
    ("confine", "cofferdam-confine"),
    ("core", "cofferdam"),
    ("mcp", "cofferdam-mcp"),
];

const UPDATE: &str =
    "UPDATE_PUBLIC_API=1 cargo test -p cofferdam-tests --test conventions public_api";

/// Writes a program that runs rustdoc with unstable options.
///
/// Only rustdoc gets the variable that permits them. In the environment of cargo it would change
/// the dependencies, and the compiled ones in the target directory could not be used.
fn write_rustdoc_wrapper() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rustdoc-with-unstable-options");
    let script = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";
    fs::write(&path, script).expect("it is written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is executable");
    path
}

/// Writes the documentation of all libraries as JSON. All of the workspace together, because a
/// package alone has dependencies with fewer features, which would all be compiled once more.
fn document_libraries(rustdoc: &Path, target: &Path) {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["doc", "--offline", "--quiet", "--workspace", "--lib", "--no-deps"])
        .env("RUSTDOC", rustdoc)
        .env("RUSTDOCFLAGS", "-Zunstable-options --output-format=json --cap-lints=allow")
        .env("CARGO_TARGET_DIR", target)
        .current_dir(workspace_root())
        .output()
        .expect("cargo starts");
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "rustdoc cannot read the libraries:\n{problems}");
}

/// Returns the public interface of a crate, one item per line.
fn public_interface(package: &str, target: &Path) -> String {
    let json = target.join("doc").join(format!("{}.json", package.replace('-', "_")));
    let interface = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()
        .unwrap_or_else(|error| {
            panic!("{package}: {error}\nThe crate `public-api` has to match the version of Rust.")
        });
    interface.to_string()
}

/// Returns the lines that only one of two interfaces has: removed with `-`, and added with `+`.
fn describe_difference(before: &str, after: &str) -> Vec<String> {
    let lines = |text: &'_ str| text.lines().map(str::to_owned).collect::<BTreeSet<String>>();
    let (before, after) = (lines(before), lines(after));
    let removed = before.difference(&after).map(|line| format!("- {line}"));
    removed.chain(after.difference(&before).map(|line| format!("+ {line}"))).collect()
}

#[test]
fn a_changed_line_of_an_interface_is_removed_and_added() {
    let before = "pub fn a::f()\npub fn a::g()\n";
    let after = "pub fn a::f() -> u8\npub fn a::g()\n";
    assert_eq!(describe_difference(before, after), ["- pub fn a::f()", "+ pub fn a::f() -> u8"]);
    assert!(describe_difference(before, before).is_empty());
}

#[test]
fn the_public_interface_of_each_library_is_in_its_file() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
    document_libraries(&write_rustdoc_wrapper(), target);
    let mut problems = Vec::new();
    for (directory, package) in LIBRARIES {
        let file = format!("host/{directory}/public-api.txt");
        let path = workspace_root().join(&file);
        let after = public_interface(package, target);
        if std::env::var_os("UPDATE_PUBLIC_API").is_some() {
            fs::write(&path, &after).expect("it is written");
            continue;
        }
        let before = fs::read_to_string(&path).unwrap_or_default();
        let difference = describe_difference(&before, &after);
        if before != after {
            problems.push(format!("{file}:\n{}", difference.join("\n")));
        }
    }
    assert!(
        problems.is_empty(),
        "the public interface has changed:\n{}\nIf this is meant, run\n    {UPDATE}",
        problems.join("\n")
    );
}
