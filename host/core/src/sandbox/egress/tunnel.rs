//! A tunnel between a program and a server, whose first bytes are checked.

use std::io;
use std::time::Duration;

use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::stream::CountedStream;
use crate::policy::HostAddress;

/// The first byte of a TLS handshake, by RFC 8446.
const TLS_HANDSHAKE: u8 = 22;
/// The largest first message of a program that is examined, in bytes.
const MAX_HELLO_LEN: usize = 64 << 10;
/// The time for a complete first message after its first byte.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// The port on which only TLS is allowed.
const HTTPS_PORT: u16 = 443;

/// What the first bytes of a program show.
#[derive(Debug, PartialEq, Eq)]
enum FirstBytes {
    /// They may be passed on.
    Allowed,
    /// More bytes are needed.
    Incomplete,
    /// They contradict the host that the program asked for.
    Refused(&'static str),
}

/// Passes bytes in both directions until one side closes, or until the first bytes of the program
/// contradict the host.
pub(super) async fn run(
    client: impl AsyncRead + AsyncWrite,
    server: CountedStream,
    host: &HostAddress,
) -> io::Result<()> {
    let record = server.record.clone();
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let up = async {
        let first = match read_first(&mut from_client, host).await? {
            Ok(first) => first,
            Err(reason) => {
                let _ = record.refused.set(reason.to_owned());
                return Err(io::Error::from(io::ErrorKind::PermissionDenied));
            }
        };
        to_server.write_all(&first).await?;
        tokio::io::copy(&mut from_client, &mut to_server).await?;
        to_server.shutdown().await
    };
    let down = async {
        tokio::io::copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::try_join!(up, down).map(drop)
}

/// Reads until the first bytes of the program are complete. Returns them, or why they are refused.
async fn read_first(
    client: &mut (impl AsyncRead + Unpin),
    host: &HostAddress,
) -> io::Result<Result<Vec<u8>, &'static str>> {
    let mut bytes = Vec::with_capacity(4096);
    // The server may speak first, so there is no limit for the first byte.
    client.read_buf(&mut bytes).await?;
    let rest = async {
        loop {
            match check_first(&bytes, host) {
                FirstBytes::Allowed => return Ok(Ok(bytes)),
                FirstBytes::Refused(reason) => return Ok(Err(reason)),
                FirstBytes::Incomplete if bytes.len() >= MAX_HELLO_LEN => {
                    return Ok(Err("its first message is too large"));
                }
                FirstBytes::Incomplete => {}
            }
            if client.read_buf(&mut bytes).await? == 0 {
                return Ok(Err("its first message is not complete"));
            }
        }
    };
    tokio::time::timeout(HELLO_TIMEOUT, rest)
        .await
        .unwrap_or(Ok(Err("its first message is not complete")))
}

/// Checks the first bytes of a program.
fn check_first(bytes: &[u8], host: &HostAddress) -> FirstBytes {
    match bytes.first() {
        // The program closes without a word.
        None => FirstBytes::Allowed,
        Some(&TLS_HANDSHAKE) => check_hello(bytes, host),
        Some(_) if host.port() == HTTPS_PORT => FirstBytes::Refused("it is not TLS"),
        Some(_) => check_plain(bytes),
    }
}

/// Checks the server name of a TLS handshake.
fn check_hello(bytes: &[u8], host: &HostAddress) -> FirstBytes {
    let mut acceptor = Acceptor::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        if !matches!(acceptor.read_tls(&mut rest), Ok(1..)) {
            break;
        }
    }
    let accepted = match acceptor.accept() {
        Ok(Some(accepted)) => accepted,
        Ok(None) => return FirstBytes::Incomplete,
        Err(_) => return FirstBytes::Refused("its TLS handshake is not valid"),
    };
    let hello = accepted.client_hello();
    // Without a name, the program may only have asked for an address.
    let name = hello.server_name().map(|name| name.trim_end_matches('.').to_ascii_lowercase());
    if name.as_deref() == host.parse_name() {
        FirstBytes::Allowed
    } else {
        FirstBytes::Refused("the server name of TLS is not the host that it asked for")
    }
}

/// Refuses plain HTTP, whose `Host` could be another one. Only the first message is checked.
fn check_plain(bytes: &[u8]) -> FirstBytes {
    /// The longest first line that is waited for, in bytes.
    const MAX_LINE_LEN: usize = 8 << 10;
    // Servers ignore empty lines before a request, by RFC 9112.
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    let rest = start.and_then(|start| bytes.get(start..)).unwrap_or_default();
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_text = |byte: &u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t' | b'\r');
    if !line.iter().all(is_text) {
        return FirstBytes::Allowed;
    }
    let text = String::from_utf8_lossy(line).to_ascii_uppercase();
    if text.contains(" HTTP/") || text.starts_with("GET ") {
        return FirstBytes::Refused("plain HTTP is not allowed in a tunnel");
    }
    let is_complete = line.len() < rest.len() || rest.len() > MAX_LINE_LEN;
    if is_complete { FirstBytes::Allowed } else { FirstBytes::Incomplete }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `ClientHello` of TLS 1.2, by RFC 5246, with this server name.
    fn hello(name: Option<&str>) -> Vec<u8> {
        let u16_bytes = |length: usize| u16::try_from(length).expect("it is short").to_be_bytes();
        let with_length = |bytes: &[u8]| [&u16_bytes(bytes.len())[..], bytes].concat();
        let name = name.map(|name| {
            let entry = [&[0][..], &with_length(name.as_bytes())].concat();
            [&[0, 0][..], &with_length(&with_length(&entry))].concat()
        });
        // `signature_algorithms` is mandatory.
        let algorithms = [&[0, 13][..], &with_length(&with_length(&[4, 3, 8, 4]))].concat();
        let extensions = [name.unwrap_or_default(), algorithms].concat();
        let session_and_suites = [&[0][..], &with_length(&[0xc0, 0x2f]), &[1, 0]].concat();
        let body = [&[3, 3][..], &[7; 32], &session_and_suites, &with_length(&extensions)].concat();
        let handshake = [&[1, 0][..], &u16_bytes(body.len()), &body].concat();
        [&[TLS_HANDSHAKE, 3, 1][..], &with_length(&handshake)].concat()
    }

    fn host(text: &str) -> HostAddress {
        HostAddress::parse(text).expect(text)
    }

    #[test]
    fn the_server_name_of_tls_is_the_host() {
        let refused =
            FirstBytes::Refused("the server name of TLS is not the host that it asked for");
        for (name, asked, is_allowed) in [
            (Some("example.com"), "example.com", true),
            (Some("EXAMPLE.com"), "example.com.", true),
            (Some("example.com"), "example.com:8443", true),
            (Some("evil.com"), "example.com", false),
            (Some("www.example.com"), "example.com", false),
            (None, "example.com", false),
            (None, "192.0.2.1", true),
            (Some("example.com"), "192.0.2.1", false),
        ] {
            let found = check_first(&hello(name), &host(asked));
            let expected = if is_allowed { &FirstBytes::Allowed } else { &refused };
            assert_eq!(&found, expected, "{name:?} {asked}");
        }
    }

    #[test]
    fn a_handshake_in_pieces_is_waited_for() {
        let bytes = hello(Some("evil.com"));
        for end in 1..bytes.len() {
            assert_eq!(check_first(&bytes[..end], &host("example.com")), FirstBytes::Incomplete);
        }
        let mut broken = hello(Some("example.com"));
        broken[5] = 2;
        assert!(!matches!(check_first(&broken, &host("example.com")), FirstBytes::Allowed));
    }

    #[test]
    fn on_the_port_of_https_there_is_only_tls() {
        let check = |text: &str, asked| check_first(text.as_bytes(), &host(asked));
        assert_eq!(check("SSH-2.0-x\r\n", "a.org:443"), FirstBytes::Refused("it is not TLS"));
        assert_eq!(check("SSH-2.0-x\r\n", "a.org:22"), FirstBytes::Allowed);
        assert_eq!(check("0032git-upload-pack /x\0host=a", "a.org:9418"), FirstBytes::Allowed);
        for part in ["GE", "\r\n", "M-SEARCH * HTT"] {
            assert_eq!(check(part, "a.org:8080"), FirstBytes::Incomplete, "{part:?}");
        }
        for request in [
            "GET / HTTP/1.1\r\n",
            "\r\n\r\nGET / HTTP/1.1\r\n",
            "get / http/1.1\n",
            "M-SEARCH * HTTP/1.1\r\n",
            "X / HTTP/1.0\r\n",
            "VERSION-CONTROL /x HTTP/1.1\r\n",
            "CONNECT x:1 HTTP/1.1\r\n",
            "PRI * HTTP/2.0\r\n",
            "GET /x\r\n",
        ] {
            assert!(matches!(check(request, "a.org:8080"), FirstBytes::Refused(_)), "{request:?}");
        }
    }
}
