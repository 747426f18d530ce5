//! JSON for standard output and for exported files. This is the only module that turns values into
//! JSON text for a user.
//!
//! Characters that affect a terminal are escaped everywhere, not only at a terminal. The value of
//! the JSON stays the same.

use serde::Serialize;

use cofferdam::terminal_escape;

/// Returns a value as one line.
pub(crate) fn json_line(value: &impl Serialize) -> String {
    escape(serde_json::to_string(value))
}

/// Returns a value as indented lines.
pub(crate) fn json_page(value: &impl Serialize) -> String {
    escape(serde_json::to_string_pretty(value))
}

/// Returns a value as indented lines, without the known keys.
pub(crate) fn redacted_json_page(
    value: &impl Serialize,
    redact: impl FnOnce(&str) -> String,
) -> String {
    escape(serde_json::to_string_pretty(value).map(|text| redact(&text)))
}

/// Escapes a text. Only a map with a key that is not a string has none, and the program prints no
/// such map.
fn escape(text: serde_json::Result<String>) -> String {
    terminal_escape::escape_json(&text.unwrap_or_else(|_| "null".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_escapes_what_affects_a_terminal_and_keeps_the_value() {
        let hostile = ["a\u{9b}2J", "\u{202e}b", "c\u{200b}", "\u{2066}", "\u{1b}\u{7f}🦀 é"];
        let redacted = redacted_json_page(&hostile, |text| text.replace('é', "e"));
        for (text, last) in [
            (json_line(&hostile), hostile[4]),
            (json_page(&hostile), hostile[4]),
            (redacted, "\u{1b}\u{7f}🦀 e"),
        ] {
            assert!(text.chars().all(|c| matches!(c, ' '..='~' | '\n' | '🦀' | 'é')), "{text}");
            let value: Vec<String> = serde_json::from_str(&text).expect("it is JSON");
            assert_eq!((&value[..4], &*value[4]), (&hostile.map(str::to_owned)[..4], last));
        }
    }
}
