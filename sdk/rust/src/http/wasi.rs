//! Requests through `wasi:http`.

use std::io::{self, Read};

use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, HeaderError, IncomingBody, Method, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme, http_error_code,
};
use wasip2::io::streams::{InputStream, OutputStream, StreamError};

use super::{HttpError, Request, Response};
use crate::Denial;

/// What a stream takes at once.
const PIECE: usize = 4096;

pub(crate) fn send(request: &Request) -> Result<Response, HttpError> {
    let invalid = |what: &str| HttpError::InvalidRequest(format!("`{}` {what}", request.url));
    let (scheme, authority, path) = parts(&request.url)
        .ok_or_else(|| invalid("is no address that begins with `https://` or `http://`"))?;
    let outgoing = OutgoingRequest::new(headers(request)?);
    let method = method(&request.method);
    outgoing
        .set_method(&method)
        .map_err(|()| HttpError::InvalidRequest(format!("`{}` is no method", request.method)))?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| invalid("has a scheme that cannot be used"))?;
    outgoing
        .set_authority(Some(authority))
        .map_err(|()| invalid("has a host that cannot be one"))?;
    outgoing
        .set_path_with_query(Some(path))
        .map_err(|()| invalid("has characters that have to be percent-encoded"))?;
    // Without one it is not taken, and then there is none.
    let body = if request.body.is_empty() {
        None
    } else {
        Some(outgoing.body().map_err(|()| invalid("cannot have a body"))?)
    };
    let options = options(request);
    let pending = outgoing_handler::handle(outgoing, options).map_err(failed)?;
    if let Some(body) = body {
        write(body, &request.body)?;
    }
    pending.subscribe().block();
    let Some(Ok(answered)) = pending.get() else {
        return Err(HttpError::Failed("there is no answer".into()));
    };
    let incoming = answered.map_err(failed)?;
    let no_body = || HttpError::Failed("the answer has no body".into());
    let headers = incoming.headers().entries();
    let body = incoming.consume().map_err(|()| no_body())?;
    let stream = body.stream().map_err(|()| no_body())?;
    Ok(Response {
        status: incoming.status(),
        headers,
        body: Box::new(Body { stream, _body: body }),
    })
}

/// The scheme, the host with its port, and the rest.
fn parts(url: &str) -> Option<(Scheme, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = match scheme {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        _ => return None,
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    Some((scheme, authority, if path.is_empty() { "/" } else { path }))
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

fn headers(request: &Request) -> Result<Fields, HttpError> {
    let headers = Fields::new();
    for (name, value) in &request.headers {
        let refused = |error| {
            let what = match error {
                HeaderError::Forbidden => "is the host's own to set",
                HeaderError::InvalidSyntax | HeaderError::Immutable => "cannot be sent",
            };
            HttpError::InvalidRequest(format!("the header `{name}` {what}"))
        };
        headers.append(name, value.as_bytes()).map_err(refused)?;
    }
    Ok(headers)
}

fn options(request: &Request) -> Option<RequestOptions> {
    let nanos = u64::try_from(request.patience?.as_nanos()).ok()?;
    let options = RequestOptions::new();
    // A host that cannot wait for less waits as it does.
    let _ = options.set_first_byte_timeout(Some(nanos));
    let _ = options.set_between_bytes_timeout(Some(nanos));
    Some(options)
}

fn write(body: OutgoingBody, bytes: &[u8]) -> Result<(), HttpError> {
    let lost = |error: StreamError| {
        HttpError::Failed(format!("the body could not be sent: {}", said(error)))
    };
    let stream: OutputStream =
        body.write().map_err(|()| HttpError::Failed("the body could not be sent".into()))?;
    for piece in bytes.chunks(PIECE) {
        stream.blocking_write_and_flush(piece).map_err(lost)?;
    }
    drop(stream);
    OutgoingBody::finish(body, None).map_err(failed)
}

/// The stream goes before what it is a stream of.
struct Body {
    stream: InputStream,
    _body: IncomingBody,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        match self.stream.blocking_read(buffer.len() as u64) {
            Ok(bytes) => {
                buffer[..bytes.len()].copy_from_slice(&bytes);
                // None yet, and not the end: that is for `Interrupted`, which everybody who reads
                // tries again.
                if bytes.is_empty() {
                    Err(io::ErrorKind::Interrupted.into())
                } else {
                    Ok(bytes.len())
                }
            }
            Err(StreamError::Closed) => Ok(0),
            Err(error) => Err(io::Error::other(said(error))),
        }
    }
}

fn said(error: StreamError) -> String {
    match error {
        StreamError::Closed => "the stream is closed".to_owned(),
        StreamError::LastOperationFailed(error) => {
            http_error_code(&error).map_or_else(|| error.to_debug_string(), words)
        }
    }
}

/// A denial comes as the one error that can carry words, and they begin with its code.
fn failed(code: ErrorCode) -> HttpError {
    if let ErrorCode::InternalError(Some(text)) = &code
        && let Some((code, reason)) =
            text.strip_prefix("denied (").and_then(|rest| rest.split_once("): "))
    {
        return HttpError::Denied(Denial {
            code: code.to_owned(),
            reason: reason.to_owned(),
            remedy: None,
        });
    }
    match code {
        ErrorCode::DnsTimeout
        | ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionReadTimeout
        | ErrorCode::HttpResponseTimeout => HttpError::TimedOut(words(code)),
        code => HttpError::Failed(words(code)),
    }
}

fn words(code: ErrorCode) -> String {
    match code {
        ErrorCode::InternalError(Some(text)) => text,
        ErrorCode::DnsTimeout => "looking up the host took too long".into(),
        ErrorCode::DestinationNotFound => "the host has no address".into(),
        ErrorCode::ConnectionTimeout => "connecting took too long".into(),
        ErrorCode::ConnectionReadTimeout | ErrorCode::HttpResponseTimeout => {
            "the server was silent for too long".into()
        }
        ErrorCode::HttpResponseIncomplete => "the response ended too early".into(),
        ErrorCode::HttpResponseBodySize(_) => "the response is too large".into(),
        ErrorCode::HttpRequestBodySize(_) => "the body of the request is too large".into(),
        ErrorCode::HttpRequestUriInvalid => "the address is no address for a request".into(),
        other => format!("{other:?}"),
    }
}
