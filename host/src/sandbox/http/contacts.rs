//! Who was contacted, for the account of the call.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::target::RequestTarget;
use crate::policy::HostAddress;

/// More than anybody reads; the others are counted.
const MAX_LISTED: usize = 32;

/// The requests that a call sent, the first ones one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HttpContacts {
    /// In the order in which they were sent.
    pub requests: Vec<HttpContact>,
    /// Requests besides these.
    pub more: usize,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HttpContact {
    /// Such as `GET`.
    pub method: String,
    /// Where to, by the name that was decided on.
    pub host: HostAddress,
    /// The address that was dialled, once something answered there.
    pub address: Option<SocketAddr>,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
}

/// The account while the call runs.
#[derive(Clone, Default)]
pub(super) struct HostContactLog(Arc<Mutex<HttpContacts>>);

/// The entry of a request.
pub(super) struct ContactEntry {
    log: HostContactLog,
    /// `None` for one of those that are only counted.
    index: Option<usize>,
}

impl HostContactLog {
    /// Before anything is sent.
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

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        let contacts = self.lock();
        contacts.requests.len() + contacts.more
    }

    pub(super) fn snapshot(&self) -> HttpContacts {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HttpContacts> {
        // Whatever panicked while holding it, the entries are whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContactEntry {
    /// Somebody answered.
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
        let account = HostContactLog::default();
        let entries: Vec<ContactEntry> =
            (0..MAX_LISTED + 3).map(|_| account.record_request(&target)).collect();
        entries.iter().for_each(|entry| entry.record_response(None, 204));
        let contacts = account.snapshot();
        assert_eq!(
            (contacts.requests.len(), contacts.more, account.count()),
            (MAX_LISTED, 3, MAX_LISTED + 3)
        );
        assert!(contacts.requests.iter().all(|contact| contact.status == Some(204)));
    }
}
