//! The source files of the host, without their tests.

use std::fs;
use std::path::{Path, PathBuf};

/// The directories of the packages below `host`, each of which may use those before it.
pub(crate) const HOST_PACKAGES: [&str; 5] = ["policy", "confine", "core", "mcp", "cli"];

/// A source file.
pub(crate) struct SourceFile {
    /// Below `host`.
    pub(crate) path: String,
    /// Its directory below `host`: `policy`, `confine`, `core`, `mcp` or `cli`.
    pub(crate) package: String,
    /// The top-level module that holds it.
    pub(crate) module: String,
    /// Its lines up to its test module.
    pub(crate) lines: Vec<String>,
}

/// The root of the workspace.
pub(crate) fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package stands in the workspace")
        .to_owned()
}

/// All source files of the host that are part of the program.
pub(crate) fn host_sources() -> Vec<SourceFile> {
    let base = workspace_root().join("host");
    let mut files = Vec::new();
    for package in HOST_PACKAGES {
        collect_files(&base.join(package).join("src"), &mut files);
    }
    let mut sources: Vec<SourceFile> =
        files.iter().filter_map(|file| read_source(&base, file)).collect();
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(sources.len() > 50, "the host's sources were not found");
    sources
}

pub(crate) fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("it can be listed").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn read_source(base: &Path, file: &Path) -> Option<SourceFile> {
    let path = file.strip_prefix(base).expect("it is below").to_string_lossy().into_owned();
    let name = file.file_stem()?.to_string_lossy();
    if name == "tests" || name.starts_with("test_") || name.ends_with("_tests") {
        return None;
    }
    let text = fs::read_to_string(file).expect("it can be read");
    let program = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let (package, inside) = path.split_once("/src/").expect("sources are in `src`");
    let (package, module) =
        (package.to_owned(), inside.split(['/', '.']).next().unwrap_or_default().to_owned());
    let lines = program.lines().map(str::to_owned).collect();
    Some(SourceFile { path, package, module, lines })
}
