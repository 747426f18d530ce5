//! The cost of checking arguments against a schema, and of explaining why they do not match.
//!
//! Both grow with the product of the two sizes: each part of a schema may be tried on each value.
//! The author of the schema and the model each control one factor, and neither is trusted.

use serde_json::Value;

use crate::sandbox::SchemaCost;

/// The largest number of steps of a check. The slowest steps take about ten nanoseconds each.
const MAX_STEPS: u64 = 50_000_000;
/// The largest memory of an explanation, in bytes.
const MAX_MEMORY_BYTES: u64 = 32 << 20;
/// The bytes that an explanation takes for one part and one value, without the value itself.
const EXPLANATION_BYTES: u64 = 512;
/// The bytes of text that one step processes.
const BYTES_PER_STEP: u64 = 64;
/// The steps of one division. It takes up to nine microseconds, measured with 1e308 and 1e-300.
const DIVISION_STEPS: u64 = 900;
/// Arrays with fewer items are compared pairwise, which the cost of the schema includes.
const MIN_HASHED_ITEMS: usize = 16;

/// The size of arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InputCost {
    /// The number of values, including the keys of objects.
    pub(super) values: u64,
    /// The bytes of all strings and keys.
    bytes: u64,
    /// The bytes of the JSON pointers to all values.
    path_bytes: u64,
    /// The pairs of items that `uniqueItems` may compare. Numbers and strings are found by hash,
    /// but an attacker can write arrays with equal hashes.
    compared_pairs: u64,
}

impl InputCost {
    pub(super) fn measure(value: &Value) -> Self {
        let mut cost = Self::default();
        cost.add(value, 0);
        cost
    }

    /// Recursion is bounded: the parser stops at 128 levels.
    fn add(&mut self, value: &Value, path: u64) {
        self.values += 1;
        self.path_bytes = self.path_bytes.saturating_add(path);
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => self.bytes += text.len() as u64,
            Value::Array(items) => {
                if items.len() >= MIN_HASHED_ITEMS
                    && items.iter().any(|item| item.is_array() || item.is_object())
                {
                    self.compared_pairs =
                        self.compared_pairs.saturating_add((items.len() as u64).pow(2) / 2);
                }
                items.iter().for_each(|item| self.add(item, path + 8));
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    self.values += 1;
                    self.bytes += key.len() as u64;
                    self.add(field, path + 1 + key.len() as u64);
                }
            }
        }
    }

    /// Returns whether these arguments can be checked against a schema in reasonable time.
    pub(super) fn is_checkable(&self, schema: &SchemaCost) -> bool {
        let each = schema.per_value;
        let steps = [
            each.parts.saturating_mul(self.values),
            each.parts.saturating_mul(self.bytes) / BYTES_PER_STEP,
            each.bytes.saturating_mul(self.values) / BYTES_PER_STEP,
            each.states.saturating_mul(self.bytes),
            each.comparisons.saturating_mul(self.compared_pairs),
            each.divisions.saturating_mul(self.values).saturating_mul(DIVISION_STEPS),
        ];
        steps.into_iter().fold(0, u64::saturating_add) <= MAX_STEPS
    }

    /// Returns whether a mismatch can be explained in reasonable memory. The validator builds an
    /// error for each part and each value before it returns the first.
    pub(super) fn is_explainable(&self, schema: &SchemaCost) -> bool {
        let each = schema.per_value;
        let value_bytes = self
            .values
            .saturating_mul(EXPLANATION_BYTES)
            .saturating_add(self.bytes)
            .saturating_add(self.path_bytes);
        let memory = each
            .parts
            .saturating_mul(value_bytes)
            .saturating_add(each.bytes.saturating_mul(self.values));
        memory <= MAX_MEMORY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema_cost(schema: &Value) -> SchemaCost {
        SchemaCost::compute(schema).expect("a schema")
    }

    #[test]
    fn r022_typical_arguments_are_checkable_and_explainable() {
        let edit = json!({
            "type": "object",
            "required": ["path", "edits"],
            "additionalProperties": false,
            "properties": {
                "path": {
                    "type": "string",
                    "minLength": 1,
                    "pattern": "^[^\u{0}]+$",
                    "description": "a file of the workspace ".repeat(8),
                },
                "edits": {
                    "type": "array",
                    "uniqueItems": true,
                    "items": {
                        "type": "object",
                        "required": ["old", "new"],
                        "properties": {
                            "old": {"type": "string"},
                            "new": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                        },
                    },
                },
            },
        });
        let edit = schema_cost(&edit);
        let edit_of_line = |n: usize| {
            let old = format!("line {n}\n").repeat(4);
            json!({"old": old, "new": "another line\n".repeat(4)})
        };
        let edits: Vec<Value> = (0..100).map(edit_of_line).collect();
        let input = InputCost::measure(&json!({"path": "src/main.rs", "edits": edits}));
        assert!(input.is_checkable(&edit) && input.is_explainable(&edit), "{input:?} {edit:?}");

        let write = schema_cost(&json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        }));
        let input = InputCost::measure(&json!({"path": "a", "content": "x".repeat(1 << 20)}));
        assert!(input.is_checkable(&write) && input.is_explainable(&write), "{input:?} {write:?}");
    }

    #[test]
    fn the_cost_is_the_product_of_both_sizes() {
        let list = |items: usize| InputCost::measure(&json!({"x": vec![0; items]}));
        let parts = |parts: usize| {
            let any_of = vec![json!({"minimum": 1}); parts];
            schema_cost(&json!({"properties": {"x": {"items": {"anyOf": any_of}}}}))
        };
        assert!(list(300).is_checkable(&parts(4_000)) && !list(300).is_explainable(&parts(4_000)));
        assert!(!list(90_000).is_checkable(&parts(4_000)));
        assert!(list(90_000).is_checkable(&parts(10)) && !list(90_000).is_explainable(&parts(10)));
    }

    #[test]
    fn a_pattern_costs_its_states_per_byte() {
        let schema = schema_cost(&json!({"properties": {"x": {"pattern": "[01]*1[01]{500}"}}}));
        let text = |length: usize| InputCost::measure(&json!({"x": "0".repeat(length)}));
        assert!(text(10_000).is_checkable(&schema) && !text(1 << 20).is_checkable(&schema));
    }

    #[test]
    fn divisions_cost_more_than_comparisons() {
        let input = InputCost::measure(&json!({"x": vec![1e308; 10_000]}));
        let each = |keyword: &str, parts: usize| {
            let all_of = vec![json!({keyword: 1e-300}); parts];
            schema_cost(&json!({"properties": {"x": {"items": {"allOf": all_of}}}}))
        };
        assert!(input.is_checkable(&each("minimum", 100)));
        assert!(input.is_checkable(&each("multipleOf", 5)));
        assert!(!input.is_checkable(&each("multipleOf", 6)));
    }

    #[test]
    fn unique_arrays_cost_their_pairs() {
        let schema =
            schema_cost(&json!({"properties": {"x": {"type": "array", "uniqueItems": true}}}));
        let with = |items: usize, item: Value| InputCost::measure(&json!({"x": vec![item; items]}));
        assert!(with(50_000, json!("a")).is_checkable(&schema));
        assert!(
            with(1_000, json!([[]])).is_checkable(&schema)
                && !with(20_000, json!([[]])).is_checkable(&schema)
        );
    }
}
