//! The settings of a server over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use super::auth::ClientAuthentication;

/// The path of the server. All other paths do not exist.
pub(crate) const ENDPOINT_PATH: &str = "/mcp";

/// The settings of a server over HTTP.
#[derive(Debug)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The address to listen on. Port 0 chooses a free port.
    pub address: SocketAddr,
    /// How clients prove who they are.
    pub authentication: ClientAuthentication,
    /// Host names, or `name:port`, that clients may use besides the address itself.
    pub allowed_hosts: Vec<String>,
    /// Origins of browsers, such as `https://app.example.com`, that may send requests besides that
    /// of the address itself.
    pub allowed_origins: Vec<String>,
    /// The limits.
    pub limits: HttpLimits,
}

/// The limits of a server over HTTP.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpLimits {
    /// The number of connections. Further ones are answered with status 503 and closed.
    pub connections: usize,
    /// The number of sessions, and of principals without sessions.
    pub sessions: usize,
    /// The number of requests of a session without an answer.
    pub open_requests: usize,
    /// The bytes of a request body.
    pub body_len: usize,
    /// The bytes of all request bodies that are being received.
    pub total_body_len: usize,
    /// The bytes of the request line and all headers.
    pub header_len: usize,
    /// The time for the headers of a request, also for the first byte of the next request on a
    /// connection.
    pub header_timeout: Duration,
    /// The time for the body of a request.
    pub body_timeout: Duration,
    /// The time in which a client has to read something of what is sent.
    pub write_timeout: Duration,
    /// The time after which a session without open requests and streams ends.
    pub idle_timeout: Duration,
    /// The time after which a session ends that had a stream of its own, lost it and has nothing
    /// else open: its client is gone.
    pub gone_timeout: Duration,
    /// The time after which a call ends whose stream was lost and not resumed.
    pub resume_timeout: Duration,
    /// The time for everything to end when the server shuts down.
    pub shutdown_timeout: Duration,
}

impl HttpOptions {
    /// Returns options with the default limits and without further hosts and origins.
    pub fn new(address: SocketAddr, authentication: ClientAuthentication) -> Self {
        Self {
            address,
            authentication,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            limits: HttpLimits::default(),
        }
    }
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 2048,
            sessions: 256,
            open_requests: 256,
            body_len: 16 << 20,
            total_body_len: 64 << 20,
            header_len: 32 << 10,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(20),
            write_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(600),
            gone_timeout: Duration::from_secs(30),
            resume_timeout: Duration::from_secs(10),
            shutdown_timeout: Duration::from_secs(3),
        }
    }
}
