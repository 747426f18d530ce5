//! One request, from prompt to outcome.

use std::fmt;
use std::ops::ControlFlow::{self, Break, Continue};
use std::pin::pin;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ask::{Heard, Said, ask};
use super::budget::TurnLimit;
use super::course::Course;
use super::events::{Event, Observer};
use super::interventions::Interventions;
use super::outcome::Outcome;
use super::ports::{Model, ModelRequest, Ran, ToolChoice, Tools};
use super::spending::SubAgentTurns;
use super::submit;
use crate::conversation::{OpenTurn, StopReason, Transcript, Turn, Usage};

/// What the user is told of an answer of which nothing came. What was said is a part of the next request too.
const WITHHELD: &str = "the provider withheld the answer, and may do so as long as this conversation goes on. Begin a new one, say it in other \
    words, or take another model.";

/// Everything that a request needs.
pub struct Agent<'a> {
    /// Who answers.
    pub model: &'a dyn Model,
    /// What it may call.
    pub tools: &'a dyn Tools,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// The system prompt of this request.
    pub system: String,
    /// How many turns with calls it may take.
    pub turn_limit: TurnLimit,
    /// How long it may be at work.
    pub time_limit: Option<Duration>,
    /// Which remarks the host may make.
    pub interventions: Interventions,
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
    /// Works on what the user said until the request is over. Whatever the outcome, the transcript is left valid, with
    /// everything in it that happened.
    pub async fn request(&self, id: &RequestId, transcript: &mut Transcript, prompt: &str, cancel: &CancellationToken) -> Outcome {
        self.observer.observe(&Event::RequestStarted { request: &id.0, prompt, model: &self.model.info().model });
        transcript.begin(prompt);
        let stop = cancel.child_token();
        let outcome = match (self.in_time(self.work(transcript, &stop), &stop).await, self.time_limit) {
            (Outcome::Aborted, Some(limit)) if !cancel.is_cancelled() => Outcome::TimedOut { seconds: limit.as_secs() },
            (outcome, _) => outcome,
        };
        self.observer.observe(&Event::RequestFinished { outcome: &outcome });
        outcome
    }

    /// Stops the work when its time is up. It ends by itself then, as when the user stops it.
    async fn in_time(&self, work: impl Future<Output = Outcome>, stop: &CancellationToken) -> Outcome {
        let Some(limit) = self.time_limit else { return work.await };
        let mut work = pin!(work);
        tokio::select! {
            biased;
            outcome = &mut work => outcome,
            () = self.tools.time().passed(limit) => {
                stop.cancel();
                work.await
            }
        }
    }

    /// While there is budget, fit the conversation and ask the model; if it answered, stop; otherwise run its calls and
    /// record the results.
    async fn work(&self, transcript: &mut Transcript, cancel: &CancellationToken) -> Outcome {
        let mut course = Course::new(self);
        loop {
            if let Break(outcome) = self.turn(&mut course, transcript, cancel).await {
                return outcome;
            }
        }
    }

    async fn turn(&self, course: &mut Course, transcript: &mut Transcript, cancel: &CancellationToken) -> ControlFlow<Outcome> {
        self.observer.observe(&Event::TurnStarted { turn: course.next_turn() });
        self.fit(&mut course.fit, transcript, cancel).await?;
        match (self.ask(course, transcript, cancel).await?, course.choice()) {
            (Said::Answer(turn), _) => self.answer(course, transcript, turn),
            (Said::Nothing(stop, usage), _) => self.nothing(course, transcript, &stop, usage),
            (Said::Calls(turn) | Said::CutOff(turn), ToolChoice::None) => self.run_none(course, transcript, turn),
            (Said::CutOff(turn), ToolChoice::Auto) => self.refuse(course, transcript, turn),
            (Said::Calls(turn), ToolChoice::Auto) => self.run(course, transcript, turn, cancel).await,
        }
    }

    /// Asks until there is a response: once, and once more if the conversation was too large.
    async fn ask(&self, course: &mut Course, transcript: &mut Transcript, cancel: &CancellationToken) -> ControlFlow<Outcome, Said> {
        let note = course.note();
        loop {
            let request = ModelRequest {
                system: &self.system,
                conversation: transcript.sent(),
                note: note.as_deref(),
                tools: self.tools.definitions(),
                tool_choice: course.choice(),
                is_shown_live: self.observer.is_live(),
            };
            match ask(self.model, request, self.observer, cancel).await {
                Heard::Said(said, counted) => {
                    course.fit.counted(transcript, counted);
                    return Continue(said);
                }
                Heard::TooLarge { message } => self.overflowed(&mut course.fit, message, transcript, cancel).await?,
                Heard::Failed { partial, outcome } => {
                    partial.into_iter().for_each(|turn| self.record(transcript, turn));
                    return Break(outcome);
                }
            }
        }
    }

    fn answer(&self, course: &Course, transcript: &mut Transcript, turn: Turn) -> ControlFlow<Outcome> {
        if let Some(how) = how_cut_off(turn.stop()) {
            self.observer.observe(&Event::Notice(&format!("The answer {how} and is not complete.")));
        }
        let text = turn.text();
        self.observer.observe(&Event::Answered(&turn));
        self.record(transcript, turn);
        Break(course.over(text))
    }

    /// Whoever submitted a summary and then has nothing to add has answered with it. Anyone else is asked again, once.
    /// An answer that was withheld would be so again.
    fn nothing(&self, course: &mut Course, transcript: &mut Transcript, stop: &StopReason, usage: Usage) -> ControlFlow<Outcome> {
        self.discard(transcript, usage);
        if let Some(summary) = transcript.last_turn().and_then(submit::summary) {
            return Break(course.over(summary));
        }
        if *stop == StopReason::Refused {
            return Break(Outcome::ProviderError { message: WITHHELD.to_owned() });
        }
        if let Some(how) = how_cut_off(stop) {
            self.observer.observe(&Event::Notice(&format!("The response {how} before it said anything.")));
        }
        match course.choice() {
            ToolChoice::None => Break(course.over(String::new())),
            ToolChoice::Auto if course.was_empty(stop) => Break(Outcome::Empty),
            ToolChoice::Auto => Continue(()),
        }
    }

    /// What is called beyond the limit is not run, and what was said with it are the last words.
    fn run_none(&self, course: &Course, transcript: &mut Transcript, turn: OpenTurn) -> ControlFlow<Outcome> {
        let turn = turn.close("the limit on tool turns is reached");
        let text = turn.text();
        self.record(transcript, turn);
        Break(course.over(text))
    }

    fn refuse(&self, course: &mut Course, transcript: &mut Transcript, turn: OpenTurn) -> ControlFlow<Outcome> {
        let how = how_cut_off(turn.stop()).unwrap_or_else(|| "was cut off".to_owned());
        let by = if *turn.stop() == StopReason::Length { "by the limit on output" } else { "by the provider" };
        self.observer.observe(&Event::Notice(&format!("The response {how}; its calls were not run.")));
        self.record(transcript, turn.close(&format!("the response was cut off {by}, and the call may be incomplete")));
        course.was_cut_off();
        Continue(())
    }

    async fn run(
        &self,
        course: &mut Course,
        transcript: &mut Transcript,
        mut turn: OpenTurn,
        cancel: &CancellationToken,
    ) -> ControlFlow<Outcome> {
        self.observer.observe(&Event::CallsProposed(&turn));
        let watching = SubAgentTurns::under(self.observer);
        let ran = self.tools.run(&mut turn, &watching, cancel).await;
        watching.into_usages().into_iter().for_each(|usage| transcript.spend(usage));
        let turn = turn.close(ran.reason());
        course.worked(&turn);
        self.record(transcript, turn);
        match ran {
            Ran::Finished => Continue(()),
            Ran::HandedBack => Break(Outcome::Rejected),
            Ran::Aborted => Break(Outcome::Aborted),
        }
    }

    /// What is no part of the conversation is part of what the conversation cost.
    pub(super) fn discard(&self, transcript: &mut Transcript, usage: Usage) {
        self.observer.observe(&Event::Discarded { usage });
        transcript.spend(usage);
    }

    fn record(&self, transcript: &mut Transcript, turn: Turn) {
        self.observer.observe(&Event::TurnFinished(&turn));
        transcript.record(turn);
    }
}

/// What became of a response that is not whole.
fn how_cut_off(stop: &StopReason) -> Option<String> {
    match stop {
        StopReason::Length => Some("ran into the limit on output".to_owned()),
        StopReason::Refused => Some("was withheld in part by the provider".to_owned()),
        StopReason::Interrupted => Some("broke off".to_owned()),
        StopReason::Other(reason) => Some(format!("was cut off by the provider (`{reason}`)")),
        StopReason::End | StopReason::Calls => None,
    }
}

impl Ran {
    /// Why calls that have not started by now never will.
    fn reason(self) -> &'static str {
        match self {
            Self::Finished => "the host passed over it",
            Self::HandedBack => "cancelled by the user",
            Self::Aborted => "the request was stopped",
        }
    }
}
