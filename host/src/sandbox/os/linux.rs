//! Linux. The compiling process: time of the processor and address space are both enforced by the kernel.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};

/// Bounds this process for good.
pub(in crate::sandbox) fn limit_compiler(time: Duration, memory: u64) -> std::io::Result<()> {
    let bound = |resource, value| setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) });
    bound(Resource::Cpu, time.as_secs())?;
    bound(Resource::As, memory)?;
    Ok(())
}
