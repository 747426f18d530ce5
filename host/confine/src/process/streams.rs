//! The standard streams of a command, and the host's ends of them.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::{Receiver, Sender};

use super::BackgroundStreams;
use crate::protocol::CommandStreams;

/// The size of a new terminal, in characters.
const TERMINAL_SIZE: Winsize = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };

/// The streams that the supervisor of a command gets. By default, it gets pipes for the output.
#[derive(Debug, Default)]
pub(super) struct StreamPlan {
    pub(super) kind: CommandStreams,
    /// The command's ends: input and output, or the terminal.
    pub(super) descriptors: Vec<OwnedFd>,
}

/// The output of a background command.
#[derive(Debug)]
pub(super) struct BackgroundOutput {
    /// `None` after the end.
    stream: Option<Receiver>,
}

/// The input of a background command. If the value is dropped, a program that reads a pipe sees
/// its end; a terminal stays open.
#[derive(Debug)]
pub struct BackgroundInput {
    stream: Sender,
}

/// Creates the streams of a background command.
///
/// # Errors
/// The system has no more descriptors or terminals.
pub(super) fn create_streams(
    streams: BackgroundStreams,
) -> io::Result<(StreamPlan, BackgroundOutput, BackgroundInput)> {
    let (plan, output, input): (_, OwnedFd, OwnedFd) = match streams {
        BackgroundStreams::Pipes => {
            let (input, ours) = io::pipe()?;
            let (output, theirs) = io::pipe()?;
            let descriptors = vec![input.into(), theirs.into()];
            let plan = StreamPlan { kind: CommandStreams::Pipes, descriptors };
            (plan, output.into(), ours.into())
        }
        BackgroundStreams::Terminal => {
            let (ours, theirs) = open_terminal()?;
            let plan = StreamPlan { kind: CommandStreams::Terminal, descriptors: vec![theirs] };
            let input = ours.try_clone()?;
            (plan, ours, input)
        }
    };
    set_nonblocking(&output)?;
    set_nonblocking(&input)?;
    // A terminal is no pipe, but is read and written in the same way.
    let output = BackgroundOutput { stream: Some(Receiver::from_owned_fd_unchecked(output)?) };
    Ok((plan, output, BackgroundInput { stream: Sender::from_owned_fd_unchecked(input)? }))
}

impl BackgroundOutput {
    /// Reads the next output, or returns 0 after its end. This is cancel-safe.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> usize {
        let Some(output) = &mut self.stream else { return 0 };
        // A terminal without processes fails to read.
        let count = output.read(buffer).await.unwrap_or(0);
        if count == 0 {
            self.stream = None;
        }
        count
    }

    /// Returns whether the output may have more bytes.
    pub(super) fn is_open(&self) -> bool {
        self.stream.is_some()
    }
}

impl BackgroundInput {
    /// Returns the pipe itself.
    pub fn into_pipe(self) -> Sender {
        self.stream
    }

    /// Writes a part of the input as soon as there is room for it, and returns its length. This is
    /// cancel-safe.
    ///
    /// # Errors
    /// The command closed its input or has ended.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.stream.writable().await?;
            match self.stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
    }
}

/// The host's ends of the streams of a server: the errors of the command, its output and its input.
pub(super) struct ServerStreams {
    pub(super) plan: StreamPlan,
    pub(super) errors: BackgroundOutput,
    pub(super) output: Receiver,
    pub(super) input: BackgroundInput,
}

/// Creates three separate pipes for a server, whose output is a protocol.
///
/// # Errors
/// The system has no more descriptors.
pub(super) fn create_server_streams() -> io::Result<ServerStreams> {
    let (their_input, input) = io::pipe()?;
    let (output, their_output) = io::pipe()?;
    let (errors, their_errors) = io::pipe()?;
    let descriptors = vec![their_input.into(), their_output.into(), their_errors.into()];
    let (input, output, errors): (OwnedFd, OwnedFd, OwnedFd) =
        (input.into(), output.into(), errors.into());
    for end in [&input, &output, &errors] {
        set_nonblocking(end)?;
    }
    Ok(ServerStreams {
        plan: StreamPlan { kind: CommandStreams::SeparatePipes, descriptors },
        errors: BackgroundOutput { stream: Some(Receiver::from_owned_fd(errors)?) },
        output: Receiver::from_owned_fd(output)?,
        input: BackgroundInput { stream: Sender::from_owned_fd(input)? },
    })
}

fn set_nonblocking(descriptor: &OwnedFd) -> io::Result<()> {
    let flags = fcntl_getfl(descriptor)?;
    Ok(fcntl_setfl(descriptor, flags | OFlags::NONBLOCK)?)
}

/// Opens a new terminal: the end of the host, and the end of the programs.
fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let theirs = open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    tcsetwinsize(theirs.as_fd(), TERMINAL_SIZE)?;
    Ok((ours, theirs))
}
