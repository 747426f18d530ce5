//! The number of values in a message, counted before it is parsed.
//!
//! A parsed value takes about a hundred times the memory of its shortest text, so that a message
//! within the limit of its length could take gigabytes.

/// The number of values of a message: the arguments of a call may have half of them.
const MAX_VALUES: usize = 200_000;

/// Returns why a message is not parsed, if it has too many values.
///
/// Each value but the first follows a comma, a colon or an opening bracket outside of strings. Text
/// that is not JSON is refused later.
pub(crate) fn find_excess(json: &[u8]) -> Option<String> {
    let (mut values, mut is_string, mut is_escaped) = (1_usize, false, false);
    for byte in json {
        match (is_string, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => is_string = !is_string,
            (false, b',' | b':' | b'[' | b'{') => values += 1,
            _ => {}
        }
    }
    (values > MAX_VALUES).then(|| format!("the message has more than {MAX_VALUES} values"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        let numbers = |count: usize| format!("[{}]", vec!["0"; count].join(","));
        assert_eq!(find_excess(numbers(MAX_VALUES - 2).as_bytes()), None);
        assert!(find_excess(numbers(MAX_VALUES + 1).as_bytes()).is_some());
        let text = format!("{{\"text\": \"{}\"}}", r#"[,\",:{"#.repeat(MAX_VALUES));
        assert_eq!(find_excess(text.as_bytes()), None);
        assert!(find_excess("[".repeat(MAX_VALUES).as_bytes()).is_some());
    }
}
