//! The scheduler of calls that arrive at any time: waits without a thread until a call may run.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::approval::lock;
use super::call_queue::{
    CallNeeds, CallNumber, CallQueue, ClientNumber, QueueLimits, QueueOverflow,
};
use crate::agent::ParallelLimit;

/// The number of calls of one client that can wait.
const MAX_WAITING_PER_CLIENT: usize = 1024;
/// The number of calls of all clients that can wait.
const MAX_WAITING: usize = 8192;
/// The bytes of the arguments of all waiting calls.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// Orders the calls of all clients of one host. Clones share everything.
///
/// Calls that change nothing run in parallel, up to the limit. Writes run one at a time, and other
/// calls run beside them only if their files are known and disjoint. Clients take turns.
#[derive(Clone)]
pub struct CallScheduler {
    shared: Arc<Mutex<SchedulerState>>,
}

struct SchedulerState {
    queue: CallQueue,
    /// Wakes the waiting calls.
    wakers: HashMap<CallNumber, oneshot::Sender<()>>,
}

/// One client of a [`CallScheduler`]. When it is dropped, its waiting calls do not run.
#[derive(Debug)]
pub(crate) struct SchedulerClient {
    scheduler: CallScheduler,
    client: ClientNumber,
}

/// The place of a call that waits or runs. Dropping it lets the next call run.
#[derive(Debug)]
pub(super) struct CallTurn {
    scheduler: CallScheduler,
    number: CallNumber,
}

impl CallScheduler {
    /// Creates a scheduler that runs at most this many calls at the same time.
    pub fn new(limit: ParallelLimit) -> Self {
        let queue = CallQueue::new(QueueLimits {
            running: limit.get(),
            waiting_per_client: MAX_WAITING_PER_CLIENT,
            waiting: MAX_WAITING,
            waiting_bytes: MAX_WAITING_BYTES,
        });
        let state = SchedulerState { queue, wakers: HashMap::new() };
        Self { shared: Arc::new(Mutex::new(state)) }
    }

    /// Adds a client.
    pub(crate) fn add_client(&self) -> SchedulerClient {
        let client = lock(&self.shared).queue.add_client();
        SchedulerClient { scheduler: self.clone(), client }
    }
}

impl fmt::Debug for CallScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallScheduler").finish_non_exhaustive()
    }
}

impl SchedulerState {
    /// Starts all calls that may run now.
    fn start_ready(&mut self) {
        while let Some(number) = self.queue.start_next() {
            let woken = self.wakers.remove(&number).map(|waker| waker.send(()));
            if woken != Some(Ok(())) {
                self.queue.remove(number);
            }
        }
    }
}

impl SchedulerClient {
    /// Waits until a call may run. `bytes` is the size of its arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if too many calls are waiting.
    pub(super) async fn wait_turn(
        &self,
        needs: CallNeeds,
        bytes: usize,
    ) -> Result<CallTurn, QueueOverflow> {
        let (waker, woken) = oneshot::channel();
        let turn = {
            let mut state = lock(&self.scheduler.shared);
            let number = state.queue.push(self.client, needs, bytes)?;
            state.wakers.insert(number, waker);
            state.start_ready();
            CallTurn { scheduler: self.scheduler.clone(), number }
        };
        // The sender is only dropped together with the client.
        woken.await.map_err(|_| QueueOverflow::ClientGone)?;
        Ok(turn)
    }
}

impl Drop for SchedulerClient {
    fn drop(&mut self) {
        let mut state = lock(&self.scheduler.shared);
        state.queue.remove_client(self.client);
        state.start_ready();
    }
}

impl Drop for CallTurn {
    fn drop(&mut self) {
        let mut state = lock(&self.scheduler.shared);
        state.wakers.remove(&self.number);
        state.queue.remove(self.number);
        state.start_ready();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;

    use super::super::schedule::TouchedFiles;
    use super::*;
    use crate::policy::Tier;

    fn needs(tier: Tier) -> CallNeeds {
        CallNeeds { tier, touched_files: TouchedFiles::Any, stateful_tool: None }
    }

    #[tokio::test]
    async fn a_dropped_turn_lets_the_next_call_run() {
        let scheduler = CallScheduler::new(ParallelLimit::new(2).expect("a limit"));
        let client = scheduler.add_client();
        let write = client.wait_turn(needs(Tier::Write), 1).now_or_never().expect("it runs");
        let mut read = Box::pin(client.wait_turn(needs(Tier::ReadOnly), 1));
        assert!((&mut read).now_or_never().is_none());
        // A call that gives up waiting leaves the queue.
        let mut given_up = Box::pin(client.wait_turn(needs(Tier::Write), 1));
        assert!((&mut given_up).now_or_never().is_none());
        drop(given_up);
        drop(write);
        let read = read.now_or_never().expect("it runs");
        drop(read);
        let write = client.wait_turn(needs(Tier::Write), 1).now_or_never();
        assert!(matches!(write, Some(Ok(_))));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_thousand_calls_wait_without_threads_and_all_run() {
        let scheduler = CallScheduler::new(ParallelLimit::new(4).expect("a limit"));
        let (running, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let clients: Vec<_> = (0..5).map(|_| Arc::new(scheduler.add_client())).collect();
        let calls: Vec<_> = (0..1000)
            .map(|n| {
                let client = Arc::clone(&clients[n % 5]);
                let (running, done) = (Arc::clone(&running), Arc::clone(&done));
                tokio::spawn(async move {
                    let tier = if n % 10 == 0 { Tier::Write } else { Tier::ReadOnly };
                    let turn = client.wait_turn(needs(tier), 10).await.expect("it fits");
                    let beside = running.fetch_add(1, Ordering::SeqCst);
                    assert!(beside < if tier == Tier::Write { 1 } else { 4 });
                    tokio::task::yield_now().await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                    drop(turn);
                })
            })
            .collect();
        for call in calls {
            call.await.expect("it ends");
        }
        assert_eq!(done.load(Ordering::SeqCst), 1000);
    }

    #[tokio::test]
    async fn the_calls_of_a_dropped_client_do_not_run() {
        let scheduler = CallScheduler::new(ParallelLimit::new(1).expect("a limit"));
        let (first, second) = (scheduler.add_client(), scheduler.add_client());
        let running = first.wait_turn(needs(Tier::Write), 1).await.expect("it runs");
        let waiting = second.wait_turn(needs(Tier::Write), 1).now_or_never();
        assert!(waiting.is_none());
        drop((second, running));
        assert!(first.wait_turn(needs(Tier::Write), 1).now_or_never().is_some());
    }
}
