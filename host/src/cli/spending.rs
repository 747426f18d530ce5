//! What was used and what it cost, of a request and of a session.

use serde::Serialize;

use crate::conversation::{TokenUsage, UserExchange};
use crate::model;

/// Tokens and dollars.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct SpentTotals {
    pub(super) usage: TokenUsage,
    /// In US dollars; null if a price or a usage is not known, or nothing was answered.
    pub(super) cost: Option<f64>,
    /// How many responses it is for.
    #[serde(skip)]
    responses: usize,
}

impl SpentTotals {
    /// For a request to a model. Without the model's name the price is unknown.
    pub(super) fn spent_on(exchange: &UserExchange, model: Option<&str>) -> Self {
        Self::from_usages(exchange.usages(), model)
    }

    /// For these calls of a model, each at its own price: long input may be dearer.
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

    /// Of a request that nobody answered.
    pub(super) fn zero() -> Self {
        Self { usage: TokenUsage::default(), cost: None, responses: 0 }
    }

    /// All of it. What of one part is unknown is unknown of the whole; a part that nobody answered
    /// adds nothing.
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

    /// For people; nothing if nothing is known.
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

/// To a billionth: what lies beyond is an error of the arithmetic. Nothing is 0, never -0.
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
    fn r097_each_turn_has_its_price_and_the_session_their_sum() {
        let calls = [usage_of(200_000, None), usage_of(200_000, Some(100_000))];
        // Together they are beyond what the price of this model holds for; each alone is not.
        let spent = on(&calls, Some("gpt-6-sol"));
        assert_eq!(spent.describe(), ["400000 tokens in (100000 cached), 200 out", "$0.6220"]);
        assert_eq!(
            SpentTotals::sum([spent, spent]).describe(),
            ["800000 tokens in (200000 cached), 400 out", "$1.2440"]
        );
    }

    #[test]
    fn r097_what_is_unknown_is_said_to_be() {
        let spent = on(&[usage_of(10, None)], Some("llama3"));
        assert_eq!(spent.describe(), ["10 tokens in, 100 out", "cost unknown"]);
        assert_eq!(SpentTotals::sum([spent, on(&[usage_of(10, None)], Some("gpt-4o"))]).cost, None);
        assert_eq!(on(&[usage_of(10, None)], None).cost, None);
        assert_eq!(on(&[TokenUsage::default()], Some("gpt-4o")).describe(), [""; 0]);
    }

    #[test]
    fn r097_what_nobody_answered_has_no_cost_and_adds_none() {
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
