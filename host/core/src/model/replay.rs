//! A model that plays a recording in order, whatever the requests are.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::recording::{PlayedResponse, RecordingError, parse};
use crate::agent::ports::{
    LanguageModel, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ResponseDelta,
};
use crate::conversation::{ModelReasoning, ModelResponse, ResponseBlock};

/// The context window, in tokens, of a recording that has none.
const DEFAULT_WINDOW: u64 = 200_000;

/// A model that plays a recording. `recording.rs` describes the format.
#[derive(Debug)]
pub struct ReplayModel {
    info: ModelInfo,
    responses: Vec<PlayedResponse>,
    next: AtomicUsize,
    pace: Duration,
}

#[derive(Clone, Copy)]
enum ReplayPacing {
    Text,
    Reasoning,
}

impl ReplayModel {
    /// Parses a recording.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a recording of the supported version.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let (header, played) = parse(text)?;
        let info = ModelInfo {
            provider: "replay".into(),
            model: header.model.unwrap_or_else(|| "recording".into()),
            address: None,
            context_window: header.context_window.unwrap_or(DEFAULT_WINDOW),
            max_output: None,
        };
        Ok(Self { info, responses: played, next: AtomicUsize::new(0), pace: Duration::ZERO })
    }

    /// Sets a pause after each piece, to imitate a real model.
    #[must_use]
    pub fn with_pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    async fn play(
        &self,
        on_delta: &mut (dyn FnMut(ResponseDelta<'_>) + Send),
        cancel: &CancellationToken,
    ) -> PlayedResponse {
        if cancel.is_cancelled() {
            return Err(ModelError::new(ModelErrorKind::Aborted, "cancelled"));
        }
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(played) = self.responses.get(n) else {
            let total = self.responses.len();
            let message = format!(
                "the recording has ended: it contains {total} responses, but response {} was \
                    requested; the conversation differs from the recorded one",
                n + 1
            );
            return Err(ModelError::new(ModelErrorKind::Rejected, message));
        };
        let mut sent_text = String::new();
        let response = match played {
            Ok(response) => response,
            Err(error) => {
                self.send_text(
                    &error.partial_text,
                    ReplayPacing::Text,
                    &mut sent_text,
                    on_delta,
                    cancel,
                )
                .await?;
                return Err(error.clone());
            }
        };
        for block in &response.blocks {
            match block {
                ResponseBlock::Text(text) => {
                    self.send_text(text, ReplayPacing::Text, &mut sent_text, on_delta, cancel)
                        .await?
                }
                ResponseBlock::Reasoning(ModelReasoning::Text { text, .. }) => {
                    self.send_text(text, ReplayPacing::Reasoning, &mut sent_text, on_delta, cancel)
                        .await?;
                }
                ResponseBlock::Reasoning(ModelReasoning::Sealed { summary, .. }) => {
                    self.send_text(
                        &summary.join("\n\n"),
                        ReplayPacing::Reasoning,
                        &mut sent_text,
                        on_delta,
                        cancel,
                    )
                    .await?;
                }
                ResponseBlock::Reasoning(ModelReasoning::Opaque { .. }) => {}
                ResponseBlock::Call(call) => on_delta(ResponseDelta::ToolCallStart(&call.name)),
            }
        }
        Ok(response.clone())
    }

    async fn send_text(
        &self,
        text: &str,
        pacing: ReplayPacing,
        sent_text: &mut String,
        on_delta: &mut (dyn FnMut(ResponseDelta<'_>) + Send),
        cancel: &CancellationToken,
    ) -> Result<(), ModelError> {
        for word in text.split_inclusive(' ') {
            match pacing {
                ReplayPacing::Text => {
                    sent_text.push_str(word);
                    on_delta(ResponseDelta::Text(word));
                }
                ReplayPacing::Reasoning => on_delta(ResponseDelta::Reasoning(word)),
            }
            if !self.pace.is_zero() {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => {}
                    () = sleep(self.pace) => {}
                }
            }
            if cancel.is_cancelled() {
                let partial_text = std::mem::take(sent_text);
                return Err(ModelError {
                    kind: ModelErrorKind::Aborted,
                    message: "cancelled".into(),
                    partial_text,
                });
            }
        }
        Ok(())
    }
}

impl LanguageModel for ReplayModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn respond<'a>(
        &'a self,
        _request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ResponseDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(self.play(on_delta, cancel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::test_server::{ModelProbe, empty_request};

    const TWO: &str = concat!(
        "{\"cofferdam_recording\": 1}\n",
        "{\"blocks\": [{\"text\": \"Let me look. \"}, {\"call\": {\"id\": \"toolu_7\", \"name\": \
            \"list_dir\"}}]}\n",
        "{\"blocks\": [{\"text\": \"Done.\"}]}\n",
    );

    #[tokio::test]
    async fn a_recording_is_played_in_order_with_its_ids() {
        let replay = ReplayModel::parse(TWO).expect("valid");
        let mut probe = ModelProbe::default();
        let first = probe
            .respond(&replay, empty_request(&crate::conversation::Transcript::new()))
            .await
            .expect("a response");
        assert_eq!(probe.deltas, ["text Let ", "text me ", "text look. ", "call list_dir"]);
        assert_eq!(first.calls().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["toolu_7"]);
        let second = probe
            .respond(&replay, empty_request(&crate::conversation::Transcript::new()))
            .await
            .expect("a response");
        assert_eq!(second.text(), "Done.");
        let over = probe
            .respond(&replay, empty_request(&crate::conversation::Transcript::new()))
            .await
            .expect_err("recording has ended");
        assert!(
            over.message.starts_with(
                "the recording has ended: it contains 2 responses, but response 3 was requested"
            ),
            "{over}"
        );
    }

    #[tokio::test]
    async fn r100_a_paced_recording_is_cancelled_between_words() {
        let replay = ReplayModel::parse(TWO).expect("valid").with_pace(Duration::from_secs(3600));
        let cancel = CancellationToken::new();
        let transcript = crate::conversation::Transcript::new();
        let mut on_delta = |_: ResponseDelta<'_>| cancel.cancel();
        let error = replay
            .respond(empty_request(&transcript), &mut on_delta, &cancel)
            .await
            .expect_err("cancelled");
        assert_eq!((error.kind, error.partial_text.as_str()), (ModelErrorKind::Aborted, "Let "));
    }
}
