//! One request, from prompt to outcome.

use std::fmt;
use std::ops::ControlFlow::{self, Break, Continue};
use std::pin::pin;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

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

/// What the user is told of an answer of which nothing came. What was said is a part of the next
/// request too.
const WITHHELD_MESSAGE: &str = "the provider withheld the answer, and may do so as long as this \
    conversation goes on. Begin a new one, say it in other \
    words, or take another model.";

/// Everything that a request needs.
pub struct Agent<'a> {
    /// Who answers.
    pub model: &'a dyn LanguageModel,
    /// What it may call.
    pub tools: &'a dyn ToolRunner,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// The system prompt of this request.
    pub system: String,
    /// How many turns with calls it may take.
    pub turn_limit: TurnLimit,
    /// How long it may be at work.
    pub time_limit: Option<Duration>,
    /// Which remarks the host may make.
    pub interventions: InterventionSettings,
}

/// Eight hexadecimal digits that name a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(String);

impl RequestId {
    /// From random bits.
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
    /// Works on what the user said until the request is over. Whatever the outcome, the transcript
    /// is left valid, with everything in it that happened.
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
        let outcome = match (
            self.limit_time(self.run_turns(transcript, &stop), &stop).await,
            self.time_limit,
        ) {
            (RequestOutcome::Aborted, Some(limit)) if !cancel.is_cancelled() => {
                RequestOutcome::TimedOut { seconds: limit.as_secs() }
            }
            (outcome, _) => outcome,
        };
        self.observer.observe(&AgentEvent::RequestFinished { outcome: &outcome });
        outcome
    }

    /// Stops the work when its time is up. It ends by itself then, as when the user stops it.
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

    /// While there is budget, fit the conversation and ask the model; if it answered, stop;
    /// otherwise run its calls and record the results.
    async fn run_turns(
        &self,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> RequestOutcome {
        let mut course = RequestState::new(self);
        loop {
            if let Break(outcome) = self.run_turn(&mut course, transcript, cancel).await {
                return outcome;
            }
        }
    }

    async fn run_turn(
        &self,
        course: &mut RequestState,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> ControlFlow<RequestOutcome> {
        self.observer.observe(&AgentEvent::TurnStarted { turn: course.next_turn() });
        self.fit_context(&mut course.fit_progress, transcript, cancel).await?;
        match (self.ask(course, transcript, cancel).await?, course.tool_choice()) {
            (ModelTurn::Answer(turn), _) => self.handle_answer(course, transcript, turn),
            (ModelTurn::Empty(stop, usage), _) => {
                self.handle_empty(course, transcript, &stop, usage)
            }
            (ModelTurn::Calls(turn) | ModelTurn::Truncated(turn), ToolChoice::None) => {
                self.handle_calls_over_limit(course, transcript, turn)
            }
            (ModelTurn::Truncated(turn), ToolChoice::Auto) => {
                self.handle_truncated(course, transcript, turn)
            }
            (ModelTurn::Calls(turn), ToolChoice::Auto) => {
                self.run_calls(course, transcript, turn, cancel).await
            }
        }
    }

    /// Asks until there is a response: once, and once more if the conversation was too large
    ///
    async fn ask(
        &self,
        course: &mut RequestState,
        transcript: &mut Transcript,
        cancel: &CancellationToken,
    ) -> ControlFlow<RequestOutcome, ModelTurn> {
        let note = course.note();
        loop {
            let request = ModelRequest {
                system: &self.system,
                conversation: transcript.sent(),
                note: note.as_deref(),
                tools: self.tools.definitions(),
                tool_choice: course.tool_choice(),
                is_shown_live: self.observer.is_live(),
            };
            match ask(self.model, request, self.observer, cancel).await {
                ModelRequestOutcome::Turn(said, counted) => {
                    course.fit_progress.calibrate(transcript, counted);
                    return Continue(said);
                }
                ModelRequestOutcome::TooLarge { message } => {
                    self.handle_overflow(&mut course.fit_progress, message, transcript, cancel)
                        .await?
                }
                ModelRequestOutcome::Failed { partial, outcome } => {
                    partial.into_iter().for_each(|turn| self.record_turn(transcript, turn));
                    return Break(outcome);
                }
            }
        }
    }

    fn handle_answer(
        &self,
        course: &RequestState,
        transcript: &mut Transcript,
        turn: AssistantTurn,
    ) -> ControlFlow<RequestOutcome> {
        if let Some(how) = truncation_reason(turn.stop_reason()) {
            self.observer
                .observe(&AgentEvent::Notice(&format!("The answer {how} and is not complete.")));
        }
        let text = turn.text();
        self.observer.observe(&AgentEvent::Answered(&turn));
        self.record_turn(transcript, turn);
        Break(course.finish(text))
    }

    /// Whoever submitted a summary and then has nothing to add has answered with it. Anyone
    /// else is asked again, once. An answer that was withheld would be so again.
    fn handle_empty(
        &self,
        course: &mut RequestState,
        transcript: &mut Transcript,
        stop: &StopReason,
        usage: TokenUsage,
    ) -> ControlFlow<RequestOutcome> {
        self.record_discarded(transcript, usage);
        if let Some(summary) = transcript.last_turn().and_then(submit::submitted_summary) {
            return Break(course.finish(summary));
        }
        if *stop == StopReason::Refused {
            return Break(RequestOutcome::ProviderError { message: WITHHELD_MESSAGE.to_owned() });
        }
        if let Some(how) = truncation_reason(stop) {
            self.observer.observe(&AgentEvent::Notice(&format!(
                "The response {how} before it said anything."
            )));
        }
        match course.tool_choice() {
            ToolChoice::None => Break(course.finish(String::new())),
            ToolChoice::Auto if course.record_empty(stop) => Break(RequestOutcome::Empty),
            ToolChoice::Auto => Continue(()),
        }
    }

    /// What is called beyond the limit is not run, and what was said with it are the last words
    ///
    fn handle_calls_over_limit(
        &self,
        course: &RequestState,
        transcript: &mut Transcript,
        turn: OpenTurn,
    ) -> ControlFlow<RequestOutcome> {
        let turn = turn.close("the limit on tool turns is reached");
        let text = turn.text();
        self.record_turn(transcript, turn);
        Break(course.finish(text))
    }

    fn handle_truncated(
        &self,
        course: &mut RequestState,
        transcript: &mut Transcript,
        turn: OpenTurn,
    ) -> ControlFlow<RequestOutcome> {
        let how = truncation_reason(turn.stop_reason()).unwrap_or_else(|| "was cut off".to_owned());
        let by = if *turn.stop_reason() == StopReason::Length {
            "by the limit on output"
        } else {
            "by the provider"
        };
        self.observer
            .observe(&AgentEvent::Notice(&format!("The response {how}; its calls were not run.")));
        self.record_turn(
            transcript,
            turn.close(&format!("the response was cut off {by}, and the call may be incomplete")),
        );
        course.record_truncated();
        Continue(())
    }

    async fn run_calls(
        &self,
        course: &mut RequestState,
        transcript: &mut Transcript,
        mut turn: OpenTurn,
        cancel: &CancellationToken,
    ) -> ControlFlow<RequestOutcome> {
        self.observer.observe(&AgentEvent::CallsRequested(&turn));
        let watching = SubAgentTurns::new(self.observer);
        let ran = self.tools.run(&mut turn, &watching, cancel).await;
        watching.into_usages().into_iter().for_each(|usage| transcript.add_usage(usage));
        let turn = turn.close(ran.not_run_reason());
        course.record_calls(&turn);
        self.record_turn(transcript, turn);
        match ran {
            RunOutcome::Finished => Continue(()),
            RunOutcome::Rejected => Break(RequestOutcome::Rejected),
            RunOutcome::Aborted => Break(RequestOutcome::Aborted),
        }
    }

    /// What is no part of the conversation is part of what the conversation cost.
    pub(super) fn record_discarded(&self, transcript: &mut Transcript, usage: TokenUsage) {
        self.observer.observe(&AgentEvent::Discarded { usage });
        transcript.add_usage(usage);
    }

    fn record_turn(&self, transcript: &mut Transcript, turn: AssistantTurn) {
        self.observer.observe(&AgentEvent::TurnFinished(&turn));
        transcript.record(turn);
    }
}

/// What became of a response that is not whole.
fn truncation_reason(stop: &StopReason) -> Option<String> {
    match stop {
        StopReason::Length => Some("ran into the limit on output".to_owned()),
        StopReason::Refused => Some("was withheld in part by the provider".to_owned()),
        StopReason::Interrupted => Some("broke off".to_owned()),
        StopReason::Other(reason) => Some(format!("was cut off by the provider (`{reason}`)")),
        StopReason::End | StopReason::Calls => None,
    }
}

impl RunOutcome {
    /// Why calls that have not started by now never will.
    fn not_run_reason(self) -> &'static str {
        match self {
            Self::Finished => "the host passed over it",
            Self::Rejected => "cancelled by the user",
            Self::Aborted => "the request was stopped",
        }
    }
}
