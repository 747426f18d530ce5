//! Child processes that continue in this program instead of executing another one.

use std::os::unix::process::ExitStatusExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitStatus;

use rustix::process::{Pid, WaitOptions, waitpid};

/// The exit code of a child whose code panicked, as `EX_SOFTWARE` in `sysexits.h`.
const PANICKED: i32 = 70;

/// A child process that runs a function of this program.
#[derive(Debug)]
pub(crate) struct ForkedProcess {
    pid: Pid,
    status: Option<ExitStatus>,
}

impl ForkedProcess {
    /// Starts a child, which runs `body` and exits with its result.
    ///
    /// This process must have one thread only: a lock that another thread holds would stay locked
    /// in the child.
    ///
    /// # Errors
    /// The system has too many processes.
    pub(crate) fn start(body: impl FnOnce() -> i32) -> std::io::Result<Self> {
        #[expect(unsafe_code, reason = "there is no safe function that starts a child this way")]
        // SAFETY: the callers have one thread, so that no lock stays locked in the child.
        let result = unsafe { libc::fork() };
        Self::continue_as(i64::from(result), body)
    }

    /// Starts a child in new namespaces like [`Self::start`].
    ///
    /// # Errors
    /// The system has too many processes, or does not allow the namespaces.
    #[cfg(target_os = "linux")]
    pub(crate) fn start_in(
        namespaces: nix::sched::CloneFlags,
        body: impl FnOnce() -> i32,
    ) -> std::io::Result<Self> {
        let flags = libc::c_long::from(namespaces.bits() | libc::SIGCHLD);
        #[expect(unsafe_code, reason = "there is no safe function that starts a child this way")]
        // SAFETY: without `CLONE_VM` the child has its own copy of the memory, and without a stack
        // argument it continues on the copy of this stack, as after `fork`. The callers have one
        // thread.
        let result = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
        Self::continue_as(result, body)
    }

    /// Continues as the child or as the parent, by the result of the system call.
    fn continue_as(result: i64, body: impl FnOnce() -> i32) -> std::io::Result<Self> {
        if result == 0 {
            // The child must not return, or unwind, into the frames of its parent. The message of a
            // panic is printed already.
            let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANICKED);
            std::process::exit(code)
        }
        // A negative number would be a mistake of the caller in `Pid::from_raw`.
        let pid = i32::try_from(result).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw);
        let pid = pid.ok_or_else(std::io::Error::last_os_error)?;
        Ok(Self { pid, status: None })
    }

    /// Returns the process ID, as this process sees it.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the status of the child if it has ended.
    pub(crate) fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.wait_with(WaitOptions::NOHANG)
    }

    /// Waits for the end of the child.
    pub(crate) fn wait(&mut self) -> std::io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.wait_with(WaitOptions::empty())? {
                return Ok(status);
            }
        }
    }

    fn wait_with(&mut self, options: WaitOptions) -> std::io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = match waitpid(Some(self.pid), options) {
                Ok(ended) => ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw())),
                Err(rustix::io::Errno::INTR) => None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.status)
    }
}
