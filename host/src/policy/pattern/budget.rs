//! The work that one decision may spend on patterns.
//!
//! Anybody can have written the policy of a project, and a model writes the line that is held
//! against it. The work is counted in steps: about one for each character that is compared. When
//! they are used up, the remaining rules under `ask` and `deny` *might* cover the action, which is
//! enough to ask, and the remaining rules under `allow` do not cover it.

use std::cell::Cell;

/// Steps of one decision: under 50 ms in a release build, and 100 times what 1,000 patterns need
/// for a usual line.
pub(in crate::policy) const MOST_STEPS: u64 = 2_000_000;

/// A number of steps that gets smaller.
#[derive(Debug)]
pub(in crate::policy) struct MatchBudget(Cell<u64>);

impl MatchBudget {
    /// The budget of one decision.
    pub(in crate::policy) fn for_decision() -> Self {
        Self(Cell::new(MOST_STEPS))
    }

    /// A budget without an end, for a text that this program bounds in another way.
    pub(super) fn unlimited() -> Self {
        Self(Cell::new(u64::MAX))
    }

    /// Takes some steps. Returns whether there were enough of them.
    pub(super) fn spend(&self, steps: u64) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(steps));
        left > steps
    }

    /// Whether there are none left.
    pub(in crate::policy) fn is_spent(&self) -> bool {
        self.0.get() == 0
    }

    /// The steps that a decision has used.
    #[cfg(test)]
    pub(in crate::policy) fn used(&self) -> u64 {
        MOST_STEPS.saturating_sub(self.0.get())
    }
}
