//! The WebAssembly sandbox of a host, with its cache of compiled components.

use std::path::Path;
use std::sync::{Arc, Once};

use super::builder::NoticeHandler;
use super::{HelperProcesses, HostError};
use crate::config::UserDirectories;
use crate::sandbox::{
    ArtifactCache, CacheError, CacheKey, CompilerKind, InstanceAllocation, SandboxOptions,
    WasmSandbox,
};

/// Creates a sandbox for plugins. Without directories, or if they cannot be used, each start
/// compiles the components; `warn` then gets a warning.
///
/// # Errors
///
/// Returns an error if other users could have written to the cache, or the engine does not start.
pub fn create_sandbox(
    allocation: InstanceAllocation,
    helpers: Option<HelperProcesses>,
    directories: Option<&UserDirectories>,
    warn: &NoticeHandler,
) -> Result<WasmSandbox, HostError> {
    let cache = match directories {
        Some(directories) => open_cache(directories, warn)?,
        None => None,
    };
    let compiler = match helpers {
        Some(helpers) => CompilerKind::ChildProcess(helpers.program()?),
        None => CompilerKind::InProcess,
    };
    Ok(WasmSandbox::new(SandboxOptions { allocation, compiler, cache })?)
}

/// Opens the cache of compiled components. Without a cache, each start compiles them.
fn open_cache(
    directories: &UserDirectories,
    warn: &NoticeHandler,
) -> Result<Option<ArtifactCache>, HostError> {
    let warn_uncached = |problem: &dyn std::fmt::Display| {
        warn(&format!("{problem}; tools are compiled at each start, which takes some seconds"));
    };
    let key = match CacheKey::load_or_create(&directories.keys()) {
        Ok(key) => key,
        Err(problem) => {
            warn_uncached(&problem);
            return Ok(None);
        }
    };
    match ArtifactCache::open(directories.cache(), key) {
        Ok(cache) => Ok(Some(cache.with_mismatch_handler(warn_once_about_mismatch(warn)))),
        Err(problem @ CacheError::Io(..)) => {
            warn_uncached(&problem);
            Ok(None)
        }
        Err(problem @ CacheError::NotPrivate(..)) => Err(problem.into()),
    }
}

/// Returns a function that warns of the first cached file that cannot be trusted. With a replaced
/// key this applies to every file.
fn warn_once_about_mismatch(
    warn: &NoticeHandler,
) -> impl Fn(&Path) + Send + Sync + 'static + use<> {
    let (warn, warned) = (Arc::clone(warn), Once::new());
    move |file| {
        warned.call_once(|| {
            warn(&format!(
                "cannot use cached code: the file {} or the authentication key of the cache was \
                    changed; tools are compiled again",
                file.display()
            ));
        });
    }
}
