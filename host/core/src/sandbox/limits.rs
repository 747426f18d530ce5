//! The limits of one call, and the meter that enforces them.

use std::time::Duration;

use wasmtime::ResourceLimiter;

use crate::policy::{CapName, Caps};

/// The limits of one call. They are set before the guest runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// The time in the guest and in the host functions that it calls, without approvals and
    /// commands.
    pub time: Duration,
    /// The bytes of all linear memories of the call together. The largest runtimes in use (Python,
    /// JavaScript) start with less than 20 MiB.
    pub memory: usize,
    /// The elements of each table. A table costs the host 8 bytes per element. The largest seen in
    /// a real plugin, CPython's, has about 10,000.
    pub table_elements: usize,
    /// The number of core instances, of memories, and of tables. CPython's component has 14
    /// instances.
    pub instances: usize,
    /// The bytes that one host call, or the result of the call, may pass from the guest to the
    /// host.
    pub crossing: usize,
    /// The bytes of all pieces of a result together.
    pub output: usize,
    /// The bytes of standard output and of standard error that are kept for the log, each.
    pub log: usize,
    /// The number of open handles to files, streams and other host resources.
    pub handles: usize,
    /// The bytes that one `wasi:random` call may request.
    pub random: u64,
}

impl Default for CallLimits {
    fn default() -> Self {
        let nothing = Self {
            time: Duration::ZERO,
            memory: 0,
            table_elements: 0,
            instances: 0,
            crossing: 0,
            output: 0,
            log: 0,
            handles: 0,
            random: 0,
        };
        nothing.with_caps(&Caps::defaults())
    }
}

impl CallLimits {
    /// Returns these limits with the configured caps applied. A cap that exceeds the machine's word
    /// size counts as unlimited.
    #[must_use]
    pub fn with_caps(mut self, caps: &Caps) -> Self {
        let size = |value: u64, unit: usize| {
            usize::try_from(value).unwrap_or(usize::MAX).saturating_mul(unit)
        };
        for (cap, value) in caps.iter() {
            match cap {
                CapName::Seconds => self.time = Duration::from_secs(value),
                CapName::MemoryMib => self.memory = size(value, 1 << 20),
                CapName::TableElements => self.table_elements = size(value, 1),
                CapName::Instances => self.instances = size(value, 1),
                CapName::CrossingKib => self.crossing = size(value, 1 << 10),
                CapName::OutputKib => self.output = size(value, 1 << 10),
                CapName::LogKib => self.log = size(value, 1 << 10),
                CapName::Handles => self.handles = size(value, 1),
                CapName::RandomKib => self.random = value.saturating_mul(1 << 10),
                // The output for the model is truncated after the call.
                CapName::ShownBytes => {}
            }
        }
        self
    }

    /// Returns the limits of `list-tools`, which only declares a plugin.
    pub fn for_declaration() -> Self {
        Self { time: Duration::from_secs(2), memory: 64 << 20, ..Self::default() }
    }
}

/// Counts the resources of a guest and remembers the cap that it exceeded.
#[derive(Debug)]
pub(super) struct ResourceMeter {
    memory: usize,
    memory_cap: usize,
    table_cap: usize,
    instance_cap: usize,
    pub(super) exceeded: Option<ExceededCap>,
}

/// A cap that the guest exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExceededCap {
    Memory,
    Table,
}

impl ResourceMeter {
    pub(super) fn new(limits: &CallLimits) -> Self {
        Self {
            memory: 0,
            memory_cap: limits.memory,
            table_cap: limits.table_elements,
            instance_cap: limits.instances,
            exceeded: None,
        }
    }

    /// Returns the largest memory that was in use, in bytes.
    pub(super) fn peak_memory(&self) -> usize {
        self.memory
    }
}

impl ResourceLimiter for ResourceMeter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // Linear memories never shrink, so the sum of all growth is the memory in use.
        let total = self.memory.saturating_add(desired.saturating_sub(current));
        if total > self.memory_cap {
            self.exceeded = Some(ExceededCap::Memory);
            return Ok(false);
        }
        self.memory = total;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > self.table_cap {
            self.exceeded = Some(ExceededCap::Table);
            return Ok(false);
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instance_cap
    }

    fn tables(&self) -> usize {
        self.instance_cap
    }

    fn memories(&self) -> usize {
        self.instance_cap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r098_the_default_limits_match_the_default_caps() {
        let CallLimits {
            time,
            memory,
            table_elements,
            instances,
            crossing,
            output,
            log,
            handles,
            random,
        } = CallLimits::default();
        let default_of = |cap: CapName, unit: u64| cap.default_value() * unit;
        assert_eq!(time.as_secs(), default_of(CapName::Seconds, 1));
        assert_eq!(random, default_of(CapName::RandomKib, 1 << 10));
        let sizes = [
            (memory, CapName::MemoryMib, 1 << 20),
            (table_elements, CapName::TableElements, 1),
            (instances, CapName::Instances, 1),
            (crossing, CapName::CrossingKib, 1 << 10),
            (output, CapName::OutputKib, 1 << 10),
            (log, CapName::LogKib, 1 << 10),
            (handles, CapName::Handles, 1),
        ];
        for (size, cap, unit) in sizes {
            assert_eq!(size as u64, default_of(cap, unit), "{cap}");
        }
    }
}
