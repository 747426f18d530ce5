//! One request, from prompt to outcome.

use std::fmt;

use tokio_util::sync::CancellationToken;

use super::ask::{Said, ask};
use super::budget::{Budget, TurnLimit};
use super::events::{Event, Observer};
use super::outcome::Outcome;
use super::ports::{Model, ModelRequest, Ran, ToolChoice, Tools};
use super::submit;
use crate::conversation::{Transcript, Turn};

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

/// After an empty response the model is reminded once.
const ANSWER_PLEASE: &str = "Your last response was empty. Go on with the task, or give your final answer.";

impl Agent<'_> {
    /// Works on what the user said until the request is over. Whatever the outcome, the transcript is left valid, with
    /// everything in it that happened.
    pub async fn request(&self, id: &RequestId, transcript: &mut Transcript, prompt: &str, cancel: &CancellationToken) -> Outcome {
        self.observer.observe(&Event::RequestStarted { request: &id.0, prompt });
        transcript.begin(prompt);
        let outcome = self.run(transcript, cancel).await;
        self.observer.observe(&Event::RequestFinished { outcome: &outcome });
        outcome
    }

    async fn run(&self, transcript: &mut Transcript, cancel: &CancellationToken) -> Outcome {
        let mut budget = Budget::new(self.turn_limit);
        let mut was_empty = false;
        for number in 1.. {
            self.observer.observe(&Event::TurnStarted { turn: number });
            let tool_choice = budget.tool_choice();
            let note = was_empty.then_some(ANSWER_PLEASE);
            match self.ask(transcript, tool_choice, note, cancel).await {
                Said::Answer(turn) => return self.answered(transcript, turn, tool_choice, &budget),
                Said::Nothing => match transcript.last_turn().and_then(submit::summary) {
                    Some(text) => return finished(text, tool_choice, &budget),
                    None if tool_choice == ToolChoice::None => return finished(String::new(), tool_choice, &budget),
                    None if was_empty => return Outcome::Empty,
                    None => was_empty = true,
                },
                Said::Calls(turn) if tool_choice == ToolChoice::None => {
                    self.record(transcript, turn.close("the limit on tool turns is reached"));
                    return finished(transcript.last_turn().map(Turn::text).unwrap_or_default(), tool_choice, &budget);
                }
                Said::CutOff(turn) => {
                    self.observer.observe(&Event::Notice("The response ran into the limit on output; its calls were not run."));
                    self.record(transcript, turn.close("the response was cut off by the limit on output, and the call may be incomplete"));
                    budget.spend();
                    was_empty = false;
                }
                Said::Calls(mut turn) => {
                    self.observer.observe(&Event::CallsProposed(&turn));
                    let ran = self.tools.run(&mut turn, self.observer, cancel).await;
                    self.record(transcript, turn.close(ran.reason()));
                    match ran {
                        Ran::Finished => {}
                        Ran::HandedBack => return Outcome::Rejected,
                        Ran::Aborted => return Outcome::Aborted,
                    }
                    budget.spend();
                    was_empty = false;
                }
                Said::Failed { partial, outcome } => {
                    if let Some(turn) = partial {
                        self.record(transcript, turn);
                    }
                    return outcome;
                }
            }
        }
        Outcome::InternalError { message: "the count of turns ran out".into() }
    }

    async fn ask(&self, transcript: &Transcript, tool_choice: ToolChoice, note: Option<&str>, cancel: &CancellationToken) -> Said {
        let tools = self.tools.definitions();
        let is_shown_live = self.observer.is_live();
        let request = ModelRequest { system: &self.system, transcript, note, tools, tool_choice, is_shown_live };
        ask(self.model, request, self.observer, cancel).await
    }

    fn answered(&self, transcript: &mut Transcript, turn: Turn, tool_choice: ToolChoice, budget: &Budget) -> Outcome {
        if *turn.stop() == crate::conversation::StopReason::Length {
            self.observer.observe(&Event::Notice("The answer ran into the limit on output and is not complete."));
        }
        let text = turn.text();
        self.observer.observe(&Event::Answered(&turn));
        self.record(transcript, turn);
        finished(text, tool_choice, budget)
    }

    fn record(&self, transcript: &mut Transcript, turn: Turn) {
        self.observer.observe(&Event::TurnFinished(&turn));
        transcript.record(turn);
    }
}

fn finished(text: String, tool_choice: ToolChoice, budget: &Budget) -> Outcome {
    match tool_choice {
        ToolChoice::Auto => Outcome::Answered { text },
        ToolChoice::None => Outcome::Limit { text, turns: budget.limit() },
    }
}

impl Ran {
    /// Why calls that have not started by now never will.
    fn reason(self) -> &'static str {
        match self {
            Self::Finished => "the host passed over it",
            Self::HandedBack => "cancelled by the user",
            Self::Aborted => "the request was stopped by the user",
        }
    }
}
