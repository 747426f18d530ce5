//! API keys, which may only be sent to their own provider, in a request header.

use std::fmt;

use super::escaped_key;

/// An API key. It cannot be printed, and it takes itself out of texts.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

const REDACTED: &str = "[key redacted]";

/// The shortest key that is redacted, in bytes.
///
/// Anything shorter is a placeholder for a server without keys, such as `none` or `x`. Redacting
/// such a word would hide nothing and damage the text.
const MIN_LEN: usize = 8;

impl ApiKey {
    /// Creates a key after trimming white space. Returns `None` if nothing is left.
    pub fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(key.to_owned()))
    }

    /// Returns the plain key for the header of a request, for callers that handle it with care.
    pub fn to_header(&self) -> String {
        self.0.clone()
    }

    /// The text without the key, should it hold it plainly, in any spelling of JSON,
    /// percent-encoded or in base64.
    pub fn redact(&self, text: &str) -> String {
        if self.0.len() < MIN_LEN {
            return text.to_owned();
        }
        let mut text = text.replace(&self.0, REDACTED);
        if text.contains('\\') {
            text = escaped_key::replace(&text, &self.0, REDACTED);
        }
        let percent = percent_encode(&self.0);
        if percent != self.0 {
            text = text.replace(&percent, REDACTED);
        }
        for alphabet in [BASE64, BASE64_URL] {
            text = text.replace(&base64_encode(self.0.as_bytes(), alphabet), REDACTED);
        }
        text
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

fn percent_encode(text: &str) -> String {
    use fmt::Write as _;

    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes without padding, so that the result is found in texts with and without padding.
fn base64_encode(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .enumerate()
            .fold(0_usize, |group, (n, byte)| group | usize::from(*byte) << (16 - 8 * n));
        for n in 0..=chunk.len() {
            out.push(char::from(alphabet[group >> (18 - 6 * n) & 63]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_printed() {
        let key = ApiKey::new(" sk-very-secret\n").expect("not blank");
        assert_eq!(format!("{key:?}"), "Secret(…)");
        assert_eq!(key.to_header(), "sk-very-secret");
        assert_eq!(ApiKey::new(" \n"), None);
    }

    #[test]
    fn a_key_is_redacted_in_each_spelling_of_json() {
        let key = ApiKey::new("sk-a/b\"c\\d").expect("not blank");
        for form in [r#"\u0073k-a\/b\"c\\d"#, r#"sk-a/b\\\"c\\\\d"#] {
            assert_eq!(key.redact(&format!("{{{form}}}")), "{[key redacted]}", "{form}");
        }
    }

    #[test]
    fn a_placeholder_is_no_key() {
        let placeholder = ApiKey::new("x").expect("not blank");
        assert_eq!(placeholder.redact("next"), "next");
    }

    #[test]
    fn a_key_is_redacted_in_its_encoded_forms_too() {
        let key = ApiKey::new("sk/ab+cd?ef").expect("not blank");
        assert_eq!(base64_encode(b"sk/ab+cd?ef", BASE64), "c2svYWIrY2Q/ZWY");
        for form in ["sk/ab+cd?ef", "sk%2Fab%2Bcd%3Fef", "c2svYWIrY2Q/ZWY=", "c2svYWIrY2Q_ZWY"] {
            let text = key.redact(&format!("bad key {form} given"));
            assert!(
                text.contains(REDACTED) && !text.contains(form.trim_end_matches('=')),
                "{text}"
            );
        }
    }
}
