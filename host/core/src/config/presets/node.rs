//! The registries of npm: those of the user's npmrc files, or the default in npm itself.

use std::path::{Path, PathBuf};

use super::FoundHosts;

/// The file of npm with the defaults of its settings, relative to the directory of npm.
const DEFINITIONS: [&str; 3] = [
    "node_modules/@npmcli/config/lib/definitions/definitions.js",
    // Debian puts packages beside each other.
    "../@npmcli/config/lib/definitions/definitions.js",
    "lib/utils/config/definitions.js",
];

pub(super) fn find(found: &mut FoundHosts<'_>) {
    let user = found.variable("NPM_CONFIG_USERCONFIG").or_else(|| found.home(".npmrc"));
    let mut has_default = false;
    for file in [user, Some(found.system("/etc/npmrc"))].into_iter().flatten() {
        has_default |= add_npmrc(found, &file);
    }
    if has_default {
        return;
    }
    let directories = installed(found);
    let mut files =
        directories.iter().flat_map(|npm| DEFINITIONS.iter().map(move |file| npm.join(file)));
    let default = files.find_map(|file| {
        let url = default_registry(&found.read(&file)?)?.to_owned();
        Some((url, file))
    });
    if let Some((url, file)) = default {
        found.add_url(&url, &file);
    }
}

/// Adds the registries of a file. Returns whether it sets the registry of packages without a scope.
fn add_npmrc(found: &mut FoundHosts<'_>, file: &Path) -> bool {
    let Some(text) = found.read(file) else { return false };
    let mut has_default = false;
    for line in text.lines().map(str::trim) {
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim().trim_matches(['"', '\'']));
        if key == "registry" || key.starts_with('@') && key.ends_with(":registry") {
            has_default |= key == "registry";
            found.add_url(value, file);
        }
    }
    has_default
}

/// Returns the directories in which npm may be installed.
fn installed(found: &FoundHosts<'_>) -> Vec<PathBuf> {
    // The program is `bin/npm-cli.js` in the directory of npm.
    let program = found.program("npm");
    let by_program = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    let usual =
        ["/usr/share/nodejs/npm", "/usr/lib/node_modules/npm"].map(|path| found.system(path));
    by_program.map(Path::to_owned).into_iter().chain(usual).collect()
}

/// Returns the default of `registry` in the definitions of npm.
fn default_registry(text: &str) -> Option<&str> {
    let definition = text.split_once("'registry', {").map(|(_, rest)| rest)?;
    let value = definition.split_once("default:").map(|(_, rest)| rest)?;
    let url = value.split_once(['\'', '"', '`']).map(|(_, rest)| rest)?;
    url.split(['\'', '"', '`']).next()
}
