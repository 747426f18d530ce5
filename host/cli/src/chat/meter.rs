//! Counts context size, tokens and cost of a chat.

use super::view::BilledItem;
use crate::render::count_noun;
use cofferdam::agent::ports::{ModelInfo, ToolDefinition};
use cofferdam::conversation::{AssistantTurn, TokenUsage, Transcript, estimate};
use cofferdam::model::cost;
use cofferdam::policy::ApprovalMode;

/// Running totals of a chat. Figures that a provider does not report are unknown, not zero.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionCostMeter {
    /// Totals of the session, including what it used before it was resumed.
    session_totals: UsageTotals,
    /// Totals of this chat over all sessions that it had open.
    chat_totals: UsageTotals,
    /// Estimated tokens that each request has besides the conversation: the system prompt and the
    /// tools.
    overhead: u64,
    /// Estimated tokens of the conversation.
    conversation: u64,
    scale: estimate::EstimateScale,
}

/// Token usage and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct UsageTotals {
    usage: TokenUsage,
    turns: usize,
    dollars: f64,
    /// Number of turns with an unknown price.
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

    /// Formats the cost, and says if all or a part of it is unknown.
    fn describe_cost(&self) -> String {
        match (self.turns, self.unpriced_turns) {
            (0, _) => "$0".to_owned(),
            (_, 0) => format!("${:.4}", self.dollars),
            (turns, unknown) if turns == unknown => "cost unknown".to_owned(),
            (_, _) => format!("more than ${:.4}", self.dollars),
        }
    }

    /// Formats turns, tokens and cost in one line.
    pub(super) fn describe(&self) -> String {
        let tokens = match (self.usage.input, self.usage.output) {
            (Some(input), Some(output)) => {
                let cached = self
                    .usage
                    .cached_input
                    .map(|cached| format!(" ({cached} cached)"))
                    .unwrap_or_default();
                format!("{input} tokens in{cached}, {output} out")
            }
            // There was no request yet, or the provider does not report usage.
            (None, _) | (_, None) => "tokens unknown".to_owned(),
        };
        format!("{}, {tokens}, {}", count_noun(self.turns, "turn"), self.describe_cost())
    }
}

impl SessionCostMeter {
    /// Sets the system prompt and the tools that each request contains.
    pub(super) fn set_overhead(&mut self, system: &str, tools: &[ToolDefinition]) {
        self.overhead =
            estimate::prompt(system) + tools.iter().map(ToolDefinition::tokens).sum::<u64>();
    }

    /// Resets the correction of estimates, since each model counts tokens differently.
    pub(super) fn reset_scale(&mut self) {
        self.scale = estimate::EstimateScale::default();
    }

    /// Starts the totals of another session. `models` has the model of each request that it already
    /// contains.
    pub(super) fn start_session(&mut self, transcript: &Transcript, models: &[Option<String>]) {
        self.session_totals = UsageTotals::default();
        let models = models.iter().map(Option::as_deref).chain(std::iter::repeat(None));
        for (exchange, model) in transcript.exchanges().iter().zip(models) {
            exchange.usages().for_each(|usage| self.session_totals.add_usage(usage, model));
        }
        self.set_conversation(transcript);
    }

    /// Recounts the conversation. The newest turn with reported input tokens calibrates the
    /// estimates.
    pub(super) fn set_conversation(&mut self, transcript: &Transcript) {
        self.conversation = transcript.sent_tokens();
        let turns: Vec<&AssistantTurn> =
            transcript.exchanges().iter().flat_map(|exchange| exchange.turns()).collect();
        let newest = turns.iter().rposition(|turn| turn.usage().input.is_some());
        // A summary changes what is sent, so counts from before it do not apply.
        if let (Some(newest), None) = (newest, transcript.summary()) {
            let since: u64 = turns[newest..].iter().map(|turn| turn.tokens()).sum();
            self.scale.calibrate(
                self.overhead + self.conversation.saturating_sub(since),
                turns[newest].usage().input.unwrap_or_default(),
            );
        }
    }

    /// Adds a prompt to the conversation.
    pub(super) fn add_prompt(&mut self, prompt: &str) {
        self.conversation += estimate::prompt(prompt);
    }

    /// Adds an item that the provider bills.
    pub(super) fn add_billed_item(&mut self, item: &BilledItem, model: &str) {
        match item {
            BilledItem::Turn(turn) => self.add_turn(turn, model),
            BilledItem::OutsideTurn(usage) => self.add_usage(*usage, model),
        }
    }

    /// Adds a turn to the conversation and to the totals.
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

    /// Returns the estimated number of tokens of the next request.
    pub(super) fn context_tokens(&self) -> u64 {
        self.scale.apply(self.overhead + self.conversation)
    }

    /// Returns the part of [`context_tokens`](Self::context_tokens) that each request contains.
    pub(super) fn overhead(&self) -> u64 {
        self.scale.apply(self.overhead)
    }

    pub(super) fn session_totals(&self) -> &UsageTotals {
        &self.session_totals
    }

    pub(super) fn chat_totals(&self) -> &UsageTotals {
        &self.chat_totals
    }

    /// Formats the status line: mode, model, context, tokens, cost.
    pub(super) fn format_status(&self, mode: ApprovalMode, model: &ModelInfo) -> String {
        let mut parts =
            vec![mode.name().to_owned(), cofferdam::terminal_escape::escape_line(&model.model, 40)];
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

/// Formats a share of the context window in percent.
pub(super) fn format_percent(part: u64, whole: u64) -> String {
    match part.saturating_mul(100).checked_div(whole) {
        None => "?".to_owned(),
        Some(0) if part > 0 => "<1%".to_owned(),
        Some(percent) => format!("{percent}%"),
    }
}

/// Formats a number of tokens, rounded for reading.
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
    use cofferdam::conversation::{ModelResponse, ResponseBlock};

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
    fn r131_reported_tokens_correct_the_estimate() {
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
    fn r097_an_unknown_price_is_reported() {
        let mut meter = SessionCostMeter::default();
        assert_eq!(meter.session_totals.describe_cost(), "$0");
        meter.add_turn(&turn_of("a", usage_of(1_000_000, 0)), "gpt-4.1");
        assert_eq!(meter.session_totals.describe_cost(), "$2.0000");
        meter.add_turn(&turn_of("b", usage_of(10, 10)), "llama");
        assert_eq!(meter.session_totals.describe_cost(), "more than $2.0000");
    }

    #[test]
    fn r097_a_resumed_session_includes_its_earlier_cost() {
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
        // The price of a request without a recorded model is unknown.
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
