//! How many calls may run at the same time.

use std::num::NonZeroUsize;
use std::str::FromStr;

/// At least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelLimit(NonZeroUsize);

/// No such number.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a limit on parallel calls: use a whole number from 1 to 64")]
pub struct InvalidParallelLimit(String);

impl ParallelLimit {
    /// More calls than this never run at once; instances come from a pool of this size.
    const MOST: usize = 64;

    /// Checks a number.
    pub fn new(limit: usize) -> Result<Self, InvalidParallelLimit> {
        NonZeroUsize::new(limit).filter(|n| n.get() <= Self::MOST).map(Self).ok_or_else(|| InvalidParallelLimit(limit.to_string()))
    }

    /// As many as there are processors, else four.
    pub fn of_this_machine() -> Self {
        let processors = std::thread::available_parallelism().map_or(4, NonZeroUsize::get);
        Self(NonZeroUsize::new(processors.min(Self::MOST)).unwrap_or(NonZeroUsize::MIN))
    }

    /// The number.
    pub fn get(self) -> usize {
        self.0.get()
    }
}

impl FromStr for ParallelLimit {
    type Err = InvalidParallelLimit;

    fn from_str(text: &str) -> Result<Self, InvalidParallelLimit> {
        let number = text.trim().parse::<usize>().map_err(|_| InvalidParallelLimit(text.to_owned()))?;
        Self::new(number)
    }
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
