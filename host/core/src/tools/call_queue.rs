//! The order of calls that arrive at any time, from several clients. Pure: arrivals and ends in,
//! the next call out.
//!
//! - Calls that change nothing run in parallel, up to a limit.
//! - Writes run one at a time. A call runs beside a write only if their files are known and
//!   disjoint.
//! - Two calls of one client never overtake each other if one of them writes and their files may
//!   overlap, or if both use the same stateful tool.
//! - The clients take turns. The first call that has to wait for running calls is reserved: no
//!   other call that conflicts with it starts first, so neither reads nor writes wait for ever.

use super::schedule::TouchedFiles;
use crate::policy::Tier;

/// The number of waiting calls of one client that are examined. Later ones wait for a place.
const LOOK_AHEAD: usize = 64;

/// The properties of a call that determine when it may run.
#[derive(Clone, Debug)]
pub(super) struct CallNeeds {
    pub(super) tier: Tier,
    pub(super) touched_files: TouchedFiles,
    /// The tool, if it keeps state.
    pub(super) stateful_tool: Option<String>,
}

/// The number of a call in a queue, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CallNumber(u64);

/// The number of a client in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ClientNumber(u64);

/// The sizes of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLimits {
    /// The number of calls that run at the same time.
    pub(super) running: usize,
    /// The number of waiting calls of one client.
    pub(super) waiting_per_client: usize,
    /// The number of waiting calls of all clients.
    pub(super) waiting: usize,
    /// The bytes of the arguments of all waiting calls.
    pub(super) waiting_bytes: usize,
}

/// The reason why a call cannot wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum QueueOverflow {
    #[error("this client already has {0} waiting calls, which is the limit")]
    Client(usize),
    #[error("the server already has {0} waiting calls, which is the limit")]
    Server(usize),
    #[error("the arguments of the waiting calls would exceed {0} bytes, which is the limit")]
    Bytes(usize),
    #[error("the client is gone")]
    ClientGone,
}

/// Calls that wait and calls that run.
#[derive(Debug)]
pub(super) struct CallQueue {
    limits: QueueLimits,
    /// The clients, in the order of their turns.
    clients: Vec<ClientCalls>,
    running: Vec<PlacedCall>,
    /// The call that starts before every other call that conflicts with it.
    reserved: Option<CallNumber>,
    next_number: u64,
    waiting: usize,
    waiting_bytes: usize,
}

#[derive(Debug)]
struct ClientCalls {
    client: ClientNumber,
    calls: Vec<PlacedCall>,
}

#[derive(Debug)]
struct PlacedCall {
    number: CallNumber,
    client: ClientNumber,
    needs: CallNeeds,
    bytes: usize,
}

impl PlacedCall {
    /// Returns whether two calls must not run at the same time.
    fn conflicts_with(&self, other: &Self) -> bool {
        let writes = |call: &Self| call.needs.tier == Tier::Write;
        let is_same_state = self.client == other.client
            && self.needs.stateful_tool.is_some()
            && self.needs.stateful_tool == other.needs.stateful_tool;
        is_same_state
            || match (writes(self), writes(other)) {
                (true, true) => true,
                (false, false) => false,
                (true, false) | (false, true) => {
                    self.needs.touched_files.may_overlap(&other.needs.touched_files)
                }
            }
    }
}

impl CallQueue {
    pub(super) fn new(limits: QueueLimits) -> Self {
        Self {
            limits,
            clients: Vec::new(),
            running: Vec::new(),
            reserved: None,
            next_number: 0,
            waiting: 0,
            waiting_bytes: 0,
        }
    }

    /// Adds a client. Its turn comes after those of all others.
    pub(super) fn add_client(&mut self) -> ClientNumber {
        let client = ClientNumber(self.take_number());
        self.clients.push(ClientCalls { client, calls: Vec::new() });
        client
    }

    /// Removes a client with its waiting calls. Its running calls end by themselves.
    pub(super) fn remove_client(&mut self, client: ClientNumber) {
        if let Some(at) = self.clients.iter().position(|calls| calls.client == client) {
            for call in self.clients.remove(at).calls {
                self.forget_waiting(&call);
            }
        }
    }

    /// Adds a call at the end of the queue of its client. `bytes` is the size of its arguments.
    pub(super) fn push(
        &mut self,
        client: ClientNumber,
        needs: CallNeeds,
        bytes: usize,
    ) -> Result<CallNumber, QueueOverflow> {
        let limits = self.limits;
        let waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        if self.waiting >= limits.waiting {
            return Err(QueueOverflow::Server(limits.waiting));
        }
        // A single call is limited elsewhere.
        if waiting_bytes > limits.waiting_bytes && self.waiting > 0 {
            return Err(QueueOverflow::Bytes(limits.waiting_bytes));
        }
        let number = CallNumber(self.take_number());
        let calls = self.clients.iter_mut().find(|calls| calls.client == client);
        let calls = &mut calls.ok_or(QueueOverflow::ClientGone)?.calls;
        if calls.len() >= limits.waiting_per_client {
            return Err(QueueOverflow::Client(limits.waiting_per_client));
        }
        calls.push(PlacedCall { number, client, needs, bytes });
        self.waiting += 1;
        self.waiting_bytes = waiting_bytes;
        Ok(number)
    }

    /// Removes a call that has ended, or that no longer waits.
    pub(super) fn remove(&mut self, number: CallNumber) {
        self.running.retain(|call| call.number != number);
        for client in 0..self.clients.len() {
            let calls = &mut self.clients[client].calls;
            if let Some(at) = calls.iter().position(|call| call.number == number) {
                let call = calls.remove(at);
                self.forget_waiting(&call);
            }
        }
    }

    /// Starts the next call that may run now, and returns it.
    pub(super) fn start_next(&mut self) -> Option<CallNumber> {
        if self.running.len() >= self.limits.running {
            return None;
        }
        let (client, at) = self.find_next()?;
        let call = self.clients[client].calls.remove(at);
        self.forget_waiting(&call);
        // The turn passes on to the client after this one.
        self.clients.rotate_left(client + 1);
        let number = call.number;
        self.running.push(call);
        Some(number)
    }

    /// Finds the next call that may run: the position of its client, and its position there.
    fn find_next(&mut self) -> Option<(usize, usize)> {
        for client in 0..self.clients.len() {
            let calls = &self.clients[client].calls;
            for at in 0..calls.len().min(LOOK_AHEAD) {
                let call = &calls[at];
                if calls[..at].iter().any(|before| before.conflicts_with(call)) {
                    continue;
                }
                if self.running.iter().any(|running| running.conflicts_with(call)) {
                    self.reserved.get_or_insert(call.number);
                    continue;
                }
                if !self.is_behind_reserved(call) {
                    return Some((client, at));
                }
            }
        }
        None
    }

    fn is_behind_reserved(&self, call: &PlacedCall) -> bool {
        let Some(reserved) = self.reserved.filter(|reserved| *reserved != call.number) else {
            return false;
        };
        let mut waiting = self.clients.iter().flat_map(|client| &client.calls);
        waiting
            .find(|other| other.number == reserved)
            .is_some_and(|reserved| reserved.conflicts_with(call))
    }

    fn forget_waiting(&mut self, call: &PlacedCall) {
        self.waiting -= 1;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(call.bytes);
        if self.reserved == Some(call.number) {
            self.reserved = None;
        }
    }

    fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

#[cfg(test)]
mod tests;
