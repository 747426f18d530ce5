//! Linux. The compiling process: time of the processor and address space are both enforced by the kernel. This process's
//! memory and environment: closed to other processes of the same user, unless that user is root.

use std::time::Duration;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// Bounds this process for good.
pub(in crate::sandbox) fn limit_compiler(time: Duration, memory: u64) -> std::io::Result<()> {
    let bound = |resource, value| setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) });
    bound(Resource::Cpu, time.as_secs())?;
    bound(Resource::As, memory)?;
    Ok(())
}

/// Closes `/proc/PID/environ` and `/proc/PID/mem` of this process, where keys are, to the commands that it starts.
pub(in crate::sandbox) fn hide_from_own_user() {
    // It can only fail for a value that the kernel does not know.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}
