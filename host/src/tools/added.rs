//! Plugins that were added by name: where each came from, the file that it is kept in, and how a newer one differs.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::accepted::{Accepted, Lock, includes, key};
use crate::sandbox::{Digest, Plugin};

/// A plugin that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Added {
    /// A path or an address, to fetch it from again.
    pub source: String,
    /// The name of its file in the folder of added plugins.
    pub file: String,
}

/// How a plugin differs from what was accepted, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// What it asks for beyond that.
    pub wider: Vec<String>,
    /// What else is different about it.
    pub other: Vec<String>,
}

impl Added {
    /// Whether its file lies in the folder and nowhere else: it is going to be removed one day.
    pub(super) fn is_plain(&self) -> bool {
        !self.file.is_empty() && !self.file.starts_with('.') && !self.file.contains(['/', '\0'])
    }
}

impl Lock {
    /// The plugins that were added, by name.
    pub fn added(&self) -> impl Iterator<Item = (&str, &Added)> {
        self.added.iter().map(|(name, added)| (name.as_str(), added))
    }

    /// The plugin that was added under a name.
    pub fn find_added(&self, name: &str) -> Option<&Added> {
        self.added.get(name)
    }

    /// Adds a plugin under a name and accepts it as it is, at this path.
    pub fn add(&mut self, name: &str, added: Added, path: &Path, plugin: &Plugin) {
        self.added.insert(name.to_owned(), added);
        self.accept(path, plugin);
    }

    /// Forgets a plugin that was added and what it was accepted as, at this path.
    pub fn forget(&mut self, name: &str, path: &Path) -> Option<Added> {
        self.plugins.remove(&key(path));
        self.added.remove(name)
    }

    /// The content that was accepted at a path.
    pub fn pinned(&self, path: &Path) -> Option<&Digest> {
        self.plugins.get(&key(path)).map(|accepted| &accepted.digest)
    }

    /// How a plugin differs from what was accepted at a path. If nothing was, all that it asks for is more.
    pub fn difference(&self, path: &Path, plugin: &Plugin) -> Difference {
        let now = Accepted::of(plugin);
        match self.plugins.get(&key(path)) {
            Some(before) => Difference { wider: now.beyond(before), other: now.besides(before) },
            None => Difference { wider: vec!["nothing was accepted before".to_owned()], other: Vec::new() },
        }
    }
}

impl Accepted {
    /// What is different about this from the other without asking for more, in words.
    fn besides(&self, other: &Self) -> Vec<String> {
        let mut different = Vec::new();
        for (name, before) in &other.tools {
            let Some(tool) = self.tools.get(name) else {
                different.push(format!("the tool {name} is gone"));
                continue;
            };
            let less = before.asks.iter().filter(|had| !tool.asks.iter().any(|asked| includes(asked, had)));
            different.extend(less.map(|had| format!("{name} no longer asks to {had}")));
            if tool.schema != before.schema {
                different.push(format!("{name} takes another input"));
            }
        }
        let wasi = |interface: &&String| !interface.starts_with("cofferdam:");
        let more = self.imports.difference(&other.imports).filter(wasi);
        different.extend(more.map(|interface| format!("it now imports {interface}")));
        different.extend(other.imports.difference(&self.imports).map(|interface| format!("it no longer imports {interface}")));
        different
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::accepted::AcceptedTool;
    use super::*;
    use crate::policy::Capability;

    fn accepted(tools: &[(&str, &[u8], &[Capability])], imports: &[&str]) -> Accepted {
        let tool = |(name, schema, asks): &(&str, &[u8], &[Capability])| {
            let tool = AcceptedTool { schema: Digest::of(schema), asks: asks.to_vec(), exclusive: false, confirm: false };
            ((*name).to_owned(), tool)
        };
        let imports: BTreeSet<String> = imports.iter().map(|name| (*name).to_owned()).collect();
        Accepted { digest: Digest::of(b"any"), imports, tools: tools.iter().map(tool).collect() }
    }

    #[test]
    fn what_is_different_is_said_in_words() {
        let before = accepted(&[("a", b"{}", &[Capability::WriteFiles]), ("b", b"{}", &[])], &["cofferdam:plugin/commands@0.1.0"]);
        let now = accepted(&[("a", b"{1}", &[Capability::ReadFiles])], &["wasi:random/random@0.2.6"]);
        insta::assert_snapshot!(now.besides(&before).join("\n"), @r"
        a no longer asks to write files of the workspace
        a takes another input
        the tool b is gone
        it now imports wasi:random/random@0.2.6
        it no longer imports cofferdam:plugin/commands@0.1.0
        ");
        assert_eq!(before.besides(&before), [""; 0]);
    }

    #[test]
    fn a_file_elsewhere_is_none_of_the_folder() {
        let lock = |file: &str| Lock::parse(&format!("version = 1\n[added.x]\nsource = \"/x.wasm\"\nfile = {file:?}\n"));
        assert!(lock("x-0123456789ab.wasm").is_ok());
        for file in ["", "../x.wasm", "/x.wasm", ".x"] {
            assert!(lock(file).is_err_and(|error| error.to_string().contains("not the name of a file")), "{file:?}");
        }
    }
}
