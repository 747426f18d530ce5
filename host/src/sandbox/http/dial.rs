//! Finding out where a name leads, and sending a request there.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header;
use http_body_util::LengthLimitError;
use wasmtime_wasi_http::{Error, RequestOptions};

use super::target::RequestTarget;
use super::{MAX_RESPONSE_BODY, address, denied};
use crate::policy::{Denial, DenialCode, HostAddress};

/// A guest can ask for less, and not for more.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(30);
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// The addresses of a host, all of which may be dialled: they are for everybody, or were granted by
/// themselves.
pub(super) async fn resolve(
    host: &HostAddress,
    by_itself: impl Fn(&HostAddress) -> bool,
) -> Result<Vec<SocketAddr>, Error> {
    let addresses = match (host.address(), host.parse_name()) {
        (Some(address), _) => vec![SocketAddr::new(address, host.port())],
        (None, Some(name)) => {
            let looked_up =
                tokio::time::timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((name, host.port())))
                    .await;
            let found = looked_up.map_err(|_| Error::DnsTimeout)?;
            let found = found.map_err(|error| {
                Error::InternalError(Some(format!("cannot find {host}: {error}")))
            })?;
            found.collect()
        }
        (None, None) => Vec::new(),
    };
    if addresses.is_empty() {
        return Err(Error::DestinationNotFound);
    }
    match check_addresses(host, &addresses, by_itself) {
        Ok(()) => Ok(addresses),
        Err(denial) => Err(denied(&denial)),
    }
}

/// One address that may not be dialled spoils the name: it is not for its owner to say which of
/// them is taken.
fn check_addresses(
    host: &HostAddress,
    addresses: &[SocketAddr],
    by_itself: impl Fn(&HostAddress) -> bool,
) -> Result<(), Denial> {
    let mut others = addresses.iter().filter(|at| !by_itself(&HostAddress::from_socket_addr(**at)));
    match others.find_map(|at| address::special_purpose(at.ip()).map(|what| (at.ip(), what))) {
        None => Ok(()),
        Some((address, what)) => Err(Denial::new(
            DenialCode::NotGranted,
            format!("{host} leads to {address}, which is {what}."),
            "Such an address has to be granted by itself, with its port; for a tool that asks for \
                every host, the user can list it under \
             `local` in [fetch] of a policy file.",
        )),
    }
}

/// Sends a request to one of these addresses, and returns once the head of the response is there,
/// with the address it came from.
pub(super) async fn send(
    target: &RequestTarget,
    host: &HostAddress,
    addresses: &[SocketAddr],
    mut headers: header::HeaderMap,
    body: Bytes,
    options: RequestOptions,
) -> Result<(Option<SocketAddr>, http::Response<reqwest::Body>), Error> {
    let at_most = |asked: Option<Duration>, most: Duration| {
        asked.map_or(most, |asked| asked.clamp(Duration::from_millis(1), most))
    };
    let silence =
        at_most(options.first_byte_timeout.max(options.between_bytes_timeout), READ_TIMEOUT);
    let mut client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .pool_max_idle_per_host(0)
        .connect_timeout(at_most(options.connect_timeout, CONNECT_TIMEOUT))
        .read_timeout(silence);
    if let Some(name) = host.parse_name() {
        client = client.resolve_to_addrs(name, addresses);
    }
    let client = client
        .build()
        .map_err(|error| Error::InternalError(Some(format!("cannot send requests: {error}"))))?;
    // Where the two ways to read an address do not agree, nobody knows where it would go.
    let url = target
        .exact_client_url()
        .filter(|_| target.host() == host)
        .ok_or(Error::HttpRequestUriInvalid)?;
    // It follows from what is sent.
    headers.remove(header::CONTENT_LENGTH);
    let request = client.request(target.method().clone(), url).headers(headers);
    let request = if body.is_empty() { request } else { request.body(body) };
    let response = request.send().await.map_err(|error| send_error(&error))?;
    Ok((response.remote_addr(), http::Response::from(response)))
}

/// Why there is no response.
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

/// Why there is no more of a response.
pub(super) fn read_error(error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    if error.is::<LengthLimitError>() {
        return Error::HttpResponseBodySize(Some(MAX_RESPONSE_BODY as u64));
    }
    match error.downcast::<reqwest::Error>() {
        Ok(error) if error.is_timeout() => Error::ConnectionReadTimeout,
        Ok(_) | Err(_) => Error::HttpResponseIncomplete,
    }
}

/// The innermost cause: the outer ones repeat the address, which may have a secret in it.
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

    /// Accepts one connection, and answers with this.
    fn server(answer: &'static str) -> (SocketAddr, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("it has one");
        let asked = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody comes");
            let mut head = [0; 4096];
            let length = stream.read(&mut head).expect("a head");
            stream.write_all(answer.as_bytes()).expect("it is sent");
            if answer.is_empty() {
                // Silent until the other side has enough.
                drop(stream.read(&mut head));
            }
            String::from_utf8_lossy(&head[..length]).into_owned()
        });
        (at, asked)
    }

    #[tokio::test]
    async fn r122_what_was_checked_is_what_is_dialled() {
        // The name leads nowhere; only the address that comes with it is an address of the server.
        let (at, asked) = server("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
        let target = target(&format!("http://rebinding.invalid:{}/", at.port()));
        let options = RequestOptions::default();
        let sent =
            send(&target, target.host(), &[at], header::HeaderMap::new(), Bytes::new(), options)
                .await;
        let (from, response) = sent.expect("it answers");
        assert_eq!((from, response.status().as_u16()), (Some(at), 200));
        assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "hi");
        let asked = asked.join().expect("it ends");
        assert!(asked.contains(&format!("host: rebinding.invalid:{}\r\n", at.port())), "{asked}");
    }

    #[test]
    fn r122_one_address_that_may_not_be_dialled_spoils_the_name() {
        let host = HostAddress::parse("example.com").expect("a host");
        let both = [
            "93.184.215.14:443".parse().expect("an address"),
            "10.0.0.1:443".parse().expect("an address"),
        ];
        assert!(check_addresses(&host, &both[..1], |_| false).is_ok());
        let refused =
            check_addresses(&host, &both, |_| false).expect_err("one is private").to_string();
        assert!(
            refused.contains("example.com leads to 10.0.0.1, which is a private network."),
            "{refused}"
        );
        assert!(check_addresses(&host, &both, |at| at.to_string() == "10.0.0.1").is_ok());
    }

    // Somebody has to close the connection while the test waits for that.
    #[tokio::test(flavor = "multi_thread")]
    async fn r122_a_server_that_is_silent_is_given_up() {
        let (at, asked) = server("");
        let target = target(&format!("http://{at}/"));
        let options = RequestOptions {
            first_byte_timeout: Some(Duration::from_millis(50)),
            ..RequestOptions::default()
        };
        let sent =
            send(&target, target.host(), &[at], header::HeaderMap::new(), Bytes::new(), options)
                .await;
        assert!(matches!(sent, Err(Error::HttpResponseTimeout)), "{sent:?}");
        asked.join().expect("it ends");
    }
}
