//! The lock file: the third-party plugins that the user accepted, and with which permissions.
//!
//! A plugin is accepted as one component, identified by its digest, that requests certain
//! capabilities. A component with another digest is another plugin, whatever its name. If it
//! requests more than the accepted one, the lock file reports the new permissions apart from the
//! other changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::added::AddedPlugin;
use super::servers::AcceptedServer;
use crate::policy::Capability;
use crate::sandbox::{ComponentDigest, DeclaredTool, LoadedPlugin};

/// All accepted plugins, by the path that they are loaded from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedPlugins {
    version: u32,
    /// The plugins that `cofferdam plugin add` installed, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) added: BTreeMap<String, AddedPlugin>,
    #[serde(default, rename = "plugin", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) plugins: BTreeMap<String, AcceptedPlugin>,
    /// The accepted MCP servers, by name.
    #[serde(default, rename = "server", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) servers: BTreeMap<String, AcceptedServer>,
}

/// A plugin as the user accepted it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedPlugin {
    /// The digest of the component.
    pub digest: ComponentDigest,
    /// The names of all interfaces that the component imports.
    pub imports: BTreeSet<String>,
    /// The tools of the plugin, by name.
    #[serde(rename = "tool")]
    pub tools: BTreeMap<String, AcceptedTool>,
}

/// A tool as the user accepted it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedTool {
    /// The digest of the input schema.
    pub schema: ComponentDigest,
    /// The digest of the output schema, if the tool has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<ComponentDigest>,
    /// The capabilities that the tool requests.
    pub asks: Vec<Capability>,
    /// Whether the tool asks to run alone.
    #[serde(default)]
    pub exclusive: bool,
    /// Whether the tool asks for a confirmation of each call.
    #[serde(default)]
    pub confirm: bool,
}

/// The result of comparing a plugin with the accepted one.
///
/// This enum is closed: a program that admits plugins has to treat each status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptanceStatus {
    /// The plugin is exactly the accepted one.
    Accepted,
    /// No plugin was accepted at this path.
    New,
    /// The plugin differs from the accepted one.
    Changed {
        /// The permissions that the accepted plugin did not request, described in words. Empty if
        /// there are none.
        new_permissions: Vec<String>,
    },
}

/// An error that makes the lock file unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidLockFile {
    /// The text is not a valid lock file.
    #[error("{0}")]
    Malformed(String),
    /// The file has a format that this version of the program does not know.
    #[error("unsupported format {0}; this version of cofferdam supports format {LOCK_VERSION}")]
    UnsupportedVersion(u32),
}

const LOCK_VERSION: u32 = 1;

impl AcceptanceStatus {
    /// Describes the status, as the beginning of a sentence.
    pub fn describe(&self) -> String {
        match self {
            Self::Accepted => "accepted".into(),
            Self::New => "it is not accepted yet".into(),
            Self::Changed { new_permissions } if new_permissions.is_empty() => {
                "its content changed since you accepted it, and it requests no new permissions"
                    .into()
            }
            Self::Changed { new_permissions } => {
                format!("it changed since you accepted it: {}", new_permissions.join("; "))
            }
        }
    }
}

impl AcceptedPlugins {
    /// Creates an empty lock file of the current format.
    pub fn new() -> Self {
        Self { version: LOCK_VERSION, ..Self::default() }
    }

    /// Parses the text of a lock file.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not valid TOML, has another format version, holds an invalid
    /// digest, or names a file outside of the plugin directory.
    pub fn parse(text: &str) -> Result<Self, InvalidLockFile> {
        let lock: Self =
            toml::from_str(text).map_err(|error| InvalidLockFile::Malformed(error.to_string()))?;
        if lock.version != LOCK_VERSION {
            return Err(InvalidLockFile::UnsupportedVersion(lock.version));
        }
        if let Some(digest) = lock
            .plugins
            .values()
            .map(|plugin| &plugin.digest)
            .find(|digest| ComponentDigest::parse(digest.as_str()).is_none())
        {
            return Err(InvalidLockFile::Malformed(format!(
                "{:?} is not a SHA-256 digest",
                digest.as_str()
            )));
        }
        if let Some(added) = lock.added.values().find(|added| !added.has_plain_file_name()) {
            return Err(InvalidLockFile::Malformed(format!("{:?} is not a file name", added.file)));
        }
        lock.check_servers()?;
        Ok(lock)
    }

    /// Returns the text of the lock file.
    pub fn to_toml(&self) -> Result<String, InvalidLockFile> {
        let text = toml::to_string_pretty(self)
            .map_err(|error| InvalidLockFile::Malformed(error.to_string()))?;
        Ok(format!(
            "# The accepted plugins and MCP servers with their permissions. Written by cofferdam; \
                change it with `cofferdam lock`, `cofferdam plugin` and `cofferdam mcp`.\n\n{text}"
        ))
    }

    /// Compares the plugin at `path` with the one that was accepted there.
    pub fn status(&self, path: &Path, plugin: &LoadedPlugin) -> AcceptanceStatus {
        let now = AcceptedPlugin::from_plugin(plugin);
        match self.plugins.get(&path_key(path)) {
            None => AcceptanceStatus::New,
            Some(before) if *before == now => AcceptanceStatus::Accepted,
            Some(before) => {
                AcceptanceStatus::Changed { new_permissions: now.new_permissions_since(before) }
            }
        }
    }

    /// Describes the permissions of the plugin at `path` that were not accepted there.
    pub fn new_permissions(&self, path: &Path, plugin: &LoadedPlugin) -> Vec<String> {
        let nothing = AcceptedPlugin {
            digest: plugin.digest().clone(),
            imports: BTreeSet::new(),
            tools: BTreeMap::new(),
        };
        AcceptedPlugin::from_plugin(plugin)
            .new_permissions_since(self.plugins.get(&path_key(path)).unwrap_or(&nothing))
    }

    /// Accepts the plugin at `path` in its current form. Returns the new entry.
    pub(super) fn accept_plugin(
        &mut self,
        path: &Path,
        plugin: &LoadedPlugin,
    ) -> (String, AcceptedPlugin) {
        let entry = (path_key(path), AcceptedPlugin::from_plugin(plugin));
        self.plugins.extend([entry.clone()]);
        entry
    }

    /// Returns a notice if the same component was accepted at another path, or if another accepted
    /// plugin has a tool of the same name.
    pub fn similarity_notice(&self, path: &Path, plugin: &LoadedPlugin) -> Option<String> {
        let others = || self.plugins.iter().filter(|(other, _)| **other != path_key(path));
        if let Some((other, _)) = others().find(|(_, accepted)| accepted.digest == *plugin.digest())
        {
            return Some(format!("the same component is already accepted at {other}"));
        }
        let named = |accepted: &AcceptedPlugin| {
            plugin
                .declaration()
                .tools
                .iter()
                .find(|tool| accepted.tools.contains_key(&tool.name))
                .map(|tool| tool.name.clone())
        };
        let (other, tool) =
            others().find_map(|(other, accepted)| Some((other, named(accepted)?)))?;
        Some(format!(
            "the tool name {tool} is also used by {other}, which was accepted with a \
            different component"
        ))
    }
}

pub(super) fn path_key(path: &Path) -> String {
    let canonical = path.canonicalize().or_else(|error| match (path.parent(), path.file_name()) {
        // A deleted file still has a canonical parent directory.
        (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
        (_, None) | (None, _) => Err(error),
    });
    canonical.unwrap_or_else(|_| path.to_owned()).display().to_string()
}

impl AcceptedPlugin {
    pub(super) fn from_plugin(plugin: &LoadedPlugin) -> Self {
        let declaration = plugin.declaration();
        let tool = |tool: &DeclaredTool| (tool.name.clone(), AcceptedTool::from_declared(tool));
        Self {
            digest: plugin.digest().clone(),
            imports: declaration.imports.interfaces.iter().cloned().collect(),
            tools: declaration.tools.iter().map(tool).collect(),
        }
    }

    /// Describes the permissions that this plugin requests and `other` does not.
    pub(super) fn new_permissions_since(&self, other: &Self) -> Vec<String> {
        let mut wider = Vec::new();
        for (name, tool) in &self.tools {
            match other.tools.get(name) {
                None => wider.push(format!("new tool {name}{}", tool.describe())),
                Some(before) => {
                    let more = tool.asks.iter().filter(|asked| {
                        !before.asks.iter().any(|had| covers_capability(had, asked))
                    });
                    wider.extend(
                        more.map(|asked| format!("{name} now requests permission to {asked}")),
                    );
                    if before.confirm && !tool.confirm {
                        wider.push(format!("{name} no longer requires confirmation of each call"));
                    }
                    if before.exclusive && !tool.exclusive {
                        wider.push(format!("{name} no longer requires exclusive execution"));
                    }
                }
            }
        }
        let is_new = |interface: &&String| {
            interface.starts_with("cofferdam:") && !other.imports.contains(*interface)
        };
        wider.extend(
            self.imports.iter().filter(is_new).map(|interface| format!("new import {interface}")),
        );
        wider
    }
}

/// Returns whether the capability `had` includes `asked`.
pub(super) fn covers_capability(had: &Capability, asked: &Capability) -> bool {
    match (had, asked) {
        (Capability::Fetch(had), Capability::Fetch(asked)) => {
            asked.iter().all(|one| had.contains(one))
        }
        (Capability::WriteFiles, Capability::ReadFiles) => true,
        (had, asked) => had == asked,
    }
}

impl AcceptedTool {
    fn from_declared(tool: &DeclaredTool) -> Self {
        let digest = |schema: &Value| ComponentDigest::compute(schema.to_string().as_bytes());
        Self {
            schema: digest(&tool.input_schema),
            output_schema: tool.output_schema.as_ref().map(digest),
            asks: tool.asks.clone(),
            exclusive: tool.exclusive,
            confirm: tool.confirm,
        }
    }

    fn describe(&self) -> String {
        let asks: Vec<String> = self.asks.iter().map(ToString::to_string).collect();
        if asks.is_empty() {
            ", which requests no permissions".to_owned()
        } else {
            format!(", which requests permission to {}", asks.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted_tool(asks: &[Capability]) -> AcceptedTool {
        AcceptedTool {
            schema: ComponentDigest::compute(b"{}"),
            output_schema: None,
            asks: asks.to_vec(),
            exclusive: false,
            confirm: false,
        }
    }

    fn accepted_plugin(content: &[u8], tools: &[(&str, AcceptedTool)]) -> AcceptedPlugin {
        let tools = tools.iter().map(|(name, tool)| ((*name).to_owned(), tool.clone())).collect();
        AcceptedPlugin {
            digest: ComponentDigest::compute(content),
            imports: BTreeSet::new(),
            tools,
        }
    }

    #[test]
    fn new_permissions_are_described_in_words() {
        let fetch = |hosts: &[&str]| {
            Capability::Fetch(hosts.iter().map(|host| (*host).to_owned()).collect())
        };
        let before = accepted_plugin(
            b"1",
            &[(
                "a",
                AcceptedTool {
                    confirm: true,
                    ..accepted_tool(&[Capability::WriteFiles, fetch(&["x.org", "y.org"])])
                },
            )],
        );
        let same = accepted_plugin(
            b"2",
            &[(
                "a",
                AcceptedTool {
                    confirm: true,
                    ..accepted_tool(&[Capability::ReadFiles, fetch(&["y.org"])])
                },
            )],
        );
        assert_eq!(same.new_permissions_since(&before), Vec::<String>::new());
        let mut wider = accepted_plugin(
            b"3",
            &[
                ("a", accepted_tool(&[Capability::RunCommands, fetch(&["z.org"])])),
                ("b", accepted_tool(&[])),
            ],
        );
        wider.imports.insert("cofferdam:plugin/commands@0.1.0".into());
        insta::assert_snapshot!(wider.new_permissions_since(&before).join("\n"), @r"
        a now requests permission to run commands
        a now requests permission to send HTTP requests to z.org
        a no longer requires confirmation of each call
        new tool b, which requests no permissions
        new import cofferdam:plugin/commands@0.1.0
        ");
    }

    #[test]
    fn a_lock_file_survives_a_round_trip() {
        let mut lock = AcceptedPlugins::new();
        lock.plugins.insert(
            "/p/a.wasm".into(),
            accepted_plugin(
                b"1",
                &[(
                    "a",
                    accepted_tool(&[
                        Capability::ReadFiles,
                        Capability::Fetch(vec!["x.org".into()]),
                    ]),
                )],
            ),
        );
        let text = lock.to_toml().expect("serializable");
        assert_eq!(AcceptedPlugins::parse(&text), Ok(lock), "{text}");
        assert_eq!(
            AcceptedPlugins::parse("version = 2"),
            Err(InvalidLockFile::UnsupportedVersion(2))
        );
        assert!(AcceptedPlugins::parse("version = 1\nx = 1").is_err());
    }
}
