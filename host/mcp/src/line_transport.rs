//! Messages as lines of JSON, on a byte stream whose other end is not trusted.
//!
//! What the client sends is limited before the SDK sees it: the length of a line, the number of
//! open requests, and their IDs. Whatever is refused gets an answer, so that no client waits for
//! ever. A request with a large answer starts when there is room for the answer, and the room is
//! free again when the answer is written: a client that does not read costs little memory.

use std::collections::HashMap;
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
use crate::request_queue::{Admission, AnswerRoom, RequestQueue};

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
    /// The length of the last complete line, in bytes.
    last_len: usize,
    /// Whether the rest of the current line is dropped.
    is_discarding: bool,
    /// Whether a request has arrived. Nothing else opens a session.
    has_request: bool,
    /// An answer that is sent before the next line is read.
    refusal: Option<Vec<u8>>,
    open_requests: OpenRequests,
    queue: RequestQueue,
    output: Option<mpsc::Sender<WaitingLine>>,
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

/// The IDs of the requests without an answer, with the room of each answer.
#[derive(Clone, Debug, Default)]
struct OpenRequests(Arc<Mutex<HashMap<RequestId, Option<AnswerRoom>>>>);

impl OpenRequests {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Option<AnswerRoom>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line that waits to be written.
struct WaitingLine {
    line: Vec<u8>,
    /// The room that is free again when the line is written.
    room: Option<AnswerRoom>,
}

impl From<Vec<u8>> for WaitingLine {
    fn from(line: Vec<u8>) -> Self {
        Self { line, room: None }
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
            last_len: 0,
            is_discarding: false,
            has_request: false,
            refusal: None,
            open_requests: OpenRequests::default(),
            queue: RequestQueue::default(),
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
        self.last_len = line.len();
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
                if open.contains_key(&request.id) {
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
                open.insert(request.id.clone(), None);
            }
            JsonRpcMessage::Notification(notification) => {
                // The SDK drops the answer of a cancelled request.
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open_requests.lock().remove(id);
                    if self.queue.remove(id) {
                        return None;
                    }
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

    /// Returns a message if the SDK may have it now. A request whose answer has no room waits.
    fn admit(
        &mut self,
        message: RxJsonRpcMessage<RoleServer>,
    ) -> Option<RxJsonRpcMessage<RoleServer>> {
        let JsonRpcMessage::Request(request) = message else { return Some(message) };
        let length = self.last_len;
        match self.queue.admit(request, length) {
            Admission::Started(request, room) => {
                if let Some(open) = self.open_requests.lock().get_mut(&request.id) {
                    *open = room;
                }
                Some(JsonRpcMessage::Request(*request))
            }
            Admission::Waiting => None,
            Admission::Refused(id) => {
                self.open_requests.lock().remove(&id);
                let problem = "too many bytes of requests wait for answers; try again later";
                self.refuse(Some(id), ErrorData::new(SERVER_BUSY, problem, None));
                None
            }
        }
    }

    /// Returns the first waiting request, for whose answer there is room now.
    fn start_next(&mut self, room: AnswerRoom) -> Option<RxJsonRpcMessage<RoleServer>> {
        let request = self.queue.take_first()?;
        *self.open_requests.lock().get_mut(&request.id)? = Some(room);
        Some(JsonRpcMessage::Request(request))
    }

    fn refuse_line(&mut self, line: &[u8], error: &serde_json::Error) {
        let (id, error) = explain_error(line, error);
        // An answer with an open ID would count as the answer of the other request.
        let id = id.filter(|id| !self.open_requests.lock().contains_key(id));
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
    mut lines: mpsc::Receiver<WaitingLine>,
    closed: CancellationToken,
) {
    while let Some(WaitingLine { line: mut piece, room }) = lines.recv().await {
        // The room of all lines of the piece, until they are written.
        let mut rooms: Vec<AnswerRoom> = room.into_iter().collect();
        while piece.len() < WRITE_SIZE
            && let Ok(WaitingLine { line, room }) = lines.try_recv()
        {
            piece.extend(line);
            rooms.extend(room);
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
        let room = answered.and_then(|id| self.open_requests.lock().remove(id)).flatten();
        let (line, output) = (to_line(&message), self.output.clone());
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let line = WaitingLine { line: line?, room };
            output.ok_or_else(closed)?.send(line).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.refusal.is_some() {
                let place = self.output.as_ref()?.reserve().await.ok()?;
                if let Some(line) = self.refusal.take() {
                    place.send(line.into());
                }
            }
            let room = self.queue.wait_for_room();
            let read = tokio::select! {
                biased;
                room = room => {
                    if let Some(message) = self.start_next(room) {
                        return Some(message);
                    }
                    continue;
                }
                read = self.read_line() => read,
            };
            match read {
                ReadLine::Complete => {
                    if let Some(message) = self.take_message().and_then(|new| self.admit(new)) {
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
