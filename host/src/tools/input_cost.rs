//! What it takes to check arguments against a schema, and to say why they do not fit.
//!
//! Both grow with the product of the two: each part of a schema may be tried on each value. The
//! schema's author and the model each write one of the factors, and neither is trusted.

use serde_json::Value;

use crate::sandbox::SchemaCost;

/// Steps of checking: the slowest take some ten nanoseconds each.
const MAX_STEPS: u64 = 50_000_000;
/// Bytes of memory that explaining may take.
const MAX_MEMORY_BYTES: u64 = 32 << 20;
/// Bytes that an explanation takes for one part and one value, without the value itself.
const EXPLANATION_BYTES: u64 = 512;
/// Bytes of text that are looked at in one step.
const BYTES_PER_STEP: u64 = 64;
/// Arrays with fewer items are compared in pairs, which the schema's cost counts.
const MIN_HASHED_ITEMS: usize = 16;

/// The size of arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InputCost {
    /// Values, and keys of objects.
    pub(super) values: u64,
    /// Bytes of texts and keys.
    bytes: u64,
    /// Bytes of the paths to all values.
    path_bytes: u64,
    /// Pairs of items that may have to be compared where they must differ. Numbers and texts are
    /// found by a hash; lists can be written so that many have the same one.
    compared_pairs: u64,
}

impl InputCost {
    pub(super) fn measure(value: &Value) -> Self {
        let mut cost = Self::default();
        cost.add(value, 0);
        cost
    }

    /// The parser stops at 128 levels.
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

    /// Whether these arguments can be checked against a schema in a moment.
    pub(super) fn is_checkable(&self, schema: &SchemaCost) -> bool {
        let each = schema.per_value;
        let steps = [
            each.parts.saturating_mul(self.values),
            each.parts.saturating_mul(self.bytes) / BYTES_PER_STEP,
            each.bytes.saturating_mul(self.values) / BYTES_PER_STEP,
            each.states.saturating_mul(self.bytes),
            each.comparisons.saturating_mul(self.compared_pairs),
        ];
        steps.into_iter().fold(0, u64::saturating_add) <= MAX_STEPS
    }

    /// Whether it can be said why they do not fit it: that builds an error for each part and each
    /// value before the first can be told.
    pub(super) fn is_explainable(&self, schema: &SchemaCost) -> bool {
        let each = schema.per_value;
        let of_values = self
            .values
            .saturating_mul(EXPLANATION_BYTES)
            .saturating_add(self.bytes)
            .saturating_add(self.path_bytes);
        let memory = each
            .parts
            .saturating_mul(of_values)
            .saturating_add(each.bytes.saturating_mul(self.values));
        memory <= MAX_MEMORY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema_cost(schema: &Value) -> SchemaCost {
        SchemaCost::compute(schema).expect("it is a schema")
    }

    #[test]
    fn r022_what_models_write_is_checked_and_explained() {
        let edit = json!({"type": "object", "required": ["path", "edits"], "additionalProperties": false, "properties": {
            "path": {"type": "string", "minLength": 1, "pattern": "^[^\u{0}]+$", "description": "a file of the workspace ".repeat(8)},
            "edits": {"type": "array", "uniqueItems": true, "items": {"type": "object", "required": ["old", "new"], "properties": {
                "old": {"type": "string"}, "new": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}},
        }});
        let edit = schema_cost(&edit);
        let edits: Vec<Value> =
            (0..100).map(|n| json!({"old": format!("line {n}\n").repeat(4), "new": "another line\n".repeat(4)})).collect();
        let input = InputCost::measure(&json!({"path": "src/main.rs", "edits": edits}));
        assert!(input.is_checkable(&edit) && input.is_explainable(&edit), "{input:?} {edit:?}");

        let write = schema_cost(
            &json!({"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}),
        );
        let input = InputCost::measure(&json!({"path": "a", "content": "x".repeat(1 << 20)}));
        assert!(input.is_checkable(&write) && input.is_explainable(&write), "{input:?} {write:?}");
    }

    #[test]
    fn the_product_is_what_counts() {
        let list = |items: usize| InputCost::measure(&json!({"x": vec![0; items]}));
        let parts = |parts: usize| {
            schema_cost(
                &json!({"properties": {"x": {"items": {"anyOf": vec![json!({"minimum": 1}); parts]}}}}),
            )
        };
        assert!(list(300).is_checkable(&parts(4_000)) && !list(300).is_explainable(&parts(4_000)));
        assert!(!list(90_000).is_checkable(&parts(4_000)));
        assert!(list(90_000).is_checkable(&parts(10)) && !list(90_000).is_explainable(&parts(10)));
    }

    #[test]
    fn a_pattern_counts_as_its_states_on_every_byte() {
        let schema = schema_cost(&json!({"properties": {"x": {"pattern": "[01]*1[01]{500}"}}}));
        let text = |length: usize| InputCost::measure(&json!({"x": "0".repeat(length)}));
        assert!(text(10_000).is_checkable(&schema) && !text(1 << 20).is_checkable(&schema));
    }

    #[test]
    fn lists_that_must_differ_are_compared_in_pairs() {
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
