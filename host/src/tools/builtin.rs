//! The components that come with the program. They are built from `plugins/` by `cargo plugins build`, which also writes
//! down their digests.

use crate::sandbox::{ComponentBytes, Digest};

const RECORD: &str = include_str!("../../embedded/record.json");

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
    // Hashing them anew would be a good part of a short command's time; a test holds the record to the bytes.
    let record: serde_json::Value = serde_json::from_str(RECORD).unwrap_or_default();
    COMPONENTS.into_iter().map(move |(name, bytes)| {
        let digest = record["plugins"][name]["sha256"].as_str().and_then(Digest::parse);
        (name, ComponentBytes::embedded(digest.unwrap_or_else(|| Digest::of(bytes)), bytes))
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
        let record: serde_json::Value = serde_json::from_str(RECORD).expect("it is JSON");
        for (name, bytes) in COMPONENTS {
            assert_eq!(record["plugins"][name]["sha256"].as_str(), Some(Digest::of(bytes).as_str()), "{name}");
        }
    }
}
