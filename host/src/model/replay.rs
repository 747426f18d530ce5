//! A model that says what a recording says, line by line, whatever it is asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::recording::{Played, RecordingError, parse};
use crate::agent::ports::{Delta, Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest};
use crate::conversation::{Reasoning, Response, ResponseBlock};

/// The window of a recording that names none.
const WINDOW: u64 = 200_000;

/// Plays a recording. Its format is described in `recording.rs`.
#[derive(Debug)]
pub struct Replay {
    info: ModelInfo,
    played: Vec<Played>,
    next: AtomicUsize,
    pace: Duration,
}

#[derive(Clone, Copy)]
enum Voice {
    Aloud,
    Thinking,
}

impl Replay {
    /// Reads a recording; nothing of it is played yet.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let (header, played) = parse(text)?;
        let info = ModelInfo {
            provider: "replay".into(),
            model: header.model.unwrap_or_else(|| "recording".into()),
            address: None,
            context_window: header.context_window.unwrap_or(WINDOW),
            max_output: None,
        };
        Ok(Self { info, played, next: AtomicUsize::new(0), pace: Duration::ZERO })
    }

    /// Pauses this long after each piece, as a model would.
    #[must_use]
    pub fn paced(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    async fn play(&self, on_delta: &mut (dyn FnMut(Delta<'_>) + Send), cancel: &CancellationToken) -> Played {
        if cancel.is_cancelled() {
            return Err(ModelError::new(ModelErrorKind::Aborted, "cancelled"));
        }
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(played) = self.played.get(n) else {
            let total = self.played.len();
            let message = format!(
                "the recording is over: it holds {total} responses, and number {} was asked for. The conversation took another course than the recorded one.",
                n + 1
            );
            return Err(ModelError::new(ModelErrorKind::Rejected, message));
        };
        let mut said = String::new();
        let response = match played {
            Ok(response) => response,
            Err(error) => {
                self.say(&error.partial_text, Voice::Aloud, &mut said, on_delta, cancel).await?;
                return Err(error.clone());
            }
        };
        for block in &response.blocks {
            match block {
                ResponseBlock::Text(text) => self.say(text, Voice::Aloud, &mut said, on_delta, cancel).await?,
                ResponseBlock::Reasoning(Reasoning::Text { text, .. }) => {
                    self.say(text, Voice::Thinking, &mut said, on_delta, cancel).await?;
                }
                ResponseBlock::Reasoning(Reasoning::Sealed { summary, .. }) => {
                    self.say(&summary.join("\n\n"), Voice::Thinking, &mut said, on_delta, cancel).await?;
                }
                ResponseBlock::Reasoning(Reasoning::Opaque { .. }) => {}
                ResponseBlock::Call(call) => on_delta(Delta::CallBegun(&call.name)),
            }
        }
        Ok(response.clone())
    }

    async fn say(
        &self,
        text: &str,
        voice: Voice,
        said: &mut String,
        on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
        cancel: &CancellationToken,
    ) -> Result<(), ModelError> {
        for word in text.split_inclusive(' ') {
            match voice {
                Voice::Aloud => {
                    said.push_str(word);
                    on_delta(Delta::Text(word));
                }
                Voice::Thinking => on_delta(Delta::Reasoning(word)),
            }
            if !self.pace.is_zero() {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => {}
                    () = sleep(self.pace) => {}
                }
            }
            if cancel.is_cancelled() {
                let partial_text = std::mem::take(said);
                return Err(ModelError { kind: ModelErrorKind::Aborted, message: "cancelled".into(), partial_text });
            }
        }
        Ok(())
    }
}

impl Model for Replay {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn respond<'a>(
        &'a self,
        _request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Response, ModelError>> {
        Box::pin(self.play(on_delta, cancel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::test_server::{Heard, hello};

    const TWO: &str = concat!(
        "{\"cofferdam_recording\": 1}\n",
        "{\"blocks\": [{\"text\": \"Let me look. \"}, {\"call\": {\"id\": \"toolu_7\", \"name\": \"list_dir\"}}]}\n",
        "{\"blocks\": [{\"text\": \"Done.\"}]}\n",
    );

    #[tokio::test]
    async fn a_recording_is_played_in_order_with_its_ids() {
        let replay = Replay::parse(TWO).expect("it is valid");
        let mut heard = Heard::default();
        let first = heard.ask(&replay, hello(&crate::conversation::Transcript::new())).await.expect("a response");
        assert_eq!(heard.deltas, ["text Let ", "text me ", "text look. ", "call list_dir"]);
        assert_eq!(first.calls().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["toolu_7"]);
        let second = heard.ask(&replay, hello(&crate::conversation::Transcript::new())).await.expect("a response");
        assert_eq!(second.text(), "Done.");
        let over = heard.ask(&replay, hello(&crate::conversation::Transcript::new())).await.expect_err("it is over");
        assert!(over.message.starts_with("the recording is over: it holds 2 responses, and number 3 was asked for"), "{over}");
    }

    #[tokio::test]
    async fn r100_a_paced_recording_is_cancelled_between_words() {
        let replay = Replay::parse(TWO).expect("it is valid").paced(Duration::from_secs(3600));
        let cancel = CancellationToken::new();
        let transcript = crate::conversation::Transcript::new();
        let mut on_delta = |_: Delta<'_>| cancel.cancel();
        let error = replay.respond(hello(&transcript), &mut on_delta, &cancel).await.expect_err("cancelled");
        assert_eq!((error.kind, error.partial_text.as_str()), (ModelErrorKind::Aborted, "Let "));
    }
}
