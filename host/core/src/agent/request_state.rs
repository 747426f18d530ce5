//! The state of a request, created when it begins and never reset.

use super::budget::TurnBudget;
use super::fit::FitProgress;
use super::interventions::{ActiveInterventions, RequestProgress, TurnSummary};
use super::outcome::RequestOutcome;
use super::ports::ToolChoice;
use super::request::Agent;
use crate::conversation::{AssistantTurn, StopReason};

/// The state of one request: its budget, its fitting steps and its progress.
pub(super) struct RequestState {
    budget: TurnBudget,
    pub(super) fit_progress: FitProgress,
    interventions: ActiveInterventions,
    progress: RequestProgress,
}

impl RequestState {
    pub(super) fn new(agent: &Agent<'_>) -> Self {
        let budget = TurnBudget::new(agent.turn_limit);
        let progress = RequestProgress {
            turn: 0,
            tool_choice: budget.tool_choice(),
            turn_limit: budget.limit(),
            turns: Vec::new(),
        };
        Self {
            fit_progress: FitProgress::new(agent),
            interventions: ActiveInterventions::new(agent.interventions),
            budget,
            progress,
        }
    }

    /// Begins the next turn and returns its number.
    ///
    /// When the turn limit is reached, the model is asked once more, without the choice to call
    /// tools.
    pub(super) fn next_turn(&mut self) -> u32 {
        self.progress.turn = self.progress.turn.saturating_add(1);
        self.progress.tool_choice = self.budget.tool_choice();
        self.progress.turn
    }

    /// Returns whether the model may call tools in this turn.
    pub(super) fn tool_choice(&self) -> ToolChoice {
        self.progress.tool_choice
    }

    /// Returns the host's note for this turn, if one is due.
    pub(super) fn note(&mut self) -> Option<String> {
        self.interventions.note(&self.progress)
    }

    /// Records a turn whose calls were run or otherwise got results.
    pub(super) fn record_calls(&mut self, turn: &AssistantTurn) {
        self.budget.record_turn();
        self.progress.turns.extend(turn.calls().last().map(|answered| TurnSummary::CallsRun {
            tool: answered.call.name.clone(),
            arguments: answered.call.arguments.clone(),
            status: answered.result.status,
        }));
    }

    /// Records a turn whose calls were cut off.
    pub(super) fn record_truncated(&mut self) {
        self.budget.record_turn();
        self.progress.turns.push(TurnSummary::Truncated);
    }

    /// Records an empty response.
    ///
    /// Returns whether the previous response was empty too.
    pub(super) fn record_empty(&mut self, stop: &StopReason) -> bool {
        let previous_was_empty =
            matches!(self.progress.turns.last(), Some(TurnSummary::Empty { .. }));
        self.progress.turns.push(TurnSummary::Empty { at_limit: *stop == StopReason::Length });
        previous_was_empty
    }

    /// Returns the outcome of a request that ends with this text.
    pub(super) fn finish(&self, text: String) -> RequestOutcome {
        match self.tool_choice() {
            ToolChoice::Auto => RequestOutcome::Answered { text },
            ToolChoice::None => RequestOutcome::Limit { text, turns: self.budget.limit() },
        }
    }
}
