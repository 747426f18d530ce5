//! The proxy through which commands connect to the hosts that `[commands.network]` allows.
//!
//! It listens in the network namespace of one command, which has no other way out, and accepts
//! `CONNECT` and plain HTTP ([`http_proxy`]) and SOCKS5 ([`socks`]). For each connection:
//!
//! 1. A rule or the user allows the host and the port that the program asked for ([`approval`]).
//! 2. The name is resolved once, and every address may be dialled, as for requests of tools.
//! 3. The proxy dials one of these addresses.
//! 4. The program uses the host that it asked for: the server name of TLS, and the `Host` of plain
//!    HTTP, are the same ([`tunnel`], [`http_proxy`]).
//!
//! The proxy passes TLS through without reading it. Everything ends with the command.

mod approval;
mod connect;
mod http_proxy;
mod record;
mod socks;
mod stream;
mod tunnel;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

pub(super) use approval::ConnectionRules;
use approval::HostApprovals;
use cofferdam_confine::process::StartProxy;
pub use record::CommandConnection;
use record::ConnectionLog;

/// The number of connections of one command at the same time; further ones wait.
const MAX_CONNECTIONS: usize = 128;
/// The number of lookups of names of one command at the same time; further ones wait.
const MAX_LOOKUPS: usize = 16;
/// The time in which a program has to say what it wants.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The first byte of a SOCKS5 connection, by RFC 1928.
const SOCKS_VERSION: u8 = 5;

/// The proxy of one command. Dropping it ends all connections.
pub(super) struct EgressProxy {
    shared: Arc<EgressContext>,
}

/// What the connections of a command share.
struct EgressContext {
    approvals: HostApprovals,
    log: ConnectionLog,
    slots: Arc<Semaphore>,
    /// The lookups of names at the same time.
    lookups: Arc<Semaphore>,
    ended: CancellationToken,
}

impl EgressProxy {
    pub(super) fn new(rules: ConnectionRules) -> Self {
        let ended = CancellationToken::new();
        let shared = EgressContext {
            approvals: HostApprovals::new(rules, ended.clone()),
            log: ConnectionLog::default(),
            slots: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            ended,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns what starts the proxy at the socket of the command.
    pub(super) fn starter(&self) -> StartProxy {
        let context = Arc::clone(&self.shared);
        Box::new(move |listener| {
            tokio::spawn(async move {
                let ended = context.ended.clone();
                let _ = ended.run_until_cancelled(accept_all(context, listener)).await;
            });
        })
    }

    /// Returns the record of each connection so far.
    pub(super) fn connections(&self) -> Vec<CommandConnection> {
        self.shared.log.snapshot()
    }

    /// Ends all connections, and returns the record of each.
    pub(super) fn finish(&self) -> Vec<CommandConnection> {
        self.shared.ended.cancel();
        self.shared.log.snapshot()
    }
}

impl Drop for EgressProxy {
    fn drop(&mut self) {
        self.shared.ended.cancel();
    }
}

/// Accepts connections until the socket fails.
async fn accept_all(
    context: Arc<EgressContext>,
    listener: std::net::TcpListener,
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    loop {
        let Ok(slot) = Arc::clone(&context.slots).acquire_owned().await else { return Ok(()) };
        let (stream, _) = listener.accept().await?;
        let context = Arc::clone(&context);
        tokio::spawn(async move {
            let ended = context.ended.clone();
            let _ = ended.run_until_cancelled(serve(context, stream, slot)).await;
        });
    }
}

/// Serves one connection of a program.
async fn serve(context: Arc<EgressContext>, stream: TcpStream, slot: OwnedSemaphorePermit) {
    let mut first = [0];
    match tokio::time::timeout(REQUEST_TIMEOUT, stream.peek(&mut first)).await {
        Ok(Ok(1)) if first == [SOCKS_VERSION] => {
            // An error ends this connection, and the program sees it.
            let _ = socks::serve(&context, stream).await;
        }
        Ok(Ok(1)) => http_proxy::serve(context, stream, slot).await,
        _ => {}
    }
}

#[cfg(test)]
mod tests;
