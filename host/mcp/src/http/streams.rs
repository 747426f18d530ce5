//! The event streams of one session, as data: what waits for which reader.
//!
//! Each request has a stream, and the session has one for everything else. A stream keeps a few
//! events, so that a client can resume it after a lost connection. Nothing here waits for a client:
//! if nobody reads, old progress is dropped, and the answer of a call waits alone.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use rmcp::model::{
    ClientRequest, GetExtensions as _, GetMeta as _, JsonRpcMessage, JsonRpcRequest, ProgressToken,
    RequestId, ServerNotification,
};
use rmcp::service::{OriginatingRequestId, RoleServer, TxJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::ServerSseMessage;

/// The events that a stream keeps.
const MAX_KEPT_EVENTS: usize = 32;
/// The time after which a client should open a lost stream again.
const RETRY_TIME: Duration = Duration::from_secs(1);

/// The number of a stream in its session. Number 0 belongs to no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamNumber(u64);

/// The stream of a session that belongs to no request.
pub(crate) const OWN_STREAM: StreamNumber = StreamNumber(0);

/// A reader of a stream. Of several readers only the newest one gets events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamReader {
    pub(crate) stream: StreamNumber,
    reader: u64,
    /// The index of the next event.
    next: u64,
}

/// Why a request does not get a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamRefusal {
    /// A request with this ID has no answer yet.
    DuplicateId,
    /// Too many requests have no answer yet.
    TooManyRequests,
    /// Another connection reads the stream of the session.
    AlreadyOpen,
    /// The stream has ended, or there was none.
    Unknown,
}

#[derive(Debug)]
struct StreamEvent {
    index: u64,
    message: Option<Arc<TxJsonRpcMessage<RoleServer>>>,
    /// Whether the event may be dropped unread.
    is_optional: bool,
}

#[derive(Debug)]
struct EventStream {
    /// The request that the stream answers; `None` if it has its answer, or never had a request.
    request: Option<RequestId>,
    progress: Option<ProgressToken>,
    events: VecDeque<StreamEvent>,
    next_index: u64,
    /// The current reader, if there is one.
    reader: Option<u64>,
    /// The index of the first event that nobody has read.
    first_unread: u64,
    waker: Option<Waker>,
    /// When the last reader was lost.
    lost_at: Option<Instant>,
    /// Whether nothing follows the events.
    is_complete: bool,
}

impl EventStream {
    fn new(request: Option<RequestId>, progress: Option<ProgressToken>) -> Self {
        Self {
            request,
            progress,
            events: VecDeque::new(),
            next_index: 0,
            reader: None,
            first_unread: 0,
            waker: None,
            lost_at: None,
            is_complete: false,
        }
    }

    fn push(&mut self, message: Option<TxJsonRpcMessage<RoleServer>>, is_optional: bool) {
        if self.events.len() >= MAX_KEPT_EVENTS {
            let unread = self.first_unread;
            let dropped = self.events.iter().position(|e| e.index < unread || e.is_optional);
            self.events.remove(dropped.unwrap_or(0));
        }
        let message = message.map(Arc::new);
        self.events.push_back(StreamEvent { index: self.next_index, message, is_optional });
        self.next_index += 1;
        self.wake();
    }

    /// Returns whether the stream keeps an answer that nobody has read.
    fn has_unread_answer(&self) -> bool {
        self.is_complete && self.first_unread < self.next_index
    }

    fn complete(&mut self) {
        self.is_complete = true;
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The streams of a session.
#[derive(Debug)]
pub(crate) struct SessionStreams {
    streams: HashMap<StreamNumber, EventStream>,
    /// The streams of requests without an answer.
    by_request: HashMap<RequestId, StreamNumber>,
    by_progress: HashMap<ProgressToken, StreamNumber>,
    /// The streams on which requests of the server went out.
    by_question: HashMap<RequestId, StreamNumber>,
    next_stream: u64,
    next_reader: u64,
    max_requests: usize,
    /// Whether a client has read the stream of the session.
    pub(crate) had_own_reader: bool,
    is_closed: bool,
}

impl SessionStreams {
    pub(crate) fn new(max_requests: usize) -> Self {
        Self {
            streams: HashMap::from([(OWN_STREAM, EventStream::new(None, None))]),
            by_request: HashMap::new(),
            by_progress: HashMap::new(),
            by_question: HashMap::new(),
            next_stream: 1,
            next_reader: 0,
            max_requests,
            had_own_reader: false,
            is_closed: false,
        }
    }

    /// Opens the stream of a request. With `is_resumable`, its first event lets the client resume
    /// it before there is any other event.
    pub(crate) fn open(
        &mut self,
        request: &JsonRpcRequest<ClientRequest>,
        is_resumable: bool,
    ) -> Result<StreamReader, StreamRefusal> {
        if self.is_closed {
            return Err(StreamRefusal::Unknown);
        }
        if self.by_request.contains_key(&request.id) {
            return Err(StreamRefusal::DuplicateId);
        }
        let unread = self.streams.values().filter(|stream| stream.has_unread_answer()).count();
        if self.by_request.len() + unread >= self.max_requests {
            return Err(StreamRefusal::TooManyRequests);
        }
        let number = StreamNumber(self.next_stream);
        self.next_stream += 1;
        let progress = request.request.get_meta().get_progress_token();
        let mut stream = EventStream::new(Some(request.id.clone()), progress.clone());
        if is_resumable {
            stream.push(None, true);
        }
        self.streams.insert(number, stream);
        self.by_request.insert(request.id.clone(), number);
        if let Some(token) = progress {
            self.by_progress.entry(token).or_insert(number);
        }
        self.attach(number, 0)
    }

    /// Opens the stream of the session itself.
    pub(crate) fn open_own(&mut self) -> Result<StreamReader, StreamRefusal> {
        let own = self.streams.get_mut(&OWN_STREAM).ok_or(StreamRefusal::Unknown)?;
        if own.reader.is_some() {
            return Err(StreamRefusal::AlreadyOpen);
        }
        let next = own.first_unread;
        self.had_own_reader = true;
        self.attach(OWN_STREAM, next)
    }

    /// Resumes a stream after an event that the client has seen.
    pub(crate) fn resume(&mut self, last_event: &str) -> Result<StreamReader, StreamRefusal> {
        let (stream, index) = last_event.split_once('-').ok_or(StreamRefusal::Unknown)?;
        let (Ok(stream), Ok(index)) = (stream.parse(), index.parse::<u64>()) else {
            return Err(StreamRefusal::Unknown);
        };
        let number = StreamNumber(stream);
        let known = self.streams.get(&number).ok_or(StreamRefusal::Unknown)?;
        if index >= known.next_index {
            return Err(StreamRefusal::Unknown);
        }
        self.attach(number, index + 1)
    }

    fn attach(&mut self, number: StreamNumber, next: u64) -> Result<StreamReader, StreamRefusal> {
        let stream = self.streams.get_mut(&number).ok_or(StreamRefusal::Unknown)?;
        self.next_reader += 1;
        stream.reader = Some(self.next_reader);
        stream.lost_at = None;
        // An older reader ends.
        stream.wake();
        Ok(StreamReader { stream: number, reader: self.next_reader, next })
    }

    /// Puts a message of the server on its stream.
    pub(crate) fn deliver(&mut self, message: TxJsonRpcMessage<RoleServer>) {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = answered {
            // A request that was cancelled has no stream, and gets no answer.
            let id = id.clone();
            if let Some(stream) = self.finish_request(&id) {
                stream.push(Some(message), false);
                stream.complete();
            }
            return;
        }
        let (number, is_optional) = match &message {
            JsonRpcMessage::Request(request) => {
                let origin = request.request.extensions().get::<OriginatingRequestId>();
                let number = self.stream_of(origin);
                self.by_question.insert(request.id.clone(), number);
                (number, false)
            }
            JsonRpcMessage::Notification(sent) => match &sent.notification {
                ServerNotification::ProgressNotification(progress) => {
                    let token = &progress.params.progress_token;
                    (self.by_progress.get(token).copied().unwrap_or(OWN_STREAM), true)
                }
                ServerNotification::CancelledNotification(cancelled) => {
                    let question = cancelled.params.request_id.as_ref();
                    let number = question.and_then(|id| self.by_question.remove(id));
                    (number.unwrap_or(OWN_STREAM), true)
                }
                other => (self.stream_of(other.extensions().get()), true),
            },
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => return,
        };
        let number = if self.streams.contains_key(&number) { number } else { OWN_STREAM };
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.push(Some(message), is_optional);
        }
    }

    fn stream_of(&self, origin: Option<&OriginatingRequestId>) -> StreamNumber {
        let stream = origin.and_then(|origin| self.by_request.get(&origin.0));
        stream.copied().unwrap_or(OWN_STREAM)
    }

    /// Ends the stream of a request that the client has cancelled. The ID is free again.
    pub(crate) fn cancel_request(&mut self, id: &RequestId) {
        let Some(number) = self.by_request.get(id).copied() else { return };
        if let Some(stream) = self.finish_request(id) {
            stream.complete();
            if stream.reader.is_none() {
                self.streams.remove(&number);
            }
        }
    }

    fn finish_request(&mut self, id: &RequestId) -> Option<&mut EventStream> {
        let number = self.by_request.remove(id)?;
        self.by_question.retain(|_, of| *of != number);
        let stream = self.streams.get_mut(&number)?;
        stream.request = None;
        if let Some(token) = stream.progress.take()
            && self.by_progress.get(&token) == Some(&number)
        {
            self.by_progress.remove(&token);
        }
        Some(stream)
    }

    /// Returns the next event of a reader.
    pub(crate) fn poll_next(
        &mut self,
        reader: &mut StreamReader,
        waker: &Waker,
    ) -> Poll<Option<ServerSseMessage>> {
        let Some(stream) = self.streams.get_mut(&reader.stream) else { return Poll::Ready(None) };
        if self.is_closed || stream.reader != Some(reader.reader) {
            return Poll::Ready(None);
        }
        if let Some(event) = stream.events.iter().find(|event| event.index >= reader.next) {
            reader.next = event.index + 1;
            stream.first_unread = stream.first_unread.max(reader.next);
            let name = format!("{}-{}", reader.stream.0, event.index);
            let mut sent = match &event.message {
                Some(_) => ServerSseMessage::default(),
                None => ServerSseMessage::retry(RETRY_TIME),
            };
            sent.event_id = Some(name);
            sent.message = event.message.clone();
            return Poll::Ready(Some(sent));
        }
        if stream.is_complete {
            self.streams.remove(&reader.stream);
            return Poll::Ready(None);
        }
        stream.waker = Some(waker.clone());
        Poll::Pending
    }

    /// Notes that a reader is gone.
    pub(crate) fn lose(&mut self, reader: &StreamReader) {
        let Some(stream) = self.streams.get_mut(&reader.stream) else { return };
        if stream.reader == Some(reader.reader) {
            stream.reader = None;
            stream.waker = None;
            stream.lost_at = Some(Instant::now());
        }
    }

    /// Removes answers that nobody has fetched for some time, and returns the requests whose
    /// streams nobody has resumed.
    pub(crate) fn take_abandoned(&mut self, now: Instant, timeout: Duration) -> Vec<RequestId> {
        let is_over = |stream: &EventStream| {
            stream.lost_at.is_some_and(|lost| now.saturating_duration_since(lost) >= timeout)
        };
        self.streams.retain(|number, stream| {
            *number == OWN_STREAM || !stream.is_complete || !is_over(stream)
        });
        let lost = self.streams.values_mut().filter(|stream| is_over(stream));
        lost.filter_map(|stream| {
            let request = stream.request.clone()?;
            // Each request is cancelled once.
            stream.lost_at = None;
            Some(request)
        })
        .collect()
    }

    /// Returns whether a request has no answer, or a client reads a stream.
    pub(crate) fn is_busy(&self) -> bool {
        !self.by_request.is_empty() || self.streams.values().any(|stream| stream.reader.is_some())
    }

    /// Ends all streams.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.streams.values_mut().for_each(EventStream::wake);
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ProgressNotificationParam, ServerResult};
    use serde_json::json;

    use super::*;

    fn request(id: i64) -> JsonRpcRequest<ClientRequest> {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list",
            "params": {"_meta": {"progressToken": id}}});
        serde_json::from_value(request).expect("a request")
    }

    fn answer(id: i64) -> TxJsonRpcMessage<RoleServer> {
        let result: ServerResult = serde_json::from_value(json!({})).expect("a result");
        JsonRpcMessage::response(result, RequestId::Number(id))
    }

    fn progress(token: i64, number: u32) -> TxJsonRpcMessage<RoleServer> {
        let token = ProgressToken(RequestId::Number(token));
        let params = ProgressNotificationParam::new(token, number.into());
        JsonRpcMessage::notification(ServerNotification::ProgressNotification(
            rmcp::model::ProgressNotification::new(params),
        ))
    }

    /// Everything that a reader gets now, and whether the stream has ended.
    fn read(streams: &mut SessionStreams, reader: &mut StreamReader) -> (Vec<String>, bool) {
        let mut names = Vec::new();
        loop {
            match streams.poll_next(reader, Waker::noop()) {
                Poll::Ready(Some(event)) => names.push(event.event_id.expect("each has a name")),
                Poll::Ready(None) => return (names, true),
                Poll::Pending => return (names, false),
            }
        }
    }

    #[test]
    fn each_request_has_its_own_stream_which_ends_with_the_answer() {
        let mut streams = SessionStreams::new(10);
        let mut first = streams.open(&request(1), false).expect("a stream");
        let mut second = streams.open(&request(2), true).expect("a stream");
        streams.deliver(progress(2, 1));
        streams.deliver(answer(2));
        streams.deliver(answer(7));
        assert_eq!(read(&mut streams, &mut first), (vec![], false));
        let all = ["2-0", "2-1", "2-2"].map(str::to_owned).to_vec();
        assert_eq!(read(&mut streams, &mut second), (all, true));
        assert!(streams.is_busy());
        streams.deliver(answer(1));
        assert_eq!(read(&mut streams, &mut first), (vec!["1-0".to_owned()], true));
        assert!(!streams.is_busy());
    }

    #[test]
    fn an_open_id_has_one_stream_and_requests_are_limited() {
        let mut streams = SessionStreams::new(2);
        streams.open(&request(1), false).expect("a stream");
        assert_eq!(streams.open(&request(1), false).err(), Some(StreamRefusal::DuplicateId));
        streams.open(&request(2), false).expect("a stream");
        assert_eq!(streams.open(&request(3), false).err(), Some(StreamRefusal::TooManyRequests));
        streams.cancel_request(&RequestId::Number(1));
        let mut reader = streams.open(&request(1), false).expect("the ID is free again");
        // An answer that nobody has read counts as an open request.
        streams.deliver(answer(1));
        assert_eq!(streams.open(&request(3), false).err(), Some(StreamRefusal::TooManyRequests));
        assert!(read(&mut streams, &mut reader).1);
        streams.open(&request(3), false).expect("there is room again");
    }

    #[test]
    fn a_lost_stream_can_be_resumed_once_and_the_older_reader_ends() {
        let mut streams = SessionStreams::new(2);
        let mut lost = streams.open(&request(1), true).expect("a stream");
        streams.deliver(progress(1, 1));
        assert_eq!(read(&mut streams, &mut lost).0.len(), 2);
        let mut resumed = streams.resume("1-0").expect("it is open");
        assert_eq!(read(&mut streams, &mut lost), (vec![], true));
        streams.lose(&lost);
        streams.deliver(answer(1));
        let rest = ["1-1", "1-2"].map(str::to_owned).to_vec();
        assert_eq!(read(&mut streams, &mut resumed), (rest, true));
        for unknown in ["1-0", "2-0", "0-0", "1", "", "-", "x-1", "1-99", "18446744073709551616-0"]
        {
            assert!(streams.resume(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_stream_that_nobody_reads_keeps_the_answer_and_little_else() {
        let mut streams = SessionStreams::new(2);
        let reader = streams.open(&request(1), true).expect("a stream");
        for number in 0..1000 {
            streams.deliver(progress(1, number));
        }
        streams.deliver(answer(1));
        streams.lose(&reader);
        let mut resumed = streams.resume("1-0").expect("it is kept");
        let (events, is_over) = read(&mut streams, &mut resumed);
        assert!(is_over && events.len() <= MAX_KEPT_EVENTS, "{}", events.len());
        assert_eq!(events.last().map(String::as_str), Some("1-1001"));
    }

    #[test]
    fn a_request_whose_stream_nobody_resumes_is_abandoned_once() {
        let mut streams = SessionStreams::new(2);
        let reader = streams.open(&request(1), true).expect("a stream");
        let later = || Instant::now() + Duration::from_secs(5);
        assert!(streams.take_abandoned(later(), Duration::from_secs(1)).is_empty());
        streams.lose(&reader);
        assert!(streams.take_abandoned(Instant::now(), Duration::from_secs(1)).is_empty());
        let abandoned = streams.take_abandoned(later(), Duration::from_secs(1));
        assert_eq!(abandoned, [RequestId::Number(1)]);
        assert!(streams.take_abandoned(later(), Duration::from_secs(1)).is_empty());
        streams.deliver(answer(1));
        assert!(!streams.is_busy());
    }
}
