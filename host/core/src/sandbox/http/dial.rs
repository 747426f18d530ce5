//! Resolves host names and sends requests to the resolved addresses.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header;
use http_body_util::LengthLimitError;
use wasmtime_wasi_http::{Error, RequestOptions};

use super::target::RequestTarget;
use super::{MAX_RESPONSE_BODY, address, denied};
use crate::policy::{Denial, DenialCode, HostAddress};

/// The largest timeouts. A guest can only ask for shorter ones.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(30);
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a host has no address that may be dialled.
#[derive(Debug, thiserror::Error)]
pub(in crate::sandbox) enum ResolveError {
    #[error("its name cannot be resolved in time")]
    Timeout,
    #[error("cannot resolve {host}: {source}")]
    Lookup { host: HostAddress, source: std::io::Error },
    #[error("it has no address")]
    NotFound,
    /// An address is not public.
    #[error("{0}")]
    Denied(Denial),
}

impl From<ResolveError> for Error {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::Timeout => Self::DnsTimeout,
            ResolveError::Lookup { .. } => Self::InternalError(Some(error.to_string())),
            ResolveError::NotFound => Self::DestinationNotFound,
            ResolveError::Denied(denial) => denied(&denial),
        }
    }
}

/// Resolves a host to its addresses. All of them are public, or named by a permission themselves.
pub(in crate::sandbox) async fn resolve_host(
    host: &HostAddress,
    is_named: impl Fn(&HostAddress) -> bool,
) -> Result<Vec<SocketAddr>, ResolveError> {
    let addresses = match (host.address(), host.parse_name()) {
        (Some(address), _) => vec![SocketAddr::new(address, host.port())],
        (None, Some(name)) => {
            let looked_up =
                tokio::time::timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((name, host.port())))
                    .await;
            let found = looked_up.map_err(|_| ResolveError::Timeout)?;
            let found =
                found.map_err(|source| ResolveError::Lookup { host: host.clone(), source })?;
            found.collect()
        }
        (None, None) => Vec::new(),
    };
    if addresses.is_empty() {
        return Err(ResolveError::NotFound);
    }
    match check_addresses(host, &addresses, is_named) {
        Ok(()) => Ok(addresses),
        Err(denial) => Err(ResolveError::Denied(denial)),
    }
}

/// Checks all addresses of a host. One forbidden address makes the whole name unusable, because its
/// owner could otherwise choose which one is dialled.
fn check_addresses(
    host: &HostAddress,
    addresses: &[SocketAddr],
    is_named: impl Fn(&HostAddress) -> bool,
) -> Result<(), Denial> {
    let mut others = addresses.iter().filter(|at| !is_named(&HostAddress::from_socket_addr(**at)));
    match others.find_map(|at| address::special_purpose(at.ip()).map(|what| (at.ip(), what))) {
        None => Ok(()),
        Some((address, what)) => Err(Denial::new(
            DenialCode::NotGranted,
            format!("{host} resolves to {address}, which is {what}."),
            "The permission must contain this IP address and its port. If the tool requests every \
                host, the user can list the IP address under `local` in [fetch] of a policy file.",
        )),
    }
}

/// Sends a request to one of the addresses. Returns when the head of the response has arrived, with
/// the address that it came from.
pub(super) async fn send(
    target: &RequestTarget,
    host: &HostAddress,
    addresses: &[SocketAddr],
    mut headers: header::HeaderMap,
    body: Bytes,
    options: RequestOptions,
) -> Result<(Option<SocketAddr>, http::Response<reqwest::Body>), Error> {
    let clamp = |requested: Option<Duration>, max: Duration| {
        requested.map_or(max, |requested| requested.clamp(Duration::from_millis(1), max))
    };
    let silence =
        clamp(options.first_byte_timeout.max(options.between_bytes_timeout), READ_TIMEOUT);
    let mut client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .pool_max_idle_per_host(0)
        .connect_timeout(clamp(options.connect_timeout, CONNECT_TIMEOUT))
        .read_timeout(silence);
    if let Some(name) = host.parse_name() {
        client = client.resolve_to_addrs(name, addresses);
    }
    let client = client.build().map_err(|error| {
        Error::InternalError(Some(format!("cannot create the HTTP client: {error}")))
    })?;
    // If the two URL parsers disagree, the target of the request would be unknown.
    let url = target
        .exact_client_url()
        .filter(|_| target.host() == host)
        .ok_or(Error::HttpRequestUriInvalid)?;
    // The client computes the content length itself.
    headers.remove(header::CONTENT_LENGTH);
    let request = client.request(target.method().clone(), url).headers(headers);
    let request = if body.is_empty() { request } else { request.body(body) };
    let response = request.send().await.map_err(|error| send_error(&error))?;
    Ok((response.remote_addr(), http::Response::from(response)))
}

/// Converts the error of a request without a response.
fn send_error(error: &reqwest::Error) -> Error {
    match (error.is_connect(), error.is_timeout()) {
        (true, true) => Error::ConnectionTimeout,
        (true, false) => {
            Error::InternalError(Some(format!("cannot connect: {}", root_cause(error))))
        }
        (false, true) => Error::HttpResponseTimeout,
        (false, false) => {
            Error::InternalError(Some(format!("the request failed: {}", root_cause(error))))
        }
    }
}

/// Converts the error of a response that ended early.
pub(super) fn read_error(error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    if error.is::<LengthLimitError>() {
        return Error::HttpResponseBodySize(Some(MAX_RESPONSE_BODY as u64));
    }
    match error.downcast::<reqwest::Error>() {
        Ok(error) if error.is_timeout() => Error::ConnectionReadTimeout,
        Ok(_) | Err(_) => Error::HttpResponseIncomplete,
    }
}

/// Returns the innermost cause. The outer ones repeat the URL, which may contain a secret.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use http_body_util::BodyExt as _;

    use super::*;

    fn target(url: &str) -> RequestTarget {
        let (head, ()) = http::Request::get(url).body(()).expect(url).into_parts();
        RequestTarget::from_request(&head).expect(url)
    }

    /// Starts a server that accepts one connection and sends `answer`.
    fn server(answer: &'static str) -> (SocketAddr, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("get the local address");
        let requested = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("accept a connection");
            let mut head = [0; 4096];
            let length = stream.read(&mut head).expect("a head");
            stream.write_all(answer.as_bytes()).expect("write the file");
            if answer.is_empty() {
                // Stays silent until the client gives up.
                let _ = stream.read(&mut head);
            }
            String::from_utf8_lossy(&head[..length]).into_owned()
        });
        (at, requested)
    }

    #[tokio::test]
    async fn r122_the_checked_address_is_the_one_that_is_dialled() {
        // The name does not resolve; only the address passed along leads to the server.
        let (at, requested) = server("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
        let target = target(&format!("http://rebinding.invalid:{}/", at.port()));
        let options = RequestOptions::default();
        let sent =
            send(&target, target.host(), &[at], header::HeaderMap::new(), Bytes::new(), options)
                .await;
        let (from, response) = sent.expect("it answers");
        assert_eq!((from, response.status().as_u16()), (Some(at), 200));
        assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "hi");
        let requested = requested.join().expect("join the thread");
        assert!(
            requested.contains(&format!("host: rebinding.invalid:{}\r\n", at.port())),
            "{requested}"
        );
    }

    #[test]
    fn r122_one_forbidden_address_makes_the_name_unusable() {
        let host = HostAddress::parse("example.com").expect("a host");
        let addresses = [
            "93.184.215.14:443".parse().expect("an address"),
            "10.0.0.1:443".parse().expect("an address"),
        ];
        assert!(check_addresses(&host, &addresses[..1], |_| false).is_ok());
        let refused =
            check_addresses(&host, &addresses, |_| false).expect_err("one is private").to_string();
        assert!(
            refused.contains("example.com resolves to 10.0.0.1, which is a private network."),
            "{refused}"
        );
        assert!(check_addresses(&host, &addresses, |at| at.to_string() == "10.0.0.1").is_ok());
    }

    // The client must close the connection while the test waits for the server.
    #[tokio::test(flavor = "multi_thread")]
    async fn r122_a_silent_server_times_out() {
        let (at, requested) = server("");
        let target = target(&format!("http://{at}/"));
        let options = RequestOptions {
            first_byte_timeout: Some(Duration::from_millis(50)),
            ..RequestOptions::default()
        };
        let sent =
            send(&target, target.host(), &[at], header::HeaderMap::new(), Bytes::new(), options)
                .await;
        assert!(matches!(sent, Err(Error::HttpResponseTimeout)), "{sent:?}");
        requested.join().expect("join the thread");
    }
}
