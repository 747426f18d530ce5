//! Benchmark fixtures: a sandbox, private directories, and a persistent cache of compiled
//! components.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam::policy::{CommandRules, SandboxLevel};
use cofferdam::sandbox::{
    ArtifactCache, CacheKey, CommandSandbox, CompilerKind, InstanceAllocation, SandboxOptions,
    WasmSandbox,
};

/// Creates a sandbox that compiles in this process and caches compiled components in the build
/// directory. Each component is compiled once, not once per benchmark run.
pub(crate) fn sandbox(allocation: InstanceAllocation) -> WasmSandbox {
    let key = CacheKey::load_or_create(&shared_keys()).expect("the folder is this user's");
    let cache = ArtifactCache::open(&shared_cache(), key).expect("the folder is this user's");
    WasmSandbox::new(SandboxOptions {
        allocation,
        compiler: CompilerKind::InProcess,
        cache: Some(cache),
    })
    .expect("the engine starts")
}

/// Environment variables for a program under test: private home directories and the shared cache.
pub(crate) fn own_folders(home: &Path) -> [(&'static str, PathBuf); 4] {
    let cache_home = shared_cache().parent().map(Path::to_owned).unwrap_or_default();
    // A cached component is accepted only with the key that sealed it.
    let keys = home.join("state/cofferdam/keys");
    for directory in [&keys, &shared_keys()] {
        CacheKey::load_or_create(directory).expect("the folder is this user's");
    }
    std::fs::copy(shared_keys().join("cache"), keys.join("cache")).expect("the key can be copied");
    [
        ("HOME", home.to_owned()),
        ("XDG_CONFIG_HOME", home.join("config")),
        ("XDG_STATE_HOME", home.join("state")),
        ("XDG_CACHE_HOME", cache_home),
    ]
}

fn shared_keys() -> PathBuf {
    shared_cache().with_file_name("keys")
}

fn shared_cache() -> PathBuf {
    let program = std::env::current_exe().expect("it has a path");
    let target = program
        .ancestors()
        .find(|directory| directory.join("CACHEDIR.TAG").exists())
        .map(Path::to_owned);
    target.unwrap_or_else(std::env::temp_dir).join("bench-cache").join("cofferdam")
}

/// Creates a command sandbox that runs at exactly the given level.
pub(crate) fn commands(level: SandboxLevel) -> Arc<CommandSandbox> {
    let rules = CommandRules { minimum: level, maximum: level, ..CommandRules::default() };
    let set_aside = std::env::temp_dir().join("cofferdam-bench-set-aside");
    let program = PathBuf::from(env!("CARGO_BIN_EXE_cofferdam"));
    let environment = cofferdam_cli::host_environment();
    let layers = std::env::temp_dir().join("cofferdam-bench-layers");
    let commands = CommandSandbox::new(program, rules, set_aside, environment);
    Arc::new(commands.with_layers(Some(layers)))
}
