//! The components that come with the program. They are built from `plugins/` by
//! `cargo plugins build`, which also writes down their digests. What they declare is part of the
//! program too: nothing outside of it has a say in what a built-in tool asks for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sandbox::{ComponentBytes, ComponentDigest, PluginDeclaration};

const BUILD_RECORD: &str = include_str!("../../embedded/record.json");
/// Written by the test `built_in_tools_declare_what_the_program_says`, from what the components
/// answer.
const DECLARATIONS: &str = include_str!("../../embedded/declarations.json");

/// What a component of the program declared when the program was made.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltInDeclaration {
    /// The component that was asked.
    pub digest: ComponentDigest,
    /// Its answer.
    pub declaration: PluginDeclaration,
}

/// What the components of the program declare, by the names of their plugins.
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

/// Each built-in plugin's name and component.
pub fn builtin_components() -> impl Iterator<Item = (&'static str, ComponentBytes)> {
    // Hashing them anew would be a good part of a short command's time; a test holds the record to
    // the bytes.
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

/// The names of the tools that come with the program: each plugin has one, which has its name.
pub(super) fn builtin_names() -> impl Iterator<Item = &'static str> {
    COMPONENTS.into_iter().map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_digests_are_those_of_the_embedded_bytes() {
        let record: serde_json::Value = serde_json::from_str(BUILD_RECORD).expect("it is JSON");
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
            serde_json::from_str(DECLARATIONS).expect("it is JSON");
        assert_eq!(declarations.len(), COMPONENTS.len());
        for (name, component) in builtin_components() {
            let declaration = component.declaration();
            assert!(
                declaration.is_some_and(|declaration| !declaration.tools.is_empty()),
                "{name} was built anew: see `DECLARATIONS`"
            );
        }
    }
}
