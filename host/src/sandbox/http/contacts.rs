//! Who was contacted, for the account of the call.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::target::Target;
use crate::policy::HostAddress;

/// More than anybody reads; the others are counted.
const KEPT: usize = 32;

/// The requests that a call sent, the first ones one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Contacts {
    /// In the order in which they were sent.
    pub requests: Vec<Contact>,
    /// Requests besides these.
    pub more: usize,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contact {
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
pub(super) struct Account(Arc<Mutex<Contacts>>);

/// The entry of a request.
pub(super) struct Entry {
    account: Account,
    /// `None` for one of those that are only counted.
    index: Option<usize>,
}

impl Account {
    /// Before anything is sent.
    pub(super) fn begin(&self, target: &Target) -> Entry {
        let mut contacts = self.lock();
        let index = contacts.requests.len();
        let kept = index < KEPT;
        if kept {
            let (method, host) = (target.method().to_string(), target.host().clone());
            contacts.requests.push(Contact { method, host, address: None, status: None });
        } else {
            contacts.more += 1;
        }
        drop(contacts);
        Entry { account: self.clone(), index: kept.then_some(index) }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        let contacts = self.lock();
        contacts.requests.len() + contacts.more
    }

    pub(super) fn so_far(&self) -> Contacts {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Contacts> {
        // Whatever panicked while holding it, the entries are whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Somebody answered.
    pub(super) fn answered(&self, address: Option<SocketAddr>, status: u16) {
        let mut contacts = self.account.lock();
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
        let (head, ()) = http::Request::get("https://example.com/").body(()).expect("a request").into_parts();
        let target = Target::of(&head).expect("a target");
        let account = Account::default();
        let entries: Vec<Entry> = (0..KEPT + 3).map(|_| account.begin(&target)).collect();
        entries.iter().for_each(|entry| entry.answered(None, 204));
        let contacts = account.so_far();
        assert_eq!((contacts.requests.len(), contacts.more, account.count()), (KEPT, 3, KEPT + 3));
        assert!(contacts.requests.iter().all(|contact| contact.status == Some(204)));
    }
}
