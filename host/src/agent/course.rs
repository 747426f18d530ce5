//! What a request has come to so far: set once when it begins, and never taken back.

use super::budget::Budget;
use super::fit::Fit;
use super::interventions::{Came, Policies, Record};
use super::outcome::Outcome;
use super::ports::ToolChoice;
use super::request::Agent;
use crate::conversation::{StopReason, Turn};

/// The course of one request.
pub(super) struct Course {
    budget: Budget,
    pub(super) fit: Fit,
    policies: Policies,
    record: Record,
}

impl Course {
    pub(super) fn new(agent: &Agent<'_>) -> Self {
        let budget = Budget::new(agent.turn_limit);
        let record = Record { coming: 0, choice: budget.tool_choice(), limit: budget.limit(), turns: Vec::new() };
        Self { fit: Fit::new(agent), policies: Policies::new(agent.interventions), budget, record }
    }

    /// The next turn, with its number. After the last turn with calls the model is asked once more, without the choice of
    /// calling anything.
    pub(super) fn next_turn(&mut self) -> u32 {
        self.record.coming = self.record.coming.saturating_add(1);
        self.record.choice = self.budget.tool_choice();
        self.record.coming
    }

    /// Whether the model may call anything in this turn.
    pub(super) fn choice(&self) -> ToolChoice {
        self.record.choice
    }

    /// The host's remark for this turn.
    pub(super) fn note(&mut self) -> Option<String> {
        self.policies.note(&self.record)
    }

    /// A turn with calls that were run, or answered in another way.
    pub(super) fn worked(&mut self, turn: &Turn) {
        self.budget.spend();
        self.record.turns.extend(turn.calls().last().map(|answered| Came::Ran {
            tool: answered.call.name.clone(),
            arguments: answered.call.arguments.clone(),
            status: answered.result.status,
        }));
    }

    /// A turn whose calls were cut off.
    pub(super) fn was_cut_off(&mut self) {
        self.budget.spend();
        self.record.turns.push(Came::CutOff);
    }

    /// A turn in which nothing was said. Says whether the one before it was of that kind too.
    pub(super) fn was_empty(&mut self, stop: &StopReason) -> bool {
        let again = matches!(self.record.turns.last(), Some(Came::Nothing { .. }));
        self.record.turns.push(Came::Nothing { at_limit: *stop == StopReason::Length });
        again
    }

    /// The end of a request with these last words.
    pub(super) fn over(&self, text: String) -> Outcome {
        match self.choice() {
            ToolChoice::Auto => Outcome::Answered { text },
            ToolChoice::None => Outcome::Limit { text, turns: self.budget.limit() },
        }
    }
}
