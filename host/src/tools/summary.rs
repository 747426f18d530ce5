//! A call in a few words, for people.

use serde_json::Value;

use crate::bounded_json;

/// What a call is about: the first required text of its arguments, or else its first text, or else all of them.
pub(super) fn of(schema: &Value, arguments: &str) -> String {
    let Some(Value::Object(fields)) = bounded_json::parse(arguments) else { return arguments.trim().to_owned() };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let first_required = required.filter_map(Value::as_str).find_map(|name| fields.get(name)?.as_str());
    let text = first_required.or_else(|| fields.values().find_map(Value::as_str));
    match text {
        Some(text) => text.to_owned(),
        None if fields.is_empty() => String::new(),
        None => arguments.trim().to_owned(),
    }
}

/// Letters of a refusal.
const LONGEST_REFUSAL: usize = 4_000;

/// Why a call does not run, at a length that a model can be sent: it may repeat some of what the model wrote.
pub(super) fn of_refusal(text: String) -> String {
    match text.char_indices().nth(LONGEST_REFUSAL) {
        Some((end, _)) => format!("{}… (cut)", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_required_text_says_most() {
        let schema = json!({"required": ["pattern"]});
        assert_eq!(of(&schema, r#"{"path": "src", "pattern": "fn main"}"#), "fn main");
        assert_eq!(of(&json!({}), r#"{"n": 1, "path": "src"}"#), "src");
        assert_eq!(of(&json!({}), "{}"), "");
        assert_eq!(of(&json!({}), "{broken"), "{broken");
    }

    #[test]
    fn a_refusal_does_not_repeat_all_that_it_refuses() {
        assert_eq!(of_refusal("short".to_owned()), "short");
        let long = of_refusal("é".repeat(10_000));
        assert!(long.ends_with("… (cut)") && long.chars().count() < 4_010, "{}", long.len());
    }
}
