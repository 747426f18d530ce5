//! Messages as lines of JSON, on a byte stream whose other end is not trusted.
//!
//! What the client sends is limited before the SDK sees it: the length of a line, the number of
//! open requests, and their IDs. Whatever is refused gets an answer, so that no client waits for
//! ever. While the client does not read, nothing more is read from it.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::foreign_answer::is_foreign_answer;
use crate::invalid_message::explain_error;
use crate::message_size::find_excess;

/// The longest line, in bytes.
const MAX_LINE_LEN: usize = 16 << 20;
/// The number of requests without an answer.
const MAX_OPEN_REQUESTS: usize = 2048;
/// The number of lines that wait to be written.
const MAX_WAITING_LINES: usize = 64;
/// The bytes that are written at once.
const WRITE_SIZE: usize = 64 << 10;
/// How long the last lines may take to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The code of an error of this server that has no better one.
const SERVER_BUSY: ErrorCode = ErrorCode(-32000);

/// A connection to one client.
pub(crate) struct LineTransport<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// Whether the rest of the current line is dropped.
    is_discarding: bool,
    /// Whether a request has arrived. Nothing else opens a session.
    has_request: bool,
    /// An answer that is sent before the next line is read.
    refusal: Option<Vec<u8>>,
    open_requests: OpenRequests,
    output: Option<mpsc::Sender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    ends: ConnectionEnds,
}

/// How a connection ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionEnds {
    /// The client sends nothing more.
    pub(crate) input_ended: CancellationToken,
    /// The client reads nothing more.
    pub(crate) output_closed: CancellationToken,
}

/// The IDs of the requests without an answer.
#[derive(Clone, Debug, Default)]
struct OpenRequests(Arc<Mutex<HashSet<RequestId>>>);

impl OpenRequests {
    fn lock(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcome of reading one line.
enum ReadLine {
    Complete,
    TooLong,
    End,
}

impl<R: AsyncRead + Send + Unpin> LineTransport<R> {
    pub(crate) fn new<W>(input: R, output: W, ends: ConnectionEnds) -> Self
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (lines, waiting) = mpsc::channel(MAX_WAITING_LINES);
        let closed = ends.output_closed.clone();
        Self {
            input: BufReader::with_capacity(WRITE_SIZE, input),
            line: Vec::new(),
            is_discarding: false,
            has_request: false,
            refusal: None,
            open_requests: OpenRequests::default(),
            output: Some(lines),
            writer: Some(tokio::spawn(write_lines(output, waiting, closed))),
            ends,
        }
    }

    /// Reads one line into `self.line`. If the future is dropped, the next call continues.
    async fn read_line(&mut self) -> ReadLine {
        loop {
            let Ok(available) = self.input.fill_buf().await else { return ReadLine::End };
            if available.is_empty() {
                return ReadLine::End;
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let length = newline.map_or(available.len(), |at| at + 1);
            let is_too_long = self.line.len() + length > MAX_LINE_LEN;
            if !self.is_discarding && !is_too_long {
                self.line.extend_from_slice(&available[..length]);
            }
            self.input.consume(length);
            match (self.is_discarding, newline.is_some()) {
                (true, true) => self.is_discarding = false,
                (false, _) if is_too_long => {
                    self.line = Vec::new();
                    self.is_discarding = newline.is_none();
                    return ReadLine::TooLong;
                }
                (false, true) => return ReadLine::Complete,
                (_, false) => {}
            }
        }
    }

    /// Takes the current line. Returns its message if the SDK may see it.
    fn take_message(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut line = std::mem::take(&mut self.line);
        let message = self.check_line(line.trim_ascii());
        // A buffer of an ordinary size is used again.
        if line.capacity() <= WRITE_SIZE {
            line.clear();
            self.line = line;
        }
        message
    }

    fn check_line(&mut self, line: &[u8]) -> Option<RxJsonRpcMessage<RoleServer>> {
        if line.is_empty() {
            return None;
        }
        if let Some(problem) = find_excess(line) {
            self.refuse(None, ErrorData::invalid_request(problem, None));
            return None;
        }
        let message = match serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(line) {
            Ok(message) => message,
            Err(error) => {
                self.refuse_line(line, &error);
                return None;
            }
        };
        match &message {
            JsonRpcMessage::Request(request) => {
                self.has_request = true;
                let mut open = self.open_requests.lock();
                if open.contains(&request.id) {
                    drop(open);
                    let problem = "the ID is that of a request without an answer";
                    // An answer with the ID would count as the answer of the other request.
                    self.refuse(None, ErrorData::invalid_request(problem, None));
                    return None;
                }
                if open.len() >= MAX_OPEN_REQUESTS {
                    drop(open);
                    let problem =
                        format!("{MAX_OPEN_REQUESTS} requests have no answer yet; try again later");
                    let id = request.id.clone();
                    self.refuse(Some(id), ErrorData::new(SERVER_BUSY, problem, None));
                    return None;
                }
                open.insert(request.id.clone());
            }
            JsonRpcMessage::Notification(notification) => {
                // The SDK drops the answer of a cancelled request.
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open_requests.lock().remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
                if is_foreign_answer(&message) =>
            {
                return None;
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        // The SDK ends the session if it begins with anything but a request.
        self.has_request.then_some(message)
    }

    fn refuse_line(&mut self, line: &[u8], error: &serde_json::Error) {
        let (id, error) = explain_error(line, error);
        // An answer with an open ID would count as the answer of the other request.
        let id = id.filter(|id| !self.open_requests.lock().contains(id));
        self.refuse(id, error);
    }

    fn refuse(&mut self, id: Option<RequestId>, error: ErrorData) {
        let answer = TxJsonRpcMessage::<RoleServer>::error(error, id);
        self.refusal = to_line(&answer).ok();
    }
}

/// Formats a message as a line.
fn to_line(message: &TxJsonRpcMessage<RoleServer>) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Writes lines until there are no more, or until the other end is closed.
async fn write_lines(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<Vec<u8>>,
    closed: CancellationToken,
) {
    while let Some(mut piece) = lines.recv().await {
        while piece.len() < WRITE_SIZE
            && let Ok(line) = lines.try_recv()
        {
            piece.extend(line);
        }
        let written = async {
            output.write_all(&piece).await?;
            output.flush().await
        };
        if written.await.is_err() {
            closed.cancel();
            return;
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for LineTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = answered {
            self.open_requests.lock().remove(id);
        }
        let (line, output) = (to_line(&message), self.output.clone());
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            output.ok_or_else(closed)?.send(line?).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.refusal.is_some() {
                let place = self.output.as_ref()?.reserve().await.ok()?;
                if let Some(line) = self.refusal.take() {
                    place.send(line);
                }
            }
            match self.read_line().await {
                ReadLine::Complete => {
                    if let Some(message) = self.take_message() {
                        return Some(message);
                    }
                }
                ReadLine::TooLong => {
                    let problem = format!("the line is longer than {MAX_LINE_LEN} bytes");
                    self.refuse(None, ErrorData::invalid_request(problem, None));
                }
                ReadLine::End => {
                    self.ends.input_ended.cancel();
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
