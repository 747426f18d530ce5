//! From a guest to a component.

use std::path::{Path, PathBuf};

use cofferdam::policy::Capability;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, SourceMap};

use super::declaration::GuestTool;
use super::module;

/// A guest on its way to a component.
#[derive(Clone, Debug)]
pub struct TestGuest {
    name: String,
    source: String,
    tools: Vec<GuestTool>,
    version: String,
}

impl TestGuest {
    /// The guest of a file of `tests/guests`. Until it is told otherwise it has one tool, which has
    /// the file's name with underscores and asks for nothing.
    pub fn from_file(name: &str) -> Self {
        let path = guest_directory().join(format!("{name}.wat"));
        let source = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::from_source(name, &source)
    }

    /// A guest that is not worth a file.
    pub fn from_source(name: &str, source: &str) -> Self {
        let tools = vec![GuestTool::new(&name.replace('-', "_"))];
        Self { name: name.to_owned(), source: source.to_owned(), tools, version: "0.2.0".into() }
    }

    /// With these tools in place of the one.
    pub fn with_tools(self, tools: impl Into<Vec<GuestTool>>) -> Self {
        Self { tools: tools.into(), ..self }
    }

    /// With its one tool asking for these.
    pub fn with_requested(mut self, asks: &[Capability]) -> Self {
        for tool in &mut self.tools {
            tool.requested = asks.to_vec();
        }
        self
    }

    /// With another word in its source, for a guest that stands for several.
    pub fn with_replacement(self, word: &str, replacement: &str) -> Self {
        assert!(self.source.contains(word), "{} has no {word}", self.name);
        Self { source: self.source.replace(word, replacement), ..self }
    }

    /// Made for another version of the contract.
    pub fn with_version(self, version: &str) -> Self {
        Self { version: version.into(), ..self }
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its core module in binary form.
    pub fn module(&self) -> Vec<u8> {
        let (resolve, world) = load_contract(&self.version);
        let text = module::module_text(
            &self.source,
            &self.tools,
            &self.version,
            &resolve,
            &resolve.worlds[world],
        );
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The component. A file that begins with `(component` is one already.
    pub fn component(&self) -> Vec<u8> {
        let code = self
            .source
            .lines()
            .find(|line| !line.trim_start().starts_with(";;") && !line.trim().is_empty());
        if code.is_some_and(|line| line.starts_with("(component")) {
            return wat::parse_str(&self.source)
                .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        }
        encode_component(self.module(), &self.version)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

/// Where the guests are.
pub(super) fn guest_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guests")
}

/// Makes a component of a core module that keeps to the contract's canonical names.
pub fn encode_component(mut module: Vec<u8>, version: &str) -> Result<Vec<u8>, String> {
    let (resolve, world) = load_contract(version);
    let problem = |error: &dyn std::fmt::Display| format!("{error:#}");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)
        .map_err(|error| problem(&error))?;
    let mut encoder = ComponentEncoder::default();
    encoder.module(&module).map_err(|error| problem(&error))?;
    encoder.encode().map_err(|error| problem(&error))
}

/// The contract, under a version that may be another one, with the parts of WASI that guests use.
fn load_contract(version: &str) -> (Resolve, wit_parser::WorldId) {
    let mut resolve = Resolve::default();
    let read = |name: &str| {
        std::fs::read_to_string(guest_directory().join("wit").join(name)).expect("it is there")
    };
    resolve.push_source("wasi.wit", &read("wasi.wit")).unwrap_or_else(|error| panic!("{error:#}"));
    let mut plugin = SourceMap::default();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    let mut files: Vec<_> = std::fs::read_dir(files)
        .expect("the contract is there")
        .map(|file| file.expect("it is").path())
        .filter(|file| file.extension().is_some_and(|extension| extension == "wit"))
        .collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file)
            .expect("it is text")
            .replace("cofferdam:plugin@0.2.0", &format!("cofferdam:plugin@{version}"));
        plugin.push_str(&file.display().to_string(), &text);
    }
    let plugin = plugin.parse().unwrap_or_else(|(_, error)| panic!("{error}"));
    resolve.push_group(plugin).expect("the contract is whole");
    let guest = read("guest.wit").replace("plugin-full@0.2.0", &format!("plugin-full@{version}"));
    let package =
        resolve.push_source("guest.wit", &guest).unwrap_or_else(|error| panic!("{error:#}"));
    let world = resolve.select_world(&[package], Some("guest")).expect("it has a world");
    (resolve, world)
}
