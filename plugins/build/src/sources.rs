//! The hash of everything that a component is made from.
//!
//! That is the contract, the SDK, the plugin's own files, the versions of its dependencies, and
//! what the workspace says about how to build it. A change anywhere else leaves the component as it
//! is.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};
use toml::{Table, Value};

use crate::{Plugin, compile, lock, plugins};

const SDK: &str = "sdk/rust";

/// In hexadecimal.
pub(crate) fn hash(root: &Path, plugin: &Plugin) -> Result<String, String> {
    let own = format!("plugins/{}", plugin.name);
    let mut hash = Sha256::new();
    for directory in ["wit", SDK, &own] {
        for path in files(root, directory)? {
            let contents =
                fs::read(root.join(&path)).map_err(|error| format!("{path}: {error}"))?;
            add(&mut hash, &path, &contents);
        }
    }
    let mut direct = BTreeSet::new();
    for member in [SDK, &own] {
        direct
            .extend(dependencies(&plugins::read_manifest(&root.join(member).join("Cargo.toml"))?));
    }
    add(&mut hash, "Cargo.lock", lock::closure(root, &direct)?.join("\n").as_bytes());
    let workspace = plugins::read_manifest(&root.join("Cargo.toml"))?;
    add(&mut hash, "Cargo.toml", settings(&workspace, &direct).to_string().as_bytes());
    add(&mut hash, "flags", compile::FLAGS.join("\n").as_bytes());
    Ok(hex(&hash.finalize()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// With its lengths, so that no two lists of files look alike.
fn add(hash: &mut Sha256, name: &str, contents: &[u8]) {
    hash.update((name.len() as u64).to_le_bytes());
    hash.update(name);
    hash.update((contents.len() as u64).to_le_bytes());
    hash.update(contents);
}

/// All files below a directory but the hidden ones, relative to the root, in order and with `/` on
/// every system.
fn files(root: &Path, directory: &str) -> Result<BTreeSet<String>, String> {
    let failed = |error: std::io::Error| format!("{directory}: {error}");
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(root.join(directory)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name
            .to_str()
            .ok_or_else(|| format!("{directory}: the name {} is not Unicode", name.display()))?;
        if name.starts_with('.') || name == "target" {
            continue;
        }
        let path = format!("{directory}/{name}");
        if entry.file_type().map_err(failed)?.is_dir() {
            files.extend(self::files(root, &path)?);
        } else {
            files.insert(path);
        }
    }
    Ok(files)
}

/// What a package is built with, as opposed to tested with.
fn dependencies(manifest: &Table) -> Vec<String> {
    let tables = ["dependencies", "build-dependencies"]
        .into_iter()
        .filter_map(|name| manifest.get(name)?.as_table());
    tables.flat_map(Table::keys).cloned().collect()
}

/// What of the workspace's manifest a component depends on.
fn settings(workspace: &Table, direct: &BTreeSet<String>) -> Table {
    let get = |path: &[&str]| {
        path.iter().try_fold(&Value::Table(workspace.clone()), |value, key| value.get(key)).cloned()
    };
    let mut settings = Table::new();
    let shared =
        [&["workspace", "package", "edition"][..], &["profile", "release"], &["profile", "plugin"]];
    for path in shared.into_iter().map(<[_]>::to_vec) {
        settings.extend(get(&path).map(|value| (path.join("."), value)));
    }
    for name in direct {
        settings.extend(
            get(&["workspace", "dependencies", name])
                .map(|value| (format!("dependency.{name}"), value)),
        );
    }
    settings
}
