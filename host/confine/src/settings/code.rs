//! A filter for build scripts, in which secrets are in quotes.

use super::lines::{is_secret_pair, without_url_passwords};
use super::secrets::{is_secret_name, is_secret_value};

/// The ends of names of functions whose argument is the name of a variable or property.
const LOOKUPS: &[&str] = &["getenv(", "roperty(", "ariable(", "env["];

/// Removes the quoted texts after names of secrets, and returns whether anything was removed.
///
/// The quotes stay, so that the script can still be parsed.
pub(super) fn without_secrets(text: &str) -> (String, bool) {
    let mut clean = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut is_after_name = false;
        let mut rest = line;
        while let Some(at) = rest.find(['"', '\'']) {
            let quote = &rest[at..=at];
            let (before, after) = (&rest[..at], &rest[at + 1..]);
            let end = match after.find(quote) {
                // An apostrophe, such as in a comment.
                None if after.contains(['"', '\'']) => {
                    is_after_name |= has_secret_name(before);
                    clean.push_str(&rest[..=at]);
                    rest = after;
                    continue;
                }
                // A quote without an end on the line begins a longer text.
                end => end.unwrap_or(after.trim_end().len()),
            };
            let value = &after[..end];
            is_after_name |= has_secret_name(before);
            let is_lookup = LOOKUPS.iter().any(|lookup| before.trim_end().ends_with(lookup));
            let is_secret = !is_lookup
                && (is_after_name && is_secret_pair("password", value) || is_secret_value(value));
            clean.push_str(before);
            clean.push_str(quote);
            clean.push_str(if is_secret { "" } else { value });
            // The value follows its name: `put("password", "value")`.
            is_after_name |= !is_lookup && is_secret_name(value);
            rest = &after[end..];
            if let Some(after_quote) = rest.strip_prefix(quote) {
                clean.push_str(quote);
                rest = after_quote;
            }
        }
        clean.push_str(rest);
    }
    let (clean, _) = without_url_passwords(&clean);
    let has_changed = clean != text;
    (clean, has_changed)
}

fn has_secret_name(code: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    code.split(|c| !is_part(c)).any(|word| is_secret_name(word) && word != "credentials")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_secrets_are_removed_and_the_script_keeps_its_form() {
        for (text, clean) in [
            (
                "credentials { username \"u\"; password \"SECRET\" }\n",
                "credentials { username \"u\"; password \"\" }\n",
            ),
            ("  password = 'SECRET'\n", "  password = ''\n"),
            ("setPassword(\"SECRET\")\n", "setPassword(\"\")\n"),
            ("ext.put('apiKey', 'SECRET')\n", "ext.put('apiKey', '')\n"),
            ("// password 'SECRET'\n", "// password ''\n"),
            ("url \"https://u:SECRET@host/a\"\n", "url \"https://host/a\"\n"),
            ("password \"SECRET\n", "password \"\n"),
            ("// don't: password \"SECRET\"\n", "// don't: password \"\"\n"),
            (
                "password System.getenv(\"PASSWORD\")\nurl 'https://host/'\n",
                "password System.getenv(\"PASSWORD\")\nurl 'https://host/'\n",
            ),
            ("password \"${PASSWORD}\"\n", "password \"${PASSWORD}\"\n"),
            ("credentials {\n  username 'u'\n}\n", "credentials {\n  username 'u'\n}\n"),
        ] {
            assert_eq!(without_secrets(text), (clean.to_owned(), clean != text), "{text}");
        }
    }
}
