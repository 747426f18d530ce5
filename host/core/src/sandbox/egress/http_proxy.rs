//! HTTP proxy requests: `CONNECT`, and plain HTTP with a complete URL.
//!
//! Requests and responses are parsed and written anew, so that no other request can hide in them.
//! Each plain request gets a connection of its own to the server.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, Scheme};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::connect::EgressRefusal;
use super::{EgressContext, REQUEST_TIMEOUT, tunnel};
use crate::policy::HostAddress;

/// The largest head of a request, in bytes.
const MAX_HEAD_LEN: usize = 64 << 10;
/// The largest number of headers of a request.
const MAX_HEADERS: usize = 200;
const HTTP_PORT: u16 = 80;

/// The headers that concern one connection only, by RFC 9110 and common practice.
const CONNECTION_HEADERS: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
const MORE_CONNECTION_HEADERS: [&str; 2] = ["keep-alive", "proxy-connection"];

type ProxyBody = BoxBody<Bytes, hyper::Error>;

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
enum RequestRefusal {
    #[error("the request is not valid: {0}")]
    Invalid(&'static str),
    #[error("no connection to {host}: {refusal}")]
    Egress { host: String, refusal: EgressRefusal },
    #[error("the server did not answer: {0}")]
    Server(#[from] hyper::Error),
}

impl RequestRefusal {
    fn to_response(&self) -> Response<ProxyBody> {
        let status = match self {
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Egress { refusal: EgressRefusal::Unreachable(_), .. } | Self::Server(_) => {
                StatusCode::BAD_GATEWAY
            }
            Self::Egress { .. } => StatusCode::FORBIDDEN,
        };
        let text = Full::new(Bytes::from(format!("cofferdam: {self}\n")));
        let mut response = Response::new(text.map_err(|never| match never {}).boxed());
        *response.status_mut() = status;
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
        response
    }
}

/// Serves the requests of one connection.
pub(super) async fn serve(
    context: Arc<EgressContext>,
    stream: TcpStream,
    slot: OwnedSemaphorePermit,
) {
    // A tunnel keeps the slot after the requests have ended.
    let slot = Arc::new(slot);
    let answer = service_fn(move |request| {
        let (context, slot) = (Arc::clone(&context), Arc::clone(&slot));
        async move {
            let answered = match *request.method() {
                Method::CONNECT => connect(&context, request, slot).await,
                _ => forward(&context, request).await,
            };
            let response = answered.unwrap_or_else(|refusal| refusal.to_response());
            Ok::<_, Infallible>(response)
        }
    });
    let mut server = server::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .max_buf_size(MAX_HEAD_LEN)
        .max_headers(MAX_HEADERS);
    let connection = server.serve_connection(TokioIo::new(stream), answer).with_upgrades();
    // The program sees an error as the end of the connection.
    let _ = connection.await;
}

/// Opens a tunnel.
async fn connect(
    context: &Arc<EgressContext>,
    mut request: Request<Incoming>,
    slot: Arc<OwnedSemaphorePermit>,
) -> Result<Response<ProxyBody>, RequestRefusal> {
    let authority = request.uri().authority().filter(|_| request.uri().path().is_empty());
    let authority = authority.ok_or(RequestRefusal::Invalid("CONNECT needs HOST:PORT"))?;
    if authority.port_u16().is_none() {
        return Err(RequestRefusal::Invalid("CONNECT needs a port"));
    }
    let host = parse_host(authority, HTTP_PORT)?;
    check_host_header(request.headers(), &host, host.port())?;
    let server = context.connect(&host).await.map_err(|refusal| egress(authority, refusal))?;
    let upgrade = hyper::upgrade::on(&mut request);
    let ended = context.ended.clone();
    tokio::spawn(async move {
        let tunnel = async {
            if let Ok(client) = upgrade.await {
                // The program sees an error as the end of the connection.
                let _ = tunnel::run(TokioIo::new(client), server, &host).await;
            }
        };
        let _ = ended.run_until_cancelled(tunnel).await;
        drop(slot);
    });
    Ok(Response::new(Full::new(Bytes::new()).map_err(|never| match never {}).boxed()))
}

/// Sends a plain request to its server.
async fn forward(
    context: &Arc<EgressContext>,
    request: Request<Incoming>,
) -> Result<Response<ProxyBody>, RequestRefusal> {
    let uri = request.uri();
    if uri.scheme() != Some(&Scheme::HTTP) {
        return Err(RequestRefusal::Invalid("it needs a complete URL with http://, or CONNECT"));
    }
    let authority = uri.authority().cloned();
    let authority = authority.ok_or(RequestRefusal::Invalid("its URL has no host"))?;
    let host = parse_host(&authority, HTTP_PORT)?;
    check_host_header(request.headers(), &host, HTTP_PORT)?;
    let server = context.connect(&host).await.map_err(|refusal| egress(&authority, refusal))?;
    let (mut sender, connection) = client::handshake(TokioIo::new(server)).await?;
    let ended = context.ended.clone();
    tokio::spawn(async move {
        let _ = ended.run_until_cancelled(connection).await;
    });
    let response = sender.send_request(to_origin_form(request, &authority)?).await?;
    let (mut head, body) = response.into_parts();
    remove_connection_headers(&mut head.headers);
    Ok(Response::from_parts(head, body.boxed()))
}

/// Returns the request as the server of the host gets it.
fn to_origin_form(
    request: Request<Incoming>,
    authority: &Authority,
) -> Result<Request<Incoming>, RequestRefusal> {
    let invalid = |_| RequestRefusal::Invalid("its URL cannot be sent");
    let (mut head, body) = request.into_parts();
    remove_connection_headers(&mut head.headers);
    let host = HeaderValue::from_str(authority.as_str())
        .map_err(|_| RequestRefusal::Invalid("its host cannot be sent"))?;
    head.headers.insert(header::HOST, host);
    head.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = path.parse::<Uri>().map_err(invalid)?;
    Ok(Request::from_parts(head, body))
}

/// Removes the headers that concern one connection, with those that `Connection` names.
fn remove_connection_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.into_iter().chain(CONNECTION_HEADERS) {
        headers.remove(name);
    }
    for name in MORE_CONNECTION_HEADERS {
        headers.remove(name);
    }
}

/// Checks that a request names no other host than its target. `default` is the port of a header
/// without one.
fn check_host_header(
    headers: &HeaderMap,
    host: &HostAddress,
    default: u16,
) -> Result<(), RequestRefusal> {
    let mut all = headers.get_all(header::HOST).iter();
    let Some(value) = all.next() else { return Ok(()) };
    let other = || RequestRefusal::Invalid("its Host header is not its target");
    if all.next().is_some() {
        return Err(other());
    }
    let authority: Authority =
        value.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(other)?;
    if parse_host(&authority, default)? == *host { Ok(()) } else { Err(other()) }
}

/// Parses a host with an optional port. A user name could hide the host.
fn parse_host(authority: &Authority, default: u16) -> Result<HostAddress, RequestRefusal> {
    let invalid = || RequestRefusal::Invalid("its host is not valid");
    let name = authority.host();
    let port = match authority.as_str().strip_prefix(name) {
        Some("") => default,
        Some(rest) => {
            let digits = rest.strip_prefix(':').ok_or_else(invalid)?;
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| is_number).ok_or_else(invalid)?
        }
        None => return Err(invalid()),
    };
    HostAddress::parse(&format!("{name}:{port}")).map_err(|_| invalid())
}

fn egress(authority: &Authority, refusal: EgressRefusal) -> RequestRefusal {
    RequestRefusal::Egress { host: authority.to_string(), refusal }
}
