//! The decision about a host, and the connection to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;

use super::EgressContext;
use super::record::ConnectionRecord;
use super::stream::CountedStream;
use crate::policy::HostAddress;
use crate::sandbox::http::{ResolveError, resolve_host};

/// The time for a connection to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a program gets no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum EgressRefusal {
    /// The rules do not allow the host.
    #[error("it is not in `allow` under [commands.network]")]
    NotListed,
    /// The name has an address that it must not have.
    #[error("{0}")]
    SpecialAddress(String),
    /// The server does not answer.
    #[error("{0}")]
    Unreachable(String),
}

impl EgressContext {
    /// Connects to a host, if the rules allow it.
    pub(super) async fn connect(&self, host: &HostAddress) -> Result<CountedStream, EgressRefusal> {
        let record = self.log.begin(host);
        let connected = self.connect_recorded(host, &record).await;
        if let Err(refusal) = &connected {
            let _ = record.refused.set(refusal.to_string());
        }
        connected
    }

    /// Resolves a host. A lookup goes on after its connection has ended, so that a program that
    /// opens and closes connections starts no more lookups than the limit.
    async fn resolve(&self, host: &HostAddress) -> Result<Vec<SocketAddr>, ResolveError> {
        let (host, rules) = (host.clone(), self.rules.clone());
        let slots = Arc::clone(&self.lookups);
        let lookup = async move {
            let _slot = slots.acquire_owned().await;
            resolve_host(&host, |address| rules.names_address(address)).await
        };
        tokio::spawn(lookup).await.unwrap_or(Err(ResolveError::NotFound))
    }

    async fn connect_recorded(
        &self,
        host: &HostAddress,
        record: &Arc<ConnectionRecord>,
    ) -> Result<CountedStream, EgressRefusal> {
        if !self.rules.allows(host) {
            return Err(EgressRefusal::NotListed);
        }
        let addresses = self.resolve(host).await.map_err(|error| match error {
            ResolveError::Denied(denial) => EgressRefusal::SpecialAddress(denial.reason),
            other => EgressRefusal::Unreachable(other.to_string()),
        })?;
        let mut problem = String::from("it has no address");
        for address in addresses {
            match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(inner)) => {
                    let _ = record.address.set(address);
                    let _ = inner.set_nodelay(true);
                    return Ok(CountedStream { inner, record: Arc::clone(record) });
                }
                Ok(Err(error)) => problem = format!("cannot connect to {address}: {error}"),
                Err(_) => problem = format!("{address} does not answer"),
            }
        }
        Err(EgressRefusal::Unreachable(problem))
    }
}
