//! Serves one client on standard input and output.

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::client_kind::ClientKind;
use crate::handler::{ClientHandler, ClientState};
use crate::line_transport::{ConnectionEnds, LineTransport};
use crate::server::ToolServer;

/// How often the server looks whether a client that sends nothing more is still there.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The reason why serving failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The client did not begin a session of MCP.
    #[error(
        "cannot begin a session of MCP: {0}\nhint: this command is started by an MCP client; \
            `cofferdam mcp install` shows how"
    )]
    Handshake(String),
    /// The task that serves the client failed.
    #[error("cannot serve the client: {0}")]
    Task(String),
}

/// Serves one client on standard input and output, until it closes its side or the server shuts
/// down. Then cancels all calls and ends all background commands.
///
/// # Errors
///
/// Returns an error if the client does not speak the protocol.
pub async fn serve_stdio(server: ToolServer) -> Result<(), ServeError> {
    let ends = ConnectionEnds::default();
    let transport = LineTransport::new(standard_input(), standard_output(), ends.clone());
    let state = Arc::new(ClientState::new(server.clone(), ClientKind::Local));
    let handler = ClientHandler::new(Arc::clone(&state));
    let watch = tokio::spawn(watch_ends(ends, server.clone()));
    let served = match serve_server_with_ct(handler, transport, server.shutdown().clone()).await {
        Ok(running) => match running.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(ServeError::Task(error.to_string())),
        },
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            Ok(())
        }
        Err(error) => Err(ServeError::Handshake(error.to_string())),
    };
    watch.abort();
    server.shutdown().cancel();
    state.end().await;
    served
}

/// Shuts the server down when the client is gone. A client that has only closed its input has a
/// moment to read the results of its last calls.
async fn watch_ends(ends: ConnectionEnds, server: ToolServer) {
    tokio::select! {
        () = ends.output_closed.cancelled() => {}
        () = ends.input_ended.cancelled() => {
            let closing = async {
                while !is_output_closed() {
                    tokio::time::sleep(LOOK_INTERVAL).await;
                }
            };
            tokio::select! {
                () = ends.output_closed.cancelled() => {}
                () = closing => {}
                () = tokio::time::sleep(server.options().closing_time) => {}
            }
        }
    }
    server.shutdown().cancel();
}

/// Returns whether nobody can read standard output.
fn is_output_closed() -> bool {
    let output = std::io::stdout();
    let mut polled = [PollFd::new(&output, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok_and(|_| {
        polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL)
    })
}

/// Opens standard input without a thread, if it is a pipe. Otherwise each read has a thread.
fn standard_input() -> Box<dyn AsyncRead + Send + Unpin> {
    let pipe = tokio::net::unix::pipe::OpenOptions::new().open_receiver("/proc/self/fd/0");
    match pipe {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

/// Opens standard output without a thread, if it is a pipe. Otherwise each write has a thread.
fn standard_output() -> Box<dyn AsyncWrite + Send + Unpin> {
    let pipe = tokio::net::unix::pipe::OpenOptions::new().open_sender("/proc/self/fd/1");
    match pipe {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdout()),
    }
}
