//! JSON that somebody else wrote, read within a bound.
//!
//! A value takes far more memory than its text: `{}` and a comma are three bytes, and some hundred
//! once they are read. So values are counted in the text, before anything is read.

use serde_json::Value;

/// Bytes of a text.
pub(crate) const MAX_BYTES: usize = 8 << 20;
/// Values and keys in it. A list of a hundred thousand numbers is nothing that a model writes.
pub(crate) const MAX_VALUES: usize = 100_000;

/// Why a text is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonTooLarge {
    /// It is too long.
    #[error("have {0} bytes (at most {MAX_BYTES} are read)")]
    Bytes(usize),
    /// It has too many values.
    #[error("have about {0} JSON values (at most {MAX_VALUES} are read)")]
    Values(usize),
}

/// Finds that a text can be read, whether or not it is JSON: values in it are counted by what parts
/// them.
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

/// The value that a text is, if it is one and within the bound.
pub(crate) fn parse(text: &str) -> Option<Value> {
    check(text).ok().and_then(|()| serde_json::from_str(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_where_they_are() {
        let list = |items: usize, item: &str| format!("[{}]", vec![item; items].join(","));
        assert_eq!(check(&list(1000, "{}")), Ok(()));
        assert_eq!(check(&list(60_000, "{}")), Err(JsonTooLarge::Values(120_001)));
        assert_eq!(check(&list(60_000, r#"{"a":1}"#)), Err(JsonTooLarge::Values(180_001)));
        assert_eq!(check(&"[".repeat(1 << 20)), Err(JsonTooLarge::Values((1 << 20) + 1)));
        // Text is text, whatever is in it.
        assert_eq!(check(&format!(r#"{{"text":"{}"}}"#, r#"\"[{,:"#.repeat(500_000))), Ok(()));
        assert_eq!(check(&" ".repeat(MAX_BYTES + 1)), Err(JsonTooLarge::Bytes(MAX_BYTES + 1)));
    }

    #[test]
    fn no_value_is_missed() {
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
            let value: Value = serde_json::from_str(&text).expect("it is JSON");
            assert_eq!(check(&text).is_err(), count(&value) > MAX_VALUES, "{}", count(&value));
        }
    }
}
