//! macOS and other systems. The compiling process: time of the processor is enforced by the kernel; memory is not, since
//! `RLIMIT_AS` is advice there. The parent still ends the process when its time is up. This process's memory and
//! environment: left as the system has it.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};

/// Bounds this process for good.
pub(in crate::sandbox) fn limit_compiler(time: Duration, _memory: u64) -> std::io::Result<()> {
    let seconds = Some(time.as_secs());
    setrlimit(Resource::Cpu, Rlimit { current: seconds, maximum: seconds })?;
    Ok(())
}

/// Nothing is enforced here.
pub(in crate::sandbox) fn hide_from_own_user() {}
