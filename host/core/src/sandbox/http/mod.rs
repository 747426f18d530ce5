//! `wasi:http`: HTTP requests, only to the hosts that a tool has permission for.
//!
//! A request passes five checks before anything leaves the machine:
//!
//! 1. It is well-formed ([`target`], [`headers`]).
//! 2. A permission of the tool covers its host and method.
//! 3. The [`Gate`] allows exactly this method and URL.
//! 4. The name is resolved once, and every address may be dialled ([`address`]).
//! 5. The host dials one of these addresses, not the name.
//!
//! A redirect is a normal response: to follow it, the guest sends another request. The host uses no
//! proxy, because a proxy would resolve the name again.
//!
//! The host adds credentials after the decision, and only to requests that are encrypted or stay on
//! this machine. No guest sees them, even if the server repeats them ([`scrub`]), and no record
//! contains them.

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
pub(super) use dial::{ResolveError, resolve_host};
use scrub::SecretScrubber;
use target::RequestTarget;

/// The largest request body, in bytes.
const MAX_REQUEST_BODY: usize = 4 << 20;
/// The largest response body, in bytes.
const MAX_RESPONSE_BODY: usize = 8 << 20;
/// The number of requests of one call at once; further ones wait.
const MAX_CONCURRENT_REQUESTS: usize = 4;
/// The number of requests of one call in total. Each may open a dialog, and each may keep a
/// connection open until its response is read.
const MAX_REQUESTS: usize = 256;

/// A response, and the background work until it is read.
type ResponseFuture =
    (http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

/// The HTTP state of one call.
pub(super) struct WasiHttpHost {
    ctx: WasiHttpCtx,
    sender: RequestSender,
}

/// Sends the requests of one call. `None` refuses all of them.
struct RequestSender(Option<Arc<NetworkReach>>);

/// The network permissions of a call, with everything needed to use them.
pub(super) struct NetworkReach {
    /// The permitted requests.
    pub(super) granted: Vec<RequestPattern>,
    /// The gate that decides on each request.
    pub(super) gate: Gate,
    /// The clock of the call, which pauses during the decision.
    pub(super) clock: Arc<CallClock>,
    /// The credentials that the host adds.
    pub(super) credentials: Arc<[HostCredential]>,
    slots: Semaphore,
    log: HostContactLog,
}

impl WasiHttpHost {
    /// Creates a state that refuses all requests.
    pub(super) fn disabled() -> Self {
        Self { ctx: WasiHttpCtx::new(), sender: RequestSender(None) }
    }

    /// Creates a state that allows the granted requests.
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

    /// Returns the hosts that the call sent requests to.
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

    /// Returns `false`: the client sets the header from the URL.
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
            | Effect::Input { .. }
            | Effect::Write { .. }
            | Effect::Connect { .. }
            | Effect::Confirmed
            | Effect::Plan { .. } => {
                return Err(Error::InternalError(Some(
                    "internal error: the approval does not match this request".into(),
                )));
            }
        };
        let entry = self.log.record_request(&target);
        let addresses = dial::resolve_host(host, |at| {
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
        // Each credential for this host replaces any header of the same name.
        let is_safe = target.is_encrypted() || addresses.iter().all(|at| at.ip().is_loopback());
        let credentials: Vec<&HostCredential> = self
            .credentials
            .iter()
            .filter(|credential| is_safe && credential.matches_host(host))
            .collect();
        for credential in &credentials {
            credential.add_to(&mut headers);
        }
        let scrub =
            SecretScrubber::new(credentials.iter().filter_map(|credential| credential.secret()));
        if !scrub.is_empty() {
            scrub.request_identity_encoding(&mut headers);
        }
        let (from, response) =
            dial::send(&target, host, &addresses, headers, body.to_bytes(), options).await?;
        entry.record_response(from, response.status().as_u16());
        let (mut head, body) = response.into_parts();
        scrub.check_searchable(head.status, &head.headers)?;
        scrub.scrub_headers(&mut head.headers);
        let body: WasiBody =
            Limited::new(body, MAX_RESPONSE_BODY).map_err(dial::read_error).boxed_unsync();
        let body = if scrub.is_empty() { body } else { scrub.scrub_body(body).boxed_unsync() };
        let response = http::Response::from_parts(head, body);
        Ok((response, Box::new(async { Ok(()) })))
    }

    /// Gets the permit for a request, or the denial.
    async fn request_permit(&self, target: &RequestTarget) -> Result<Permit, Denial> {
        if self.log.count() >= MAX_REQUESTS {
            return Err(Denial::without_remedy(
                DenialCode::TooMany,
                format!("one call can send at most {MAX_REQUESTS} requests."),
            ));
        }
        let (host, method) = (target.host(), target.method().as_str());
        if !self.granted.iter().any(|pattern| pattern.covers(host, method)) {
            return Err(Denial::new(
                DenialCode::NotGranted,
                format!("this tool has no permission to send {method} requests to {host}."),
                "The plugin must request this host and method in its capability `fetch`, and the \
                    policy must allow them.",
            ));
        }
        let decision = (self.gate)(target.effect());
        let _waiting = self.clock.pause();
        match decision.await {
            GateRuling::Permitted(permit) => Ok(permit),
            GateRuling::Denied(denial) => Err(denial),
        }
    }
}

/// Converts a denial for the guest, to the only error of `wasi:http` that can carry a reason.
fn denied(denial: &Denial) -> Error {
    Error::InternalError(Some(denial.to_string()))
}
