//! The limit on parallel calls.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::approval::lock;

/// A limit on parallel calls, from 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelLimit(NonZeroUsize);

/// An error for a number that is not a valid limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid limit on parallel calls: use a whole number from 1 to 64")]
pub struct InvalidParallelLimit(String);

impl ParallelLimit {
    /// The largest limit. The pool of instances has this size.
    const MAX: usize = 64;

    /// Checks that a number is a valid limit.
    pub fn new(limit: usize) -> Result<Self, InvalidParallelLimit> {
        NonZeroUsize::new(limit)
            .filter(|n| n.get() <= Self::MAX)
            .map(Self)
            .ok_or_else(|| InvalidParallelLimit(limit.to_string()))
    }

    /// Returns the number of processors, or 4 if it is unknown.
    pub fn detect() -> Self {
        let processors = std::thread::available_parallelism().map_or(4, NonZeroUsize::get);
        Self(NonZeroUsize::new(processors.min(Self::MAX)).unwrap_or(NonZeroUsize::MIN))
    }

    /// Returns the limit as a number.
    pub fn get(self) -> usize {
        self.0.get()
    }
}

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

impl FromStr for ParallelLimit {
    type Err = InvalidParallelLimit;

    fn from_str(text: &str) -> Result<Self, InvalidParallelLimit> {
        let number =
            text.trim().parse::<usize>().map_err(|_| InvalidParallelLimit(text.to_owned()))?;
        Self::new(number)
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

    #[test]
    fn r018_zero_negative_and_words_are_refused() {
        for text in ["0", "-1", "two", "", "1.5", "65"] {
            let problem = text.parse::<ParallelLimit>().unwrap_err();
            assert!(problem.to_string().contains("from 1 to 64"), "{text}");
        }
        assert_eq!("8".parse::<ParallelLimit>().map(ParallelLimit::get), Ok(8));
    }
}
