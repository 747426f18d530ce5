//! Letting a summary stand for the oldest part of the conversation.

use tokio_util::sync::CancellationToken;

use super::events::{Event, Fitting};
use super::ports::{Delta, ModelErrorKind, ModelRequest, ToolChoice};
use super::request::Agent;
use super::room::Room;
use super::summarise;
use crate::conversation::{Place, Response, StopReason, Transcript, Usage};

/// What became of an attempt to make the conversation shorter. Unless it is done, everything is as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compacted {
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
    Nothing,
    /// There is no summary, or none that is of use.
    Failed {
        /// For the person at the terminal.
        message: String,
    },
    /// Cancelled.
    Aborted,
}

/// Why there is no summary, and what was paid for all the same.
struct NoSummary {
    why: Compacted,
    usage: Option<Usage>,
}

impl Agent<'_> {
    /// Summarises what was said, however little it is, but for the newest turns. A session keeps it if the observer
    /// is one that records; in a request or between two makes no difference.
    pub async fn compact(&self, transcript: &mut Transcript, cancel: &CancellationToken) -> Compacted {
        let keep = self.room().keep.min(transcript.scale().apply(transcript.sent_tokens()) / 4);
        self.compact_keeping(keep, keep, transcript, cancel).await
    }

    /// How this model's window is divided.
    pub(super) fn room(&self) -> Room {
        let info = self.model.info();
        Room::of(info.context_window, info.max_output)
    }

    /// Summarises all but the newest turns that have room in `keep` tokens; the very newest may take up to `most`.
    pub(super) async fn compact_keeping(&self, keep: u64, most: u64, transcript: &mut Transcript, cancel: &CancellationToken) -> Compacted {
        let scale = transcript.scale();
        let Some(place) = transcript.cut(scale.undo(keep), scale.undo(most)) else { return Compacted::Nothing };
        self.observer.observe(&Event::Fitting(Fitting::Summarising));
        match self.summary(transcript, place, cancel).await {
            Ok(response) => self.replace(transcript, place, &response),
            Err(NoSummary { why, usage }) => {
                usage.into_iter().for_each(|usage| self.discard(transcript, usage));
                why
            }
        }
    }

    /// Asks for the words of a summary. The request is one of its own: the model sees the old part as a text, without
    /// tools, so that it cannot mistake it for work to go on with.
    async fn summary(&self, transcript: &Transcript, place: Place, cancel: &CancellationToken) -> Result<Response, NoSummary> {
        let room = self.room();
        let mut task = Transcript::new();
        task.begin(summarise::task(transcript, place, transcript.scale().undo(room.limit)));
        let request = ModelRequest {
            system: summarise::SYSTEM,
            conversation: task.sent(),
            note: None,
            tools: &[],
            tool_choice: ToolChoice::None,
            is_shown_live: false,
        };
        // Its text is nobody's answer; that it takes another attempt is worth knowing.
        let mut on_delta = |delta: Delta<'_>| {
            if matches!(delta, Delta::Retry { .. }) {
                self.observer.observe(&Event::Delta(delta));
            }
        };
        let response = self.model.respond(request, &mut on_delta, cancel).await.map_err(|error| match error.kind {
            ModelErrorKind::Aborted => NoSummary { why: Compacted::Aborted, usage: None },
            ModelErrorKind::Overflow
            | ModelErrorKind::Transport
            | ModelErrorKind::Timeout
            | ModelErrorKind::Rejected
            | ModelErrorKind::Unavailable
            | ModelErrorKind::Malformed => NoSummary { why: Compacted::Failed { message: error.message }, usage: None },
        })?;
        let useless = |why| Err(NoSummary { why: failed(why), usage: Some(response.usage) });
        match (response.text().trim(), &response.stop) {
            ("", _) => useless("the model gave an empty one"),
            (_, StopReason::Length) => useless("the model's ran into the limit on output"),
            (_, StopReason::Refused) => useless("the provider withheld it"),
            (_, StopReason::Interrupted) => useless("the model's broke off"),
            (_, StopReason::End | StopReason::Calls | StopReason::Other(_)) => Ok(response),
        }
    }

    fn replace(&self, transcript: &mut Transcript, place: Place, response: &Response) -> Compacted {
        let (scale, before) = (transcript.scale(), transcript.sent_tokens());
        let turns_before = transcript.summary().map_or(0, |summary| summary.turns);
        let summary = transcript.summary_until(place, response.text().trim().to_owned());
        let turns = summary.turns.saturating_sub(turns_before);
        let is_shorter = transcript.summarise(summary);
        let Some(summary) = transcript.summary().filter(|_| is_shorter) else {
            self.discard(transcript, response.usage);
            return failed("the model's was no shorter than what it would stand for");
        };
        let tokens = (scale.apply(before), scale.apply(transcript.sent_tokens()));
        self.observer.observe(&Event::Fitting(Fitting::Summarised { summary, tokens, usage: response.usage }));
        transcript.spend(response.usage);
        Compacted::Done { turns, before: tokens.0, after: tokens.1 }
    }
}

fn failed(why: &str) -> Compacted {
    Compacted::Failed { message: why.to_owned() }
}
