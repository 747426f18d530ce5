//! The tokens that sub-agents take; they are part of the cost of a request.

use std::sync::{Mutex, PoisonError};

use super::events::{AgentEvent, Observer};
use crate::conversation::TokenUsage;

/// An observer that records the tokens of sub-agents and passes every event on.
pub(super) struct SubAgentTurns<'a> {
    inner: &'a dyn Observer,
    usages: Mutex<Vec<TokenUsage>>,
}

impl<'a> SubAgentTurns<'a> {
    pub(super) fn new(inner: &'a dyn Observer) -> Self {
        Self { inner, usages: Mutex::default() }
    }

    /// Returns the tokens of each turn.
    ///
    /// Turns are not summed up, since each has a price of its own.
    pub(super) fn into_usages(self) -> Vec<TokenUsage> {
        self.usages.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for SubAgentTurns<'_> {
    fn observe(&self, event: &AgentEvent<'_>) {
        if let AgentEvent::SubAgentTurn { usage, .. } = event {
            self.usages.lock().unwrap_or_else(PoisonError::into_inner).push(*usage);
        }
        self.inner.observe(event);
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }
}
