//! The program as it is shipped, built where tests can find it, with one thing more: a write to the
//! disk can be made to wait.
//!
//! A test that wants to be there while a session is being saved names a folder in
//! `COFFERDAM_TEST_SYNC`, with a file `at` in it. The first time a session is synced whose last
//! line begins with that text, a file `reached` appears there, and the sync waits until there is a
//! file `go`. Without the variable this is the program and nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    cofferdam_cli::run()
}

#[cfg(target_os = "linux")]
mod sync {
    use std::os::fd::{AsRawFd as _, BorrowedFd};
    use std::path::Path;
    use std::time::Duration;

    /// Takes the place of the C library's, which is what the standard library calls for
    /// `sync_data`.
    // SAFETY: the name and the signature are those of the C library, and it does what that function
    // does, after a while.
    #[expect(
        unsafe_code,
        reason = "the one place where a test can hold up a write; see the comment above"
    )]
    #[unsafe(no_mangle)]
    extern "C" fn fdatasync(fd: i32) -> i32 {
        // SAFETY: the caller holds the file open for the length of the call, as that function
        // demands.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        if let Some(folder) = std::env::var_os("COFFERDAM_TEST_SYNC") {
            wait(file, Path::new(&folder));
        }
        rustix::fs::fdatasync(file).map_or(-1, |()| 0)
    }

    fn wait(file: BorrowedFd<'_>, folder: &Path) {
        let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())) else {
            return;
        };
        let is_session = path.extension().is_some_and(|ending| ending == "jsonl")
            && path.components().any(|part| part.as_os_str() == "sessions");
        let reached = folder.join("reached");
        let (Ok(at), Ok(text)) =
            (std::fs::read_to_string(folder.join("at")), std::fs::read_to_string(&path))
        else {
            return;
        };
        if !is_session
            || reached.exists()
            || !text.lines().last().is_some_and(|line| line.starts_with(&at))
        {
            return;
        }
        let _ = std::fs::write(&reached, "");
        while !folder.join("go").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
