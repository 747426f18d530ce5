//! Token usage and cost of requests and sessions.

use serde::Serialize;

use cofferdam::conversation::{TokenUsage, UserExchange};
use cofferdam::model;

/// Token usage and cost of some responses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct SpentTotals {
    pub(super) usage: TokenUsage,
    /// Cost in US dollars; null if a price or the usage is unknown, or there was no response.
    pub(super) cost: Option<f64>,
    /// Number of responses included.
    #[serde(skip)]
    responses: usize,
}

impl SpentTotals {
    /// Returns the totals of a request. Without the name of the model the price is unknown.
    pub(super) fn spent_on(exchange: &UserExchange, model: Option<&str>) -> Self {
        Self::from_usages(exchange.usages(), model)
    }

    /// Returns the totals of model calls. Each has its own price, since long input may cost more
    /// per token.
    fn from_usages(usages: impl Iterator<Item = TokenUsage> + Clone, model: Option<&str>) -> Self {
        let responses = usages.clone().count();
        let cost: Option<f64> = usages.clone().map(|usage| model::cost(usage, model?)).sum();
        let cost = cost.filter(|_| responses > 0).map(round_dollars);
        Self {
            usage: usages.fold(TokenUsage::default(), TokenUsage::saturating_add),
            cost,
            responses,
        }
    }

    /// Returns the totals of a request without a response.
    pub(super) fn zero() -> Self {
        Self { usage: TokenUsage::default(), cost: None, responses: 0 }
    }

    /// Adds totals. An unknown figure in one part makes that of the sum unknown; parts without a
    /// response are skipped.
    pub(super) fn sum(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().filter(|part| part.responses > 0).fold(Self::zero(), |sum, part| Self {
            usage: sum.usage.saturating_add(part.usage),
            cost: if sum.responses == 0 {
                part.cost
            } else {
                sum.cost.zip(part.cost).map(|(one, other)| round_dollars(one + other))
            },
            responses: sum.responses + part.responses,
        })
    }

    /// Formats tokens and cost for display; empty if the usage is unknown.
    pub(super) fn describe(&self) -> Vec<String> {
        let TokenUsage { input: Some(input), output: Some(output), cached_input, .. } = self.usage
        else {
            return Vec::new();
        };
        let cached = cached_input
            .filter(|cached| *cached > 0)
            .map(|cached| format!(" ({cached} cached)"))
            .unwrap_or_default();
        let cost =
            self.cost.map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost:.4}"));
        vec![format!("{input} tokens in{cached}, {output} out"), cost]
    }
}

/// Rounds to a billionth of a dollar, which hides floating-point errors. Never returns -0.
fn round_dollars(dollars: f64) -> f64 {
    (dollars * 1e9).round() / 1e9 + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage_of(input: u64, cached: Option<u64>) -> TokenUsage {
        TokenUsage {
            input: Some(input),
            output: Some(100),
            cached_input: cached,
            cache_write: None,
        }
    }

    fn on(usages: &[TokenUsage], model: Option<&str>) -> SpentTotals {
        SpentTotals::from_usages(usages.iter().copied(), model)
    }

    #[test]
    fn r097_each_turn_has_its_price_and_a_session_their_sum() {
        let calls = [usage_of(200_000, None), usage_of(200_000, Some(100_000))];
        // Together they exceed the input length up to which this price applies; each alone does
        // not.
        let spent = on(&calls, Some("gpt-6-sol"));
        assert_eq!(spent.describe(), ["400000 tokens in (100000 cached), 200 out", "$0.6220"]);
        assert_eq!(
            SpentTotals::sum([spent, spent]).describe(),
            ["800000 tokens in (200000 cached), 400 out", "$1.2440"]
        );
    }

    #[test]
    fn r097_an_unknown_cost_is_reported_as_unknown() {
        let spent = on(&[usage_of(10, None)], Some("llama3"));
        assert_eq!(spent.describe(), ["10 tokens in, 100 out", "cost unknown"]);
        assert_eq!(SpentTotals::sum([spent, on(&[usage_of(10, None)], Some("gpt-4o"))]).cost, None);
        assert_eq!(on(&[usage_of(10, None)], None).cost, None);
        assert_eq!(on(&[TokenUsage::default()], Some("gpt-4o")).describe(), [""; 0]);
    }

    #[test]
    fn r097_a_request_without_a_response_has_no_cost() {
        let as_json =
            |spent: SpentTotals| serde_json::to_value(spent).expect("data")["cost"].clone();
        let unanswered = on(&[], Some("gpt-4o"));
        assert_eq!(
            as_json(unanswered),
            serde_json::Value::Null,
            "the price is known, and the usage is not"
        );
        assert_eq!(
            as_json(SpentTotals::sum([unanswered, SpentTotals::zero()])),
            serde_json::Value::Null
        );
        let answered = on(&[usage_of(200_000, None)], Some("gpt-6-sol"));
        assert_eq!(SpentTotals::sum([unanswered, answered, unanswered]), answered);
        let nothing_used = TokenUsage { input: Some(0), output: Some(0), ..TokenUsage::default() };
        assert_eq!(as_json(on(&[nothing_used], Some("gpt-4o"))).to_string(), "0.0");
        assert_eq!(
            (round_dollars(-0.0).to_string(), round_dollars(-1e-12).to_string()),
            ("0".into(), "0".into())
        );
    }
}
