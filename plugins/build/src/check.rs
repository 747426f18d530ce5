//! Whether sources, record and components agree.

use std::fmt;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::{Record, plugins, record, sources};

/// Something that does not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The plugin was never built.
    NotBuilt(String),
    /// What the plugin is built from has changed since.
    Stale(String),
    /// The component is not the one that was built.
    Altered(String),
    /// A component is recorded whose plugin is gone.
    Gone(String),
    /// A file could not be read or makes no sense.
    Unreadable(String),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt(plugin) => write!(
                f,
                "{plugin}: never built; run `cargo plugins build {plugin}`"
            ),
            Self::Stale(plugin) => {
                write!(
                    f,
                    "{plugin}: its sources have changed since it was built; run `cargo plugins build {plugin}`"
                )
            }
            Self::Altered(plugin) => write!(
                f,
                "{plugin}: host/embedded/{plugin}.wasm is not what was built; run `cargo plugins build {plugin}`"
            ),
            Self::Gone(plugin) => write!(
                f,
                "{plugin}: recorded, and plugins/{plugin} is gone; run `cargo plugins build` and delete host/embedded/{plugin}.wasm"
            ),
            Self::Unreadable(what) => f.write_str(what),
        }
    }
}

/// Compares the sources of all plugins of the workspace at `root` with the record, and the record with the components.
///
/// It reads files and runs nothing.
pub fn check(root: &Path) -> Result<(), Vec<Mismatch>> {
    let all = plugins::plugins(root).map_err(|error| vec![Mismatch::Unreadable(error)])?;
    let record = Record::read(root).map_err(|error| vec![Mismatch::Unreadable(error)])?;
    let mut mismatches = Vec::new();
    for plugin in &all {
        let name = &plugin.name;
        let Some(entry) = record.plugins.get(name) else {
            mismatches.push(Mismatch::NotBuilt(name.clone()));
            continue;
        };
        match sources::hash(root, plugin) {
            Ok(hash) if hash == entry.sources => {}
            Ok(_) => mismatches.push(Mismatch::Stale(name.clone())),
            Err(error) => mismatches.push(Mismatch::Unreadable(error)),
        }
        match fs::read(record::component(root, name)) {
            Ok(component) if sources::hex(&Sha256::digest(&component)) == entry.sha256 => {}
            _ => mismatches.push(Mismatch::Altered(name.clone())),
        }
    }
    let gone = record
        .plugins
        .keys()
        .filter(|name| !all.iter().any(|plugin| plugin.name == **name));
    mismatches.extend(gone.cloned().map(Mismatch::Gone));
    if mismatches.is_empty() {
        Ok(())
    } else {
        Err(mismatches)
    }
}
