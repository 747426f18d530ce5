//! Parsing of untrusted JSON within a size limit.
//!
//! A parsed value takes far more memory than its text: `{}` and a comma are three bytes of text,
//! and about a hundred bytes once parsed. So the values are counted in the text before it is
//! parsed.

use serde_json::Value;

/// The largest accepted text, in bytes.
pub(crate) const MAX_BYTES: usize = 8 << 20;
/// The largest accepted number of values and keys.
///
/// A model never has a reason to write a list of a hundred thousand numbers.
pub(crate) const MAX_VALUES: usize = 100_000;

/// The limit that a JSON text exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonTooLarge {
    /// The text has this many bytes, more than [`MAX_BYTES`].
    #[error("have {0} bytes (limit: {MAX_BYTES})")]
    Bytes(usize),
    /// The text has about this many values, more than [`MAX_VALUES`].
    #[error("have about {0} JSON values (limit: {MAX_VALUES})")]
    Values(usize),
}

/// Checks that a text is within both limits.
///
/// The text does not have to be valid JSON: values are counted by the characters that separate
/// them.
///
/// # Errors
/// The text has too many bytes or too many values.
pub(crate) fn check(text: &str) -> Result<(), JsonTooLarge> {
    if text.len() > MAX_BYTES {
        return Err(JsonTooLarge::Bytes(text.len()));
    }
    let (mut values, mut in_string, mut escaped) = (1_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b':' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    if values > MAX_VALUES { Err(JsonTooLarge::Values(values)) } else { Ok(()) }
}

/// Parses a JSON text, if it is valid and within the limits.
pub(crate) fn parse(text: &str) -> Option<Value> {
    check(text).ok().and_then(|()| serde_json::from_str(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        let list = |items: usize, item: &str| format!("[{}]", vec![item; items].join(","));
        assert_eq!(check(&list(1000, "{}")), Ok(()));
        assert_eq!(check(&list(60_000, "{}")), Err(JsonTooLarge::Values(120_001)));
        assert_eq!(check(&list(60_000, r#"{"a":1}"#)), Err(JsonTooLarge::Values(180_001)));
        assert_eq!(check(&"[".repeat(1 << 20)), Err(JsonTooLarge::Values((1 << 20) + 1)));
        // Separators inside a string are not counted.
        assert_eq!(check(&format!(r#"{{"text":"{}"}}"#, r#"\"[{,:"#.repeat(500_000))), Ok(()));
        assert_eq!(check(&" ".repeat(MAX_BYTES + 1)), Err(JsonTooLarge::Bytes(MAX_BYTES + 1)));
    }

    #[test]
    fn the_count_is_never_below_the_number_of_values() {
        fn count(value: &Value) -> usize {
            match value {
                Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
                Value::Object(fields) => {
                    1 + fields.values().map(|field| 1 + count(field)).sum::<usize>()
                }
                _ => 1,
            }
        }
        let wide =
            |width: usize| vec![r#"{"a":[1,"x\\",{"b:":null}],"c,":"[\"{"}"#; width].join(",");
        for text in
            [format!("[{}]", wide(7_000)), format!(r#"{{"x":[{}]}}"#, wide(9_999)), "7".into()]
        {
            let value: Value = serde_json::from_str(&text).expect("valid JSON");
            assert_eq!(check(&text).is_err(), count(&value) > MAX_VALUES, "{}", count(&value));
        }
    }
}
