//! The socket between two processes of a command. It carries lines of JSON, and each side notices
//! when the other closes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The maximum size of a message, in bytes: a line of 128 KiB that is all escapes, plus paths.
const MAX_MESSAGE_LEN: u64 = 4 << 20;

/// One end of the socket, with buffered reading.
#[derive(Debug)]
pub(crate) struct SupervisorLink {
    stream: BufReader<UnixStream>,
}

impl SupervisorLink {
    /// Takes the end that this process got as its standard input.
    pub(super) fn from_stdin() -> std::io::Result<Self> {
        Ok(Self::new(std::io::stdin().as_fd().try_clone_to_owned()?.into()))
    }

    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    pub(super) fn send(&mut self, message: &impl Serialize) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)
    }

    /// Receives the next message, or `None` at the end of the stream.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> std::io::Result<Option<T>> {
        let mut line = Vec::new();
        self.stream.by_ref().take(MAX_MESSAGE_LEN).read_until(b'\n', &mut line)?;
        if line.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(&line)?)) }
    }

    /// Returns whether the other end is closed for writing.
    pub(super) fn is_closed(&mut self) -> bool {
        let stream = self.stream.get_ref();
        if stream.set_nonblocking(true).is_err() {
            return true;
        }
        let ended = match self.stream.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        };
        self.stream.get_ref().set_nonblocking(false).is_err() || ended
    }
}

impl AsFd for SupervisorLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.get_ref().as_fd()
    }
}
