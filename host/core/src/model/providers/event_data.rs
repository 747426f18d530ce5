//! Parses the data of events as JSON, with limits and with checks for invalid UTF-8.

use serde_json::Value;

use super::failure::{AttemptFailure, ServerEndpoint};
use super::sse::SseEvent;
use crate::conversation::INVALID_UTF8;

/// The most values in one event, without counting keys.
///
/// A value can take two bytes in the event and a hundred bytes in memory. Without this limit, an
/// event of 4 MB could take 200 MB.
const MAX_VALUES: usize = 200_000;

/// Parses the data of an event.
///
/// # Errors
///
/// Returns an error if the event has too many values, or if it was damaged in transit: it is not
/// JSON, or it has invalid UTF-8 where that changes the meaning.
pub(super) fn parse_event(
    event: &SseEvent,
    endpoint: &ServerEndpoint,
) -> Result<Value, AttemptFailure> {
    if !is_within_value_limit(&event.data) {
        return Err(endpoint.malformed(&format!("an event contains more than {MAX_VALUES} values")));
    }
    let mut value: Value = serde_json::from_str(&event.data).map_err(|error| {
        endpoint.corrupted(&format!(
            "an event is not valid JSON ({error}): {}",
            endpoint.quote(&event.data)
        ))
    })?;
    if event.has_invalid_utf8 {
        let kind = value["type"].as_str().unwrap_or(&event.name).to_owned();
        mark_invalid_utf8(&mut value, "", kind.contains("arguments")).map_err(|InvalidUtf8| {
            endpoint.corrupted(&format!(
                "an event contains invalid UTF-8: {}",
                endpoint.quote(&event.data)
            ))
        })?;
    }
    Ok(value)
}

/// Returns whether a text is complete JSON. A truncated object never is.
pub(super) fn is_complete_json(text: &str) -> bool {
    is_within_value_limit(text) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn is_within_value_limit(json: &str) -> bool {
    let (mut values, mut in_string, mut is_escaped) = (1_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    values <= MAX_VALUES
}

/// The error for invalid UTF-8 in a position where nothing may be guessed.
struct InvalidUtf8;

/// Handles each U+FFFD that stands for invalid UTF-8, depending on where it is.
///
/// - In text for the user, it stays.
/// - In the arguments of a call, it becomes a character that makes the call invalid, because the
///   call must not run with arguments that the model did not write.
/// - Anywhere else it is an error, because it would change a name or a key.
fn mark_invalid_utf8(
    value: &mut Value,
    key: &str,
    are_deltas_arguments: bool,
) -> Result<(), InvalidUtf8> {
    const WORDS: [&str; 7] =
        ["content", "text", "thinking", "reasoning", "reasoning_content", "refusal", "message"];
    let damaged = char::REPLACEMENT_CHARACTER;
    match value {
        Value::String(text) if text.contains(damaged) => match key {
            "arguments" | "partial_json" => {
                *text = text.replace(damaged, &INVALID_UTF8.to_string())
            }
            "delta" if are_deltas_arguments => {
                *text = text.replace(damaged, &INVALID_UTF8.to_string())
            }
            "delta" => {}
            key if WORDS.contains(&key) => {}
            _ => return Err(InvalidUtf8),
        },
        // Arguments that are JSON instead of text.
        Value::Object(_) | Value::Array(_) if matches!(key, "input" | "arguments") => {
            if value.to_string().contains(damaged) {
                return Err(InvalidUtf8);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                if key.contains(damaged) {
                    return Err(InvalidUtf8);
                }
                mark_invalid_utf8(value, key, are_deltas_arguments)?;
            }
        }
        Value::Array(values) => values
            .iter_mut()
            .try_for_each(|value| mark_invalid_utf8(value, key, are_deltas_arguments))?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(data: &[u8]) -> Result<Value, String> {
        let endpoint =
            ServerEndpoint { provider: "P", host: "h".into(), key_variable: "K", key: None };
        let is_damaged = std::str::from_utf8(data).is_err();
        let event = SseEvent {
            name: String::new(),
            data: String::from_utf8_lossy(data).into_owned(),
            has_invalid_utf8: is_damaged,
        };
        parse_event(&event, &endpoint).map_err(|failure| failure.message)
    }

    #[test]
    fn r088_invalid_utf8_is_accepted_only_in_text() {
        assert_eq!(
            read(b"{\"choices\":[{\"delta\":{\"content\":\"a\xFF\"}}]}"),
            Ok(json!({"choices": [{"delta": {"content": "a\u{FFFD}"}}]}))
        );
        let marked: [(&[u8], Value); 4] = [
            (
                b"{\"arguments\":\"{\\\"a\\\":\\\"\xFF\\\"}\"}",
                json!({"arguments": "{\"a\":\"\u{1A}\"}"}),
            ),
            (b"{\"partial_json\":\"\xC3\"}", json!({"partial_json": "\u{1A}"})),
            (
                b"{\"type\":\"response.function_call_arguments.delta\",\"delta\":\"\xFF\"}",
                json!({"type": "response.function_call_arguments.delta", "delta": "\u{1A}"}),
            ),
            (
                b"{\"type\":\"response.output_text.delta\",\"delta\":\"\xFF\"}",
                json!({"type": "response.output_text.delta", "delta": "\u{FFFD}"}),
            ),
        ];
        for (data, expected) in marked {
            assert_eq!(read(data), Ok(expected));
        }
        let refused: [&[u8]; 5] = [
            b"{\"function\":{\"name\":\"bash\xFF\"}}",
            b"{\"argu\xFFments\":\"{}\"}",
            b"{\"id\":\"\xFF\"}",
            b"{\"content_block\":{\"input\":{\"content\":\"\xFF\"}}}",
            b"{\"arguments\":{\"text\":\"\xFF\"}}",
        ];
        for data in refused {
            let problem = read(data).expect_err("refused");
            assert!(problem.starts_with("P (h): an event contains invalid UTF-8: {"), "{problem}");
        }
        // A genuine U+FFFD is text like any other character.
        assert_eq!(
            read("{\"arguments\":\"\u{FFFD}\"}".as_bytes()),
            Ok(json!({"arguments": "\u{FFFD}"}))
        );
    }

    #[test]
    fn an_event_with_too_many_values_is_refused() {
        let zeros = format!("[0{}]", ",0".repeat(MAX_VALUES));
        assert!(
            read(zeros.as_bytes())
                .is_err_and(|problem| problem.contains("more than 200000 values"))
        );
        let text = format!("{{\"text\":\"{}\"}}", "[{,\\\\\\\"".repeat(MAX_VALUES));
        assert!(read(text.as_bytes()).is_ok(), "commas in a text are no values");
    }
}
