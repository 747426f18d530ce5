//! The slots of parallel calls.

use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::approval::lock;
use crate::agent::ParallelLimit;

/// The slots for parallel calls. Calls of sub-agents count together with those of the request that
/// started them: all clones share the same slots.
#[derive(Clone, Debug)]
pub struct ParallelCallSlots {
    limit: ParallelLimit,
    semaphore: Arc<Semaphore>,
}

/// A slot that is occupied until this value is dropped.
#[derive(Debug)]
pub(super) struct ParallelCallSlot {
    semaphore: Arc<Semaphore>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl From<ParallelLimit> for ParallelCallSlots {
    fn from(limit: ParallelLimit) -> Self {
        Self { limit, semaphore: Arc::new(Semaphore::new(limit.get())) }
    }
}

impl ParallelCallSlots {
    pub(super) fn limit(&self) -> usize {
        self.limit.get()
    }

    /// Waits for a free slot, in the order of arrival.
    pub(super) async fn acquire(&self) -> ParallelCallSlot {
        // The semaphore is never closed. Without a permit, the count would only be too low.
        let permit = Arc::clone(&self.semaphore).acquire_owned().await.ok();
        ParallelCallSlot { semaphore: Arc::clone(&self.semaphore), permit: Mutex::new(permit) }
    }
}

impl ParallelCallSlot {
    /// Releases the slot while the call waits for a sub-agent, and acquires one again afterwards.
    /// Otherwise calls that wait for sub-agents could occupy all slots, and the sub-agents would
    /// never run.
    pub(super) async fn release_during<T>(
        &self,
        cancel: &CancellationToken,
        meanwhile: impl Future<Output = T>,
    ) -> T {
        drop(lock(&self.permit).take());
        let value = meanwhile.await;
        tokio::select! {
            biased;
            permit = Arc::clone(&self.semaphore).acquire_owned() => {
                *lock(&self.permit) = permit.ok();
            }
            () = cancel.cancelled() => {}
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn r017_slots_are_shared_and_released_while_waiting_for_a_sub_agent() {
        use futures_util::FutureExt as _;
        let slots = ParallelCallSlots::from(ParallelLimit::new(1).expect("a limit"));
        let (other, cancel) = (slots.clone(), CancellationToken::new());
        let slot = slots.acquire().await;
        assert!(other.acquire().now_or_never().is_none());
        let taken =
            slot.release_during(&cancel, async { other.acquire().now_or_never() }).now_or_never();
        assert!(taken.is_none(), "the call waits while another call has the slot");
        let worked =
            slot.release_during(&cancel, async { drop(other.acquire().await) }).now_or_never();
        assert!(
            worked.is_some() && other.acquire().now_or_never().is_none(),
            "the call has its slot again"
        );
        drop(slot);
        assert!(other.acquire().now_or_never().is_some());
    }
}
