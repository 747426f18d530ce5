//! Receiving request bodies within limits of size, time and memory of all clients together.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::options::HttpLimits;
use super::response::HttpRefusal;
use crate::message_size::find_excess;

/// The unit in which the memory of bodies is counted, in bytes.
const BUDGET_UNIT: usize = 4 << 10;

/// The memory for bodies that are being received.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    units: Arc<Semaphore>,
    max_len: usize,
    timeout: Duration,
}

/// A body, with its share of the memory.
#[derive(Debug, Default)]
pub(crate) struct ReceivedBody {
    pub(crate) bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

impl BodyBudget {
    pub(crate) fn new(limits: &HttpLimits) -> Self {
        let units = Arc::new(Semaphore::new(limits.total_body_len / BUDGET_UNIT));
        Self { units, max_len: limits.body_len, timeout: limits.body_timeout }
    }

    /// Receives a body.
    pub(crate) async fn receive(
        &self,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<ReceivedBody, HttpRefusal> {
        // The rest of such a body is not read, and the connection ends.
        let declared = body.size_hint().exact().unwrap_or(0);
        if usize::try_from(declared).map_or(true, |length| length > self.max_len) {
            return Err(self.too_long());
        }
        if headers.get(header::CONTENT_ENCODING).is_some_and(|value| value != "identity") {
            let problem = "compressed request bodies are not supported";
            return Err(HttpRefusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem));
        }
        match tokio::time::timeout(self.timeout, self.collect(body)).await {
            Ok(received) => {
                let received = received?;
                match find_excess(&received.bytes) {
                    Some(problem) => Err(HttpRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, problem)),
                    None => Ok(received),
                }
            }
            Err(_) => {
                let seconds = self.timeout.as_secs();
                let problem = format!("the body did not arrive within {seconds} seconds");
                Err(HttpRefusal::new(StatusCode::REQUEST_TIMEOUT, problem))
            }
        }
    }

    async fn collect(&self, mut body: Incoming) -> Result<ReceivedBody, HttpRefusal> {
        let mut bytes = BytesMut::new();
        let mut share: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                let problem = "the body is not complete, or its encoding is not valid";
                return Err(HttpRefusal::new(StatusCode::BAD_REQUEST, problem));
            };
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > self.max_len {
                return Err(self.too_long());
            }
            let needed = (bytes.len() + data.len()).div_ceil(BUDGET_UNIT);
            let held = share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            if needed > held {
                let more = u32::try_from(needed - held).unwrap_or(u32::MAX);
                let more = Arc::clone(&self.units).try_acquire_many_owned(more);
                let Ok(more) = more else {
                    let problem = "the server is receiving too many large bodies; try again later";
                    return Err(HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, problem)
                        .with_header(header::RETRY_AFTER, "1"));
                };
                match &mut share {
                    Some(share) => share.merge(more),
                    None => share = Some(more),
                }
            }
            bytes.extend_from_slice(&data);
        }
        Ok(ReceivedBody { bytes: bytes.freeze(), _share: share })
    }

    fn too_long(&self) -> HttpRefusal {
        let problem = format!("the body is longer than {} bytes", self.max_len);
        HttpRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, problem)
    }
}
