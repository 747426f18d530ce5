//! Fitting of the conversation into the model's context window before each request.

use std::ops::ControlFlow;

use tokio_util::sync::CancellationToken;

use super::compact::CompactionOutcome;
use super::events::{AgentEvent, ContextFitting};
use super::outcome::RequestOutcome;
use super::ports::ToolDefinition;
use super::request::Agent;
use crate::conversation::{PruneLimits, Transcript, estimate};

/// The steps that this request has already taken to make the conversation fit.
#[derive(Debug)]
pub(super) struct FitProgress {
    /// The size of the system prompt and the tool definitions, in estimated tokens.
    overhead: u64,
    /// The next step to take.
    next_step: ContextFitStep,
    /// The estimated size of the model request that is under way, before scaling.
    sent_estimate: u64,
}

/// A step that makes the conversation fit, each taken once per request in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ContextFitStep {
    /// Leave out old results as soon as that saves enough.
    ///
    /// At the start of a request the provider's cache has usually expired, so this costs little.
    Prune,
    /// Summarise the oldest part when little room is left.
    Compact,
    /// Summarise nearly everything when no room is left, or when the provider says so.
    ForceCompact,
    /// There is no further step to take.
    Done,
}

impl FitProgress {
    pub(super) fn new(agent: &Agent<'_>) -> Self {
        let tools: u64 = agent.tools.definitions().iter().map(ToolDefinition::tokens).sum();
        Self {
            overhead: tools + estimate::prompt(&agent.system),
            next_step: ContextFitStep::Prune,
            sent_estimate: 0,
        }
    }

    /// Corrects the estimates of the transcript by the number of tokens that the provider counted.
    pub(super) fn calibrate(&self, transcript: &mut Transcript, counted: Option<u64>) {
        if let Some(counted) = counted {
            transcript.calibrate(self.sent_estimate, counted);
        }
    }

    /// Returns the size of the whole next request, in tokens.
    fn estimate(&self, transcript: &Transcript) -> u64 {
        transcript.scale().apply(self.overhead + transcript.sent_tokens())
    }
}

impl Agent<'_> {
    /// Makes the part of the conversation that is sent small enough, as far as possible.
    ///
    /// It first checks the turns that were added since the last request. A conversation that breaks
    /// a rule is never sent: the request ends with an internal error.
    pub(super) async fn fit_context(
        &self,
        fit: &mut FitProgress,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> ControlFlow<RequestOutcome> {
        if let Err(violation) = transcript.check() {
            let dump = serde_json::to_string(transcript).unwrap_or_else(|error| error.to_string());
            let message =
                format!("the conversation is invalid and was not sent: {violation}\n{dump}");
            return ControlFlow::Break(RequestOutcome::InternalError { message });
        }
        let budget = self.context_budget();
        if fit.next_step == ContextFitStep::Prune {
            self.prune(transcript);
            fit.next_step = ContextFitStep::Compact;
        }
        if fit.next_step == ContextFitStep::Compact
            && fit.estimate(transcript) > budget.compact_threshold
        {
            self.prune(transcript);
        }
        if fit.next_step == ContextFitStep::Compact
            && fit.estimate(transcript) > budget.compact_threshold
        {
            fit.next_step = ContextFitStep::ForceCompact;
            self.compact_or_notify(
                budget.keep_tokens,
                budget.compact_threshold / 2,
                transcript,
                cancel,
            )
            .await?;
        }
        if fit.next_step == ContextFitStep::ForceCompact
            && fit.estimate(transcript) > budget.max_request
        {
            self.force_compact(fit, transcript, cancel).await?;
        }
        fit.sent_estimate = fit.overhead + transcript.sent_tokens();
        ControlFlow::Continue(())
    }

    /// Reacts to a provider that says that the conversation is too large.
    ///
    /// Once per request, it summarises as much as possible. After that it breaks with an overflow
    /// and the figures.
    pub(super) async fn handle_overflow(
        &self,
        fit: &mut FitProgress,
        message: String,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> ControlFlow<RequestOutcome> {
        let before = fit.estimate(transcript);
        if fit.next_step < ContextFitStep::Done {
            self.force_compact(fit, transcript, cancel).await?;
            if fit.estimate(transcript) < before {
                fit.sent_estimate = fit.overhead + transcript.sent_tokens();
                return ControlFlow::Continue(());
            }
        }
        let window = self.context_budget().window;
        let message = format!(
            "{message} (about {before} tokens were sent, {} of them for system prompt and tools; \
                the assumed context window is {window} tokens; set `context_window` under \
                [provider] in the configuration to change it)",
            transcript.scale().apply(fit.overhead),
        );
        ControlFlow::Break(RequestOutcome::Overflow { message })
    }

    async fn force_compact(
        &self,
        fit: &mut FitProgress,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> ControlFlow<RequestOutcome> {
        fit.next_step = ContextFitStep::Done;
        let sent = transcript.scale().apply(transcript.sent_tokens());
        self.compact_or_notify(
            self.context_budget().keep_tokens.min(sent / 3),
            sent / 2,
            transcript,
            cancel,
        )
        .await
    }

    /// Compacts the conversation, and reports a failure as a notice.
    ///
    /// A failed summary does not end the request, which continues with the unchanged conversation
    ///
    async fn compact_or_notify(
        &self,
        keep: u64,
        newest_limit: u64,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> ControlFlow<RequestOutcome> {
        match self.compact_to(keep, newest_limit, transcript, cancel).await {
            CompactionOutcome::Done { .. } | CompactionOutcome::NothingToSummarise => {
                ControlFlow::Continue(())
            }
            CompactionOutcome::Failed { message } => {
                // A notice has one line, so the hint of the error is left out.
                let problem = message.lines().next().unwrap_or_default();
                let notice = format!(
                    "The conversation is long and could not be summarised: {problem}. It continues \
                        unchanged."
                );
                self.observer.observe(&AgentEvent::Notice(&notice));
                ControlFlow::Continue(())
            }
            CompactionOutcome::Aborted => ControlFlow::Break(RequestOutcome::Aborted),
        }
    }

    fn prune(&self, transcript: &mut Transcript) {
        let (scale, pruning) = (transcript.scale(), self.context_budget().pruning);
        let pruning = PruneLimits {
            protected_tokens: scale.invert(pruning.protected_tokens),
            min_gain: scale.invert(pruning.min_gain),
        };
        if let Some(pruned) = transcript.prune(pruning) {
            self.observer.observe(&AgentEvent::ContextFitting(ContextFitting::Pruned(pruned)));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;

    use super::super::active_time::ActiveTime;
    use super::super::events::Observer;
    use super::super::ports::{
        LanguageModel, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ResponseDelta,
        RunOutcome, ToolDefinition, ToolRunner,
    };
    use super::super::{InterventionSettings, RequestId, TurnLimit};
    use super::*;
    use crate::conversation::test_util::invalid_transcript;
    use crate::conversation::{ModelResponse, OpenTurn};

    /// A model and tools that fail the test when they are used.
    struct ForbiddenPorts(ModelInfo, ActiveTime);

    impl LanguageModel for ForbiddenPorts {
        fn info(&self) -> &ModelInfo {
            &self.0
        }

        fn respond<'a>(
            &'a self,
            _: ModelRequest<'a>,
            _: &'a mut (dyn FnMut(ResponseDelta<'_>) + Send),
            _: &'a CancellationToken,
        ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
            Box::pin(async {
                Err(ModelError::new(ModelErrorKind::Rejected, "the model must not be called"))
            })
        }
    }

    impl ToolRunner for ForbiddenPorts {
        fn definitions(&self) -> &[ToolDefinition] {
            &[]
        }

        fn active_time(&self) -> &ActiveTime {
            &self.1
        }

        fn run<'a>(
            &'a self,
            _: &'a mut OpenTurn,
            _: &'a dyn Observer,
            _: &'a CancellationToken,
        ) -> BoxFuture<'a, RunOutcome> {
            Box::pin(async { RunOutcome::Finished })
        }
    }

    impl Observer for ForbiddenPorts {
        fn observe(&self, _: &AgentEvent<'_>) {}
    }

    #[tokio::test]
    async fn r060_a_conversation_that_breaks_a_rule_is_never_sent() {
        let info = ModelInfo {
            provider: "p".into(),
            model: "m".into(),
            address: None,
            context_window: 100_000,
            max_output: None,
        };
        let forbidden = ForbiddenPorts(info, ActiveTime::default());
        let agent = Agent {
            model: &forbidden,
            tools: &forbidden,
            observer: &forbidden,
            system: String::new(),
            turn_limit: TurnLimit::default(),
            time_limit: None,
            interventions: InterventionSettings::default(),
        };
        let outcome = agent
            .run_request(
                &RequestId::new(1),
                &mut invalid_transcript(),
                "Go on.",
                &CancellationToken::new(),
            )
            .await;
        let RequestOutcome::InternalError { message } = outcome else { panic!("{outcome:?}") };
        assert!(
            message.contains("exchange 1, turn 0: the prompt is blank")
                && message.contains("\"exchanges\""),
            "{message}"
        );
    }
}
