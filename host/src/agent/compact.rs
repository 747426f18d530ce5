//! Letting a summary stand for the oldest part of the conversation.

use tokio_util::sync::CancellationToken;

use super::context_budget::ContextBudget;
use super::events::{AgentEvent, ContextFitting};
use super::ports::{ModelErrorKind, ModelRequest, ResponseDelta, ToolChoice};
use super::request::Agent;
use super::summarise;
use crate::conversation::{ModelResponse, StopReason, TokenUsage, Transcript, TurnIndex};

/// What became of an attempt to make the conversation shorter. Unless it is done, everything is as
/// it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactionOutcome {
    /// A summary stands for the oldest part.
    Done {
        /// How many turns are no longer sent.
        turns: usize,
        /// What was sent of the conversation before, in estimated tokens.
        before: u64,
        /// What is sent now.
        after: u64,
    },
    /// There is nothing that a summary could stand for.
    NothingToSummarise,
    /// There is no summary, or none that is of use.
    Failed {
        /// For the person at the terminal.
        message: String,
    },
    /// Cancelled.
    Aborted,
}

/// Why there is no summary, and what was paid for all the same.
struct SummaryFailure {
    outcome: CompactionOutcome,
    usage: Option<TokenUsage>,
}

impl Agent<'_> {
    /// Summarises what was said, however little it is, but for the newest turns. A session
    /// keeps it if the observer is one that records; in a request or between two makes no
    /// difference.
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

    /// How this model's window is divided.
    pub(super) fn context_budget(&self) -> ContextBudget {
        let info = self.model.info();
        ContextBudget::new(info.context_window, info.max_output)
    }

    /// Summarises all but the newest turns that have room in `keep` tokens; the very newest may
    /// take up to `most`.
    pub(super) async fn compact_to(
        &self,
        keep: u64,
        most: u64,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> CompactionOutcome {
        let scale = transcript.scale();
        let Some(place) = transcript.find_cut(scale.invert(keep), scale.invert(most)) else {
            return CompactionOutcome::NothingToSummarise;
        };
        self.observer.observe(&AgentEvent::ContextFitting(ContextFitting::Summarising));
        match self.request_summary(transcript, place, cancel).await {
            Ok(response) => self.apply_summary(transcript, place, &response),
            Err(SummaryFailure { outcome: why, usage }) => {
                usage.into_iter().for_each(|usage| self.record_discarded(transcript, usage));
                why
            }
        }
    }

    /// Asks for the words of a summary. The request is one of its own: the model sees the old part
    /// as a text, without tools, so that it cannot mistake it for work to go on with.
    async fn request_summary(
        &self,
        transcript: &Transcript,
        place: TurnIndex,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, SummaryFailure> {
        let room = self.context_budget();
        let mut task = Transcript::new();
        task.begin_exchange(summarise::summary_prompt(
            transcript,
            place,
            transcript.scale().invert(room.compact_threshold),
        ));
        let request = ModelRequest {
            system: summarise::SYSTEM_PROMPT,
            conversation: task.sent(),
            note: None,
            tools: &[],
            tool_choice: ToolChoice::None,
            is_shown_live: false,
        };
        // Its text is nobody's answer; that it takes another attempt is worth knowing.
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
        let useless = |why| {
            Err(SummaryFailure { outcome: compaction_failed(why), usage: Some(response.usage) })
        };
        match (response.text().trim(), &response.stop) {
            ("", _) => useless("the model gave an empty one"),
            (_, StopReason::Length) => useless("the model's ran into the limit on output"),
            (_, StopReason::Refused) => useless("the provider withheld it"),
            (_, StopReason::Interrupted) => useless("the model's broke off"),
            (_, StopReason::End | StopReason::Calls | StopReason::Other(_)) => Ok(response),
        }
    }

    fn apply_summary(
        &self,
        transcript: &mut Transcript,
        place: TurnIndex,
        response: &ModelResponse,
    ) -> CompactionOutcome {
        let (scale, before) = (transcript.scale(), transcript.sent_tokens());
        let turns_before = transcript.summary().map_or(0, |summary| summary.turns);
        let summary = transcript.summary_until(place, response.text().trim().to_owned());
        let turns = summary.turns.saturating_sub(turns_before);
        let is_shorter = transcript.apply_summary(summary);
        let Some(summary) = transcript.summary().filter(|_| is_shorter) else {
            self.record_discarded(transcript, response.usage);
            return compaction_failed("the model's was no shorter than what it would stand for");
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

fn compaction_failed(why: &str) -> CompactionOutcome {
    CompactionOutcome::Failed { message: why.to_owned() }
}
