//! The connections of a server: accepting them, bounding them, and ending them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::access::AccessRules;
use super::endpoint::{HttpEndpoint, endpoint_url};
use super::options::{HttpLimits, HttpOptions};
use super::stall_guard::StallGuard;
use crate::server::ToolServer;

/// How often the server looks for sessions whose clients are gone.
const SWEEP_INTERVAL: Duration = Duration::from_millis(500);
/// The wait after a connection could not be accepted, such as without a free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The number of headers of a request.
const MAX_HEADERS: usize = 64;
/// The time that the last responses have to be sent when the server shuts down.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The response on a connection too many.
const BUSY_REPLY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\
    retry-after: 1\r\nconnection: close\r\n\r\n";

/// The reason why a server cannot listen or serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// Other machines could use the tools.
    #[error(
        "cannot listen on {0} without authentication: whoever reaches this address could use the \
            tools\nhint: set `--token-file FILE`, `--token-env NAME` or `--oauth FILE`, or listen \
            on 127.0.0.1"
    )]
    Unprotected(SocketAddr),
    /// No name leads to the server.
    #[error(
        "cannot listen on all addresses without a name: requests are checked against the names of \
            the server\nhint: name the host in the URL of clients with `--allow-host NAME`"
    )]
    Nameless,
    /// A name of the server or an origin is not valid.
    #[error(
        "cannot use `{0}` as a host or origin\nhint: a host is `NAME` or `NAME:PORT`, an origin is \
            `https://NAME` or `https://NAME:PORT`"
    )]
    InvalidName(String),
    /// The address cannot be used.
    #[error("cannot listen on {address}: {error}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The workspace cannot be opened.
    #[error("{0}")]
    Host(String),
}

/// A server that listens, and does not serve yet.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    address: SocketAddr,
    access: AccessRules,
    options: HttpOptions,
}

impl HttpListener {
    /// Listens on the address of the options.
    ///
    /// # Errors
    ///
    /// Returns an error if other machines could use the tools without authentication, if a name is
    /// not valid, or if the address cannot be used.
    pub async fn bind(options: HttpOptions) -> Result<Self, HttpError> {
        let asked = options.address;
        if !asked.ip().to_canonical().is_loopback() && options.authentication.is_none() {
            return Err(HttpError::Unprotected(asked));
        }
        let new_rules = |address| {
            AccessRules::new(address, &options.allowed_hosts, &options.allowed_origins)
                .map_err(|name| HttpError::InvalidName(name.escape_debug().to_string()))
        };
        if new_rules(asked)?.is_empty() {
            return Err(HttpError::Nameless);
        }
        let failed = |error| HttpError::Bind { address: asked, error };
        let listener = TcpListener::bind(asked).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let access = new_rules(address)?;
        Ok(Self { listener, address, access, options })
    }

    /// Returns the URL of the server, with the real port.
    pub fn url(&self) -> String {
        endpoint_url(self.address)
    }

    /// Returns whether other machines can reach the server.
    pub fn is_public(&self) -> bool {
        !self.address.ip().to_canonical().is_loopback()
    }

    /// Serves clients until the server shuts down. Then ends everything that they started.
    ///
    /// # Errors
    ///
    /// Returns an error if the workspace cannot be opened.
    pub async fn serve(self, server: ToolServer) -> Result<(), HttpError> {
        let Self { listener, address, access, options } = self;
        let HttpOptions { authentication, limits, .. } = options;
        server.open_host(std::future::ready(Vec::new())).await.map_err(HttpError::Host)?;
        let shutdown = server.shutdown().clone();
        let endpoint =
            Arc::new(HttpEndpoint::new(server, address, access, authentication, &limits));
        let connection = Connection { endpoint, limits: limits.clone(), shutdown };
        let mut connections = JoinSet::new();
        let sweeper = tokio::spawn(connection.clone().sweep());
        connection.accept_all(&listener, &mut connections).await;
        drop(listener);
        sweeper.abort();
        let ended = async {
            connection.endpoint.sessions.end_all().await;
            connection.endpoint.stateless.end_all().await;
        };
        let closed = async { while connections.join_next().await.is_some() {} };
        let (ended, _) = tokio::join!(
            tokio::time::timeout(limits.shutdown_timeout, ended),
            tokio::time::timeout(CLOSE_TIMEOUT, closed),
        );
        let _ = ended;
        connections.abort_all();
        Ok(())
    }
}

/// What all connections share.
#[derive(Clone)]
struct Connection {
    endpoint: Arc<HttpEndpoint>,
    limits: HttpLimits,
    shutdown: CancellationToken,
}

impl Connection {
    /// Accepts connections until the server shuts down.
    async fn accept_all(&self, listener: &TcpListener, connections: &mut JoinSet<()>) {
        let places = Arc::new(Semaphore::new(self.limits.connections));
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => {
                    let connection = self.clone();
                    connections.spawn(async move {
                        connection.serve(stream).await;
                        drop(place);
                    });
                }
                Err(_) => refuse_connection(stream).await,
            }
        }
    }

    /// Serves one connection until it ends.
    async fn serve(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Self { endpoint, limits, shutdown } = self;
        let service = service_fn(move |request| {
            let endpoint = Arc::clone(&endpoint);
            async move { Ok::<_, Infallible>(endpoint.answer(request).await) }
        });
        let stream = TokioIo::new(StallGuard::new(stream, limits.write_timeout));
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_timeout)
            .max_headers(MAX_HEADERS)
            .max_header_size(limits.header_len)
            .serve_connection(stream, service);
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            // What goes wrong on one connection matters to its client only.
            _ = serving.as_mut() => return,
            () = shutdown.cancelled() => serving.as_mut().graceful_shutdown(),
        }
        let _ = serving.await;
    }

    /// Looks for clients that are gone, again and again.
    async fn sweep(self) {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            self.endpoint.sessions.sweep();
            self.endpoint.stateless.sweep().await;
        }
    }
}

/// Answers a connection too many, without waiting for its client.
async fn refuse_connection(mut stream: TcpStream) {
    let answer = async {
        stream.write_all(BUSY_REPLY).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(ACCEPT_PAUSE, answer).await;
}
