//! The package indexes of pip: those of its configuration, or the defaults in pip itself.

use std::path::{Path, PathBuf};

use super::FoundHosts;

/// The file of pip with its defaults, relative to a directory of packages.
const DEFAULTS: &str = "pip/_internal/models/index.py";

pub(super) fn find(found: &mut FoundHosts<'_>) {
    let files = [
        Some(found.system("/etc/pip.conf")),
        found.config_home("pip/pip.conf"),
        found.home(".pip/pip.conf"),
        found.variable("PIP_CONFIG_FILE"),
    ];
    let mut has_index = false;
    for file in files.into_iter().flatten() {
        has_index |= add_configuration(found, &file);
    }
    if has_index {
        return;
    }
    for directory in package_directories(found) {
        let file = directory.join(DEFAULTS);
        if let Some(text) = found.read(&file) {
            add_defaults(found, &text, &file);
        }
    }
}

/// Adds the indexes of a file. Returns whether it replaces the default index.
fn add_configuration(found: &mut FoundHosts<'_>, file: &Path) -> bool {
    let Some(text) = found.read(file) else { return false };
    let (mut key, mut has_index) = ("", false);
    for line in text.lines() {
        // A value can go on in indented lines.
        let value = if line.starts_with([' ', '\t']) {
            line
        } else if let Some((name, value)) = line.split_once(['=', ':']) {
            key = name.trim();
            value
        } else {
            key = "";
            continue;
        };
        let name = key.replace('_', "-");
        if ["index-url", "extra-index-url", "find-links"].contains(&name.as_str()) {
            has_index |= name == "index-url";
            value.split_whitespace().for_each(|url| found.add_url(url, file));
        }
    }
    has_index
}

/// Returns the directories in which pip may be installed.
fn package_directories(found: &FoundHosts<'_>) -> Vec<PathBuf> {
    let mut all = vec![found.system("/usr/lib/python3/dist-packages")];
    let libraries = ["/usr/lib", "/usr/local/lib"].map(|path| found.system(path));
    for library in libraries.into_iter().chain(found.home(".local/lib")) {
        let versions = found.list(&library).into_iter().filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))
        });
        for version in versions {
            all.extend(["site-packages", "dist-packages"].map(|name| version.join(name)));
        }
    }
    // The program is in a `bin` beside the `lib` of its packages, as in pyenv.
    let prefix =
        found.program("python3").and_then(|path| Some(path.parent()?.parent()?.to_owned()));
    if let Some(library) = prefix.map(|prefix| prefix.join("lib")) {
        all.extend(found.list(&library).into_iter().map(|path| path.join("site-packages")));
    }
    all
}

/// Adds the default index, written `PyPI = PackageIndex("URL", file_storage_domain="HOST")`.
fn add_defaults(found: &mut FoundHosts<'_>, text: &str, file: &Path) {
    let Some((_, rest)) = text.split_once("\nPyPI = PackageIndex(") else { return };
    let arguments = rest.split(')').next().unwrap_or_default();
    let mut texts = arguments.split('"').skip(1).step_by(2);
    if let Some(url) = texts.next() {
        found.add_url(url, file);
    }
    if let Some(host) = texts.next() {
        found.add_url(&format!("https://{host}/"), file);
    }
}
