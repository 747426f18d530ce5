//! Responses of the server itself, before or instead of those of the protocol.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use rmcp::service::{RoleServer, TxJsonRpcMessage};

/// A response with any body.
pub(crate) type HttpReply = Response<BoxBody<Bytes, Infallible>>;

/// The code of an error of this server that has no better one.
pub(crate) const SERVER_ERROR: ErrorCode = ErrorCode(-32000);

/// A request that is refused, with the reason.
#[derive(Debug)]
pub(crate) struct HttpRefusal {
    pub(crate) status: StatusCode,
    problem: String,
    headers: Vec<(header::HeaderName, String)>,
}

impl HttpRefusal {
    pub(crate) fn new(status: StatusCode, problem: impl Into<String>) -> Self {
        Self { status, problem: problem.into(), headers: Vec::new() }
    }

    pub(crate) fn with_header(
        mut self,
        name: header::HeaderName,
        value: impl Into<String>,
    ) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Returns the response, an error of JSON-RPC without an ID.
    pub(crate) fn into_reply(self) -> HttpReply {
        let error = ErrorData::new(SERVER_ERROR, self.problem, None);
        let mut reply = error_reply(self.status, None, error);
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                reply.headers_mut().append(name, value);
            }
        }
        reply
    }
}

/// Returns a response whose body is an error of JSON-RPC.
pub(crate) fn error_reply(
    status: StatusCode,
    id: Option<RequestId>,
    error: ErrorData,
) -> HttpReply {
    let message = TxJsonRpcMessage::<RoleServer>::error(error, id);
    json_reply(status, serde_json::to_vec(&message).unwrap_or_default())
}

/// Returns a response with a body of JSON.
pub(crate) fn json_reply(status: StatusCode, body: impl Into<Bytes>) -> HttpReply {
    let mut reply = Response::new(Full::new(body.into()).boxed());
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}
