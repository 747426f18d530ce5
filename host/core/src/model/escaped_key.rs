//! Finds a key in JSON text, in each spelling that JSON allows: `\u0073k-…` means `sk-…`, `\/`
//! means `/`, and text that is encoded twice has more backslashes.

/// The largest number of backslashes before a character of a key. A longer run is not a key.
const MAX_RUN: usize = 256;

/// A character of a key with the number of backslashes before it.
struct KeyPart {
    backslashes: usize,
    /// The character, or `None` after backslashes at the end of a key.
    character: Option<char>,
}

/// Returns the text with a replacement for each occurrence of the key.
pub(super) fn replace(text: &str, key: &str, replacement: &str) -> String {
    if key.is_empty() || !text.contains('\\') {
        return text.to_owned();
    }
    let parts = split(key);
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = parts.iter().try_fold(rest, |rest, part| part.skip(rest)) {
            clean.push_str(replacement);
            rest = after;
            continue;
        }
        // A run of backslashes is skipped as a whole, so that it is read only once.
        let length = if first == '\\' { run(rest) } else { first.len_utf8() };
        clean.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    clean
}

fn split(key: &str) -> Vec<KeyPart> {
    let mut parts = Vec::new();
    let mut backslashes = 0;
    for character in key.chars() {
        if character == '\\' {
            backslashes += 1;
        } else {
            parts.push(KeyPart { backslashes, character: Some(character) });
            backslashes = 0;
        }
    }
    if backslashes > 0 {
        parts.push(KeyPart { backslashes, character: None });
    }
    parts
}

impl KeyPart {
    /// Returns the rest of a text that begins with this part, or `None` if it does not.
    fn skip<'a>(&self, text: &'a str) -> Option<&'a str> {
        let mut rest = text;
        let mut found = 0;
        // A backslash can be written as `\u005c` too.
        let length = loop {
            let length = run(rest);
            match escaped(&rest[length..]).filter(|_| length > 0 && self.backslashes > 0) {
                Some(_) if found > MAX_RUN => return None,
                Some(('\\', after)) => (found, rest) = (found + length, after),
                _ => break length,
            }
        };
        found += length;
        if found > MAX_RUN || found < self.backslashes {
            return None;
        }
        let after = &rest[length..];
        let Some(expected) = self.character else { return Some(after) };
        let mut characters = after.chars();
        let next = characters.next()?;
        let may_be_plain = found == 0 || self.backslashes > 0 || matches!(expected, '"' | '/');
        if next == expected && may_be_plain {
            return Some(characters.as_str());
        }
        if length == 0 || found <= self.backslashes {
            return None;
        }
        let short = match expected {
            '\u{8}' => Some('b'),
            '\u{c}' => Some('f'),
            '\n' => Some('n'),
            '\r' => Some('r'),
            '\t' => Some('t'),
            _ => None,
        };
        if short == Some(next) {
            return Some(characters.as_str());
        }
        escaped(after).filter(|(character, _)| *character == expected).map(|(_, after)| after)
    }
}

/// Returns the number of backslashes at the beginning of a text.
fn run(text: &str) -> usize {
    text.len() - text.trim_start_matches('\\').len()
}

/// Parses `uXXXX` with four hexadecimal digits, or two of them as a surrogate pair. Returns the
/// character and the rest of the text.
fn escaped(text: &str) -> Option<(char, &str)> {
    let (high, rest) = unit(text)?;
    if let Some(character) = char::from_u32(high) {
        return Some((character, rest));
    }
    let (low, rest) = unit(rest.trim_start_matches('\\'))?;
    let units = [u16::try_from(high).ok()?, u16::try_from(low).ok()?];
    Some((char::decode_utf16(units).next()?.ok()?, rest))
}

fn unit(text: &str) -> Option<(u32, &str)> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some((u32::from_str_radix(digits, 16).ok()?, text.get(5..)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_found_in_each_spelling() {
        let key = "sk-a/b\"c\\d";
        for text in [
            r#"sk-a/b\"c\\d"#,
            r#"\u0073k-a\/b\"c\\d"#,
            r#"sk\u002Da\u002fb\u0022c\u005cd"#,
            r#"\\u0073k-a\\/b\\\"c\\\\d"#,
            r#"\\\\u0073k-a/b\\\\\\\"c\\\\\\\\d"#,
        ] {
            let line = format!("x\\\\ {text} \\n{text}");
            assert_eq!(replace(&line, key, "!"), "x\\\\ ! \\n!", "{text}");
        }
        assert_eq!(replace(r"\uD83D\ude00-key", "\u{1f600}-key", "!"), "!");
        assert_eq!(replace(r"\tkey-\\", "\tkey-\\", "!"), "!");
        for other in [r"\u0073k-a", r"\ sk-", r"\u00", r"\ud83d", "\\", r"\u0073k-a\/b\\"] {
            assert_eq!(replace(other, key, "!"), other);
        }
        // The time grows with the length of the text, not with its square.
        for (long, key) in [("\\", key), ("\\u005c", "\\key")] {
            let long = long.repeat(100_000);
            assert_eq!(replace(&long, key, "!"), long);
        }
    }

    proptest! {
        #[test]
        fn whatever_json_makes_of_a_key_is_found(key in "[ -~é\u{1f600}\n]{8,20}", depth in 1..4) {
            // Backslashes at the ends become one with those around them.
            prop_assume!(!key.starts_with('\\') && !key.ends_with('\\'));
            let mut text = format!("before {key} after");
            for _ in 0..depth {
                text = serde_json::to_string(&text).expect("text");
            }
            prop_assume!(text.contains('\\'));
            let clean = replace(&text, &key, "!");
            prop_assert!(clean.contains("before ! after"), "{clean}");
        }
    }
}
