//! The connections of a command, for the audit log.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

use crate::policy::HostAddress;

/// The number of connections of one command that are recorded one by one.
const MAX_RECORDED: usize = 1000;

/// A connection that a command asked the proxy for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandConnection {
    /// The host and the port, as the program asked for them.
    pub host: String,
    /// The address that was dialled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// The bytes that the command sent.
    pub sent: u64,
    /// The bytes that the command received.
    pub received: u64,
    /// Why the connection was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The record of a connection that may still be open.
#[derive(Debug)]
pub(super) struct ConnectionRecord {
    host: String,
    pub(super) address: OnceLock<SocketAddr>,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) refused: OnceLock<String>,
}

/// The records of all connections of a command.
#[derive(Debug, Default)]
pub(super) struct ConnectionLog {
    recorded: Mutex<Vec<Arc<ConnectionRecord>>>,
    /// The connections that are not recorded one by one.
    more: AtomicU64,
}

impl ConnectionLog {
    /// Begins the record of a connection.
    pub(super) fn begin(&self, host: &HostAddress) -> Arc<ConnectionRecord> {
        let record = Arc::new(ConnectionRecord {
            host: format!("{}:{}", host_name(host), host.port()),
            address: OnceLock::new(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            refused: OnceLock::new(),
        });
        let mut all = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MAX_RECORDED {
            all.push(Arc::clone(&record));
        } else {
            self.more.fetch_add(1, Ordering::Relaxed);
        }
        record
    }

    pub(super) fn snapshot(&self) -> Vec<CommandConnection> {
        let all = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let state = |record: &Arc<ConnectionRecord>| CommandConnection {
            host: record.host.clone(),
            address: record.address.get().copied(),
            sent: record.sent.load(Ordering::Relaxed),
            received: record.received.load(Ordering::Relaxed),
            refused: record.refused.get().cloned(),
        };
        let mut connections: Vec<CommandConnection> = all.iter().map(state).collect();
        let more = self.more.load(Ordering::Relaxed);
        if more > 0 {
            connections.push(CommandConnection {
                host: format!("{more} more connections"),
                address: None,
                sent: 0,
                received: 0,
                refused: None,
            });
        }
        connections
    }
}

/// Returns the name or the address of a host, without the port.
fn host_name(host: &HostAddress) -> String {
    match (host.parse_name(), host.address()) {
        (Some(name), _) => name.to_owned(),
        (None, Some(std::net::IpAddr::V6(address))) => format!("[{address}]"),
        (None, Some(address)) => address.to_string(),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_beyond_the_limit_are_counted() {
        let log = ConnectionLog::default();
        let host = HostAddress::parse("example.com").expect("a host");
        for _ in 0..MAX_RECORDED + 2 {
            log.begin(&host);
        }
        let all = log.snapshot();
        assert_eq!((all.len(), all[0].host.as_str()), (MAX_RECORDED + 1, "example.com:443"));
        assert_eq!(all[MAX_RECORDED].host, "2 more connections");
    }
}
