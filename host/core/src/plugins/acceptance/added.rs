//! Plugins that were installed by name: their sources, their files, and the differences of a newer
//! version.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::accepted::{AcceptedPlugin, AcceptedPlugins, covers_capability, path_key};
use crate::sandbox::{ComponentDigest, LoadedPlugin};

/// A plugin that the user installed by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddedPlugin {
    /// The path or the URL that the plugin was installed from, and is updated from.
    pub source: String,
    /// The name of its file in the directory of installed plugins.
    pub file: String,
}

/// The differences between a plugin and the accepted one, described in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcceptanceDiff {
    /// The permissions that the accepted plugin did not request.
    pub new_permissions: Vec<String>,
    /// All other differences.
    pub other_changes: Vec<String>,
}

impl AddedPlugin {
    /// Returns whether the file name stays inside the plugin directory. `plugin remove` deletes the
    /// file, so it must not lead elsewhere.
    pub(super) fn has_plain_file_name(&self) -> bool {
        !self.file.is_empty() && !self.file.starts_with('.') && !self.file.contains(['/', '\0'])
    }
}

impl AcceptedPlugins {
    /// Returns the installed plugins, by name.
    pub fn added_plugins(&self) -> impl Iterator<Item = (&str, &AddedPlugin)> {
        self.added.iter().map(|(name, added)| (name.as_str(), added))
    }

    /// Returns the plugin that was installed under `name`.
    pub fn find_added(&self, name: &str) -> Option<&AddedPlugin> {
        self.added.get(name)
    }

    /// Installs a plugin under `name` and accepts it in its current form, at `path`.
    pub fn add_plugin(
        &mut self,
        name: &str,
        added: AddedPlugin,
        path: &Path,
        plugin: &LoadedPlugin,
    ) {
        self.added.insert(name.to_owned(), added);
        self.accept_plugin(path, plugin);
    }

    /// Removes an installed plugin, together with its acceptance at `path`.
    pub fn remove_added(&mut self, name: &str, path: &Path) -> Option<AddedPlugin> {
        self.plugins.remove(&path_key(path));
        self.added.remove(name)
    }

    /// Returns the digest of the component that was accepted at `path`.
    pub fn accepted_digest(&self, path: &Path) -> Option<&ComponentDigest> {
        self.plugins.get(&path_key(path)).map(|accepted| &accepted.digest)
    }

    /// Compares a plugin with the one that was accepted at `path`. If none was, the whole plugin
    /// counts as new.
    pub fn diff(&self, path: &Path, plugin: &LoadedPlugin) -> AcceptanceDiff {
        let now = AcceptedPlugin::from_plugin(plugin);
        match self.plugins.get(&path_key(path)) {
            Some(before) => AcceptanceDiff {
                new_permissions: now.new_permissions_since(before),
                other_changes: now.other_changes_since(before),
            },
            None => AcceptanceDiff {
                new_permissions: vec!["no earlier version was accepted".to_owned()],
                other_changes: Vec::new(),
            },
        }
    }
}

impl AcceptedPlugin {
    /// Describes the differences from `other` that add no permission.
    fn other_changes_since(&self, other: &Self) -> Vec<String> {
        let mut different = Vec::new();
        for (name, before) in &other.tools {
            let Some(tool) = self.tools.get(name) else {
                different.push(format!("removed tool {name}"));
                continue;
            };
            let less = before
                .asks
                .iter()
                .filter(|had| !tool.asks.iter().any(|asked| covers_capability(asked, had)));
            different
                .extend(less.map(|had| format!("{name} no longer requests permission to {had}")));
            if tool.schema != before.schema {
                different.push(format!("{name} has a different input schema"));
            }
            if tool.output_schema != before.output_schema {
                different.push(format!("{name} has a different output schema"));
            }
        }
        let wasi = |interface: &&String| !interface.starts_with("cofferdam:");
        let more = self.imports.difference(&other.imports).filter(wasi);
        different.extend(more.map(|interface| format!("new import {interface}")));
        different.extend(
            other
                .imports
                .difference(&self.imports)
                .map(|interface| format!("removed import {interface}")),
        );
        different
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::accepted::AcceptedTool;
    use super::*;
    use crate::policy::Capability;

    fn accepted_plugin(tools: &[(&str, &[u8], &[Capability])], imports: &[&str]) -> AcceptedPlugin {
        let tool = |(name, schema, asks): &(&str, &[u8], &[Capability])| {
            let tool = AcceptedTool {
                schema: ComponentDigest::compute(schema),
                output_schema: None,
                asks: asks.to_vec(),
                exclusive: false,
                confirm: false,
            };
            ((*name).to_owned(), tool)
        };
        let imports: BTreeSet<String> = imports.iter().map(|name| (*name).to_owned()).collect();
        AcceptedPlugin {
            digest: ComponentDigest::compute(b"any"),
            imports,
            tools: tools.iter().map(tool).collect(),
        }
    }

    #[test]
    fn differences_are_described_in_words() {
        let before = accepted_plugin(
            &[("a", b"{}", &[Capability::WriteFiles]), ("b", b"{}", &[])],
            &["cofferdam:plugin/commands@0.1.0"],
        );
        let now = accepted_plugin(
            &[("a", b"{1}", &[Capability::ReadFiles])],
            &["wasi:random/random@0.2.6"],
        );
        insta::assert_snapshot!(now.other_changes_since(&before).join("\n"), @r"
        a no longer requests permission to write files of the workspace
        a has a different input schema
        removed tool b
        new import wasi:random/random@0.2.6
        removed import cofferdam:plugin/commands@0.1.0
        ");
        assert_eq!(before.other_changes_since(&before), [""; 0]);
    }

    #[test]
    fn a_file_outside_the_plugin_directory_is_rejected() {
        let lock = |file: &str| {
            AcceptedPlugins::parse(&format!(
                "version = 1\n[added.x]\nsource = \"/x.wasm\"\nfile = {file:?}\n"
            ))
        };
        assert!(lock("x-0123456789ab.wasm").is_ok());
        for file in ["", "../x.wasm", "/x.wasm", ".x"] {
            assert!(
                lock(file).is_err_and(|error| error.to_string().contains("not a file name")),
                "{file:?}"
            );
        }
    }
}
