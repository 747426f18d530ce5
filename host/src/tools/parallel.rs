//! How many calls may run at the same time.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::approval::lock;

/// At least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelLimit(NonZeroUsize);

/// No such number.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a limit on parallel calls: use a whole number from 1 to 64")]
pub struct InvalidParallelLimit(String);

impl ParallelLimit {
    /// More calls than this never run at once; instances come from a pool of this size.
    const MAX: usize = 64;

    /// Checks a number.
    pub fn new(limit: usize) -> Result<Self, InvalidParallelLimit> {
        NonZeroUsize::new(limit)
            .filter(|n| n.get() <= Self::MAX)
            .map(Self)
            .ok_or_else(|| InvalidParallelLimit(limit.to_string()))
    }

    /// As many as there are processors, else four.
    pub fn detect() -> Self {
        let processors = std::thread::available_parallelism().map_or(4, NonZeroUsize::get);
        Self(NonZeroUsize::new(processors.min(Self::MAX)).unwrap_or(NonZeroUsize::MIN))
    }

    /// The number.
    pub fn get(self) -> usize {
        self.0.get()
    }
}

/// So many calls at the same time, whoever asks for them: those of sub-agents count with those of
/// the request that they work for. All clones are the same slots.
#[derive(Clone, Debug)]
pub struct ParallelCallSlots {
    limit: ParallelLimit,
    semaphore: Arc<Semaphore>,
}

/// One call may run as long as this lives.
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

    /// Waits for a free slot, first come, first served.
    pub(super) async fn acquire(&self) -> ParallelCallSlot {
        // Nobody closes it; without a permit a call would only be counted too low.
        let permit = Arc::clone(&self.semaphore).acquire_owned().await.ok();
        ParallelCallSlot { semaphore: Arc::clone(&self.semaphore), permit: Mutex::new(permit) }
    }
}

impl ParallelCallSlot {
    /// Leaves the slot to others while the call only waits for them, and takes one again
    /// afterwards. Held by all who wait for sub-agents, the slots would be free for none of them.
    pub(super) async fn release_during<T>(
        &self,
        cancel: &CancellationToken,
        meanwhile: impl Future<Output = T>,
    ) -> T {
        drop(lock(&self.permit).take());
        let value = meanwhile.await;
        tokio::select! {
            biased;
            permit = Arc::clone(&self.semaphore).acquire_owned() => *lock(&self.permit) = permit.ok(),
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
    async fn r017_slots_are_shared_and_who_waits_for_a_sub_agent_holds_none() {
        use futures_util::FutureExt as _;
        let slots = ParallelCallSlots::from(ParallelLimit::new(1).expect("a limit"));
        let (theirs, cancel) = (slots.clone(), CancellationToken::new());
        let slot = slots.acquire().await;
        assert!(theirs.acquire().now_or_never().is_none());
        let taken =
            slot.release_during(&cancel, async { theirs.acquire().now_or_never() }).now_or_never();
        assert!(taken.is_none(), "it waits for its slot while another has it");
        let worked =
            slot.release_during(&cancel, async { drop(theirs.acquire().await) }).now_or_never();
        assert!(
            worked.is_some() && theirs.acquire().now_or_never().is_none(),
            "it has its slot again"
        );
        drop(slot);
        assert!(theirs.acquire().now_or_never().is_some());
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
