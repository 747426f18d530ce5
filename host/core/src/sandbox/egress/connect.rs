//! The decision about a host, and the connection to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;

use super::EgressContext;
use super::record::ConnectionRecord;
use super::stream::CountedStream;
use crate::policy::{ConnectionVerdict, Denial, HostAddress};
use crate::sandbox::gate::ConnectionDecision;
use crate::sandbox::http::{ResolveError, resolve_host};

/// The time for a connection to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a program gets no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum EgressRefusal {
    /// The rules or the user do not allow the host.
    #[error("{}", describe_denial(.0))]
    Denied(Denial),
    /// The name has an address that it must not have.
    #[error("{0}")]
    SpecialAddress(String),
    /// The server does not answer.
    #[error("{0}")]
    Unreachable(String),
}

/// How a host was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AllowedHost {
    /// By a rule, which may cover many hosts.
    ByRule,
    /// By the user, who saw exactly this host.
    ByUser,
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

    /// Decides about a host, and asks the user if needed. The name is not looked up before, since a
    /// lookup already sends it to others.
    async fn decide(&self, host: &HostAddress) -> Result<AllowedHost, EgressRefusal> {
        match (self.approvals.judge())(host).verdict {
            ConnectionVerdict::Allow => Ok(AllowedHost::ByRule),
            ConnectionVerdict::Ask => {
                self.approvals.ask(host).await.map_err(EgressRefusal::Denied)?;
                Ok(AllowedHost::ByUser)
            }
            ConnectionVerdict::Deny(denial) => Err(EgressRefusal::Denied(denial)),
        }
    }

    /// Resolves a host. A lookup goes on after its connection has ended, so that a program that
    /// opens and closes connections starts no more lookups than the limit.
    async fn resolve(
        &self,
        host: &HostAddress,
        allowed: AllowedHost,
    ) -> Result<Vec<SocketAddr>, ResolveError> {
        let (host, judge) = (host.clone(), Arc::clone(self.approvals.judge()));
        let slots = Arc::clone(&self.lookups);
        let lookup = async move {
            let _slot = slots.acquire_owned().await;
            let is_named = |address: &HostAddress| {
                let ConnectionDecision { verdict, names_address } = judge(address);
                let is_shown = allowed == AllowedHost::ByUser && *address == host;
                (names_address || is_shown) && !matches!(verdict, ConnectionVerdict::Deny(_))
            };
            resolve_host(&host, is_named).await
        };
        tokio::spawn(lookup).await.unwrap_or(Err(ResolveError::NotFound))
    }

    async fn connect_recorded(
        &self,
        host: &HostAddress,
        record: &Arc<ConnectionRecord>,
    ) -> Result<CountedStream, EgressRefusal> {
        let allowed = self.decide(host).await?;
        let addresses = self.resolve(host, allowed).await.map_err(|error| match error {
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

fn describe_denial(denial: &Denial) -> String {
    let remedy = denial.remedy.as_ref().map(|text| format!(" {text}")).unwrap_or_default();
    format!("{}{remedy}", denial.reason)
}
