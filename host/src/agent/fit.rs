//! Fitting the conversation into the model's window before each request.

use std::ops::ControlFlow;

use tokio_util::sync::CancellationToken;

use super::compact::Compacted;
use super::events::{Event, Fitting};
use super::outcome::Outcome;
use super::ports::ToolDefinition;
use super::request::Agent;
use crate::conversation::{Pruning, Transcript, estimate};

/// How much of a request was done already to make the conversation fit.
#[derive(Debug)]
pub(super) struct Fit {
    /// System prompt and tools, in estimated tokens.
    overhead: u64,
    /// The step that is to be taken next.
    next: Step,
    /// What was estimated of the request that is under way.
    asked: u64,
}

/// What can be done, in its order; each once in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Old results are left out as soon as that pays: a user who comes back finds the provider's cache cold anyway.
    Begin,
    /// When little room is left, the oldest part is summarised.
    Compact,
    /// When there is none left, or the provider says so, nearly all of it is.
    Force,
    /// Nothing more can be done.
    Done,
}

impl Fit {
    pub(super) fn new(agent: &Agent<'_>) -> Self {
        let tools: u64 = agent.tools.definitions().iter().map(ToolDefinition::tokens).sum();
        Self { overhead: tools + estimate::prompt(&agent.system), next: Step::Begin, asked: 0 }
    }

    /// The provider counted what was sent.
    pub(super) fn counted(&self, transcript: &mut Transcript, counted: Option<u64>) {
        if let Some(counted) = counted {
            transcript.learn(self.asked, counted);
        }
    }

    /// The next request as a whole, in tokens.
    fn estimate(&self, transcript: &Transcript) -> u64 {
        transcript.scale().apply(self.overhead + transcript.sent_tokens())
    }
}

impl Agent<'_> {
    /// Makes what is sent of the conversation small enough, as far as that can be had. What was added since the last time
    /// has to keep the rules: a conversation that breaks one is never sent.
    pub(super) async fn fit(&self, fit: &mut Fit, transcript: &mut Transcript, cancel: &CancellationToken) -> ControlFlow<Outcome> {
        if let Err(violation) = transcript.check() {
            let dump = serde_json::to_string(transcript).unwrap_or_else(|error| error.to_string());
            let message = format!("the conversation breaks a rule and was not sent: {violation}\n{dump}");
            return ControlFlow::Break(Outcome::InternalError { message });
        }
        let room = self.room();
        if fit.next == Step::Begin {
            self.prune(transcript);
            fit.next = Step::Compact;
        }
        if fit.next == Step::Compact && fit.estimate(transcript) > room.limit {
            self.prune(transcript);
        }
        if fit.next == Step::Compact && fit.estimate(transcript) > room.limit {
            fit.next = Step::Force;
            self.compact_or_say(room.keep, room.limit / 2, transcript, cancel).await?;
        }
        if fit.next == Step::Force && fit.estimate(transcript) > room.most {
            self.force(fit, transcript, cancel).await?;
        }
        fit.asked = fit.overhead + transcript.sent_tokens();
        ControlFlow::Continue(())
    }

    /// The provider says that the conversation is too large: once in a request, all that can be summarised is. Breaks with
    /// the numbers if that was done before.
    pub(super) async fn overflowed(
        &self,
        fit: &mut Fit,
        message: String,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> ControlFlow<Outcome> {
        let before = fit.estimate(transcript);
        if fit.next < Step::Done {
            self.force(fit, transcript, cancel).await?;
            if fit.estimate(transcript) < before {
                fit.asked = fit.overhead + transcript.sent_tokens();
                return ControlFlow::Continue(());
            }
        }
        let window = self.room().window;
        let message = format!(
            "{message} (about {before} tokens were sent, {} of them for system prompt and tools; the window is taken as {window}; \
             `context_window` under [provider] in the configuration says otherwise)",
            transcript.scale().apply(fit.overhead),
        );
        ControlFlow::Break(Outcome::Overflow { message })
    }

    async fn force(&self, fit: &mut Fit, transcript: &mut Transcript, cancel: &CancellationToken) -> ControlFlow<Outcome> {
        fit.next = Step::Done;
        let sent = transcript.scale().apply(transcript.sent_tokens());
        self.compact_or_say(self.room().keep.min(sent / 3), sent / 2, transcript, cancel).await
    }

    /// A summary that fails ends nothing: the request goes on with the conversation as it was.
    async fn compact_or_say(&self, keep: u64, most: u64, transcript: &mut Transcript, cancel: &CancellationToken) -> ControlFlow<Outcome> {
        match self.compact_keeping(keep, most, transcript, cancel).await {
            Compacted::Done { .. } | Compacted::Nothing => ControlFlow::Continue(()),
            Compacted::Failed { message } => {
                let notice = format!("The conversation is long and could not be summarised: {message}. It goes on as it is.");
                self.observer.observe(&Event::Notice(&notice));
                ControlFlow::Continue(())
            }
            Compacted::Aborted => ControlFlow::Break(Outcome::Aborted),
        }
    }

    fn prune(&self, transcript: &mut Transcript) {
        let (scale, pruning) = (transcript.scale(), self.room().pruning);
        let pruning = Pruning { protected: scale.undo(pruning.protected), least_gain: scale.undo(pruning.least_gain) };
        if let Some(pruned) = transcript.prune(pruning) {
            self.observer.observe(&Event::Fitting(Fitting::Pruned(pruned)));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;

    use super::super::events::Observer;
    use super::super::ports::{Delta, Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest, Ran, ToolDefinition, Tools};
    use super::super::time::ActiveTime;
    use super::super::{Interventions, RequestId, TurnLimit};
    use super::*;
    use crate::conversation::test_kit::broken;
    use crate::conversation::{OpenTurn, Response};

    /// A model that must not be asked, and tools that must not run.
    struct Untouched(ModelInfo, ActiveTime);

    impl Model for Untouched {
        fn info(&self) -> &ModelInfo {
            &self.0
        }

        fn respond<'a>(
            &'a self,
            _: ModelRequest<'a>,
            _: &'a mut (dyn FnMut(Delta<'_>) + Send),
            _: &'a CancellationToken,
        ) -> BoxFuture<'a, Result<Response, ModelError>> {
            Box::pin(async { Err(ModelError::new(ModelErrorKind::Rejected, "the model was asked")) })
        }
    }

    impl Tools for Untouched {
        fn definitions(&self) -> &[ToolDefinition] {
            &[]
        }

        fn time(&self) -> &ActiveTime {
            &self.1
        }

        fn run<'a>(&'a self, _: &'a mut OpenTurn, _: &'a dyn Observer, _: &'a CancellationToken) -> BoxFuture<'a, Ran> {
            Box::pin(async { Ran::Finished })
        }
    }

    impl Observer for Untouched {
        fn observe(&self, _: &Event<'_>) {}
    }

    #[tokio::test]
    async fn r060_a_conversation_that_breaks_a_rule_is_never_sent() {
        let info = ModelInfo { provider: "p".into(), model: "m".into(), address: None, context_window: 100_000, max_output: None };
        let untouched = Untouched(info, ActiveTime::default());
        let agent = Agent {
            model: &untouched,
            tools: &untouched,
            observer: &untouched,
            system: String::new(),
            turn_limit: TurnLimit::default(),
            time_limit: None,
            interventions: Interventions::default(),
        };
        let outcome = agent.request(&RequestId::new(1), &mut broken(), "Go on.", &CancellationToken::new()).await;
        let Outcome::InternalError { message } = outcome else { panic!("{outcome:?}") };
        assert!(message.contains("exchange 1, turn 0: the prompt is blank") && message.contains("\"exchanges\""), "{message}");
    }
}
