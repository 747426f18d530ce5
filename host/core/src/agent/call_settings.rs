//! The settings of the calls of a turn: how many run in parallel, and in which order.

use std::num::NonZeroUsize;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

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

impl FromStr for ParallelLimit {
    type Err = InvalidParallelLimit;

    fn from_str(text: &str) -> Result<Self, InvalidParallelLimit> {
        let number =
            text.trim().parse::<usize>().map_err(|_| InvalidParallelLimit(text.to_owned()))?;
        Self::new(number)
    }
}

/// How far reads may be moved ahead of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReorderPolicy {
    /// Moves a read only where it makes no difference. A read that follows a write in the model's
    /// order stays behind it, unless both name their paths and the paths are disjoint.
    #[default]
    Safe,
    /// Runs all research first, then all reads, then all writes.
    Always,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r018_zero_negative_and_words_are_refused() {
        for text in ["0", "-1", "two", "", "1.5", "65"] {
            let problem = text.parse::<ParallelLimit>().unwrap_err();
            assert!(problem.to_string().contains("from 1 to 64"), "{text}");
        }
        assert_eq!("8".parse::<ParallelLimit>().map(ParallelLimit::get), Ok(8));
    }
}
