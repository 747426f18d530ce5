//! What the conversation takes: of the model's window, in tokens, in money.

use super::view::Taken;
use crate::agent::ports::{ModelInfo, ToolDefinition};
use crate::cli::render::count as things;
use crate::conversation::{Transcript, Turn, Usage, estimate};
use crate::model::cost;
use crate::policy::Mode;

/// Counts as a chat goes on. What a provider does not tell stays unknown.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// Of the session, with what was said in it before it was resumed.
    session: Account,
    /// Of this chat, whatever sessions it went on with.
    chat: Account,
    /// What each request holds beside the conversation: the system prompt and the tools, as estimated.
    beside: u64,
    /// The conversation, as estimated.
    said: u64,
    scale: estimate::Scale,
}

/// What was used, and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Account {
    usage: Usage,
    turns: usize,
    dollars: f64,
    /// Turns whose price is not known.
    unknown: usize,
}

impl Account {
    fn pay(&mut self, usage: Usage, model: Option<&str>) {
        self.usage = self.usage.plus(usage);
        self.turns += 1;
        match model.and_then(|model| cost(usage, model)) {
            Some(dollars) => self.dollars += dollars,
            None => self.unknown += 1,
        }
    }

    /// What is not known is said to be unknown.
    fn cost(&self) -> String {
        match (self.turns, self.unknown) {
            (0, _) => "$0".to_owned(),
            (_, 0) => format!("${:.4}", self.dollars),
            (turns, unknown) if turns == unknown => "cost unknown".to_owned(),
            (_, _) => format!("more than ${:.4}", self.dollars),
        }
    }

    /// Turns, tokens and cost.
    pub(super) fn in_words(&self) -> String {
        let tokens = match (self.usage.input, self.usage.output) {
            (Some(input), Some(output)) => {
                let cached = self.usage.cached_input.map(|cached| format!(" (of which {cached} from a cache)")).unwrap_or_default();
                format!("{input} tokens in{cached}, {output} out")
            }
            // Nothing was asked yet, or the provider does not tell.
            (None, _) | (_, None) => "tokens unknown".to_owned(),
        };
        format!("{}, {tokens}, {}", things(self.turns, "turn"), self.cost())
    }
}

impl Meter {
    /// What comes with each request.
    pub(super) fn set_beside(&mut self, system: &str, tools: &[ToolDefinition]) {
        self.beside = estimate::prompt(system) + tools.iter().map(ToolDefinition::tokens).sum::<u64>();
    }

    /// Another model counts in its own way.
    pub(super) fn forget_scale(&mut self) {
        self.scale = estimate::Scale::default();
    }

    /// Another session, with the model of each request that was made in it already.
    pub(super) fn begin_with(&mut self, transcript: &Transcript, models: &[Option<String>]) {
        self.session = Account::default();
        let models = models.iter().map(Option::as_deref).chain(std::iter::repeat(None));
        for (exchange, model) in transcript.exchanges().iter().zip(models) {
            exchange.usages().for_each(|usage| self.session.pay(usage, model));
        }
        self.set_conversation(transcript);
    }

    /// The conversation as it is now. The newest turn of which the provider told what it read tells how far estimates are off.
    pub(super) fn set_conversation(&mut self, transcript: &Transcript) {
        self.said = transcript.sent_tokens();
        let turns: Vec<&Turn> = transcript.exchanges().iter().flat_map(|exchange| exchange.turns()).collect();
        let newest = turns.iter().rposition(|turn| turn.usage().input.is_some());
        // A summary that was made after that turn has changed what is sent.
        if let (Some(newest), None) = (newest, transcript.summary()) {
            let since: u64 = turns[newest..].iter().map(|turn| turn.tokens()).sum();
            self.scale.learn(self.beside + self.said.saturating_sub(since), turns[newest].usage().input.unwrap_or_default());
        }
    }

    /// The user said something.
    pub(super) fn prompt(&mut self, prompt: &str) {
        self.said += estimate::prompt(prompt);
    }

    /// Something was taken that a provider is paid for.
    pub(super) fn took(&mut self, taken: &Taken, model: &str) {
        match taken {
            Taken::Turn(turn) => self.turn(turn, model),
            Taken::Beside(usage) => self.pay(*usage, model),
        }
    }

    /// A turn was added to the conversation.
    fn turn(&mut self, turn: &Turn, model: &str) {
        let usage = turn.usage();
        self.scale.learn(self.beside + self.said, usage.input.unwrap_or_default());
        self.said += turn.tokens();
        self.pay(usage, model);
    }

    fn pay(&mut self, usage: Usage, model: &str) {
        for account in [&mut self.session, &mut self.chat] {
            account.pay(usage, Some(model));
        }
    }

    /// How many tokens the next request will have, as far as can be told.
    pub(super) fn context(&self) -> u64 {
        self.scale.apply(self.beside + self.said)
    }

    /// Of that, what comes with each request.
    pub(super) fn beside(&self) -> u64 {
        self.scale.apply(self.beside)
    }

    pub(super) fn session(&self) -> &Account {
        &self.session
    }

    pub(super) fn chat(&self) -> &Account {
        &self.chat
    }

    /// One line: mode, model, context, tokens, cost.
    pub(super) fn status(&self, mode: Mode, model: &ModelInfo) -> String {
        let mut parts = vec![mode.name().to_owned(), crate::shown::line(&model.model, 40)];
        parts.push(format!("context {} of {}", percent(self.context(), model.context_window), count(model.context_window)));
        if let (Some(input), Some(output)) = (self.session.usage.input, self.session.usage.output) {
            parts.push(format!("{} tokens in, {} out", count(input), count(output)));
        }
        parts.push(self.session.cost());
        parts.join(" · ")
    }
}

/// How much of a window.
pub(super) fn percent(part: u64, whole: u64) -> String {
    match part.saturating_mul(100).checked_div(whole) {
        None => "?".to_owned(),
        Some(0) if part > 0 => "<1%".to_owned(),
        Some(percent) => format!("{percent}%"),
    }
}

/// A number of tokens, rounded for reading.
pub(super) fn count(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}.{}k", tokens / 1_000, tokens % 1_000 / 100).replace(".0k", "k"),
        _ => format!("{}.{:02}M", tokens / 1_000_000, tokens % 1_000_000 / 10_000).replace(".00M", "M"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{Response, ResponseBlock};

    fn said(text: &str, usage: Usage) -> Turn {
        let response = Response { blocks: vec![ResponseBlock::Text(text.into())], usage, ..Response::default() };
        Turn::without_calls(response).expect("it has text")
    }

    fn used(input: u64, output: u64) -> Usage {
        Usage { input: Some(input), output: Some(output), ..Usage::default() }
    }

    #[test]
    fn r131_the_estimate_is_corrected_by_what_the_provider_counted() {
        let mut transcript = Transcript::new();
        transcript.begin("x".repeat(3_968));
        let mut live = Meter::default();
        live.set_conversation(&transcript);
        assert_eq!(live.context(), 1_000);
        let turn = said(&"y".repeat(3_968), used(2_000, 990));
        live.turn(&turn, "m");
        transcript.record(turn);
        let mut resumed = Meter::default();
        resumed.set_conversation(&transcript);
        assert_eq!([live.context(), resumed.context()], [4_000, 4_000]);
        live.forget_scale();
        assert_eq!(live.context(), 2_000);
    }

    #[test]
    fn r097_an_unknown_price_is_not_passed_over() {
        let mut meter = Meter::default();
        assert_eq!(meter.session.cost(), "$0");
        meter.turn(&said("a", used(1_000_000, 0)), "gpt-4.1");
        assert_eq!(meter.session.cost(), "$2.0000");
        meter.turn(&said("b", used(10, 10)), "llama");
        assert_eq!(meter.session.cost(), "more than $2.0000");
    }

    #[test]
    fn r097_a_session_that_goes_on_costs_what_it_cost_before_too() {
        let mut transcript = Transcript::new();
        for prompt in ["one", "two"] {
            transcript.begin(prompt);
            transcript.record(said("a", used(1_000_000, 0)));
        }
        let mut meter = Meter::default();
        meter.begin_with(&transcript, &[Some("gpt-4.1".into()), Some("gpt-4.1".into())]);
        assert_eq!(meter.session().in_words(), "2 turns, 2000000 tokens in, 0 out, $4.0000");
        assert_eq!(meter.chat().in_words(), "0 turns, tokens unknown, $0");
        meter.turn(&said("b", used(1_000_000, 0)), "gpt-4.1");
        assert_eq!([meter.session().cost(), meter.chat().cost()], ["$6.0000", "$2.0000"]);
        // Of a request whose model is not on record the price is not known.
        meter.begin_with(&transcript, &[Some("gpt-4.1".into())]);
        assert_eq!([meter.session().cost(), meter.chat().cost()], ["more than $2.0000", "$2.0000"]);
        meter.begin_with(&Transcript::new(), &[]);
        assert_eq!([meter.session().cost(), meter.chat().cost()], ["$0", "$2.0000"]);
    }

    #[test]
    fn r131_the_status_is_one_line() {
        let mut meter = Meter::default();
        meter.turn(&said("a", used(12_345, 1_000)), "gpt-4.1");
        let model =
            ModelInfo { provider: "openai".into(), model: "gpt-4.1".into(), address: None, context_window: 1_047_576, max_output: None };
        let status = meter.status(Mode::AutoEdit, &model);
        assert_eq!(status, "auto-edit · gpt-4.1 · context <1% of 1.04M · 12.3k tokens in, 1k out · $0.0327");
        assert_eq!([percent(1, 1_000), percent(5, 10), percent(1, 0)], ["<1%", "50%", "?"]);
    }
}
