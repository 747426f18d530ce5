//! The Wasmtime engine of the process, and the interfaces that are linked into every component.

use std::time::Duration;

use wasmtime::component::Linker;
use wasmtime::{
    Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, PoolingAllocationConfig,
};
use wasmtime_wasi::p2::bindings::filesystem;

use super::cache::ArtifactCache;
use super::call_state::CallState;
use super::compile::CompilerKind;
use super::contract::v0_2;
use super::files::{FilesystemView, HasFilesystemView};
use crate::policy::CapName;
use cofferdam_confine;

/// The interval of checks of a running guest. A call overruns its time limit by no more than this.
pub(super) const EPOCH_INTERVAL: Duration = Duration::from_millis(10);
/// The number of calls that can run at once with [`InstanceAllocation::Pooled`]. It exceeds every
/// limit on parallel calls. A pool of a thousand would take milliseconds to create.
const POOL_SIZE: u32 = 64;
/// The size of the guest's stack in the host, in bytes. Deep enough for CPython, and small enough
/// to touch.
const GUEST_STACK_SIZE: usize = 1 << 20;

/// The sandbox that loads plugins and runs their calls.
pub struct WasmSandbox {
    pub(super) engine: Engine,
    pub(super) linker: Linker<CallState>,
    pub(super) cache: Option<ArtifactCache>,
    pub(super) compiler: CompilerKind,
}

/// The settings of a sandbox, for the whole process.
#[derive(Debug)]
pub struct SandboxOptions {
    /// Where the memory of instances comes from.
    pub allocation: InstanceAllocation,
    /// Where components are compiled.
    pub compiler: CompilerKind,
    /// The cache of compiled components. Without it, each start compiles them.
    pub cache: Option<ArtifactCache>,
}

/// Where the memory of instances comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceAllocation {
    /// Maps memory for each call. Needs no setup; for a process that makes one or two calls.
    OnDemand,
    /// Uses a pool of warm slots. Calls start faster and do not wait for each other's memory maps;
    /// for a process that makes many calls.
    Pooled,
}

/// An error that means that the engine cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the WebAssembly engine: {0:#}")]
pub struct SandboxError(#[from] wasmtime::Error);

impl WasmSandbox {
    /// Creates the engine and links all interfaces that components may import.
    ///
    /// All of WASI 0.2 is linked, because language runtimes import most of it without using it. The
    /// permissions of each call decide what the interfaces can do.
    pub fn new(options: SandboxOptions) -> Result<Self, SandboxError> {
        let engine = Engine::new(&engine_config(options.allocation))?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
        // The host implements the file interfaces itself; see `files`.
        linker.allow_shadowing(true);
        filesystem::types::add_to_linker::<_, HasFilesystemView>(&mut linker, FilesystemView::of)?;
        filesystem::preopens::add_to_linker::<_, HasFilesystemView>(
            &mut linker,
            FilesystemView::of,
        )?;
        linker.allow_shadowing(false);
        v0_2::add_to_linker(&mut linker)?;
        start_epoch_ticker(engine.weak())?;
        // Only now, because the pool has opened the files of /proc/self that it needs.
        cofferdam_confine::protect_process_memory();
        Ok(Self { engine, linker, cache: options.cache, compiler: options.compiler })
    }

    /// Describes how [`InstanceAllocation::Pooled`] works on this machine.
    pub fn describe_pool() -> &'static str {
        if PoolingAllocationConfig::is_pagemap_scan_available() {
            "pooled; clean pages are reused (the kernel reports which pages were written)"
        } else {
            "pooled; all pages are released after each call (this kernel does not report which \
                pages were written)"
        }
    }

    /// Returns a hash of everything that a compiled component depends on besides its source.
    pub(super) fn compatibility_hash(&self) -> u64 {
        use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
        // The keys of this hasher are constants, so the hash is the same in the next process.
        BuildHasherDefault::<DefaultHasher>::default()
            .hash_one(self.engine.precompile_compatibility_hash())
    }
}

fn engine_config(allocation: InstanceAllocation) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .concurrency_support(false)
        .max_wasm_stack(GUEST_STACK_SIZE)
        .async_stack_size(2 * GUEST_STACK_SIZE)
        // Enables only the features that guests are built with, to reduce the attack surface.
        // Exceptions stay enabled because C's setjmp, C++ and Lua compile to them.
        .wasm_simd(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .wasm_exceptions(true);
    if allocation == InstanceAllocation::Pooled {
        let mut pool = PoolingAllocationConfig::default();
        // The pool must fit the largest caps that can be configured.
        let max_cap = |cap: CapName| u32::try_from(*cap.range().end()).unwrap_or(u32::MAX);
        pool.total_component_instances(POOL_SIZE)
            .total_core_instances(POOL_SIZE * 16)
            .total_memories(POOL_SIZE * 4)
            .total_tables(POOL_SIZE * 16)
            .total_stacks(POOL_SIZE)
            .max_core_instances_per_component(max_cap(CapName::Instances))
            .max_memories_per_component(16)
            .max_tables_per_component(max_cap(CapName::Instances))
            .table_elements(max_cap(CapName::TableElements) as usize)
            .max_unused_warm_slots(16);
        // Keeping pages resident pays off only if the kernel can tell which were touched. Otherwise
        // clearing them is slower than mapping new ones.
        if PoolingAllocationConfig::is_pagemap_scan_available() {
            pool.linear_memory_keep_resident(2 << 20)
                .table_keep_resident(64 << 10)
                .pagemap_scan(Enabled::Yes);
        }
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    config
}

/// Starts the thread that advances the epoch for as long as the engine exists.
fn start_epoch_ticker(engine: EngineWeak) -> Result<(), SandboxError> {
    let ticker = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(EPOCH_INTERVAL);
        }
    };
    std::thread::Builder::new()
        .name("epoch".into())
        .spawn(ticker)
        .map(drop)
        .map_err(|e| SandboxError(e.into()))
}
