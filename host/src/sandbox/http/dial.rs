//! Finding out where a name leads, and sending a request there.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header;
use http_body_util::LengthLimitError;
use wasmtime_wasi_http::{Error, RequestOptions};

use super::target::Target;
use super::{LARGEST_RESPONSE, address, denied};
use crate::policy::{Code, Denial, HostAddress, HostPattern, Match, Verdict};

/// A guest can ask for less, and not for more.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(30);
const RESOLVE: Duration = Duration::from_secs(10);

/// The addresses of a host, all of which may be dialled. One that may not spoils the name: it is not for its owner to say
/// which of them is taken.
pub(super) async fn resolve(host: &HostAddress, granted: &[HostPattern]) -> Result<Vec<SocketAddr>, Error> {
    let addresses = match (host.address(), host.name()) {
        (Some(address), _) => vec![SocketAddr::new(address, host.port())],
        (None, Some(name)) => {
            let looked_up = tokio::time::timeout(RESOLVE, tokio::net::lookup_host((name, host.port()))).await;
            let found = looked_up.map_err(|_| Error::DnsTimeout)?;
            let found = found.map_err(|error| Error::InternalError(Some(format!("cannot find {host}: {error}"))))?;
            found.collect()
        }
        (None, None) => Vec::new(),
    };
    if addresses.is_empty() {
        return Err(Error::DestinationNotFound);
    }
    for at in &addresses {
        // Granted by itself means: by a pattern that is this address.
        let itself = HostAddress::at(*at);
        let by_itself = granted.iter().any(|pattern| pattern.is_address() && pattern.matches(&itself, Verdict::Allow) == Match::Yes);
        if let (Some(what), false) = (address::special(at.ip()), by_itself) {
            return Err(denied(&Denial::new(
                Code::NotGranted,
                format!("{host} leads to {}, which is {what}.", at.ip()),
                "Such an address has to be granted by itself, with its port.",
            )));
        }
    }
    Ok(addresses)
}

/// Sends a request to one of these addresses, and returns once the head of the response is there.
pub(super) async fn send(
    target: &Target,
    host: &HostAddress,
    addresses: &[SocketAddr],
    mut headers: header::HeaderMap,
    body: Bytes,
    options: RequestOptions,
) -> Result<http::Response<reqwest::Body>, Error> {
    let at_most = |asked: Option<Duration>, most: Duration| asked.map_or(most, |asked| asked.clamp(Duration::from_millis(1), most));
    let silence = at_most(options.first_byte_timeout.max(options.between_bytes_timeout), SILENCE);
    let mut client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .pool_max_idle_per_host(0)
        .connect_timeout(at_most(options.connect_timeout, CONNECT))
        .read_timeout(silence);
    if let Some(name) = host.name() {
        client = client.resolve_to_addrs(name, addresses);
    }
    let client = client.build().map_err(|error| Error::InternalError(Some(format!("cannot send requests: {error}"))))?;
    let url = reqwest::Url::parse(&target.url()).map_err(|_| Error::HttpRequestUriInvalid)?;
    let read = url.host_str().unwrap_or_default();
    let same_host = match host.address() {
        Some(address) => read.trim_matches(['[', ']']).parse() == Ok(address),
        None => host.name() == Some(read),
    };
    if !same_host || url.port_or_known_default() != Some(host.port()) {
        // The two ways to read an address do not agree; nobody knows where it would go.
        return Err(Error::HttpRequestUriInvalid);
    }
    // These follow from what is sent.
    for own in [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION] {
        headers.remove(own);
    }
    let request = client.request(target.method().clone(), url).headers(headers);
    let request = if body.is_empty() { request } else { request.body(body) };
    request.send().await.map(http::Response::from).map_err(|error| failed(&error))
}

/// Why there is no response.
fn failed(error: &reqwest::Error) -> Error {
    match (error.is_connect(), error.is_timeout()) {
        (true, true) => Error::ConnectionTimeout,
        (true, false) => Error::InternalError(Some(format!("cannot connect: {}", root(error)))),
        (false, true) => Error::HttpResponseTimeout,
        (false, false) => Error::InternalError(Some(format!("the request failed: {}", root(error)))),
    }
}

/// Why there is no more of a response.
pub(super) fn reading(error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    if error.is::<LengthLimitError>() {
        return Error::HttpResponseBodySize(Some(LARGEST_RESPONSE as u64));
    }
    match error.downcast::<reqwest::Error>() {
        Ok(error) if error.is_timeout() => Error::ConnectionReadTimeout,
        Ok(_) | Err(_) => Error::HttpResponseIncomplete,
    }
}

/// The innermost cause: the outer ones repeat the address, which may have a secret in it.
fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
