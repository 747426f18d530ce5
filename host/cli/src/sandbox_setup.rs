//! Creation of the WebAssembly sandbox, with the user's cache of compiled components.

use std::path::Path;
use std::sync::Once;

use super::context::warn;
use super::error::CliError;
use cofferdam::config::UserDirectories;
use cofferdam::sandbox::{
    ArtifactCache, CacheError, CacheKey, CompilerKind, InstanceAllocation, SandboxOptions,
    WasmSandbox,
};

/// Creates the sandbox with the user's cache of compiled components. Without a cache, components
/// are compiled at each start.
///
/// # Errors
///
/// If other users could have written to the cache, or the engine does not start.
pub(super) fn create_sandbox(
    allocation: InstanceAllocation,
    user_dirs: &UserDirectories,
) -> Result<WasmSandbox, CliError> {
    let cache = match CacheKey::load_or_create(&user_dirs.keys()) {
        Ok(key) => match ArtifactCache::open(user_dirs.cache(), key) {
            Ok(cache) => Some(cache.with_mismatch_handler(warn_cache_mismatch)),
            Err(problem @ CacheError::Io(..)) => {
                warn_uncached(&problem);
                None
            }
            Err(problem @ CacheError::NotPrivate(..)) => return Err(problem.into()),
        },
        Err(problem) => {
            warn_uncached(&problem);
            None
        }
    };
    let compiler = CompilerKind::ChildProcess(cofferdam::sandbox::current_program()?);
    Ok(WasmSandbox::new(SandboxOptions { allocation, compiler, cache })?)
}

fn warn_uncached(problem: &dyn std::fmt::Display) {
    warn(&format!("{problem}; tools are compiled at each start, which takes some seconds"));
}

/// Warns once that a cached file cannot be trusted. With a replaced key this applies to every file.
fn warn_cache_mismatch(file: &Path) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| warn(&mismatch_warning(file)));
}

fn mismatch_warning(file: &Path) -> String {
    format!(
        "cannot use cached code: the file {} or the key of its seal was changed; tools are \
            compiled again",
        file.display()
    )
}
