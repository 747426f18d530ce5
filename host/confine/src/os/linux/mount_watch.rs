//! Changes of the mounts of this process.

use std::fs::File;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Notices mounts and ends of mounts; see proc_pid_mounts(5).
#[derive(Debug)]
pub(crate) struct MountWatch(File);

impl MountWatch {
    /// Begins to watch.
    ///
    /// # Errors
    /// The list of mounts cannot be opened.
    pub(crate) fn begin() -> std::io::Result<Self> {
        File::open("/proc/self/mountinfo").map(Self)
    }

    /// Returns whether a mount has changed since the beginning.
    pub(crate) fn has_changed(&self) -> bool {
        let mut polled = [PollFd::new(&self.0, PollFlags::PRI)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Without an answer, anything may have changed.
        !poll(&mut polled, Some(&now)).is_ok_and(|ready| ready == 0)
    }
}
