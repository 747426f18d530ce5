//! What the embedded components were built from: `host/core/embedded/record.json`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// All embedded components, by the name of their plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The components.
    pub plugins: BTreeMap<String, Entry>,
}

/// One embedded component.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Of the component, in hexadecimal.
    pub sha256: String,
    /// Of the component, in bytes.
    pub size: u64,
    /// The hash of everything that it was built from, in hexadecimal.
    pub sources: String,
    /// What built it. The same sources and toolchain are meant to give the same bytes.
    pub toolchain: String,
    /// Whether a second build from scratch, in another directory, gave the same bytes.
    pub reproduced: bool,
}

impl Record {
    /// Reads the record of a workspace; one that does not exist has no components.
    pub fn read(root: &Path) -> Result<Self, String> {
        let path = directory(root).join("record.json");
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|error| format!("{}: {error}", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    pub(crate) fn write(&self, root: &Path) -> Result<(), String> {
        let path = directory(root).join("record.json");
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        fs::write(&path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Where the host embeds components from.
pub(crate) fn directory(root: &Path) -> PathBuf {
    root.join("host/core/embedded")
}

/// The component of a plugin.
pub(crate) fn component(root: &Path, plugin: &str) -> PathBuf {
    directory(root).join(format!("{plugin}.wasm"))
}
