//! Compaction: replacing the oldest part of the conversation with a summary.

use tokio_util::sync::CancellationToken;

use super::context_budget::ContextBudget;
use super::events::{AgentEvent, ContextFitting};
use super::ports::{ModelErrorKind, ModelRequest, ResponseDelta, ToolChoice};
use super::request::Agent;
use super::summarise;
use crate::conversation::{ModelResponse, StopReason, TokenUsage, Transcript, TurnIndex};

/// The outcome of an attempt to compact the conversation.
///
/// Every outcome but `Done` leaves the conversation unchanged.
///
/// This enum is closed: a program has to report each outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactionOutcome {
    /// A summary replaces the oldest part in what is sent.
    Done {
        /// The number of turns that are no longer sent.
        turns: usize,
        /// The size of what was sent before, in estimated tokens.
        before: u64,
        /// The size of what is sent now, in estimated tokens.
        after: u64,
    },
    /// The conversation has no part that a summary could replace.
    NothingToSummarise,
    /// The model gave no summary, or one that cannot be used.
    Failed {
        /// The reason, written for the user.
        message: String,
    },
    /// The user cancelled the compaction.
    Aborted,
}

/// The reason why there is no summary, and the tokens that were billed for the attempt.
struct SummaryFailure {
    outcome: CompactionOutcome,
    usage: Option<TokenUsage>,
}

impl Agent<'_> {
    /// Summarises all but the newest turns, however short the conversation is.
    ///
    /// It can be called during a request or between two. The session log contains the summary if
    /// the observer records events.
    pub async fn compact(
        &self,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> CompactionOutcome {
        let keep = self
            .context_budget()
            .keep_tokens
            .min(transcript.scale().apply(transcript.sent_tokens()) / 4);
        self.compact_to(keep, keep, transcript, cancel).await
    }

    /// Returns how this model's context window is divided.
    pub(super) fn context_budget(&self) -> ContextBudget {
        let info = self.model.info();
        ContextBudget::new(info.context_window, info.max_output)
    }

    /// Summarises all but the newest turns that fit into `keep` tokens.
    ///
    /// The very newest turn may take up to `newest_limit` tokens.
    pub(super) async fn compact_to(
        &self,
        keep: u64,
        newest_limit: u64,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> CompactionOutcome {
        let scale = transcript.scale();
        let Some(cut) = transcript.find_cut(scale.invert(keep), scale.invert(newest_limit)) else {
            return CompactionOutcome::NothingToSummarise;
        };
        self.observer.observe(&AgentEvent::ContextFitting(ContextFitting::Summarising));
        match self.request_summary(transcript, cut, cancel).await {
            Ok(response) => self.apply_summary(transcript, cut, &response),
            Err(SummaryFailure { outcome, usage }) => {
                if let Some(usage) = usage {
                    self.record_discarded(transcript, usage);
                }
                outcome
            }
        }
    }

    /// Asks the model for the text of a summary, in a separate request.
    ///
    /// The model sees the old part as plain text and has no tools, so that it does not continue the
    /// task itself.
    async fn request_summary(
        &self,
        transcript: &Transcript,
        cut: TurnIndex,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, SummaryFailure> {
        let budget = self.context_budget();
        let mut task = Transcript::new();
        task.begin_exchange(summarise::summary_prompt(
            transcript,
            cut,
            transcript.scale().invert(budget.compact_threshold),
        ));
        let request = ModelRequest {
            system: summarise::SYSTEM_PROMPT,
            conversation: task.sent(),
            note: None,
            tools: &[],
            tool_choice: ToolChoice::None,
            is_shown_live: false,
        };
        // The text of a summary is not shown to the user, but retries are.
        let mut on_delta = |delta: ResponseDelta<'_>| {
            if matches!(delta, ResponseDelta::Retry { .. }) {
                self.observer.observe(&AgentEvent::Delta(delta));
            }
        };
        let response = self.model.respond(request, &mut on_delta, cancel).await.map_err(
            |error| match error.kind {
                ModelErrorKind::Aborted => {
                    SummaryFailure { outcome: CompactionOutcome::Aborted, usage: None }
                }
                ModelErrorKind::Overflow
                | ModelErrorKind::Transport
                | ModelErrorKind::Timeout
                | ModelErrorKind::Rejected
                | ModelErrorKind::Unavailable
                | ModelErrorKind::Malformed => SummaryFailure {
                    outcome: CompactionOutcome::Failed { message: error.message },
                    usage: None,
                },
            },
        )?;
        let useless = |reason| {
            Err(SummaryFailure { outcome: compaction_failed(reason), usage: Some(response.usage) })
        };
        match (response.text().trim(), &response.stop) {
            ("", _) => useless("the summary was empty"),
            (_, StopReason::Length) => useless("the summary reached the output limit"),
            (_, StopReason::Refused) => useless("the provider withheld the summary"),
            (_, StopReason::Interrupted) => useless("the summary was interrupted"),
            (_, StopReason::End | StopReason::Calls | StopReason::Other(_)) => Ok(response),
        }
    }

    fn apply_summary(
        &self,
        transcript: &mut Transcript,
        cut: TurnIndex,
        response: &ModelResponse,
    ) -> CompactionOutcome {
        let (scale, before) = (transcript.scale(), transcript.sent_tokens());
        let turns_before = transcript.summary().map_or(0, |summary| summary.turns);
        let summary = transcript.summary_until(cut, response.text().trim().to_owned());
        let turns = summary.turns.saturating_sub(turns_before);
        let is_shorter = transcript.apply_summary(summary);
        let Some(summary) = transcript.summary().filter(|_| is_shorter) else {
            self.record_discarded(transcript, response.usage);
            return compaction_failed("the summary was no shorter than the turns that it replaces");
        };
        let tokens = (scale.apply(before), scale.apply(transcript.sent_tokens()));
        self.observer.observe(&AgentEvent::ContextFitting(ContextFitting::Summarised {
            summary,
            tokens,
            usage: response.usage,
        }));
        transcript.add_usage(response.usage);
        CompactionOutcome::Done { turns, before: tokens.0, after: tokens.1 }
    }
}

fn compaction_failed(reason: &str) -> CompactionOutcome {
    CompactionOutcome::Failed { message: reason.to_owned() }
}
