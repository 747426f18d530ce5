//! The components that are built into the program.
//!
//! `cargo plugins build` builds them from `plugins/` and records their digests. Their declarations
//! are also part of the program, so nothing outside of it can change what a built-in tool requests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sandbox::{ComponentBytes, ComponentDigest, PluginDeclaration};

const BUILD_RECORD: &str = include_str!("../../embedded/record.json");
/// The declarations of the components. The test `built_in_tools_declare_what_the_program_says`
/// writes them from what the components return.
const DECLARATIONS: &str = include_str!("../../embedded/declarations.json");

/// The declaration of a built-in component at build time.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltInDeclaration {
    /// The digest of the component.
    pub digest: ComponentDigest,
    /// The declaration that the component returned.
    pub declaration: PluginDeclaration,
}

/// The declarations of the built-in components, by plugin name.
pub type BuiltInDeclarations = BTreeMap<String, BuiltInDeclaration>;

const COMPONENTS: [(&str, &[u8]); 13] = [
    ("read_file", include_bytes!("../../embedded/read_file.wasm")),
    ("list_dir", include_bytes!("../../embedded/list_dir.wasm")),
    ("glob", include_bytes!("../../embedded/glob.wasm")),
    ("grep", include_bytes!("../../embedded/grep.wasm")),
    ("write_file", include_bytes!("../../embedded/write_file.wasm")),
    ("update_file", include_bytes!("../../embedded/update_file.wasm")),
    ("bash", include_bytes!("../../embedded/bash.wasm")),
    ("web_fetch", include_bytes!("../../embedded/web_fetch.wasm")),
    ("research_codebase", include_bytes!("../../embedded/research_codebase.wasm")),
    ("todo", include_bytes!("../../embedded/todo.wasm")),
    ("react", include_bytes!("../../embedded/react.wasm")),
    ("present_plan", include_bytes!("../../embedded/present_plan.wasm")),
    ("submit", include_bytes!("../../embedded/submit.wasm")),
];

/// The tools that share the component of another one, because they share its data.
const SECOND_TOOLS: [&str; 1] = ["jobs"];

/// Returns the name and the component of each built-in plugin.
pub fn builtin_components() -> impl Iterator<Item = (&'static str, ComponentBytes)> {
    // Hashing the components would take a good part of a short command's time, so the recorded
    // digests are used. A test compares them with the bytes.
    let record: serde_json::Value = serde_json::from_str(BUILD_RECORD).unwrap_or_default();
    let mut declarations: BuiltInDeclarations =
        serde_json::from_str(DECLARATIONS).unwrap_or_default();
    COMPONENTS.into_iter().map(move |(name, bytes)| {
        let digest = record["plugins"][name]["sha256"].as_str().and_then(ComponentDigest::parse);
        let digest = digest.unwrap_or_else(|| ComponentDigest::compute(bytes));
        let declared = declarations.remove(name).filter(|declared| declared.digest == digest);
        (
            name,
            ComponentBytes::embedded(digest, bytes, declared.map(|declared| declared.declaration)),
        )
    })
}

/// Returns the names of the built-in tools.
pub(super) fn builtin_names() -> impl Iterator<Item = &'static str> {
    COMPONENTS.into_iter().map(|(name, _)| name).chain(SECOND_TOOLS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_digests_match_the_embedded_bytes() {
        let record: serde_json::Value = serde_json::from_str(BUILD_RECORD).expect("valid JSON");
        for (name, bytes) in COMPONENTS {
            assert_eq!(
                record["plugins"][name]["sha256"].as_str(),
                Some(ComponentDigest::compute(bytes).as_str()),
                "{name}"
            );
        }
    }

    #[test]
    fn every_component_comes_with_its_declaration() {
        let declarations: BuiltInDeclarations =
            serde_json::from_str(DECLARATIONS).expect("valid JSON");
        assert_eq!(declarations.len(), COMPONENTS.len());
        for (name, component) in builtin_components() {
            let declaration = component.declaration();
            let tools = declaration.map(|declaration| declaration.tools.as_slice());
            let names: Vec<_> =
                tools.unwrap_or_default().iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(names.first(), Some(&name), "{name} was rebuilt: see `DECLARATIONS`");
            for second in &names[1..] {
                assert!(SECOND_TOOLS.contains(second), "{second}");
            }
        }
    }
}
