//! Checks the schema of a tool's input, so that checking an input against it takes limited time and
//! memory.

mod cost;
mod pattern;

use serde_json::Value;

pub(crate) use cost::SchemaCost;

/// The longest schema, 64 KiB by the WIT contract.
const MAX_SCHEMA_LEN: usize = 64 << 10;
/// The number of parts of a schema, with references followed. The largest in real use have a few
/// hundred.
const MAX_PARTS: u64 = 20_000;
/// The number of distinct patterns of a schema. Each takes memory of its own once it was used.
const MAX_PATTERNS: usize = 256;
/// The states of all patterns of a schema together. `^\w{1,64}$` has about 300.
const MAX_STATES: u64 = 50_000;

/// Parses the schema of an input, or returns what is wrong with it, as the end of a sentence.
pub(crate) fn check(text: &str) -> Result<Value, String> {
    if text.len() > MAX_SCHEMA_LEN {
        return Err(format!("is longer than {MAX_SCHEMA_LEN} bytes"));
    }
    // The parser itself stops at 128 levels.
    let schema: Value =
        serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("does not have the type object".into());
    }
    let cost = SchemaCost::compute(&schema)?;
    if cost.is_too_deep() {
        return Err(cost::depth_error());
    }
    if cost.per_value.parts > MAX_PARTS {
        return Err(format!("has more than {MAX_PARTS} parts after its references are resolved"));
    }
    if cost.patterns > MAX_PATTERNS || cost.states > MAX_STATES {
        return Err(format!(
            "has more than {MAX_PATTERNS} patterns, or patterns with more than {MAX_STATES} states \
                in total"
        ));
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(schema: &str) -> String {
        check(schema).expect_err(schema)
    }

    #[test]
    fn external_references_and_deep_schemas_are_refused() {
        assert!(
            problem(r#"{"type":"object","properties":{"x":{"$ref":"http://x"}}}"#)
                .contains("another document")
        );
        let deep =
            format!(r#"{{"type":"object","properties":{}1{}}}"#, "[".repeat(80), "]".repeat(80));
        assert!(problem(&deep).contains("deeper"));
        let deeper = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(problem(&deeper).contains("not JSON"));
        assert!(problem(r#"{"type":"string"}"#).contains("type object"));
    }

    #[test]
    fn references_within_a_schema_are_allowed_unless_cyclic() {
        let shared = r##"{
            "type": "object",
            "$defs": {"p": {"type": "string"}},
            "properties": {"a": {"$ref": "#/$defs/p"}, "b": {"$ref": "#/$defs/p"}}
        }"##;
        assert!(check(shared).is_ok());
        let cycles = [
            r##"{"type":"object","$ref":"#"}"##,
            r##"{"type":"object","properties":{"a":{"$ref":"#"}}}"##,
            r##"{"type":"object","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
            r##"{"type":"object","$defs":{"a":{"items":{"$ref":"#/$defs/a/../a"}}}}"##,
            r##"{"type":"object","properties":{"a":{"$ref":"#/properties"}}}"##,
        ];
        for schema in cycles {
            let problem = problem(schema);
            assert!(problem.contains("refers to"), "{problem}");
        }
    }

    #[test]
    fn references_count_as_their_targets() {
        let levels: String = (0..16)
            .map(|n| {
                let parts = vec![format!(r##"{{"$ref":"#/$defs/d{}"}}"##, n + 1); 4].join(",");
                format!(r#""d{n}":{{"allOf":[{parts}]}},"#)
            })
            .collect();
        let schema =
            format!(r##"{{"type":"object","$ref":"#/$defs/d0","$defs":{{{levels}"d16":{{}}}}}}"##);
        assert!(problem(&schema).contains("more than 20000 parts"));
        let chain: String =
            (0..100).map(|n| format!(r##""d{n}":{{"$ref":"#/$defs/d{}"}},"##, n + 1)).collect();
        let schema =
            format!(r##"{{"type":"object","$ref":"#/$defs/d0","$defs":{{{chain}"d100":{{}}}}}}"##);
        assert!(problem(&schema).contains("deeper than 64 levels"));
    }

    #[test]
    fn unevaluated_keywords_count_their_siblings_twice() {
        for again in ["unevaluatedProperties", "unevaluatedItems"] {
            let nested = |levels: usize| {
                let inner = (0..levels).fold("{}".to_owned(), |inner, _| {
                    format!(r#"{{"allOf":[{inner}],"{again}":false}}"#)
                });
                format!(r#"{{"type":"object","properties":{{"x":{inner}}}}}"#)
            };
            assert!(check(&nested(3)).is_ok(), "{again}");
            assert!(problem(&nested(20)).contains("more than 20000 parts"), "{again}");
        }
    }

    #[test]
    fn the_number_and_size_of_patterns_are_limited() {
        let with = |patterns: &[String]| {
            let parts: Vec<String> =
                patterns.iter().map(|pattern| format!(r#"{{"pattern":"{pattern}"}}"#)).collect();
            format!(r#"{{"type":"object","properties":{{"x":{{"anyOf":[{}]}}}}}}"#, parts.join(","))
        };
        let many: Vec<String> = (0..300).map(|n| format!("a{n}")).collect();
        assert!(problem(&with(&many)).contains("more than 256 patterns"));
        assert!(check(&with(&many[..200])).is_ok());
        assert!(problem(&with(&["((a{100}){100}){100}".to_owned()])).contains("50000 states"));
        // The same pattern a thousand times counts once.
        assert!(check(&with(&vec!["^[a-z]+$".to_owned(); 1000])).is_ok());
        assert!(problem(&with(&["\\\\cA".repeat(2_000)])).contains("more than 4096 bytes"));
    }
}
