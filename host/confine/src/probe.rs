//! The access attempts of a self-test inside the sandbox. Each must fail or leave no effect.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The file that the test creates in its workspace.
pub(super) const PROBE_FILE: &str = "probe";

/// The targets of the attempts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProbeTargets {
    /// A file outside that the user can read.
    pub(super) readable: PathBuf,
    /// A path outside at which the user can create a file.
    pub(super) writable: PathBuf,
    /// A TCP port with a listener outside.
    pub(super) port: u16,
}

/// The attempts that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProbeFindings {
    pub(super) read_outside: bool,
    pub(super) reached_tcp: bool,
}

impl ProbeTargets {
    /// Makes all attempts in this process, and prints the findings to standard output.
    pub(super) fn run_all(&self) -> std::io::Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let found = ProbeFindings {
            read_outside: fs::read(&self.readable).is_ok(),
            reached_tcp: TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_ok(),
        };
        // These may appear to succeed inside the sandbox. Only their effects outside count.
        let _ = fs::write(&self.writable, "");
        let _ = fs::write(PROBE_FILE, "");
        let _ = fs::create_dir_all(".git/hooks");
        let _ = fs::write(".git/hooks/pre-commit", "planted");
        // The background process keeps standard output open as long as it lives.
        let _ = Command::new("/bin/sh")
            .args(["-c", "trap '' HUP TERM; sleep 60 & exit 0"])
            .stdin(Stdio::null())
            .status();
        let mut stdout = std::io::stdout().lock();
        serde_json::to_writer(&mut stdout, &found)?;
        stdout.flush()
    }
}
