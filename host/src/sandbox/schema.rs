//! The schema of a tool's input, checked so that checking an input against it is bounded.
//!
//! A schema is small for whoever writes it: 64 KiB. References make it large for whoever uses it: a part that refers twice to
//! a part that refers twice to a third, and so on, is gone through more often than anybody can wait for, and one that refers to
//! itself for as long as the input goes on. So references are counted as what they stand for, and none leads in a circle.

use std::collections::HashMap;

use serde_json::Value;

/// The contract's 64 KiB.
const LARGEST: usize = 64 << 10;
/// The contract's 64 levels, references followed.
const DEEPEST: usize = 64;
/// Parts of a schema, references followed. The largest in honest use have some hundreds.
const MOST_PARTS: usize = 20_000;

/// Reads the schema of an input, or says what is wrong with it, as the end of a sentence.
pub(super) fn check(text: &str) -> Result<Value, String> {
    if text.len() > LARGEST {
        return Err(format!("is longer than {LARGEST} bytes"));
    }
    // The parser itself stops at 128 levels.
    let schema: Value = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("is not of type object".into());
    }
    let mut references = References { root: &schema, known: HashMap::new(), open: Vec::new() };
    let whole = references.measure(&schema)?;
    if whole.depth > DEEPEST {
        return Err(format!("is deeper than {DEEPEST} levels"));
    }
    if whole.parts > MOST_PARTS {
        return Err(format!("has more than {MOST_PARTS} parts with its references followed"));
    }
    Ok(schema)
}

/// How large a part of a schema is with its references followed.
#[derive(Clone, Copy)]
struct Size {
    parts: usize,
    depth: usize,
}

struct References<'s> {
    root: &'s Value,
    /// What was measured, by its reference.
    known: HashMap<&'s str, Size>,
    /// The references that are being followed.
    open: Vec<&'s str>,
}

impl<'s> References<'s> {
    fn measure(&mut self, value: &'s Value) -> Result<Size, String> {
        let mut size = Size { parts: 1, depth: 1 };
        let mut add = |part: Size| {
            size.parts = size.parts.saturating_add(part.parts);
            size.depth = size.depth.max(part.depth + 1);
        };
        match value {
            Value::Array(items) => {
                for item in items {
                    add(self.measure(item)?);
                }
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    add(match (key.as_str(), field) {
                        ("$ref", Value::String(target)) => self.follow(target)?,
                        // Both give references another meaning than the one that is counted here.
                        ("$dynamicRef" | "$recursiveRef", Value::String(target)) if !target.starts_with('#') => {
                            return Err(foreign(target));
                        }
                        ("$dynamicRef" | "$recursiveRef" | "$anchor" | "$dynamicAnchor", Value::String(_)) => {
                            return Err(format!("uses {key}; only references by path are understood, such as \"#/$defs/name\""));
                        }
                        ("$id", Value::String(_)) if !std::ptr::eq(value, self.root) => return Err("has an $id below its root".into()),
                        _ => self.measure(field)?,
                    });
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(size)
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
            return Err(format!("is deeper than {DEEPEST} levels"));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(schema: &str) -> String {
        check(schema).expect_err(schema)
    }

    #[test]
    fn a_schema_cannot_reach_out_or_go_deep() {
        assert!(problem(r#"{"type":"object","properties":{"x":{"$ref":"http://x"}}}"#).contains("another document"));
        let deep = format!(r#"{{"type":"object","properties":{}1{}}}"#, "[".repeat(80), "]".repeat(80));
        assert!(problem(&deep).contains("deeper"));
        let deeper = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(problem(&deeper).contains("not JSON"));
        assert!(problem(r#"{"type":"string"}"#).contains("type object"));
    }

    #[test]
    fn references_within_are_fine_as_long_as_they_end() {
        assert!(
            check(
                r##"{"type":"object","$defs":{"p":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/p"},"b":{"$ref":"#/$defs/p"}}}"##
            )
            .is_ok()
        );
        let circles = [
            r##"{"type":"object","$ref":"#"}"##,
            r##"{"type":"object","properties":{"a":{"$ref":"#"}}}"##,
            r##"{"type":"object","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
            r##"{"type":"object","$defs":{"a":{"items":{"$ref":"#/$defs/a/../a"}}}}"##,
            r##"{"type":"object","properties":{"a":{"$ref":"#/properties"}}}"##,
        ];
        for schema in circles {
            let problem = problem(schema);
            assert!(problem.contains("refers to"), "{problem}");
        }
    }

    #[test]
    fn references_are_counted_as_what_they_stand_for() {
        let levels: String = (0..16)
            .map(|n| {
                let parts = vec![format!(r##"{{"$ref":"#/$defs/d{}"}}"##, n + 1); 4].join(",");
                format!(r#""d{n}":{{"allOf":[{parts}]}},"#)
            })
            .collect();
        let schema = format!(r##"{{"type":"object","$ref":"#/$defs/d0","$defs":{{{levels}"d16":{{}}}}}}"##);
        assert!(problem(&schema).contains("more than 20000 parts"));
        let chain: String = (0..100).map(|n| format!(r##""d{n}":{{"$ref":"#/$defs/d{}"}},"##, n + 1)).collect();
        let schema = format!(r##"{{"type":"object","$ref":"#/$defs/d0","$defs":{{{chain}"d100":{{}}}}}}"##);
        assert!(problem(&schema).contains("deeper than 64 levels"));
    }
}
