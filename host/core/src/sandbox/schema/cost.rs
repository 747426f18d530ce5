//! The cost of checking an input against a schema.
//!
//! A schema is small for its author, but references make it large for the checker: a part that
//! refers twice to a part that refers twice to a third, and so on, is processed more often than
//! anyone can wait for. `unevaluatedProperties` also processes its siblings a second time, at each
//! level. The cost includes all of that.

use std::collections::HashMap;

use serde_json::Value;

use super::pattern;

/// The largest depth, 64 levels by the WIT contract, with references followed.
const MAX_DEPTH: usize = 64;

/// The cost of checking against one schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchemaCost {
    /// The work for each value, at most.
    pub(crate) per_value: SchemaWork,
    /// The depth, with references followed.
    pub(super) depth: usize,
    /// The number of distinct patterns.
    pub(super) patterns: usize,
    /// The states of all distinct patterns together.
    pub(super) states: u64,
}

/// An amount of work: the parts of a schema that are processed, and their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchemaWork {
    /// The values of the schema: keywords, their values, and everything in these.
    pub(crate) parts: u64,
    /// The bytes of text in these parts.
    pub(crate) bytes: u64,
    /// The automaton states of the patterns in these parts.
    pub(crate) states: u64,
    /// The parts that compare the items of an array with each other.
    pub(crate) comparisons: u64,
    /// The parts that divide a number, as exact fractions of any size.
    pub(crate) divisions: u64,
}

/// The parts that `uniqueItems` counts as: up to fifteen items are compared pairwise.
const UNIQUE_ITEMS_PARTS: u64 = 16;

impl SchemaWork {
    const ONE: Self = Self { parts: 1, bytes: 0, states: 0, comparisons: 0, divisions: 0 };

    fn saturating_add(self, other: Self) -> Self {
        Self {
            parts: self.parts.saturating_add(other.parts),
            bytes: self.bytes.saturating_add(other.bytes),
            states: self.states.saturating_add(other.states),
            comparisons: self.comparisons.saturating_add(other.comparisons),
            divisions: self.divisions.saturating_add(other.divisions),
        }
    }
}

/// The cost of one part of a schema, with references followed.
#[derive(Clone, Copy)]
struct SchemaPartCost {
    depth: usize,
    /// The work of deciding whether a value is valid.
    validation: SchemaWork,
    /// The work of finding the properties and items that the part evaluates.
    annotation: SchemaWork,
}

impl SchemaCost {
    /// Computes the cost of a schema, or returns what is wrong with it, as the end of a sentence.
    pub(crate) fn compute(schema: &Value) -> Result<Self, String> {
        let mut walk = SchemaCostWalk {
            root: schema,
            measured: HashMap::new(),
            active: Vec::new(),
            patterns: HashMap::new(),
        };
        let whole = walk.measure(schema)?;
        let states = walk.patterns.values().fold(0, |sum: u64, states| sum.saturating_add(*states));
        Ok(Self {
            per_value: whole.validation,
            depth: whole.depth,
            patterns: walk.patterns.len(),
            states,
        })
    }

    pub(super) fn is_too_deep(&self) -> bool {
        self.depth > MAX_DEPTH
    }
}

pub(super) fn depth_error() -> String {
    format!("is nested deeper than {MAX_DEPTH} levels")
}

struct SchemaCostWalk<'s> {
    root: &'s Value,
    /// The measured parts, by reference.
    measured: HashMap<&'s str, SchemaPartCost>,
    /// The references that are being followed.
    active: Vec<&'s str>,
    /// The number of states, by pattern.
    patterns: HashMap<&'s str, u64>,
}

impl<'s> SchemaCostWalk<'s> {
    fn measure(&mut self, value: &'s Value) -> Result<SchemaPartCost, String> {
        let mut cost =
            SchemaPartCost { depth: 1, validation: SchemaWork::ONE, annotation: SchemaWork::ONE };
        let mut add = |part: SchemaPartCost| {
            cost.depth = cost.depth.max(part.depth + 1);
            cost.validation = cost.validation.saturating_add(part.validation);
            // Finding the evaluated properties of a valid part validates the part again.
            cost.annotation =
                cost.annotation.saturating_add(part.validation).saturating_add(part.annotation);
        };
        match value {
            Value::Array(items) => {
                for item in items {
                    add(self.measure(item)?);
                }
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    add(self.measure_field(key, field, std::ptr::eq(value, self.root))?);
                }
                if fields.contains_key("unevaluatedProperties")
                    || fields.contains_key("unevaluatedItems")
                {
                    cost.validation = cost.validation.saturating_add(cost.annotation);
                }
            }
            Value::String(text) => {
                let work = SchemaWork { bytes: text.len() as u64, ..SchemaWork::ONE };
                (cost.validation, cost.annotation) = (work, work);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(cost)
    }

    fn measure_field(
        &mut self,
        key: &'s str,
        field: &'s Value,
        is_root: bool,
    ) -> Result<SchemaPartCost, String> {
        let mut cost = match (key, field) {
            ("$ref", Value::String(target)) => self.measure_reference(target)?,
            // Both change the meaning of references from the one that is counted here.
            ("$dynamicRef" | "$recursiveRef", Value::String(target))
                if !target.starts_with('#') =>
            {
                return Err(external_reference_error(target));
            }
            ("$dynamicRef" | "$recursiveRef" | "$anchor" | "$dynamicAnchor", Value::String(_)) => {
                return Err(format!(
                    "uses {key}; only references by path are supported, such as \"#/$defs/name\""
                ));
            }
            ("$id", Value::String(_)) if !is_root => return Err("has an $id below its root".into()),
            _ => self.measure(field)?,
        };
        let mut more = SchemaWork { bytes: key.len() as u64, ..SchemaWork::default() };
        match (key, field) {
            ("pattern", Value::String(pattern)) => more.states = self.pattern_states(pattern)?,
            ("patternProperties", Value::Object(patterns)) => {
                for pattern in patterns.keys() {
                    more.states = more.states.saturating_add(self.pattern_states(pattern)?);
                }
            }
            ("uniqueItems", Value::Bool(true)) => {
                more.comparisons = 1;
                more.parts = UNIQUE_ITEMS_PARTS;
            }
            ("multipleOf", _) => more.divisions = 1,
            _ => {}
        }
        cost.validation = cost.validation.saturating_add(more);
        cost.annotation = cost.annotation.saturating_add(more);
        Ok(cost)
    }

    fn pattern_states(&mut self, pattern: &'s str) -> Result<u64, String> {
        if let Some(states) = self.patterns.get(pattern) {
            return Ok(*states);
        }
        let states = pattern::count_states(pattern)?;
        self.patterns.insert(pattern, states);
        Ok(states)
    }

    fn measure_reference(&mut self, target: &'s str) -> Result<SchemaPartCost, String> {
        if let Some(cost) = self.measured.get(target) {
            return Ok(*cost);
        }
        let Some(path) = target.strip_prefix('#') else {
            return Err(external_reference_error(target));
        };
        if self.active.contains(&target) || path.is_empty() {
            return Err(format!("refers to itself by {target:?}"));
        }
        if self.active.len() >= MAX_DEPTH {
            return Err(depth_error());
        }
        let part = self
            .root
            .pointer(path)
            .ok_or_else(|| format!("refers to a missing part: {target:?}"))?;
        self.active.push(target);
        let cost = self.measure(part)?;
        self.active.pop();
        self.measured.insert(target, cost);
        Ok(cost)
    }
}

fn external_reference_error(target: &str) -> String {
    format!("refers to another document: {target:?}")
}
