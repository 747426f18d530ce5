//! How much a schema asks of whoever checks an input against it.
//!
//! A schema is small for whoever writes it. References make it large for whoever uses it: a part that refers twice to a part that
//! refers twice to a third, and so on, is gone through more often than anybody can wait for. So does `unevaluatedProperties`,
//! which goes through everything beside it a second time, at each level. All of that is counted as what it stands for.

use std::collections::HashMap;

use serde_json::Value;

use super::pattern;

/// The contract's 64 levels, references followed.
const DEEPEST: usize = 64;

/// The cost of one schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SchemaCost {
    /// What is gone through for each value, at most.
    pub(crate) per_value: Work,
    /// Levels, references followed.
    pub(super) depth: usize,
    /// Patterns that differ.
    pub(super) patterns: usize,
    /// States of all these patterns together.
    pub(super) states: u64,
}

/// Parts of a schema that are gone through, and what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
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
const OF_UNIQUE_ITEMS: u64 = 16;

impl Work {
    const ONE: Self = Self { parts: 1, bytes: 0, states: 0, comparisons: 0 };

    fn and(self, other: Self) -> Self {
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
struct Size {
    depth: usize,
    /// Of finding out whether a value is valid.
    check: Work,
    /// Of finding out which of its properties and items the part has looked at.
    mark: Work,
}

impl SchemaCost {
    /// Counts the cost of a schema, or says what is wrong with it, as the end of a sentence.
    pub(crate) fn of(schema: &Value) -> Result<Self, String> {
        let mut walk = Walk { root: schema, known: HashMap::new(), open: Vec::new(), patterns: HashMap::new() };
        let whole = walk.measure(schema)?;
        let states = walk.patterns.values().fold(0, |sum: u64, states| sum.saturating_add(*states));
        Ok(Self { per_value: whole.check, depth: whole.depth, patterns: walk.patterns.len(), states })
    }

    pub(super) fn is_too_deep(&self) -> bool {
        self.depth > DEEPEST
    }
}

pub(super) fn too_deep() -> String {
    format!("is deeper than {DEEPEST} levels")
}

struct Walk<'s> {
    root: &'s Value,
    /// What was measured, by its reference.
    known: HashMap<&'s str, Size>,
    /// The references that are being followed.
    open: Vec<&'s str>,
    /// States by pattern.
    patterns: HashMap<&'s str, u64>,
}

impl<'s> Walk<'s> {
    fn measure(&mut self, value: &'s Value) -> Result<Size, String> {
        let mut size = Size { depth: 1, check: Work::ONE, mark: Work::ONE };
        let mut add = |part: Size| {
            size.depth = size.depth.max(part.depth + 1);
            size.check = size.check.and(part.check);
            // What a part of it has looked at is asked for where that part is valid, which is found out anew.
            size.mark = size.mark.and(part.check).and(part.mark);
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
                if fields.contains_key("unevaluatedProperties") || fields.contains_key("unevaluatedItems") {
                    size.check = size.check.and(size.mark);
                }
            }
            Value::String(text) => {
                let work = Work { bytes: text.len() as u64, ..Work::ONE };
                (size.check, size.mark) = (work, work);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(size)
    }

    fn measure_field(&mut self, key: &'s str, field: &'s Value, of_root: bool) -> Result<Size, String> {
        let mut size = match (key, field) {
            ("$ref", Value::String(target)) => self.follow(target)?,
            // Both give references another meaning than the one that is counted here.
            ("$dynamicRef" | "$recursiveRef", Value::String(target)) if !target.starts_with('#') => {
                return Err(foreign(target));
            }
            ("$dynamicRef" | "$recursiveRef" | "$anchor" | "$dynamicAnchor", Value::String(_)) => {
                return Err(format!("uses {key}; only references by path are understood, such as \"#/$defs/name\""));
            }
            ("$id", Value::String(_)) if !of_root => return Err("has an $id below its root".into()),
            _ => self.measure(field)?,
        };
        let mut more = Work { bytes: key.len() as u64, ..Work::default() };
        match (key, field) {
            ("pattern", Value::String(pattern)) => more.states = self.states(pattern)?,
            ("patternProperties", Value::Object(patterns)) => {
                for pattern in patterns.keys() {
                    more.states = more.states.saturating_add(self.states(pattern)?);
                }
            }
            ("uniqueItems", Value::Bool(true)) => {
                more.comparisons = 1;
                more.parts = OF_UNIQUE_ITEMS;
            }
            _ => {}
        }
        size.check = size.check.and(more);
        size.mark = size.mark.and(more);
        Ok(size)
    }

    fn states(&mut self, pattern: &'s str) -> Result<u64, String> {
        if let Some(states) = self.patterns.get(pattern) {
            return Ok(*states);
        }
        let states = pattern::states(pattern)?;
        self.patterns.insert(pattern, states);
        Ok(states)
    }

    fn follow(&mut self, target: &'s str) -> Result<Size, String> {
        if let Some(size) = self.known.get(target) {
            return Ok(*size);
        }
        let Some(path) = target.strip_prefix('#') else { return Err(foreign(target)) };
        if self.open.contains(&target) || path.is_empty() {
            return Err(format!("refers to itself by {target:?}"));
        }
        if self.open.len() >= DEEPEST {
            return Err(too_deep());
        }
        let part = self.root.pointer(path).ok_or_else(|| format!("refers to what is not there: {target:?}"))?;
        self.open.push(target);
        let size = self.measure(part)?;
        self.open.pop();
        self.known.insert(target, size);
        Ok(size)
    }
}

fn foreign(target: &str) -> String {
    format!("refers to another document: {target:?}")
}
