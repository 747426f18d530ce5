//! The embedded components come from the sources beside them, and declare what the program says
//! that they declare.
//!
//! `UPDATE_DECLARATIONS=1 cargo test -p cofferdam-tests --test conventions components` writes the
//! declarations anew.

use std::path::Path;

use cofferdam::sandbox::{
    ArtifactCache, CacheKey, CompilerKind, InstanceAllocation, SandboxOptions, WasmSandbox,
};
use cofferdam::tools::{BuiltInDeclaration, BuiltInDeclarations, builtin_components};

use super::sources::workspace_root;

#[test]
fn embedded_components_agree_with_their_sources_and_their_record() {
    if let Err(mismatches) = cofferdam_build_plugins::check(&workspace_root()) {
        let all: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
        panic!("{}\nRun `cargo plugins build`.", all.join("\n"));
    }
}

#[test]
fn built_in_tools_declare_what_the_program_says() {
    let temp = Path::new(env!("CARGO_TARGET_TMPDIR")).join("asked-components");
    let key = CacheKey::load_or_create(&temp.join("keys")).expect("there is a key");
    let cache = Some(ArtifactCache::open(&temp.join("cache"), key).expect("it opens"));
    let sandbox = WasmSandbox::new(SandboxOptions {
        allocation: InstanceAllocation::OnDemand,
        compiler: CompilerKind::InProcess,
        cache,
    })
    .expect("it starts");
    let asked: BuiltInDeclarations = builtin_components()
        .map(|(name, component)| {
            // Without its declaration it is a component like any other.
            let plugin = sandbox.load(component.as_ref().to_vec(), &|| {}).expect(name);
            let declaration = plugin.reload_declaration(&sandbox).expect(name);
            (name.to_owned(), BuiltInDeclaration { digest: plugin.digest().clone(), declaration })
        })
        .collect();
    let path = workspace_root().join("host/core/embedded/declarations.json");
    if std::env::var_os("UPDATE_DECLARATIONS").is_some() {
        let json = serde_json::to_string_pretty(&asked).expect("it is data");
        std::fs::write(&path, json + "\n").expect("it can be written");
    }
    let recorded: BuiltInDeclarations =
        serde_json::from_str(&std::fs::read_to_string(&path).expect("it is there"))
            .expect("it is JSON");
    for (name, asked) in &asked {
        assert_eq!(
            recorded.get(name),
            Some(asked),
            "UPDATE_DECLARATIONS=1 cargo test -p cofferdam-tests --test conventions components"
        );
    }
    assert_eq!(recorded.len(), asked.len(), "a component is gone: see above");
}
