//! As much of HTTP/1.1 as one client needs.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use super::{Provider, ReceivedRequest};

/// Reads the next request of a connection; `None` when the client is done with it.
pub(super) fn read_request(stream: &mut TcpStream, provider: Provider) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 8192];
    loop {
        let count = stream.read(&mut chunk).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&chunk[..count]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let path = lines.next()?.split(' ').nth(1)?.to_owned();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let length: usize =
            headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
        while bytes.len() < end + 4 + length {
            let count = stream.read(&mut chunk).ok().filter(|count| *count > 0)?;
            bytes.extend_from_slice(&chunk[..count]);
        }
        let body = serde_json::from_slice(&bytes[end + 4..end + 4 + length]).unwrap_or(Value::Null);
        return Some(ReceivedRequest { provider, path, headers, body });
    }
}

/// The head of a response.
pub(super) fn response_head(status: u16, headers: &[(&str, String)]) -> String {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} Scripted\r\n{headers}\r\n")
}

/// One piece of a body that comes in chunks.
pub(super) fn write_chunk(stream: &mut TcpStream, piece: &[u8]) -> io::Result<()> {
    let mut framed = format!("{:x}\r\n", piece.len()).into_bytes();
    framed.extend_from_slice(piece);
    framed.extend_from_slice(b"\r\n");
    stream.write_all(&framed)
}
