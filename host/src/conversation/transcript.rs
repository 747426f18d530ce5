//! The whole conversation.

use serde::{Deserialize, Serialize};

use super::Turn;
use super::repair::Found;

/// A conversation: exchanges from the oldest to the newest. It holds no system prompt; that is added to
/// each request to a model.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "Found")]
pub struct Transcript {
    exchanges: Vec<Exchange>,
}

/// What the user said, and the assistant's turns that followed. Since a turn only ever follows a user's
/// word, a history that starts with the assistant cannot be written down.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exchange {
    prompt: String,
    turns: Vec<Turn>,
}

impl Transcript {
    /// A conversation in which nothing has been said.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins an exchange with what the user said. Words are kept exactly; blank ones begin nothing.
    pub fn begin(&mut self, prompt: impl Into<String>) {
        let prompt = prompt.into();
        if !prompt.trim().is_empty() {
            self.exchanges.push(Exchange::begun(prompt));
        }
    }

    /// Adds a turn to the newest exchange. Without any exchange there is nothing it could answer, and it is dropped.
    pub fn record(&mut self, turn: Turn) {
        let Some(exchange) = self.exchanges.last_mut() else { return };
        let is_said = exchange.turns.last().is_some_and(|last| !last.has_calls());
        exchange.follow(turn, is_said);
    }

    /// Exchanges that keep the rules.
    pub(super) fn of(exchanges: Vec<Exchange>) -> Self {
        Self { exchanges }
    }

    /// From the oldest to the newest.
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// The newest turn.
    pub fn last_turn(&self) -> Option<&Turn> {
        self.exchanges.last().and_then(|exchange| exchange.turns.last())
    }

    /// Whether nothing has been said.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }
}

impl Exchange {
    /// One that begins with these words, which are not blank.
    pub(super) fn begun(prompt: String) -> Self {
        Self { prompt, turns: Vec::new() }
    }

    /// Adds a turn. `is_said` tells that there is one before it without calls: nothing stands between the two on the wire,
    /// where two assistant messages in a row are an error, so they become one.
    pub(super) fn follow(&mut self, turn: Turn, is_said: bool) {
        match self.turns.last_mut() {
            Some(last) if is_said => last.absorb(turn),
            Some(_) | None => self.turns.push(turn),
        }
    }

    /// What the user said, exactly; not blank.
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// What the assistant did about it. All but the last have calls.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Response, ResponseBlock};
    use super::*;

    fn said(text: &str) -> Turn {
        let response = Response { blocks: vec![ResponseBlock::Text(text.into())], ..Response::default() };
        Turn::without_calls(response).expect("it has text")
    }

    #[test]
    fn r054_a_turn_has_content() {
        let blank = Response { blocks: vec![ResponseBlock::Text(" \n".into())], ..Response::default() };
        assert_eq!(Turn::without_calls(blank), None);
        assert_eq!(Turn::interrupted_text(String::new()), None);
    }

    #[test]
    fn r055_two_turns_without_calls_become_one() {
        let mut transcript = Transcript::new();
        transcript.begin("hello");
        transcript.record(said("one, "));
        transcript.record(said("two"));
        assert_eq!(transcript.exchanges()[0].turns().len(), 1);
        assert_eq!(transcript.last_turn().map(Turn::text), Some("one, two".into()));
    }

    #[test]
    fn r061_nothing_precedes_the_first_prompt() {
        let mut transcript = Transcript::new();
        transcript.record(said("out of nowhere"));
        transcript.begin("  ");
        assert!(transcript.is_empty());
    }
}
