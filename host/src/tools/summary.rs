//! A call in a few words, for people.

use serde_json::Value;

/// What a call is about: the first required text of its arguments, or else its first text, or else all of them in words.
pub(super) fn of(schema: &Value, arguments: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(arguments) else { return arguments.trim().to_owned() };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let first_required = required.filter_map(Value::as_str).find_map(|name| fields.get(name)?.as_str());
    let text = first_required.or_else(|| fields.values().find_map(Value::as_str));
    match text {
        Some(text) => text.to_owned(),
        None => fields.iter().filter_map(|(name, value)| in_words(name, value)).collect::<Vec<_>>().join(", "),
    }
}

/// An argument that is no text; nothing if it says nothing.
fn in_words(name: &str, value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Array(values) if values.len() == 1 => format!("1 {}", name.strip_suffix('s').unwrap_or(name)),
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
    fn the_first_required_text_says_most() {
        let schema = json!({"required": ["pattern"]});
        assert_eq!(of(&schema, r#"{"path": "src", "pattern": "fn main"}"#), "fn main");
        assert_eq!(of(&json!({}), r#"{"n": 1, "path": "src"}"#), "src");
        assert_eq!(of(&json!({}), "{}"), "");
        let list = r#"{"items": [{"text": "Read", "status": "pending"}, {"text": "Mend", "status": "pending"}]}"#;
        assert_eq!([of(&json!({}), list), of(&json!({}), r#"{"items": [{}]}"#)], ["2 items", "1 item"]);
        assert_eq!([of(&json!({}), r#"{"items": null}"#), of(&json!({}), r#"{"n": 5, "all": true, "at": {}}"#)], ["", "n 5, all true, at"]);
        assert_eq!(of(&json!({}), "{broken"), "{broken");
    }
}
