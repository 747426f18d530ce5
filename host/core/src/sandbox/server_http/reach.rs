//! The origins that the host may connect to for one configured server.

use std::net::SocketAddr;
use std::sync::Arc;

use super::client::OriginClient;
use crate::policy::{Denial, HostAddress, HttpOrigin, HttpUrl, NetworkRules};
use crate::sandbox::http::resolve_host;

/// Decides whether the policy denies a host.
pub(crate) type HostPermitSource = Arc<dyn Fn(&HostAddress) -> Result<(), Denial> + Send + Sync>;

/// The origins that the host may connect to for one configured server. Only the host creates it.
#[derive(Clone)]
pub struct HttpReach {
    permit: HostPermitSource,
    /// The origin of the server that the user configured.
    own: HttpOrigin,
    /// IP addresses that are not public and that the user permitted.
    addresses: NetworkRules,
    /// Whether the connection to the server may be unencrypted.
    allow_plain_http: bool,
}

/// Why an origin is not connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReachError {
    /// The policy denies the host.
    #[error("{0}")]
    Denied(Denial),
    /// The connection would not be encrypted.
    #[error("the connection to {0} would not be encrypted")]
    Unencrypted(String),
    /// The name has an address that it must not have.
    #[error(
        "{0}\nhint: if you trust this address, add it with its port to `address` of the server in \
            the configuration"
    )]
    SpecialAddress(String),
    /// The host cannot be found.
    #[error("{0}")]
    Unreachable(String),
}

impl HttpReach {
    pub(crate) fn new(
        permit: HostPermitSource,
        server: &HttpUrl,
        addresses: NetworkRules,
        allow_plain_http: bool,
    ) -> Self {
        Self { permit, own: server.origin().clone(), addresses, allow_plain_http }
    }

    /// Checks whether an origin may be connected to, without resolving its name.
    ///
    /// # Errors
    ///
    /// The policy denies the host, the connection would be unencrypted, or a server elsewhere names
    /// an origin on this machine.
    pub fn check(&self, origin: &HttpOrigin) -> Result<(), ReachError> {
        let is_own = *origin == self.own;
        // A server elsewhere must not lead the host to programs of this machine.
        if origin.is_loopback() && !self.own.is_loopback() && !self.names(origin.host()) {
            let problem = format!("{origin} is on this machine, and the server is not");
            return Err(ReachError::SpecialAddress(problem));
        }
        let may_be_plain = origin.is_loopback() || (is_own && self.allow_plain_http);
        if !origin.is_encrypted() && !may_be_plain {
            return Err(ReachError::Unencrypted(origin.to_string()));
        }
        (self.permit)(origin.host()).map_err(ReachError::Denied)
    }

    /// Resolves an origin, and returns a client that sends requests to it alone.
    ///
    /// # Errors
    ///
    /// [`check`](Self::check) refuses the origin, its name cannot be resolved, or one of its
    /// addresses is neither public nor permitted.
    pub async fn connect(&self, origin: &HttpOrigin) -> Result<OriginClient, ReachError> {
        self.check(origin)?;
        let resolved = resolve_host(origin.host(), |address| self.is_permitted(origin, address));
        let addresses = resolved.await.map_err(|error| match error {
            crate::sandbox::http::ResolveError::Denied(denial) => {
                ReachError::SpecialAddress(denial.reason)
            }
            other => ReachError::Unreachable(other.to_string()),
        })?;
        // The user named this machine, so that is where the name must lead.
        let is_local = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
        if origin.is_loopback() && !addresses.iter().all(is_local) {
            let problem = format!("{origin} resolves to an address of another machine");
            return Err(ReachError::SpecialAddress(problem));
        }
        OriginClient::new(origin.clone(), &addresses).map_err(ReachError::Unreachable)
    }

    /// Whether the user permitted this IP address itself.
    fn names(&self, address: &HostAddress) -> bool {
        self.addresses.allows_address(address)
    }

    /// Whether an address that is not public may be dialled for an origin.
    fn is_permitted(&self, origin: &HttpOrigin, address: &HostAddress) -> bool {
        let is_loopback = address.address().is_some_and(|address| address.is_loopback());
        let is_written = *origin == self.own && origin.host() == address;
        self.names(address) || is_written || (origin.is_loopback() && is_loopback)
    }
}

impl std::fmt::Debug for HttpReach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpReach").field("own", &self.own).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::DenialCode;

    fn reach(server: &str, addresses: &[&str], allow_plain_http: bool) -> HttpReach {
        let server = HttpUrl::parse(server).expect(server);
        let addresses: Vec<String> = addresses.iter().map(|text| (*text).to_owned()).collect();
        let addresses = NetworkRules::parse(&addresses, &[]).expect("addresses");
        let permit: HostPermitSource = Arc::new(|host| match host.to_string().as_str() {
            "denied.example.com" => {
                Err(Denial::without_remedy(DenialCode::Policy, "a rule denies it.".to_owned()))
            }
            _ => Ok(()),
        });
        HttpReach::new(permit, &server, addresses, allow_plain_http)
    }

    async fn connect(reach: &HttpReach, url: &str) -> Result<(), String> {
        let url = HttpUrl::parse(url).expect(url);
        let connected = reach.connect(url.origin()).await;
        connected.map(drop).map_err(|error| error.to_string())
    }

    /// The server, its addresses, whether plain HTTP is allowed, the URL, and the error.
    type Case<'a> = (&'a str, &'a [&'a str], bool, &'a str, Option<&'a str>);

    #[tokio::test]
    async fn only_encrypted_public_and_permitted_origins_are_connected_to() {
        let public = "https://93.184.215.14/mcp";
        let table: &[Case<'_>] = &[
            (public, &[], false, public, None),
            (public, &[], false, "https://8.8.8.8/token", None),
            (public, &[], false, "http://8.8.8.8/token", Some("not be encrypted")),
            (public, &[], true, "http://8.8.8.8/token", Some("not be encrypted")),
            (public, &[], false, "http://127.0.0.1:80/", Some("is on this machine")),
            (public, &[], false, "https://localhost/", Some("is on this machine")),
            (public, &[], false, "https://[::1]/", Some("is on this machine")),
            (public, &[], false, "https://169.254.169.254/", Some("cloud metadata")),
            (public, &[], false, "https://10.0.0.5/", Some("a private network")),
            (public, &["10.0.0.5"], false, "https://10.0.0.5/", None),
            (public, &["10.0.0.5"], false, "https://10.0.0.5:8443/", Some("a private network")),
            (public, &["127.0.0.1:8000"], false, "http://127.0.0.1:8000/", None),
            (public, &["127.0.0.1:8000"], false, "http://127.0.0.1:8001/", Some("is on this")),
            (public, &[], false, "https://denied.example.com/", Some("a rule denies it")),
            (public, &[], false, "https://nothing.invalid/", Some("cannot resolve")),
            ("http://8.8.8.8/mcp", &[], true, "http://8.8.8.8/mcp", None),
            ("http://8.8.8.8/mcp", &[], false, "http://8.8.8.8/mcp", Some("not be encrypted")),
            // The user wrote the address itself.
            ("https://10.0.0.5/mcp", &[], false, "https://10.0.0.5/mcp", None),
            ("https://10.0.0.5/mcp", &[], false, "https://10.0.0.6/", Some("a private network")),
            ("http://localhost:1/mcp", &[], false, "http://localhost:1/mcp", None),
            ("http://localhost:1/mcp", &[], false, "http://127.0.0.1:2/login", None),
            ("http://localhost:1/mcp", &[], false, "http://8.8.8.8/", Some("not be encrypted")),
        ];
        for (server, addresses, plain, url, expected) in table {
            let connected = connect(&reach(server, addresses, *plain), url).await;
            match (connected, expected) {
                (Ok(()), None) => {}
                (Err(problem), Some(expected)) => {
                    assert!(problem.contains(expected), "{server} {url}: {problem}");
                }
                (connected, expected) => panic!("{server} {url}: {connected:?} {expected:?}"),
            }
        }
    }
}
