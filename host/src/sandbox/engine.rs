//! The one engine of the process, and what is linked into every component.

use std::time::Duration;

use wasmtime::component::{HasSelf, Linker};
use wasmtime::{
    Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, PoolingAllocationConfig,
};
use wasmtime_wasi::p2::bindings::filesystem;

use super::bindings::cofferdam::plugin as lent;
use super::cache::ArtifactCache;
use super::call_state::CallState;
use super::compile::CompilerKind;
use super::os;
use crate::policy::CapName;

/// How often a running guest is looked at. A call is late by no more than this.
pub(super) const EPOCH_INTERVAL: Duration = Duration::from_millis(10);
/// Calls that can run at the same time with [`InstanceAllocation::Pooled`]: more than any limit on
/// parallel calls, and few enough that the pool is there at once (a pool of a thousand takes
/// milliseconds to make).
const POOL_SIZE: u32 = 64;
/// Of the guest's stack, a thing of the host's: deep enough for CPython, and little enough to
/// touch.
const GUEST_STACK_SIZE: usize = 1 << 20;

/// Where plugins are loaded and calls run.
pub struct WasmSandbox {
    pub(super) engine: Engine,
    pub(super) linker: Linker<CallState>,
    pub(super) cache: Option<ArtifactCache>,
    pub(super) compiler: CompilerKind,
}

/// Choices that hold for the whole process.
#[derive(Debug)]
pub struct SandboxOptions {
    /// Where memory for instances comes from.
    pub allocation: InstanceAllocation,
    /// Who compiles.
    pub compiler: CompilerKind,
    /// Where compiled components are kept; without it each start compiles.
    pub cache: Option<ArtifactCache>,
}

/// Where memory for instances comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceAllocation {
    /// Mapped for each call: nothing to set up, for a process that makes a call or two.
    OnDemand,
    /// From a pool that keeps warm slots: calls start faster and do not wait for each other's
    /// memory maps, for a process that makes many.
    Pooled,
}

/// The engine cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the WebAssembly engine: {0:#}")]
pub struct SandboxError(#[from] wasmtime::Error);

impl WasmSandbox {
    /// Makes the engine and links what all components may import. All of WASI 0.2 is linked,
    /// because language runtimes import most of it without using it; what it can do is settled by
    /// each call's grants.
    pub fn new(options: SandboxOptions) -> Result<Self, SandboxError> {
        let engine = Engine::new(&engine_config(options.allocation))?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
        // Files are ours, see `files`.
        linker.allow_shadowing(true);
        filesystem::types::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut CallState| {
            state
        })?;
        filesystem::preopens::add_to_linker::<_, HasSelf<_>>(
            &mut linker,
            |state: &mut CallState| state,
        )?;
        linker.allow_shadowing(false);
        lent::types::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut CallState| state)?;
        lent::workspace::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut CallState| {
            state
        })?;
        lent::commands::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut CallState| state)?;
        lent::plans::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut CallState| state)?;
        lent::agents::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut CallState| state)?;
        lent::state::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut CallState| state)?;
        lent::progress::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut CallState| state)?;
        start_epoch_ticker(engine.weak())?;
        // Now and not before: the pool has opened what it needs of /proc/self.
        os::protect_process_memory();
        Ok(Self { engine, linker, cache: options.cache, compiler: options.compiler })
    }

    /// How [`InstanceAllocation::Pooled`] works on this machine.
    pub fn describe_pool() -> &'static str {
        if PoolingAllocationConfig::is_pagemap_scan_available() {
            "from a pool whose pages stay warm (the kernel tells which were touched)"
        } else {
            "from a pool (this kernel cannot tell which pages were touched, so they are given \
                back after each call)"
        }
    }

    /// Names everything that a compiled component depends on besides its source.
    pub(super) fn compatibility_hash(&self) -> u64 {
        use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
        // The hasher's keys are constants, so that the name is the same in the next process.
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
        // What guests are built with, and nothing more: what is off cannot be attacked. Exceptions
        // stay on, since C's setjmp, C++ and Lua are compiled to them.
        .wasm_simd(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .wasm_exceptions(true);
    if allocation == InstanceAllocation::Pooled {
        let mut pool = PoolingAllocationConfig::default();
        // What can be chosen is what there is room for.
        let most = |cap: CapName| u32::try_from(*cap.range().end()).unwrap_or(u32::MAX);
        pool.total_component_instances(POOL_SIZE)
            .total_core_instances(POOL_SIZE * 16)
            .total_memories(POOL_SIZE * 4)
            .total_tables(POOL_SIZE * 16)
            .total_stacks(POOL_SIZE)
            .max_core_instances_per_component(most(CapName::Instances))
            .max_memories_per_component(16)
            .max_tables_per_component(most(CapName::Instances))
            .table_elements(most(CapName::TableElements) as usize)
            .max_unused_warm_slots(16);
        // Keeping a slot's pages pays only where the kernel can say which of them were touched;
        // without that, clearing them is slower than mapping anew.
        if PoolingAllocationConfig::is_pagemap_scan_available() {
            pool.linear_memory_keep_resident(2 << 20)
                .table_keep_resident(64 << 10)
                .pagemap_scan(Enabled::Yes);
        }
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    config
}

/// Advances the epoch for as long as the engine lives.
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
