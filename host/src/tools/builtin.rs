//! The components that come with the program. They are built from `plugins/` by `cargo plugins build`.

/// Each built-in plugin's name and component.
pub fn builtin_components() -> [(&'static str, &'static [u8]); 4] {
    [
        ("read_file", include_bytes!("../../embedded/read_file.wasm")),
        ("grep", include_bytes!("../../embedded/grep.wasm")),
        ("bash", include_bytes!("../../embedded/bash.wasm")),
        ("submit", include_bytes!("../../embedded/submit.wasm")),
    ]
}
