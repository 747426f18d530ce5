//! Short descriptions of a call for the user.

use serde_json::Value;

use crate::bounded_json;

/// Summarizes the arguments of a call: the first required string, or else the first string, or else
/// all arguments in words.
pub(super) fn summarize_arguments(schema: &Value, arguments: &str) -> String {
    let Some(Value::Object(fields)) = bounded_json::parse(arguments) else {
        return arguments.trim().to_owned();
    };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let first_required =
        required.filter_map(Value::as_str).find_map(|name| fields.get(name)?.as_str());
    let text = first_required.or_else(|| fields.values().find_map(Value::as_str));
    match text {
        Some(text) => text.to_owned(),
        None => fields
            .iter()
            .filter_map(|(name, value)| describe_argument(name, value))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// The longest refusal, in characters.
const MAX_REFUSAL_CHARS: usize = 4_000;

/// Truncates the reason of a refusal for the model. It may quote some of what the model wrote.
pub(super) fn truncate_refusal(text: String) -> String {
    match text.char_indices().nth(MAX_REFUSAL_CHARS) {
        Some((end, _)) => format!("{}… (truncated)", &text[..end]),
        None => text,
    }
}

/// Describes an argument that is not a string. Returns `None` for `null`.
fn describe_argument(name: &str, value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Array(values) if values.len() == 1 => {
            format!("1 {}", name.strip_suffix('s').unwrap_or(name))
        }
        Value::Array(values) => format!("{} {name}", values.len()),
        Value::Object(_) => name.to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => format!("{name} {value}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_required_string_is_the_summary() {
        let schema = json!({"required": ["pattern"]});
        assert_eq!(
            summarize_arguments(&schema, r#"{"path": "src", "pattern": "fn main"}"#),
            "fn main"
        );
        assert_eq!(summarize_arguments(&json!({}), r#"{"n": 1, "path": "src"}"#), "src");
        assert_eq!(summarize_arguments(&json!({}), "{}"), "");
        let list = r#"{"items": [{"text": "Read", "status": "done"}, {"text": "Fix"}]}"#;
        assert_eq!(
            [
                summarize_arguments(&json!({}), list),
                summarize_arguments(&json!({}), r#"{"items": [{}]}"#)
            ],
            ["2 items", "1 item"]
        );
        assert_eq!(
            [
                summarize_arguments(&json!({}), r#"{"items": null}"#),
                summarize_arguments(&json!({}), r#"{"n": 5, "all": true, "at": {}}"#)
            ],
            ["", "n 5, all true, at"]
        );
        assert_eq!(summarize_arguments(&json!({}), "{broken"), "{broken");
    }

    #[test]
    fn a_long_refusal_is_truncated() {
        assert_eq!(truncate_refusal("short".to_owned()), "short");
        let long = truncate_refusal("é".repeat(10_000));
        assert!(long.ends_with("… (truncated)") && long.chars().count() < 4_020, "{}", long.len());
    }
}
