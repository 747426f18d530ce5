//! Files with tokens, keys or other settings that decide who may use what.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::error::CliError;

/// The largest file with tokens, settings or keys.
const MAX_FILE_LEN: u64 = 1 << 20;

/// Who else may have access to a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privacy {
    /// Others may not read it.
    Secret,
    /// Others may read it, but not write it.
    Public,
}

/// Reads a file that decides who may use the tools.
pub(crate) fn read_checked(path: &Path, privacy: Privacy) -> Result<String, CliError> {
    let problem = |problem: &str| {
        let text = format!("cannot read {}: {problem}", path.display());
        CliError::configuration(text)
    };
    // A FIFO must not block.
    let flags = cofferdam::own_file::nonblocking_flags();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| problem(&error.to_string()))?;
    let metadata = file.metadata().map_err(|error| problem(&error.to_string()))?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_LEN {
        return Err(problem("it is not a file, or it is too large"));
    }
    let own = rustix::process::getuid().as_raw();
    if metadata.uid() != own && metadata.uid() != 0 {
        return Err(problem("it belongs to another user"));
    }
    let forbidden = match privacy {
        Privacy::Secret => 0o077,
        Privacy::Public => 0o022,
    };
    if metadata.mode() & forbidden != 0 {
        let (what, mode) = match privacy {
            Privacy::Secret => ("read or write", "600"),
            Privacy::Public => ("write", "go-w"),
        };
        return Err(problem(&format!(
            "other users can {what} it\nhint: chmod {mode} {}",
            path.display()
        )));
    }
    let mut text = String::new();
    file.take(MAX_FILE_LEN)
        .read_to_string(&mut text)
        .map_err(|error| problem(&error.to_string()))?;
    Ok(text)
}
