//! What a request has come to so far: set once when it begins, and never taken back.

use super::budget::TurnBudget;
use super::fit::FitProgress;
use super::interventions::{ActiveInterventions, RequestProgress, TurnSummary};
use super::outcome::RequestOutcome;
use super::ports::ToolChoice;
use super::request::Agent;
use crate::conversation::{AssistantTurn, StopReason};

/// The course of one request.
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

    /// The next turn, with its number. After the last turn with calls the model is asked once more,
    /// without the choice of calling anything.
    pub(super) fn next_turn(&mut self) -> u32 {
        self.progress.turn = self.progress.turn.saturating_add(1);
        self.progress.tool_choice = self.budget.tool_choice();
        self.progress.turn
    }

    /// Whether the model may call anything in this turn.
    pub(super) fn tool_choice(&self) -> ToolChoice {
        self.progress.tool_choice
    }

    /// The host's remark for this turn.
    pub(super) fn note(&mut self) -> Option<String> {
        self.interventions.note(&self.progress)
    }

    /// A turn with calls that were run, or answered in another way.
    pub(super) fn record_calls(&mut self, turn: &AssistantTurn) {
        self.budget.record_turn();
        self.progress.turns.extend(turn.calls().last().map(|answered| TurnSummary::CallsRun {
            tool: answered.call.name.clone(),
            arguments: answered.call.arguments.clone(),
            status: answered.result.status,
        }));
    }

    /// A turn whose calls were cut off.
    pub(super) fn record_truncated(&mut self) {
        self.budget.record_turn();
        self.progress.turns.push(TurnSummary::Truncated);
    }

    /// A turn in which nothing was said. Says whether the one before it was of that kind too.
    pub(super) fn record_empty(&mut self, stop: &StopReason) -> bool {
        let again = matches!(self.progress.turns.last(), Some(TurnSummary::Empty { .. }));
        self.progress.turns.push(TurnSummary::Empty { at_limit: *stop == StopReason::Length });
        again
    }

    /// The end of a request with these last words.
    pub(super) fn finish(&self, text: String) -> RequestOutcome {
        match self.tool_choice() {
            ToolChoice::Auto => RequestOutcome::Answered { text },
            ToolChoice::None => RequestOutcome::Limit { text, turns: self.budget.limit() },
        }
    }
}
