//! How much a schema asks of whoever checks an input against it.
//!
//! A schema is small for whoever writes it. References make it large for whoever uses it: a part
//! that refers twice to a part that refers twice to a third, and so on, is gone through more often
//! than anybody can wait for. So does `unevaluatedProperties`, which goes through everything beside
//! it a second time, at each level. All of that is counted as what it stands for.

use std::collections::HashMap;

use serde_json::Value;

use super::pattern;

/// The contract's 64 levels, references followed.
const MAX_DEPTH: usize = 64;

/// The cost of one schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchemaCost {
    /// What is gone through for each value, at most.
    pub(crate) per_value: SchemaWork,
    /// Levels, references followed.
    pub(super) depth: usize,
    /// Patterns that differ.
    pub(super) patterns: usize,
    /// States of all these patterns together.
    pub(super) states: u64,
}

/// Parts of a schema that are gone through, and what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchemaWork {
    /// Values of the schema: keywords, their values, and what these have in them.
    pub(crate) parts: u64,
    /// Bytes of text in them.
    pub(crate) bytes: u64,
    /// States of patterns among them.
    pub(crate) states: u64,
    /// Parts that compare the items of an array with each other.
    pub(crate) comparisons: u64,
}

/// Parts that `uniqueItems` counts as: fifteen items are compared in pairs.
const UNIQUE_ITEMS_PARTS: u64 = 16;

impl SchemaWork {
    const ONE: Self = Self { parts: 1, bytes: 0, states: 0, comparisons: 0 };

    fn saturating_add(self, other: Self) -> Self {
        Self {
            parts: self.parts.saturating_add(other.parts),
            bytes: self.bytes.saturating_add(other.bytes),
            states: self.states.saturating_add(other.states),
            comparisons: self.comparisons.saturating_add(other.comparisons),
        }
    }
}

/// The cost of a part, references followed.
#[derive(Clone, Copy)]
struct SchemaPartCost {
    depth: usize,
    /// Of finding out whether a value is valid.
    validation: SchemaWork,
    /// Of finding out which of its properties and items the part has looked at.
    annotation: SchemaWork,
}

impl SchemaCost {
    /// Counts the cost of a schema, or says what is wrong with it, as the end of a sentence.
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
    format!("is deeper than {MAX_DEPTH} levels")
}

struct SchemaCostWalk<'s> {
    root: &'s Value,
    /// What was measured, by its reference.
    measured: HashMap<&'s str, SchemaPartCost>,
    /// The references that are being followed.
    active: Vec<&'s str>,
    /// States by pattern.
    patterns: HashMap<&'s str, u64>,
}

impl<'s> SchemaCostWalk<'s> {
    fn measure(&mut self, value: &'s Value) -> Result<SchemaPartCost, String> {
        let mut size =
            SchemaPartCost { depth: 1, validation: SchemaWork::ONE, annotation: SchemaWork::ONE };
        let mut add = |part: SchemaPartCost| {
            size.depth = size.depth.max(part.depth + 1);
            size.validation = size.validation.saturating_add(part.validation);
            // What a part of it has looked at is asked for where that part is valid, which is found
            // out anew.
            size.annotation =
                size.annotation.saturating_add(part.validation).saturating_add(part.annotation);
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
                    size.validation = size.validation.saturating_add(size.annotation);
                }
            }
            Value::String(text) => {
                let work = SchemaWork { bytes: text.len() as u64, ..SchemaWork::ONE };
                (size.validation, size.annotation) = (work, work);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(size)
    }

    fn measure_field(
        &mut self,
        key: &'s str,
        field: &'s Value,
        of_root: bool,
    ) -> Result<SchemaPartCost, String> {
        let mut size = match (key, field) {
            ("$ref", Value::String(target)) => self.measure_reference(target)?,
            // Both give references another meaning than the one that is counted here.
            ("$dynamicRef" | "$recursiveRef", Value::String(target))
                if !target.starts_with('#') =>
            {
                return Err(external_reference_error(target));
            }
            ("$dynamicRef" | "$recursiveRef" | "$anchor" | "$dynamicAnchor", Value::String(_)) => {
                return Err(format!(
                    "uses {key}; only references by path are understood, such as \"#/$defs/name\""
                ));
            }
            ("$id", Value::String(_)) if !of_root => return Err("has an $id below its root".into()),
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
            _ => {}
        }
        size.validation = size.validation.saturating_add(more);
        size.annotation = size.annotation.saturating_add(more);
        Ok(size)
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
        if let Some(size) = self.measured.get(target) {
            return Ok(*size);
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
            .ok_or_else(|| format!("refers to what is not there: {target:?}"))?;
        self.active.push(target);
        let size = self.measure(part)?;
        self.active.pop();
        self.measured.insert(target, size);
        Ok(size)
    }
}

fn external_reference_error(target: &str) -> String {
    format!("refers to another document: {target:?}")
}
