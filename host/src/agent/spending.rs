//! What others take while they work for a call: it is part of what the request costs.

use std::sync::{Mutex, PoisonError};

use super::events::{Event, Observer};
use crate::conversation::Usage;

/// Notes what sub-agents take, and passes every event on.
pub(super) struct SubAgentTurns<'a> {
    to: &'a dyn Observer,
    usages: Mutex<Vec<Usage>>,
}

impl<'a> SubAgentTurns<'a> {
    pub(super) fn under(to: &'a dyn Observer) -> Self {
        Self { to, usages: Mutex::default() }
    }

    /// One for each turn, since each has a price of its own.
    pub(super) fn into_usages(self) -> Vec<Usage> {
        self.usages.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for SubAgentTurns<'_> {
    fn observe(&self, event: &Event<'_>) {
        if let Event::SubAgentTurn { usage, .. } = event {
            self.usages.lock().unwrap_or_else(PoisonError::into_inner).push(*usage);
        }
        self.to.observe(event);
    }

    fn is_live(&self) -> bool {
        self.to.is_live()
    }
}
