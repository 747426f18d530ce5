//! Which plugins of strangers were accepted, and as what: the lock file.
//!
//! A plugin is accepted as one content that asks for certain things. Another content is another plugin, whatever its name;
//! what it asks for beyond the accepted one is told apart from what it asks for all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::added::Added;
use crate::policy::Capability;
use crate::sandbox::{DeclaredTool, Digest, Plugin};

/// All accepted plugins, by the path they are loaded from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: u32,
    /// Those that `plugin add` brought, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) added: BTreeMap<String, Added>,
    #[serde(default, rename = "plugin", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) plugins: BTreeMap<String, Accepted>,
}

/// A plugin as it was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// The content.
    pub digest: Digest,
    /// Every interface that it imports.
    pub imports: BTreeSet<String>,
    /// By name.
    #[serde(rename = "tool")]
    pub tools: BTreeMap<String, AcceptedTool>,
}

/// A tool as it was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedTool {
    /// Of its input schema.
    pub schema: Digest,
    /// What it asks for.
    pub asks: Vec<Capability>,
    /// Whether it wants to run alone.
    #[serde(default)]
    pub exclusive: bool,
    /// Whether it wants to be confirmed each time.
    #[serde(default)]
    pub confirm: bool,
}

/// How a plugin stands to what was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is what was accepted.
    Accepted,
    /// It was never accepted.
    New,
    /// It is not what was accepted.
    Changed {
        /// What it asks for beyond that, in words; empty if nothing.
        wider: Vec<String>,
    },
}

/// The lock file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLock {
    /// It is not understood.
    #[error("{0}")]
    NotUnderstood(String),
    /// It is of another version of this program.
    #[error("it is of format {0}, and this version of cofferdam knows format {VERSION}")]
    OtherFormat(u32),
}

const VERSION: u32 = 1;

impl Lock {
    /// An empty one.
    pub fn new() -> Self {
        Self { version: VERSION, ..Self::default() }
    }

    /// Reads the text of a lock file.
    pub fn parse(text: &str) -> Result<Self, BadLock> {
        let lock: Self = toml::from_str(text).map_err(|error| BadLock::NotUnderstood(error.to_string()))?;
        if lock.version != VERSION {
            return Err(BadLock::OtherFormat(lock.version));
        }
        if let Some(digest) = lock.plugins.values().map(|plugin| &plugin.digest).find(|digest| Digest::parse(digest.as_str()).is_none()) {
            return Err(BadLock::NotUnderstood(format!("{:?} is not a digest", digest.as_str())));
        }
        if let Some(added) = lock.added.values().find(|added| !added.is_plain()) {
            return Err(BadLock::NotUnderstood(format!("{:?} is not the name of a file", added.file)));
        }
        Ok(lock)
    }

    /// The text of the lock file.
    pub fn text(&self) -> Result<String, BadLock> {
        let text = toml::to_string_pretty(self).map_err(|error| BadLock::NotUnderstood(error.to_string()))?;
        Ok(format!("# What plugins were accepted as. Written by cofferdam; `cofferdam lock` and `cofferdam plugin` change it.\n\n{text}"))
    }

    /// How the plugin at this path stands to what was accepted.
    pub fn standing(&self, path: &Path, plugin: &Plugin) -> Standing {
        let now = Accepted::of(plugin);
        match self.plugins.get(&key(path)) {
            None => Standing::New,
            Some(before) if *before == now => Standing::Accepted,
            Some(before) => Standing::Changed { wider: now.beyond(before) },
        }
    }

    /// What the plugin at this path asks for beyond what was accepted there, in words.
    pub fn wider(&self, path: &Path, plugin: &Plugin) -> Vec<String> {
        let nothing = Accepted { digest: plugin.digest().clone(), imports: BTreeSet::new(), tools: BTreeMap::new() };
        Accepted::of(plugin).beyond(self.plugins.get(&key(path)).unwrap_or(&nothing))
    }

    /// Accepts the plugin at this path as it is.
    pub fn accept(&mut self, path: &Path, plugin: &Plugin) {
        self.plugins.insert(key(path), Accepted::of(plugin));
    }

    /// Another path under which the very same content was accepted, or another content that has a tool of the same name.
    pub fn remark(&self, path: &Path, plugin: &Plugin) -> Option<String> {
        let others = || self.plugins.iter().filter(|(other, _)| **other != key(path));
        if let Some((other, _)) = others().find(|(_, accepted)| accepted.digest == *plugin.digest()) {
            return Some(format!("the same content is accepted as {other}"));
        }
        let named = |accepted: &Accepted| {
            plugin.declaration().tools.iter().find(|tool| accepted.tools.contains_key(&tool.name)).map(|tool| tool.name.clone())
        };
        let (other, tool) = others().find_map(|(other, accepted)| Some((other, named(accepted)?)))?;
        Some(format!("a tool named {tool} was accepted from {other}, with another content"))
    }
}

pub(super) fn key(path: &Path) -> String {
    let canonical = path.canonicalize().or_else(|error| match (path.parent(), path.file_name()) {
        // A file that is gone had its place all the same.
        (Some(folder), Some(name)) => Ok(folder.canonicalize()?.join(name)),
        (_, None) | (None, _) => Err(error),
    });
    canonical.unwrap_or_else(|_| path.to_owned()).display().to_string()
}

impl Accepted {
    pub(super) fn of(plugin: &Plugin) -> Self {
        let declaration = plugin.declaration();
        let tool = |tool: &DeclaredTool| (tool.name.clone(), AcceptedTool::of(tool));
        Self {
            digest: plugin.digest().clone(),
            imports: declaration.imports.interfaces.iter().cloned().collect(),
            tools: declaration.tools.iter().map(tool).collect(),
        }
    }

    /// What this asks for and the other does not, in words.
    pub(super) fn beyond(&self, other: &Self) -> Vec<String> {
        let mut wider = Vec::new();
        for (name, tool) in &self.tools {
            match other.tools.get(name) {
                None => wider.push(format!("it has a new tool, {name}{}", tool.in_words())),
                Some(before) => {
                    let more = tool.asks.iter().filter(|asked| !before.asks.iter().any(|had| includes(had, asked)));
                    wider.extend(more.map(|asked| format!("{name} now asks to {asked}")));
                    if before.confirm && !tool.confirm {
                        wider.push(format!("{name} no longer wants to be confirmed"));
                    }
                    if before.exclusive && !tool.exclusive {
                        wider.push(format!("{name} no longer wants to run alone"));
                    }
                }
            }
        }
        let lent = |interface: &&String| interface.starts_with("cofferdam:") && !other.imports.contains(*interface);
        wider.extend(self.imports.iter().filter(lent).map(|interface| format!("it now imports {interface}")));
        wider
    }
}

/// Whether one capability is at least another.
pub(super) fn includes(had: &Capability, asked: &Capability) -> bool {
    match (had, asked) {
        (Capability::Fetch(had), Capability::Fetch(asked)) | (Capability::ReadEnvironment(had), Capability::ReadEnvironment(asked)) => {
            asked.iter().all(|one| had.contains(one))
        }
        (Capability::WriteFiles, Capability::ReadFiles) => true,
        (had, asked) => had == asked,
    }
}

impl AcceptedTool {
    fn of(tool: &DeclaredTool) -> Self {
        Self {
            schema: Digest::of(tool.input_schema.to_string().as_bytes()),
            asks: tool.asks.clone(),
            exclusive: tool.exclusive,
            confirm: tool.confirm,
        }
    }

    fn in_words(&self) -> String {
        let asks: Vec<String> = self.asks.iter().map(ToString::to_string).collect();
        if asks.is_empty() { ", which asks for nothing".to_owned() } else { format!(", which asks to {}", asks.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(asks: &[Capability]) -> AcceptedTool {
        AcceptedTool { schema: Digest::of(b"{}"), asks: asks.to_vec(), exclusive: false, confirm: false }
    }

    fn plugin(content: &[u8], tools: &[(&str, AcceptedTool)]) -> Accepted {
        let tools = tools.iter().map(|(name, tool)| ((*name).to_owned(), tool.clone())).collect();
        Accepted { digest: Digest::of(content), imports: BTreeSet::new(), tools }
    }

    #[test]
    fn what_is_wider_is_said_in_words() {
        let fetch = |hosts: &[&str]| Capability::Fetch(hosts.iter().map(|host| (*host).to_owned()).collect());
        let before = plugin(b"1", &[("a", AcceptedTool { confirm: true, ..tool(&[Capability::WriteFiles, fetch(&["x.org", "y.org"])]) })]);
        let same = plugin(b"2", &[("a", AcceptedTool { confirm: true, ..tool(&[Capability::ReadFiles, fetch(&["y.org"])]) })]);
        assert_eq!(same.beyond(&before), Vec::<String>::new());
        let mut wider = plugin(b"3", &[("a", tool(&[Capability::RunCommands, fetch(&["z.org"])])), ("b", tool(&[]))]);
        wider.imports.insert("cofferdam:plugin/commands@0.1.0".into());
        insta::assert_snapshot!(wider.beyond(&before).join("\n"), @r"
        a now asks to run commands
        a now asks to send HTTP requests to z.org
        a no longer wants to be confirmed
        it has a new tool, b, which asks for nothing
        it now imports cofferdam:plugin/commands@0.1.0
        ");
    }

    #[test]
    fn a_lock_is_written_and_read() {
        let mut lock = Lock::new();
        lock.plugins
            .insert("/p/a.wasm".into(), plugin(b"1", &[("a", tool(&[Capability::ReadFiles, Capability::Fetch(vec!["x.org".into()])]))]));
        let text = lock.text().expect("it can be written");
        assert_eq!(Lock::parse(&text), Ok(lock), "{text}");
        assert_eq!(Lock::parse("version = 2"), Err(BadLock::OtherFormat(2)));
        assert!(Lock::parse("version = 1\nx = 1").is_err());
    }
}
