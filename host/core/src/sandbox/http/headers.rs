//! The headers that a guest must not set. They describe the connection or the target of the
//! request, which the host determines.

use http::header::{HeaderMap, HeaderName};

use crate::policy::{Denial, DenialCode};

/// Returns whether only the host sets this header.
pub(super) fn is_host_controlled(name: &HeaderName) -> bool {
    let connection = matches!(
        name.as_str(),
        "connection"
            | "expect"
            | "forwarded"
            | "host"
            | "http2-settings"
            | "keep-alive"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    );
    // Some servers and proxies take these for the host, the path or the method of a request.
    let target = matches!(
        name.as_str(),
        "x-host"
            | "x-http-host-override"
            | "x-http-method"
            | "x-http-method-override"
            | "x-method-override"
            | "x-original-host"
            | "x-original-method"
            | "x-original-uri"
            | "x-original-url"
            | "x-rewrite-uri"
            | "x-rewrite-url"
    );
    // Those that say where a request came from are not a guest's either.
    connection
        || target
        || name.as_str().starts_with("proxy-")
        || name.as_str().starts_with("x-forwarded-")
}

/// Checks that a request has none of these headers. The WASI interface already refuses them; this
/// check does not rely on that.
pub(super) fn check(headers: &HeaderMap) -> Result<(), Denial> {
    match headers.keys().find(|name| is_host_controlled(name)) {
        Some(name) => Err(Denial::without_remedy(
            DenialCode::BadRequest,
            format!("tools cannot set the header `{name}`; the host sets it."),
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r122_guests_cannot_set_headers_that_route_a_request() {
        for name in [
            "Host",
            "connection",
            "Proxy-Authorization",
            "proxy-connection",
            "proxy-anything",
            "Transfer-Encoding",
            "TE",
            "upgrade",
            "X-Forwarded-Host",
            "X-Forwarded-Prefix",
            "X-Host",
            "X-Original-URL",
            "X-Rewrite-URL",
            "X-HTTP-Method",
            "X-HTTP-Method-Override",
            "X-Method-Override",
        ] {
            let name: HeaderName = name.parse().expect(name);
            let headers = HeaderMap::from_iter([(name.clone(), "x".parse().expect("a value"))]);
            let refused = check(&headers).expect_err(name.as_str()).to_string();
            assert!(
                refused.starts_with("denied (bad-request): tools cannot set the header `"),
                "{refused}"
            );
        }
        for name in
            ["accept", "authorization", "content-type", "content-length", "user-agent", "x-proxy"]
        {
            assert!(!is_host_controlled(&name.parse().expect(name)), "{name}");
        }
    }
}
