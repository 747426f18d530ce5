//! A single request, from prompt to outcome.

use std::fmt;
use std::ops::ControlFlow::{self, Break, Continue};
use std::pin::pin;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, info, info_span};

use super::ask::{ModelRequestOutcome, ModelTurn, ask};
use super::budget::TurnLimit;
use super::events::{AgentEvent, Observer};
use super::interventions::InterventionSettings;
use super::outcome::RequestOutcome;
use super::ports::{LanguageModel, ModelRequest, RunOutcome, ToolChoice, ToolRunner};
use super::request_state::RequestState;
use super::sub_agent_usage::SubAgentTurns;
use super::submit;
use crate::conversation::{AssistantTurn, OpenTurn, StopReason, TokenUsage, Transcript};

/// The error for an answer that the provider withheld completely.
///
/// The next request contains the same conversation, so it may be withheld as well.
const WITHHELD_MESSAGE: &str = "the provider withheld the answer, and may do so again in this \
    conversation. Start a new conversation, rephrase the prompt, or choose another model.";

/// The settings and ports that a request needs.
pub struct Agent<'a> {
    /// The model that answers.
    pub model: &'a dyn LanguageModel,
    /// The tools that the model may call.
    pub tools: &'a dyn ToolRunner,
    /// The observer of all events.
    pub observer: &'a dyn Observer,
    /// The system prompt of this request.
    pub system: String,
    /// The limit on turns with tool calls.
    pub turn_limit: TurnLimit,
    /// The limit on active time, if there is one.
    pub time_limit: Option<Duration>,
    /// The notes that the host may send to the model.
    pub interventions: InterventionSettings,
}

/// The ID of a request: eight hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(String);

impl RequestId {
    /// Creates an ID from random bits.
    pub fn new(random: u32) -> Self {
        Self(format!("{random:08x}"))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Agent<'_> {
    /// Works on a prompt until the request ends.
    ///
    /// Whatever the outcome, the transcript is valid afterwards and contains everything that
    /// happened.
    pub async fn run_request(
        &self,
        id: &RequestId,
        transcript: &mut Transcript,
        prompt: &str,
        cancel: &CancellationToken,
    ) -> RequestOutcome {
        self.observer.observe(&AgentEvent::RequestStarted {
            request: &id.0,
            prompt,
            model: &self.model.info().model,
        });
        transcript.begin_exchange(prompt);
        let stop = cancel.child_token();
        // Calls of a request whose future is dropped end; they run on threads of their own.
        let _stop_on_drop = stop.clone().drop_guard();
        let info = self.model.info();
        let span = info_span!("request", %id, provider = info.provider, model = info.model);
        let turns = self.run_turns(transcript, &stop).instrument(span.clone());
        let outcome = match (self.limit_time(turns, &stop).await, self.time_limit) {
            (RequestOutcome::Aborted, Some(limit)) if !cancel.is_cancelled() => {
                RequestOutcome::TimedOut { seconds: limit.as_secs() }
            }
            (outcome, _) => outcome,
        };
        span.in_scope(|| info!(outcome = outcome.kind(), "request finished"));
        self.observer.observe(&AgentEvent::RequestFinished { outcome: &outcome });
        outcome
    }

    /// Cancels the work when the time limit has passed.
    ///
    /// The work then ends by itself, as if the user had stopped it.
    async fn limit_time(
        &self,
        work: impl Future<Output = RequestOutcome>,
        stop: &CancellationToken,
    ) -> RequestOutcome {
        let Some(limit) = self.time_limit else { return work.await };
        let mut work = pin!(work);
        tokio::select! {
            biased;
            outcome = &mut work => outcome,
            () = self.tools.active_time().sleep(limit) => {
                stop.cancel();
                work.await
            }
        }
    }

    /// Runs turns until one of them ends the request.
    async fn run_turns(
        &self,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> RequestOutcome {
        let mut state = RequestState::new(self);
        loop {
            let span = info_span!("turn", number = state.next_turn());
            let turn = self.run_turn(&mut state, transcript, cancel).instrument(span);
            if let Break(outcome) = turn.await {
                return outcome;
            }
        }
    }

    async fn run_turn(
        &self,
        state: &mut RequestState,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> ControlFlow<RequestOutcome> {
        self.observer.observe(&AgentEvent::TurnStarted { turn: state.next_turn() });
        self.fit_context(&mut state.fit_progress, transcript, cancel).await?;
        match (self.ask(state, transcript, cancel).await?, state.tool_choice()) {
            (ModelTurn::Answer(turn), _) => self.handle_answer(state, transcript, turn),
            (ModelTurn::Empty(stop, usage), _) => {
                self.handle_empty(state, transcript, &stop, usage)
            }
            (ModelTurn::Calls(turn) | ModelTurn::Truncated(turn), ToolChoice::None) => {
                self.handle_calls_over_limit(state, transcript, turn)
            }
            (ModelTurn::Truncated(turn), ToolChoice::Auto) => {
                self.handle_truncated(state, transcript, turn)
            }
            (ModelTurn::Calls(turn), ToolChoice::Auto) => {
                self.run_calls(state, transcript, turn, cancel).await
            }
        }
    }

    /// Asks the model until it responds: once, and again if the conversation was too large.
    async fn ask(
        &self,
        state: &mut RequestState,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> ControlFlow<RequestOutcome, ModelTurn> {
        let note = state.note();
        loop {
            let request = ModelRequest {
                system: &self.system,
                conversation: transcript.sent(),
                note: note.as_deref(),
                tools: self.tools.definitions(),
                tool_choice: state.tool_choice(),
                is_shown_live: self.observer.is_live(),
            };
            match ask(self.model, request, self.observer, cancel).await {
                ModelRequestOutcome::Turn(turn, counted) => {
                    debug!(input_tokens = counted, "model responded");
                    state.fit_progress.calibrate(transcript, counted);
                    return Continue(turn);
                }
                ModelRequestOutcome::TooLarge { message } => {
                    self.handle_overflow(&mut state.fit_progress, message, transcript, cancel)
                        .await?
                }
                ModelRequestOutcome::Failed { partial, outcome } => {
                    if let Some(turn) = partial {
                        self.record_turn(transcript, turn);
                    }
                    return Break(outcome);
                }
            }
        }
    }

    fn handle_answer(
        &self,
        state: &RequestState,
        transcript: &mut Transcript,
        turn: AssistantTurn,
    ) -> ControlFlow<RequestOutcome> {
        if let Some(reason) = truncation_reason(turn.stop_reason()) {
            self.observer
                .observe(&AgentEvent::Notice(&format!("The answer {reason} and is incomplete.")));
        }
        let text = turn.text();
        self.observer.observe(&AgentEvent::Answered(&turn));
        self.record_turn(transcript, turn);
        Break(state.finish(text))
    }

    /// Handles a response without text and calls.
    ///
    /// A model that submitted a summary and adds nothing has answered with that summary.
    /// Otherwise the model is asked again, once. A withheld answer ends the request, since a second
    /// one would be withheld too.
    fn handle_empty(
        &self,
        state: &mut RequestState,
        transcript: &mut Transcript,
        stop: &StopReason,
        usage: TokenUsage,
    ) -> ControlFlow<RequestOutcome> {
        self.record_discarded(transcript, usage);
        if let Some(summary) = transcript.last_turn().and_then(submit::submitted_summary) {
            return Break(state.finish(summary));
        }
        if *stop == StopReason::Refused {
            return Break(RequestOutcome::ProviderError { message: WITHHELD_MESSAGE.to_owned() });
        }
        if let Some(reason) = truncation_reason(stop) {
            self.observer.observe(&AgentEvent::Notice(&format!(
                "The response {reason} before it contained any text."
            )));
        }
        match state.tool_choice() {
            ToolChoice::None => Break(state.finish(String::new())),
            ToolChoice::Auto if state.record_empty(stop) => Break(RequestOutcome::Empty),
            ToolChoice::Auto => Continue(()),
        }
    }

    /// Ends the request at the turn limit.
    ///
    /// Calls beyond the limit are not run, and the text beside them is the last answer.
    fn handle_calls_over_limit(
        &self,
        state: &RequestState,
        transcript: &mut Transcript,
        turn: OpenTurn,
    ) -> ControlFlow<RequestOutcome> {
        let turn = turn.close("the limit on tool turns was reached");
        let text = turn.text();
        self.record_turn(transcript, turn);
        Break(state.finish(text))
    }

    fn handle_truncated(
        &self,
        state: &mut RequestState,
        transcript: &mut Transcript,
        turn: OpenTurn,
    ) -> ControlFlow<RequestOutcome> {
        let reason =
            truncation_reason(turn.stop_reason()).unwrap_or_else(|| "was cut off".to_owned());
        let by = if *turn.stop_reason() == StopReason::Length {
            "by the output limit"
        } else {
            "by the provider"
        };
        self.observer.observe(&AgentEvent::Notice(&format!(
            "The response {reason}; its calls were not run."
        )));
        self.record_turn(
            transcript,
            turn.close(&format!("the response was truncated {by}, and the call may be incomplete")),
        );
        state.record_truncated();
        Continue(())
    }

    async fn run_calls(
        &self,
        state: &mut RequestState,
        transcript: &mut Transcript,
        mut turn: OpenTurn,
        cancel: &CancellationToken,
    ) -> ControlFlow<RequestOutcome> {
        self.observer.observe(&AgentEvent::CallsRequested(&turn));
        let observer = SubAgentTurns::new(self.observer);
        let outcome = self.tools.run(&mut turn, &observer, cancel).await;
        for usage in observer.into_usages() {
            transcript.add_usage(usage);
        }
        let turn = turn.close(outcome.not_run_reason());
        state.record_calls(&turn);
        self.record_turn(transcript, turn);
        match outcome {
            RunOutcome::Finished => Continue(()),
            RunOutcome::Rejected => Break(RequestOutcome::Rejected),
            RunOutcome::Aborted => Break(RequestOutcome::Aborted),
        }
    }

    /// Counts the cost of a response that is not part of the conversation.
    pub(super) fn record_discarded(&self, transcript: &mut Transcript, usage: TokenUsage) {
        self.observer.observe(&AgentEvent::Discarded { usage });
        transcript.add_usage(usage);
    }

    fn record_turn(&self, transcript: &mut Transcript, turn: AssistantTurn) {
        self.observer.observe(&AgentEvent::TurnFinished(&turn));
        transcript.record(turn);
    }
}

/// Describes why a response is incomplete; `None` if it is complete.
fn truncation_reason(stop: &StopReason) -> Option<String> {
    match stop {
        StopReason::Length => Some("reached the output limit".to_owned()),
        StopReason::Refused => Some("was partly withheld by the provider".to_owned()),
        StopReason::Interrupted => Some("was interrupted".to_owned()),
        StopReason::Other(reason) => Some(format!("was truncated by the provider (`{reason}`)")),
        StopReason::End | StopReason::Calls => None,
    }
}

impl RunOutcome {
    /// Returns the reason for calls that have not started and never will.
    fn not_run_reason(self) -> &'static str {
        match self {
            Self::Finished => "the host skipped it",
            Self::Rejected => "the user rejected another call",
            Self::Aborted => "the request was cancelled",
        }
    }
}
