//! The helper processes of a host: this program, started again for one task.

use std::path::PathBuf;

use super::HostError;
use crate::sandbox;

/// Proof that this program can be started again as a helper process.
///
/// A host compiles untrusted components and supervises commands in processes of their own. They are
/// this same program, started with a reserved first argument, so `main` has to give up control to
/// them before it does anything else:
///
/// ```no_run
/// use cofferdam::host::{HelperProcesses, Host};
///
/// let helpers = HelperProcesses::init();
/// let host = Host::builder(".").helper_processes(helpers);
/// ```
///
/// Without helper processes, a host compiles components in its own process and denies commands.
#[derive(Clone, Copy, Debug)]
pub struct HelperProcesses(());

impl HelperProcesses {
    /// Runs the task and exits if this process is a helper process. Call it at the beginning of
    /// `main`, while the process has a single thread.
    pub fn init() -> Self {
        let mut arguments = std::env::args_os().skip(1);
        let name = arguments.next();
        let has_more = arguments.next().is_some();
        if let (Some(name), false) = (name.as_ref().and_then(|name| name.to_str()), has_more)
            && let Some(code) = Self::run(name)
        {
            std::process::exit(code);
        }
        Self(())
    }

    /// Runs a task and returns the exit code, or `None` if no task has this name.
    fn run(name: &str) -> Option<i32> {
        let result = match name {
            "compile-component" => sandbox::compile_from_stdin(),
            "supervise-command" => sandbox::supervise_command().map_err(|error| error.to_string()),
            "confined-command" => {
                sandbox::exec_confined_command().map_err(|error| error.to_string())
            }
            _ => return None,
        };
        Some(match result {
            Ok(()) => 0,
            Err(problem) => {
                use std::io::Write as _;
                let _ = writeln!(std::io::stderr(), "{problem}");
                1
            }
        })
    }

    /// Returns the path that starts this program again.
    pub(super) fn program(self) -> Result<PathBuf, HostError> {
        sandbox::current_program().map_err(HostError::CurrentProgram)
    }
}
