//! What the conversation takes: of the model's window, in tokens, in money.

use super::view::BilledItem;
use crate::agent::ports::{ModelInfo, ToolDefinition};
use crate::cli::render::count_noun as things;
use crate::conversation::{AssistantTurn, TokenUsage, Transcript, estimate};
use crate::model::cost;
use crate::policy::ApprovalMode;

/// Counts as a chat goes on. What a provider does not tell stays unknown.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionCostMeter {
    /// Of the session, with what was said in it before it was resumed.
    session_totals: UsageTotals,
    /// Of this chat, whatever sessions it went on with.
    chat_totals: UsageTotals,
    /// What each request holds beside the conversation: the system prompt and the tools, as
    /// estimated.
    overhead: u64,
    /// The conversation, as estimated.
    conversation: u64,
    scale: estimate::EstimateScale,
}

/// What was used, and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct UsageTotals {
    usage: TokenUsage,
    turns: usize,
    dollars: f64,
    /// Turns whose price is not known.
    unpriced_turns: usize,
}

impl UsageTotals {
    fn add_usage(&mut self, usage: TokenUsage, model: Option<&str>) {
        self.usage = self.usage.saturating_add(usage);
        self.turns += 1;
        match model.and_then(|model| cost(usage, model)) {
            Some(dollars) => self.dollars += dollars,
            None => self.unpriced_turns += 1,
        }
    }

    /// What is not known is said to be unknown.
    fn describe_cost(&self) -> String {
        match (self.turns, self.unpriced_turns) {
            (0, _) => "$0".to_owned(),
            (_, 0) => format!("${:.4}", self.dollars),
            (turns, unknown) if turns == unknown => "cost unknown".to_owned(),
            (_, _) => format!("more than ${:.4}", self.dollars),
        }
    }

    /// Turns, tokens and cost.
    pub(super) fn describe(&self) -> String {
        let tokens = match (self.usage.input, self.usage.output) {
            (Some(input), Some(output)) => {
                let cached = self
                    .usage
                    .cached_input
                    .map(|cached| format!(" (of which {cached} from a cache)"))
                    .unwrap_or_default();
                format!("{input} tokens in{cached}, {output} out")
            }
            // Nothing was asked yet, or the provider does not tell.
            (None, _) | (_, None) => "tokens unknown".to_owned(),
        };
        format!("{}, {tokens}, {}", things(self.turns, "turn"), self.describe_cost())
    }
}

impl SessionCostMeter {
    /// What comes with each request.
    pub(super) fn set_overhead(&mut self, system: &str, tools: &[ToolDefinition]) {
        self.overhead =
            estimate::prompt(system) + tools.iter().map(ToolDefinition::tokens).sum::<u64>();
    }

    /// Another model counts in its own way.
    pub(super) fn reset_scale(&mut self) {
        self.scale = estimate::EstimateScale::default();
    }

    /// Another session, with the model of each request that was made in it already.
    pub(super) fn start_session(&mut self, transcript: &Transcript, models: &[Option<String>]) {
        self.session_totals = UsageTotals::default();
        let models = models.iter().map(Option::as_deref).chain(std::iter::repeat(None));
        for (exchange, model) in transcript.exchanges().iter().zip(models) {
            exchange.usages().for_each(|usage| self.session_totals.add_usage(usage, model));
        }
        self.set_conversation(transcript);
    }

    /// The conversation as it is now. The newest turn of which the provider told what it read tells
    /// how far estimates are off.
    pub(super) fn set_conversation(&mut self, transcript: &Transcript) {
        self.conversation = transcript.sent_tokens();
        let turns: Vec<&AssistantTurn> =
            transcript.exchanges().iter().flat_map(|exchange| exchange.turns()).collect();
        let newest = turns.iter().rposition(|turn| turn.usage().input.is_some());
        // A summary that was made after that turn has changed what is sent.
        if let (Some(newest), None) = (newest, transcript.summary()) {
            let since: u64 = turns[newest..].iter().map(|turn| turn.tokens()).sum();
            self.scale.calibrate(
                self.overhead + self.conversation.saturating_sub(since),
                turns[newest].usage().input.unwrap_or_default(),
            );
        }
    }

    /// The user said something.
    pub(super) fn add_prompt(&mut self, prompt: &str) {
        self.conversation += estimate::prompt(prompt);
    }

    /// Something was taken that a provider is paid for.
    pub(super) fn add_billed_item(&mut self, taken: &BilledItem, model: &str) {
        match taken {
            BilledItem::Turn(turn) => self.add_turn(turn, model),
            BilledItem::OutsideTurn(usage) => self.add_usage(*usage, model),
        }
    }

    /// A turn was added to the conversation.
    fn add_turn(&mut self, turn: &AssistantTurn, model: &str) {
        let usage = turn.usage();
        self.scale.calibrate(self.overhead + self.conversation, usage.input.unwrap_or_default());
        self.conversation += turn.tokens();
        self.add_usage(usage, model);
    }

    fn add_usage(&mut self, usage: TokenUsage, model: &str) {
        for account in [&mut self.session_totals, &mut self.chat_totals] {
            account.add_usage(usage, Some(model));
        }
    }

    /// How many tokens the next request will have, as far as can be told.
    pub(super) fn context_tokens(&self) -> u64 {
        self.scale.apply(self.overhead + self.conversation)
    }

    /// Of that, what comes with each request.
    pub(super) fn overhead(&self) -> u64 {
        self.scale.apply(self.overhead)
    }

    pub(super) fn session_totals(&self) -> &UsageTotals {
        &self.session_totals
    }

    pub(super) fn chat_totals(&self) -> &UsageTotals {
        &self.chat_totals
    }

    /// One line: mode, model, context, tokens, cost.
    pub(super) fn format_status(&self, mode: ApprovalMode, model: &ModelInfo) -> String {
        let mut parts =
            vec![mode.name().to_owned(), crate::terminal_escape::escape_line(&model.model, 40)];
        parts.push(format!(
            "context {} of {}",
            format_percent(self.context_tokens(), model.context_window),
            format_tokens(model.context_window)
        ));
        if let (Some(input), Some(output)) =
            (self.session_totals.usage.input, self.session_totals.usage.output)
        {
            parts.push(format!(
                "{} tokens in, {} out",
                format_tokens(input),
                format_tokens(output)
            ));
        }
        parts.push(self.session_totals.describe_cost());
        parts.join(" · ")
    }
}

/// How much of a window.
pub(super) fn format_percent(part: u64, whole: u64) -> String {
    match part.saturating_mul(100).checked_div(whole) {
        None => "?".to_owned(),
        Some(0) if part > 0 => "<1%".to_owned(),
        Some(percent) => format!("{percent}%"),
    }
}

/// A number of tokens, rounded for reading.
pub(super) fn format_tokens(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => {
            format!("{}.{}k", tokens / 1_000, tokens % 1_000 / 100).replace(".0k", "k")
        }
        _ => format!("{}.{:02}M", tokens / 1_000_000, tokens % 1_000_000 / 10_000)
            .replace(".00M", "M"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{ModelResponse, ResponseBlock};

    fn turn_of(text: &str, usage: TokenUsage) -> AssistantTurn {
        let response = ModelResponse {
            blocks: vec![ResponseBlock::Text(text.into())],
            usage,
            ..ModelResponse::default()
        };
        AssistantTurn::without_calls(response).expect("it has text")
    }

    fn usage_of(input: u64, output: u64) -> TokenUsage {
        TokenUsage { input: Some(input), output: Some(output), ..TokenUsage::default() }
    }

    #[test]
    fn r131_the_estimate_is_corrected_by_what_the_provider_counted() {
        let mut transcript = Transcript::new();
        transcript.begin_exchange("x".repeat(3_968));
        let mut live = SessionCostMeter::default();
        live.set_conversation(&transcript);
        assert_eq!(live.context_tokens(), 1_000);
        let turn = turn_of(&"y".repeat(3_968), usage_of(2_000, 990));
        live.add_turn(&turn, "m");
        transcript.record(turn);
        let mut resumed = SessionCostMeter::default();
        resumed.set_conversation(&transcript);
        assert_eq!([live.context_tokens(), resumed.context_tokens()], [4_000, 4_000]);
        live.reset_scale();
        assert_eq!(live.context_tokens(), 2_000);
    }

    #[test]
    fn r097_an_unknown_price_is_not_passed_over() {
        let mut meter = SessionCostMeter::default();
        assert_eq!(meter.session_totals.describe_cost(), "$0");
        meter.add_turn(&turn_of("a", usage_of(1_000_000, 0)), "gpt-4.1");
        assert_eq!(meter.session_totals.describe_cost(), "$2.0000");
        meter.add_turn(&turn_of("b", usage_of(10, 10)), "llama");
        assert_eq!(meter.session_totals.describe_cost(), "more than $2.0000");
    }

    #[test]
    fn r097_a_session_that_goes_on_costs_what_it_cost_before_too() {
        let mut transcript = Transcript::new();
        for prompt in ["one", "two"] {
            transcript.begin_exchange(prompt);
            transcript.record(turn_of("a", usage_of(1_000_000, 0)));
        }
        let mut meter = SessionCostMeter::default();
        meter.start_session(&transcript, &[Some("gpt-4.1".into()), Some("gpt-4.1".into())]);
        assert_eq!(meter.session_totals().describe(), "2 turns, 2000000 tokens in, 0 out, $4.0000");
        assert_eq!(meter.chat_totals().describe(), "0 turns, tokens unknown, $0");
        meter.add_turn(&turn_of("b", usage_of(1_000_000, 0)), "gpt-4.1");
        assert_eq!(
            [meter.session_totals().describe_cost(), meter.chat_totals().describe_cost()],
            ["$6.0000", "$2.0000"]
        );
        // Of a request whose model is not on record the price is not known.
        meter.start_session(&transcript, &[Some("gpt-4.1".into())]);
        assert_eq!(
            [meter.session_totals().describe_cost(), meter.chat_totals().describe_cost()],
            ["more than $2.0000", "$2.0000"]
        );
        meter.start_session(&Transcript::new(), &[]);
        assert_eq!(
            [meter.session_totals().describe_cost(), meter.chat_totals().describe_cost()],
            ["$0", "$2.0000"]
        );
    }

    #[test]
    fn r131_the_status_is_one_line() {
        let mut meter = SessionCostMeter::default();
        meter.add_turn(&turn_of("a", usage_of(12_345, 1_000)), "gpt-4.1");
        let model = ModelInfo {
            provider: "openai".into(),
            model: "gpt-4.1".into(),
            address: None,
            context_window: 1_047_576,
            max_output: None,
        };
        let status = meter.format_status(ApprovalMode::AutoEdit, &model);
        assert_eq!(
            status,
            "auto-edit · gpt-4.1 · context <1% of 1.04M · 12.3k tokens in, 1k out · $0.0327"
        );
        assert_eq!(
            [format_percent(1, 1_000), format_percent(5, 10), format_percent(1, 0)],
            ["<1%", "50%", "?"]
        );
    }
}
