//! `wasi:http`: requests to the hosts that a tool was granted, and to no other.
//!
//! A request goes through five gates before anything leaves the machine: it is well-formed
//! ([`target`], [`headers`]); its host is among the tool's grants; the [`Gate`] allows exactly this
//! method and address; the name is resolved, once, and every address it leads to may be dialled
//! ([`address`]); and then one of these addresses is dialled, not the name. A redirect is an answer
//! like any other: whoever follows it sends another request. Nothing goes through a proxy, since a
//! proxy would resolve the name again.
//!
//! A secret for a host is added here, after the decision, and only to requests that are encrypted
//! or do not leave this machine. No guest sees it, also if the server repeats it ([`scrub`]), and
//! it is in no record.

mod address;
mod contacts;
mod credential;
mod dial;
mod headers;
mod scrub;
mod target;

use std::sync::Arc;

use http_body_util::{BodyExt as _, Limited};
use tokio::sync::Semaphore;
use wasmtime_wasi_http::{
    Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView,
    WasiHttpHooks, WasiHttpView,
};

use super::call_state::{CallState, not_granted};
use super::clock::CallClock;
use super::gate::{Gate, GateRuling};
use crate::policy::{Denial, DenialCode, Effect, Permit, RequestPattern};
pub use address::special_purpose as special_address;
use contacts::HostContactLog;
pub use contacts::{HttpContact, HttpContacts};
pub use credential::{CredentialError, HostCredential};
use scrub::SecretScrubber;
use target::RequestTarget;

/// Of a request, in bytes.
const MAX_REQUEST_BODY: usize = 4 << 20;
/// Of a response, in bytes.
const MAX_RESPONSE_BODY: usize = 8 << 20;
/// Requests of one call at the same time; the others wait.
const MAX_CONCURRENT_REQUESTS: usize = 4;
/// Requests of one call in all: each may be asked, and each may hold a connection for as long as
/// its response is not read.
const MAX_REQUESTS: usize = 256;

/// A response, and what goes on in the background until it is read.
type ResponseFuture =
    (http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

/// The part of a guest's world that is elsewhere.
pub(super) struct WasiHttpHost {
    ctx: WasiHttpCtx,
    sender: RequestSender,
}

/// Sends requests for one call.
struct RequestSender(Option<Arc<NetworkReach>>);

/// How far a call reaches.
pub(super) struct NetworkReach {
    /// Which requests.
    pub(super) granted: Vec<RequestPattern>,
    /// Who decides on each request.
    pub(super) gate: Gate,
    /// Stands still while somebody is asked.
    pub(super) clock: Arc<CallClock>,
    /// What the host adds.
    pub(super) credentials: Arc<[HostCredential]>,
    slots: Semaphore,
    log: HostContactLog,
}

impl WasiHttpHost {
    /// Reaches nothing.
    pub(super) fn disabled() -> Self {
        Self { ctx: WasiHttpCtx::new(), sender: RequestSender(None) }
    }

    /// Reaches some hosts.
    pub(super) fn with_grants(
        granted: Vec<RequestPattern>,
        gate: Gate,
        clock: Arc<CallClock>,
        credentials: Arc<[HostCredential]>,
    ) -> Self {
        let reach = NetworkReach {
            granted,
            gate,
            clock,
            credentials,
            slots: Semaphore::new(MAX_CONCURRENT_REQUESTS),
            log: HostContactLog::default(),
        };
        Self { ctx: WasiHttpCtx::new(), sender: RequestSender(Some(Arc::new(reach))) }
    }

    /// Who was contacted.
    pub(super) fn contacts(&self) -> HttpContacts {
        self.sender.0.as_ref().map(|reach| reach.log.snapshot()).unwrap_or_default()
    }
}

impl WasiHttpView for CallState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            ctx: &mut self.http.ctx,
            table: &mut self.table,
            hooks: &mut self.http.sender,
        }
    }
}

impl WasiHttpHooks for RequestSender {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(headers::is_host_controlled)
    }

    /// It follows from the address that is dialled.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<ResponseFuture, Error>> + Send> {
        let reach = self.0.clone();
        Box::new(async move {
            match reach {
                Some(reach) => reach.send(request, options.unwrap_or_default()).await,
                None => Err(denied(&not_granted("send HTTP requests", "fetch"))),
            }
        })
    }
}

impl NetworkReach {
    async fn send(
        &self,
        request: http::Request<WasiBody>,
        options: RequestOptions,
    ) -> Result<ResponseFuture, Error> {
        let _slot = self.slots.acquire().await.map_err(|_| Error::ConnectionLimitReached)?;
        let (head, body) = request.into_parts();
        let target = RequestTarget::from_request(&head).map_err(|denial| denied(&denial))?;
        headers::check(&head.headers).map_err(|denial| denied(&denial))?;
        let permit = self.request_permit(&target).await.map_err(|denial| denied(&denial))?;
        let host = match permit.into_effect() {
            effect @ Effect::Fetch { .. } if effect == target.effect() => target.host(),
            Effect::Fetch { .. }
            | Effect::Command { .. }
            | Effect::Write { .. }
            | Effect::Confirmed
            | Effect::Plan { .. } => {
                return Err(Error::InternalError(Some(
                    "the permit is for something other than this request".into(),
                )));
            }
        };
        let entry = self.log.record_request(&target);
        let addresses = dial::resolve(host, |at| {
            self.granted.iter().any(|pattern| pattern.names_address(at, target.method().as_str()))
        })
        .await?;
        let body =
            Limited::new(body, MAX_REQUEST_BODY).collect().await.map_err(|error| {
                match error.downcast::<Error>() {
                    Ok(error) => *error,
                    Err(_) => Error::HttpRequestBodySize(Some(MAX_REQUEST_BODY as u64)),
                }
            })?;
        let mut headers = head.headers;
        // Of the secrets for this host each takes the place of whatever the guest wrote there.
        let safe = target.is_encrypted() || addresses.iter().all(|at| at.ip().is_loopback());
        let lent: Vec<&HostCredential> = self
            .credentials
            .iter()
            .filter(|credential| safe && credential.matches_host(host))
            .collect();
        lent.iter().for_each(|credential| credential.add_to(&mut headers));
        let scrub = SecretScrubber::new(lent.iter().filter_map(|credential| credential.secret()));
        if !scrub.is_empty() {
            scrub.request_identity_encoding(&mut headers);
        }
        let (from, response) =
            dial::send(&target, host, &addresses, headers, body.to_bytes(), options).await?;
        entry.record_response(from, response.status().as_u16());
        let (mut head, body) = response.into_parts();
        scrub.check_identity_encoding(&head.headers)?;
        scrub.scrub_headers(&mut head.headers);
        let body: WasiBody =
            Limited::new(body, MAX_RESPONSE_BODY).map_err(dial::read_error).boxed_unsync();
        let body = if scrub.is_empty() { body } else { scrub.scrub_body(body).boxed_unsync() };
        let response = http::Response::from_parts(head, body);
        Ok((response, Box::new(async { Ok(()) })))
    }

    /// The right to send a request to this place, or why there is none.
    async fn request_permit(&self, target: &RequestTarget) -> Result<Permit, Denial> {
        if self.log.count() >= MAX_REQUESTS {
            return Err(Denial::without_remedy(
                DenialCode::TooMany,
                format!("a call sends at most {MAX_REQUESTS} requests."),
            ));
        }
        let (host, method) = (target.host(), target.method().as_str());
        if !self.granted.iter().any(|pattern| pattern.covers(host, method)) {
            return Err(Denial::new(
                DenialCode::NotGranted,
                format!("this tool may not send a {method} request to {host}."),
                "It would have to ask for that in its capability `fetch`, and be granted it.",
            ));
        }
        let asked = (self.gate)(target.effect());
        let _waiting = self.clock.pause();
        match asked.await {
            GateRuling::Permitted(permit) => Ok(permit),
            GateRuling::Denied(denial) => Err(denial),
        }
    }
}

/// What a guest is told: of all errors of `wasi:http`, the one that can carry the reason.
fn denied(denial: &Denial) -> Error {
    Error::InternalError(Some(denial.to_string()))
}
