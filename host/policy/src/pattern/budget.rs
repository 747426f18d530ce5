//! The work budget of one decision.
//!
//! The policy of a project can come from anyone, and a model writes the line that is matched
//! against it. The work is counted in steps, about one for each compared character. After the last
//! step, the remaining `ask` and `deny` rules *might* cover the action, so it needs approval. The
//! remaining `allow` rules do not cover it.

use std::cell::Cell;

/// The number of steps in one decision. They take less than 50 ms in a release build, and are 100
/// times as many as 1,000 patterns need for a usual line.
pub(crate) const MOST_STEPS: u64 = 2_000_000;

/// A counter of the remaining steps.
#[derive(Debug)]
pub(crate) struct MatchBudget(Cell<u64>);

impl MatchBudget {
    /// Creates the budget of one decision.
    pub(crate) fn for_decision() -> Self {
        Self(Cell::new(MOST_STEPS))
    }

    /// Creates an unlimited budget, for texts that are limited elsewhere.
    pub(super) fn unlimited() -> Self {
        Self(Cell::new(u64::MAX))
    }

    /// Uses some steps. Returns `false` if they exhaust the budget.
    pub(super) fn spend(&self, steps: u64) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(steps));
        left > steps
    }

    /// Returns whether no steps remain.
    pub(crate) fn is_spent(&self) -> bool {
        self.0.get() == 0
    }

    /// Returns the number of steps used so far.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        MOST_STEPS.saturating_sub(self.0.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_exhausts_the_budget() {
        let budget = MatchBudget::for_decision();
        assert!(budget.spend(MOST_STEPS - 1) && !budget.is_spent());
        assert!(!budget.spend(1) && budget.is_spent());
        assert_eq!(budget.used(), MOST_STEPS);
    }
}
