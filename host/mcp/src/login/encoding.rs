//! Random values, PKCE, and the encoding of parameters.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::LoginError;

/// Returns 256 random bits as text.
pub(super) fn random_text() -> Result<String, LoginError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| LoginError::new(format!("the system has no random numbers: {error}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns the challenge of a verifier, with the method S256.
pub(super) fn code_challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

/// Encodes parameters as a form or a query.
pub(super) fn encode_form(parameters: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    pairs.join("&")
}

/// Encodes a text for a form or a query.
pub(super) fn encode(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => {
                // Writing to a `String` cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        encoded
    })
}

/// Decodes a query to its parameters. Returns `None` if it is not valid, or has one twice.
pub(super) fn decode_query(query: &str) -> Option<Vec<(String, String)>> {
    let mut parameters: Vec<(String, String)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name)?;
        if parameters.iter().any(|(known, _)| *known == name) {
            return None;
        }
        parameters.push((name, decode(value)?));
    }
    Some(parameters)
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => decoded.push(b' '),
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let value = digit()? * 16 + digit()?;
                decoded.push(u8::try_from(value).ok()?);
            }
            byte => decoded.push(byte),
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(code_challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let (one, two) = (random_text().expect("random"), random_text().expect("random"));
        assert!(one.len() == 43 && one != two);
    }

    #[test]
    fn parameters_survive_a_round_trip() {
        let encoded = encode_form(&[("a b", "x&y=z"), ("c", "\u{e4}+%")]);
        assert_eq!(encoded, "a%20b=x%26y%3Dz&c=%C3%A4%2B%25");
        let expected = [("a b", "x&y=z"), ("c", "\u{e4}+%")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(decode_query(&encoded).as_deref(), Some(&expected[..]));
        assert_eq!(decode_query("a=b+c&d").map(|all| all.len()), Some(2));
        for invalid in ["a=%", "a=%4", "a=%zz", "a=%ff", "a=1&a=2", "a=1&%61=2"] {
            assert_eq!(decode_query(invalid), None, "{invalid}");
        }
    }
}
