//! Records the hosts that a call sent requests to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::target::RequestTarget;
use crate::policy::HostAddress;

/// The number of requests that are listed; further ones are counted.
const MAX_LISTED: usize = 32;

/// The requests that a call sent. The first ones are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HttpContacts {
    /// The listed requests, in the order of sending.
    pub requests: Vec<HttpContact>,
    /// The number of further requests.
    pub more: usize,
}

/// One HTTP request of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HttpContact {
    /// The method, such as `GET`.
    pub method: String,
    /// The host, by the name that was approved.
    pub host: HostAddress,
    /// The address that answered, if one did.
    pub address: Option<SocketAddr>,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
}

/// The record of requests while the call runs.
#[derive(Clone, Default)]
pub(super) struct HostContactLog(Arc<Mutex<HttpContacts>>);

/// The entry of one request in the log.
pub(super) struct ContactEntry {
    log: HostContactLog,
    /// The index in the list; `None` if the request is only counted.
    index: Option<usize>,
}

impl HostContactLog {
    /// Records a request before anything is sent.
    pub(super) fn record_request(&self, target: &RequestTarget) -> ContactEntry {
        let mut contacts = self.lock();
        let index = contacts.requests.len();
        let kept = index < MAX_LISTED;
        if kept {
            let (method, host) = (target.method().to_string(), target.host().clone());
            contacts.requests.push(HttpContact { method, host, address: None, status: None });
        } else {
            contacts.more += 1;
        }
        drop(contacts);
        ContactEntry { log: self.clone(), index: kept.then_some(index) }
    }

    /// Returns the number of recorded requests.
    pub(super) fn count(&self) -> usize {
        let contacts = self.lock();
        contacts.requests.len() + contacts.more
    }

    pub(super) fn snapshot(&self) -> HttpContacts {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HttpContacts> {
        // After a panic in another thread, the entries are still complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContactEntry {
    /// Records the response to the request.
    pub(super) fn record_response(&self, address: Option<SocketAddr>, status: u16) {
        let mut contacts = self.log.lock();
        if let Some(contact) = self.index.and_then(|index| contacts.requests.get_mut(index)) {
            contact.address = address;
            contact.status = Some(status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_requests_are_kept_and_the_others_counted() {
        let (head, ()) =
            http::Request::get("https://example.com/").body(()).expect("a request").into_parts();
        let target = RequestTarget::from_request(&head).expect("a target");
        let log = HostContactLog::default();
        let entries: Vec<ContactEntry> =
            (0..MAX_LISTED + 3).map(|_| log.record_request(&target)).collect();
        entries.iter().for_each(|entry| entry.record_response(None, 204));
        let contacts = log.snapshot();
        assert_eq!(
            (contacts.requests.len(), contacts.more, log.count()),
            (MAX_LISTED, 3, MAX_LISTED + 3)
        );
        assert!(contacts.requests.iter().all(|contact| contact.status == Some(204)));
    }
}
