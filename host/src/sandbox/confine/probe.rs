//! What a self-test tries from inside of the sandbox: each of it must fail, or leave nothing.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where to try.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::sandbox) struct ProbeTargets {
    /// A file outside, which the user can read.
    pub(super) readable: PathBuf,
    /// A path outside at which the user can make a file.
    pub(super) writable: PathBuf,
    /// Somebody listens there.
    pub(super) port: u16,
}

/// What could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct ProbeFindings {
    pub(super) read_outside: bool,
    pub(super) reached_tcp: bool,
}

impl ProbeTargets {
    /// Tries all of it in this process, and tells on standard output.
    pub(super) fn run_all(&self) -> std::io::Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let found = ProbeFindings {
            read_outside: fs::read(&self.readable).is_ok(),
            reached_tcp: TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_ok(),
        };
        // These may seem to work from in here. What is left of them afterwards is what counts.
        let _ = fs::write(&self.writable, "");
        let _ = fs::create_dir_all(".git/hooks");
        let _ = fs::write(".git/hooks/pre-commit", "planted");
        // It holds the standard output open for as long as it lives.
        let _ = Command::new("/bin/sh")
            .args(["-c", "trap '' HUP TERM; sleep 60 & exit 0"])
            .stdin(Stdio::null())
            .status();
        let mut stdout = std::io::stdout().lock();
        serde_json::to_writer(&mut stdout, &found)?;
        stdout.flush()
    }
}
