//! The socket between two processes of a command. It carries lines of JSON, and each side notices
//! when the other closes.

use std::io::{self, BufRead as _, BufReader, IoSlice, IoSliceMut, Read, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::os::RECEIVE_FLAGS;

/// The maximum size of a message, in bytes: a line of 128 KiB that is all escapes, plus paths.
const MAX_MESSAGE_LEN: u64 = 4 << 20;
/// The maximum number of descriptors that come with one message: input, output and errors.
const MAX_DESCRIPTORS: usize = 3;

/// One end of the socket, with buffered reading.
#[derive(Debug)]
pub(crate) struct SupervisorLink {
    stream: BufReader<DescriptorStream>,
}

impl SupervisorLink {
    /// Takes the end that this process got as its standard input.
    pub(super) fn from_stdin() -> std::io::Result<Self> {
        Ok(Self::new(std::io::stdin().as_fd().try_clone_to_owned()?.into()))
    }

    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream: BufReader::new(DescriptorStream { stream, received: Vec::new() }) }
    }

    pub(super) fn send(&mut self, message: &impl Serialize) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.stream.get_mut().stream.write_all(&line)
    }

    /// Sends a message with at most [`MAX_DESCRIPTORS`] descriptors.
    pub(super) fn send_with_descriptors(
        &mut self,
        message: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let stream = &mut self.stream.get_mut().stream;
        let sent = send_with_descriptors(stream.as_fd(), &line, descriptors)?;
        stream.write_all(line.get(sent..).unwrap_or_default())
    }

    /// Takes all descriptors that came with the messages so far, oldest first.
    pub(super) fn take_descriptors(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.stream.get_mut().received)
    }

    /// Returns the oldest descriptor that came with the messages so far.
    pub(super) fn take_descriptor(&mut self) -> Option<OwnedFd> {
        let received = &mut self.stream.get_mut().received;
        (!received.is_empty()).then(|| received.remove(0))
    }

    /// Receives the next message, or `None` at the end of the stream.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> std::io::Result<Option<T>> {
        let mut line = Vec::new();
        self.stream.by_ref().take(MAX_MESSAGE_LEN).read_until(b'\n', &mut line)?;
        if line.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(&line)?)) }
    }

    /// Waits until the other end is closed or sends something, or the time is over.
    pub(super) fn wait_until_closed(&self, at_most: Duration) {
        let timeout = Timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        let _ = poll(&mut [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)], Some(&timeout));
    }

    /// Returns whether the other end is closed for writing. What it has sent before comes first.
    pub(super) fn is_closed(&mut self) -> bool {
        self.state() == LinkState::Closed
    }

    /// Returns whether there is something to receive, without waiting for it.
    pub(super) fn state(&mut self) -> LinkState {
        let stream = &self.stream.get_ref().stream;
        if stream.set_nonblocking(true).is_err() {
            return LinkState::Closed;
        }
        let state = match self.stream.fill_buf() {
            Ok([]) => LinkState::Closed,
            Ok(_) => LinkState::Readable,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => LinkState::Quiet,
            Err(_) => LinkState::Closed,
        };
        match self.stream.get_ref().stream.set_nonblocking(false) {
            Ok(()) => state,
            Err(_) => LinkState::Closed,
        }
    }
}

/// Whether there is something to receive on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    /// The other end is open and has sent nothing.
    Quiet,
    /// The other end has sent something.
    Readable,
    /// The other end is closed, and everything that it sent was received.
    Closed,
}

impl AsFd for SupervisorLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.get_ref().stream.as_fd()
    }
}

/// A socket that keeps the descriptors that come with its bytes.
#[derive(Debug)]
struct DescriptorStream {
    stream: UnixStream,
    received: Vec<OwnedFd>,
}

impl Read for DescriptorStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        receive_with_descriptors(self.stream.as_fd(), buffer, &mut self.received)
    }
}

/// Sends bytes with at most [`MAX_DESCRIPTORS`] descriptors, and returns the number of sent bytes.
pub(crate) fn send_with_descriptors(
    stream: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::empty())?)
}

/// Receives bytes, and the descriptors that come with them.
pub(crate) fn receive_with_descriptors(
    stream: BorrowedFd<'_>,
    buffer: &mut [u8],
    received: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let buffers = &mut [IoSliceMut::new(buffer)];
    let found = recvmsg(stream, buffers, &mut control, RECEIVE_FLAGS)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            received.extend(descriptors);
        }
    }
    Ok(found.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_before_the_end_comes_before_the_end() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (mut link, mut other) = (SupervisorLink::new(ours), SupervisorLink::new(theirs));
        assert_eq!(link.state(), LinkState::Quiet);
        other.send(&1).and_then(|()| other.send(&2)).expect("sent");
        drop(other);
        for number in 1..=2 {
            assert_eq!(link.state(), LinkState::Readable);
            assert!(!link.is_closed());
            assert_eq!(link.receive::<u32>().expect("received"), Some(number));
        }
        assert_eq!(link.state(), LinkState::Closed);
        assert!(link.is_closed());
    }
}
