//! `wasi:http`: requests to the hosts that a tool was granted, and to no other.
//!
//! A request goes through five gates before anything leaves the machine: it is well-formed ([`target`], [`headers`]); its host is
//! among the tool's grants; the [`Gate`] allows exactly this method and address; the name is resolved, once, and every address it leads to may
//! be dialled ([`address`]); and then one of these addresses is dialled, not the name. A redirect is an answer like any other:
//! whoever follows it sends another request. Nothing goes through a proxy, since a proxy would resolve the name again.
//!
//! A secret for a host is added here, after the decision, and only to requests that are encrypted or do not leave this machine.
//! No guest sees it, also if the server repeats it ([`scrub`]), and it is in no record.

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
    Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView,
};

use super::clock::Clock;
use super::gate::{Gate, Ruling};
use super::state::{State, not_granted};
use crate::policy::{Code, Denial, Effect, Permit, RequestPattern};
pub use address::special as special_address;
use contacts::Account;
pub use contacts::{Contact, Contacts};
pub use credential::{BadCredential, Credential};
use scrub::Scrub;
use target::Target;

/// Of a request, in bytes.
const LARGEST_BODY: usize = 4 << 20;
/// Of a response, in bytes.
const LARGEST_RESPONSE: usize = 8 << 20;
/// Requests of one call at the same time; the others wait.
const AT_ONCE: usize = 4;
/// Requests of one call in all: each may be asked, and each may hold a connection for as long as its response is not read.
const REQUESTS: usize = 256;

/// A response, and what goes on in the background until it is read.
type Answer = (http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

/// The part of a guest's world that is elsewhere.
pub(super) struct Http {
    ctx: WasiHttpCtx,
    sender: Sender,
}

/// Sends requests for one call.
struct Sender(Option<Arc<Reach>>);

/// How far a call reaches.
pub(super) struct Reach {
    /// Which requests.
    pub(super) granted: Vec<RequestPattern>,
    /// Who decides on each request.
    pub(super) gate: Gate,
    /// Stands still while somebody is asked.
    pub(super) clock: Arc<Clock>,
    /// What the host adds.
    pub(super) credentials: Arc<[Credential]>,
    slots: Semaphore,
    account: Account,
}

impl Http {
    /// Reaches nothing.
    pub(super) fn closed() -> Self {
        Self { ctx: WasiHttpCtx::new(), sender: Sender(None) }
    }

    /// Reaches some hosts.
    pub(super) fn open(granted: Vec<RequestPattern>, gate: Gate, clock: Arc<Clock>, credentials: Arc<[Credential]>) -> Self {
        let reach = Reach { granted, gate, clock, credentials, slots: Semaphore::new(AT_ONCE), account: Account::default() };
        Self { ctx: WasiHttpCtx::new(), sender: Sender(Some(Arc::new(reach))) }
    }

    /// Who was contacted.
    pub(super) fn contacts(&self) -> Contacts {
        self.sender.0.as_ref().map(|reach| reach.account.so_far()).unwrap_or_default()
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http.ctx, table: &mut self.table, hooks: &mut self.http.sender }
    }
}

impl WasiHttpHooks for Sender {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(headers::is_own)
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
    ) -> Box<dyn Future<Output = Result<Answer, Error>> + Send> {
        let reach = self.0.clone();
        Box::new(async move {
            match reach {
                Some(reach) => reach.send(request, options.unwrap_or_default()).await,
                None => Err(denied(&not_granted("send HTTP requests", "fetch"))),
            }
        })
    }
}

impl Reach {
    async fn send(&self, request: http::Request<WasiBody>, options: RequestOptions) -> Result<Answer, Error> {
        let _slot = self.slots.acquire().await.map_err(|_| Error::ConnectionLimitReached)?;
        let (head, body) = request.into_parts();
        let target = Target::of(&head).map_err(|denial| denied(&denial))?;
        headers::check(&head.headers).map_err(|denial| denied(&denial))?;
        let permit = self.permitted(&target).await.map_err(|denial| denied(&denial))?;
        let host = match permit.into_effect() {
            effect @ Effect::Fetch { .. } if effect == target.effect() => target.host(),
            Effect::Fetch { .. } | Effect::Command { .. } | Effect::Write { .. } | Effect::Confirmed | Effect::Plan { .. } => {
                return Err(Error::InternalError(Some("the permit is for something other than this request".into())));
            }
        };
        let entry = self.account.begin(&target);
        let addresses = dial::resolve(host, |at| self.granted.iter().any(|pattern| pattern.names(at, target.method().as_str()))).await?;
        let body = Limited::new(body, LARGEST_BODY).collect().await.map_err(|error| match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(_) => Error::HttpRequestBodySize(Some(LARGEST_BODY as u64)),
        })?;
        let mut headers = head.headers;
        // Of the secrets for this host each takes the place of whatever the guest wrote there.
        let safe = target.is_encrypted() || addresses.iter().all(|at| at.ip().is_loopback());
        let lent: Vec<&Credential> = self.credentials.iter().filter(|credential| safe && credential.is_for(host)).collect();
        lent.iter().for_each(|credential| credential.add_to(&mut headers));
        let scrub = Scrub::of(lent.iter().filter_map(|credential| credential.secret()));
        if !scrub.is_empty() {
            scrub.ask_for_plain(&mut headers);
        }
        let (from, response) = dial::send(&target, host, &addresses, headers, body.to_bytes(), options).await?;
        entry.answered(from, response.status().as_u16());
        let (mut head, body) = response.into_parts();
        scrub.can_look_through(&head.headers)?;
        scrub.headers(&mut head.headers);
        let body: WasiBody = Limited::new(body, LARGEST_RESPONSE).map_err(dial::reading).boxed_unsync();
        let body = if scrub.is_empty() { body } else { scrub.body(body).boxed_unsync() };
        let response = http::Response::from_parts(head, body);
        Ok((response, Box::new(async { Ok(()) })))
    }

    /// The right to send a request to this place, or why there is none.
    async fn permitted(&self, target: &Target) -> Result<Permit, Denial> {
        if self.account.count() >= REQUESTS {
            return Err(Denial::fixed(Code::TooMany, format!("a call sends at most {REQUESTS} requests.")));
        }
        let (host, method) = (target.host(), target.method().as_str());
        if !self.granted.iter().any(|pattern| pattern.covers(host, method)) {
            return Err(Denial::new(
                Code::NotGranted,
                format!("this tool may not send a {method} request to {host}."),
                "It would have to ask for that in its capability `fetch`, and be granted it.",
            ));
        }
        let asked = (self.gate)(target.effect());
        let _waiting = self.clock.pause();
        match asked.await {
            Ruling::Permitted(permit) => Ok(permit),
            Ruling::Denied(denial) => Err(denial),
        }
    }
}

/// What a guest is told: of all errors of `wasi:http`, the one that can carry the reason.
fn denied(denial: &Denial) -> Error {
    Error::InternalError(Some(denial.to_string()))
}
