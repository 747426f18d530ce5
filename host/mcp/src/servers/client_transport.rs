//! Messages as lines of JSON from a server that is not trusted.
//!
//! The length of a line is limited here. [`MessageGuard`] limits everything else before the SDK
//! sees it.

use std::io;
use std::time::Duration;

use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::message_guard::{ConnectionFault, MAX_MESSAGE_LEN, MessageGuard};

/// The number of lines that wait to be written.
const MAX_WAITING_LINES: usize = 64;
/// The bytes that are read at once.
const READ_SIZE: usize = 64 << 10;
/// How long the last lines may take to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// A connection to one server, on its standard streams.
pub(super) struct ClientTransport<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    guard: MessageGuard,
    fault: ConnectionFault,
    output: Option<mpsc::Sender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
}

impl<R: AsyncRead + Send + Unpin> ClientTransport<R> {
    pub(super) fn new<W>(input: R, output: W, fault: ConnectionFault) -> Self
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (lines, waiting) = mpsc::channel(MAX_WAITING_LINES);
        Self {
            input: BufReader::with_capacity(READ_SIZE, input),
            line: Vec::new(),
            guard: MessageGuard::default(),
            fault,
            output: Some(lines),
            writer: Some(tokio::spawn(write_lines(output, waiting))),
        }
    }

    /// Reads one line into `self.line`. Returns `false` at the end, or if the line is too long. If
    /// the future is dropped, the next call continues.
    async fn read_line(&mut self) -> bool {
        loop {
            let Ok(available) = self.input.fill_buf().await else { return false };
            if available.is_empty() {
                return false;
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let length = newline.map_or(available.len(), |at| at + 1);
            if self.line.len() + length > MAX_MESSAGE_LEN {
                self.fault.report(format!("it sent a line of more than {MAX_MESSAGE_LEN} bytes"));
                return false;
            }
            self.line.extend_from_slice(&available[..length]);
            self.input.consume(length);
            if newline.is_some() {
                return true;
            }
        }
    }

    /// Takes the current line. Returns its message if the SDK may see it.
    fn take_message(&mut self) -> Result<Option<RxJsonRpcMessage<RoleClient>>, String> {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_ascii();
        if text.is_empty() {
            return Ok(None);
        }
        self.guard.count_input(1, text.len())?;
        self.guard.admit(text)
    }
}

/// Writes lines until there are no more, or until the server does not read any more.
async fn write_lines(mut output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleClient> for ClientTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = self.guard.begin_send(&message);
        let line = serde_json::to_vec(&message).map(|mut line| {
            line.push(b'\n');
            line
        });
        let (output, guard) = (self.output.clone(), self.guard.clone());
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            output.ok_or_else(closed)?.send(line?).await.map_err(|_| closed())?;
            // From here on, the number of waiting lines limits what the server has not read.
            if let Some(id) = answered {
                guard.end_request(&id);
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if !self.read_line().await {
                return None;
            }
            match self.take_message() {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(reason) => {
                    self.fault.report(reason);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output = None;
        if let Some(writer) = self.writer.take() {
            let stop = writer.abort_handle();
            if tokio::time::timeout(CLOSE_TIMEOUT, writer).await.is_err() {
                stop.abort();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::message_guard::{
        MAX_GARBAGE, MAX_OPEN_REQUESTS, MAX_UNASKED_MESSAGES, MAX_VALUES,
    };
    use tokio::io::duplex;

    /// Sends bytes as a server, and returns the number of messages that arrive, and the fault.
    async fn receive_all(bytes: &[u8]) -> (usize, Option<String>) {
        let (client, mut server) = duplex(1 << 20);
        let (input, output) = tokio::io::split(client);
        let fault = ConnectionFault::default();
        let mut transport = ClientTransport::new(input, output, fault.clone());
        let sending = async {
            // A transport that has ended does not read the rest.
            let _ = server.write_all(bytes).await;
            drop(server);
        };
        let receiving = async {
            let mut messages = 0;
            while transport.receive().await.is_some() {
                messages += 1;
            }
            drop(transport);
            messages
        };
        let ((), messages) = tokio::join!(sending, receiving);
        (messages, fault.reason())
    }

    fn notification() -> &'static str {
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n"
    }

    #[tokio::test]
    async fn garbage_between_messages_is_ignored_up_to_a_limit() {
        let mut bytes = b"starting...\n\xff\xfe\n[]\n{}\n\n\"x\"\n".to_vec();
        bytes.extend_from_slice(notification().as_bytes());
        assert_eq!(receive_all(&bytes).await, (1, None));
        let (messages, fault) = receive_all("x\n".repeat(MAX_GARBAGE + 1).as_bytes()).await;
        assert_eq!(messages, 0);
        assert!(fault.is_some_and(|fault| fault.contains("not messages")));
    }

    #[tokio::test]
    async fn a_line_without_end_ends_the_connection() {
        let (messages, fault) = receive_all(&vec![b'a'; MAX_MESSAGE_LEN + 1]).await;
        assert_eq!(messages, 0);
        assert!(fault.is_some_and(|fault| fault.contains("a line of more than")));
    }

    #[tokio::test]
    async fn a_flood_of_messages_ends_the_connection() {
        let bytes = notification().repeat(MAX_UNASKED_MESSAGES + 1);
        let (messages, fault) = receive_all(bytes.as_bytes()).await;
        assert_eq!(messages, MAX_UNASKED_MESSAGES);
        assert!(fault.is_some_and(|fault| fault.contains("without being asked")));
    }

    #[tokio::test]
    async fn requests_that_nobody_answers_end_the_connection() {
        let request =
            |id: usize| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        let twice = request(1).repeat(2);
        assert_eq!(receive_all(twice.as_bytes()).await, (1, None));
        let many: String = (0..=MAX_OPEN_REQUESTS).map(request).collect();
        let (messages, fault) = receive_all(many.as_bytes()).await;
        assert_eq!(messages, MAX_OPEN_REQUESTS);
        assert!(fault.is_some_and(|fault| fault.contains("without reading the answers")));
    }

    #[tokio::test]
    async fn a_message_of_many_values_ends_the_connection() {
        let values = "[],".repeat(MAX_VALUES);
        let line =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"content\":[{}[]]}}}}\n", values);
        let (messages, fault) = receive_all(line.as_bytes()).await;
        assert_eq!(messages, 0);
        assert!(fault.is_some_and(|fault| fault.contains("JSON values")));
    }
}
