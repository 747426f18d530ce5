//! The embedded components come from the sources beside them, and declare what the program says that they declare.
//!
//! `UPDATE_DECLARATIONS=1 cargo test -p cofferdam-tests --test house components` writes the declarations anew.

use std::path::Path;

use cofferdam::sandbox::{Allocation, Cache, CacheKey, Compiler, Sandbox, SandboxOptions};
use cofferdam::tools::{BuiltInDeclaration, BuiltInDeclarations, builtin_components};

use super::sources::root;

#[test]
fn embedded_components_agree_with_their_sources_and_their_record() {
    if let Err(mismatches) = cofferdam_build_plugins::check(&root()) {
        let all: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
        panic!("{}\nRun `cargo plugins build`.", all.join("\n"));
    }
}

#[test]
fn built_in_tools_declare_what_the_program_says() {
    let temp = Path::new(env!("CARGO_TARGET_TMPDIR")).join("asked-components");
    let key = CacheKey::of(&temp.join("keys")).expect("there is a key");
    let cache = Some(Cache::open(&temp.join("cache"), key).expect("it opens"));
    let sandbox =
        Sandbox::new(SandboxOptions { allocation: Allocation::OnDemand, compiler: Compiler::InProcess, cache }).expect("it starts");
    let asked: BuiltInDeclarations = builtin_components()
        .map(|(name, component)| {
            // Without its declaration it is a component like any other.
            let plugin = sandbox.load(component.as_ref().to_vec(), &|| {}).expect(name);
            let declaration = plugin.declared_anew(&sandbox).expect(name);
            (name.to_owned(), BuiltInDeclaration { digest: plugin.digest().clone(), declaration })
        })
        .collect();
    let path = root().join("host/embedded/declarations.json");
    if std::env::var_os("UPDATE_DECLARATIONS").is_some() {
        let json = serde_json::to_string_pretty(&asked).expect("it is data");
        std::fs::write(&path, json + "\n").expect("it can be written");
    }
    let recorded: BuiltInDeclarations = serde_json::from_str(&std::fs::read_to_string(&path).expect("it is there")).expect("it is JSON");
    for (name, asked) in &asked {
        assert_eq!(recorded.get(name), Some(asked), "UPDATE_DECLARATIONS=1 cargo test -p cofferdam-tests --test house components");
    }
    assert_eq!(recorded.len(), asked.len(), "a component is gone: see above");
}
