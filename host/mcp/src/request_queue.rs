//! Requests that wait until there is room for their answers.

use std::collections::VecDeque;
use std::sync::Arc;

use rmcp::model::{ClientRequest, JsonRpcRequest, RequestId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The room for answers that are not written yet, in units of about 1 MiB. A call of a tool takes
/// one unit.
const ALL_ROOM: u32 = 64;
/// The room of a list, or of a file: up to 1 MiB, of which each byte can take six in JSON.
const LARGE_ANSWER: u32 = 6;
/// The bytes of the requests that wait.
const MAX_WAITING_LEN: usize = 32 << 20;

/// The room of one answer. Dropping it makes it free again.
pub(crate) type AnswerRoom = OwnedSemaphorePermit;

/// The requests of one client that wait for room, in order.
#[derive(Debug)]
pub(crate) struct RequestQueue {
    room: Arc<Semaphore>,
    waiting: VecDeque<WaitingRequest>,
    waiting_len: usize,
}

#[derive(Debug)]
struct WaitingRequest {
    request: JsonRpcRequest<ClientRequest>,
    needed: u32,
    /// The length of its line, in bytes.
    length: usize,
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It starts now, with the room of its answer if that can be large.
    Started(Box<JsonRpcRequest<ClientRequest>>, Option<AnswerRoom>),
    /// It waits.
    Waiting,
    /// Too many bytes wait.
    Refused(RequestId),
}

impl Default for RequestQueue {
    fn default() -> Self {
        let room = Arc::new(Semaphore::new(ALL_ROOM as usize));
        Self { room, waiting: VecDeque::new(), waiting_len: 0 }
    }
}

impl RequestQueue {
    /// Starts a request, or lets it wait for room. `length` is the length of its line.
    pub(crate) fn admit(
        &mut self,
        request: JsonRpcRequest<ClientRequest>,
        length: usize,
    ) -> Admission {
        let needed = room_for_answer(&request.request);
        if needed == 0 {
            return Admission::Started(Box::new(request), None);
        }
        if self.waiting.is_empty()
            && let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(needed)
        {
            return Admission::Started(Box::new(request), Some(room));
        }
        if self.waiting_len + length > MAX_WAITING_LEN {
            return Admission::Refused(request.id);
        }
        self.waiting_len += length;
        self.waiting.push_back(WaitingRequest { request, needed, length });
        Admission::Waiting
    }

    /// Waits for the room of the first waiting request; for ever if none waits.
    pub(crate) fn wait_for_room(&self) -> impl Future<Output = AnswerRoom> + Send + use<> {
        let first = self.waiting.front().map(|first| (Arc::clone(&self.room), first.needed));
        async move {
            if let Some((room, needed)) = first
                && let Ok(room) = room.acquire_many_owned(needed).await
            {
                return room;
            }
            std::future::pending().await
        }
    }

    /// Takes the first waiting request.
    pub(crate) fn take_first(&mut self) -> Option<JsonRpcRequest<ClientRequest>> {
        let first = self.waiting.pop_front()?;
        self.waiting_len -= first.length;
        Some(first.request)
    }

    /// Removes a waiting request. Returns whether there was one with this ID.
    pub(crate) fn remove(&mut self, id: &RequestId) -> bool {
        let Some(at) = self.waiting.iter().position(|waiting| waiting.request.id == *id) else {
            return false;
        };
        self.waiting_len -= self.waiting.remove(at).map_or(0, |removed| removed.length);
        true
    }
}

/// Returns the room that the answer of a request can take, at most [`ALL_ROOM`].
fn room_for_answer(request: &ClientRequest) -> u32 {
    match request {
        ClientRequest::CallToolRequest(_) => 1,
        ClientRequest::ListToolsRequest(_)
        | ClientRequest::ListResourcesRequest(_)
        | ClientRequest::ReadResourceRequest(_) => LARGE_ANSWER,
        _ => 0,
    }
}
