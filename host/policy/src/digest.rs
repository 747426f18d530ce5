//! Content digests that identify plugin components.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a component, in lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ComponentDigest(String);

impl ComponentDigest {
    /// Computes the digest of these bytes.
    pub fn compute(bytes: &[u8]) -> Self {
        Self(hex(&Sha256::digest(bytes)))
    }

    /// Parses 64 lower-case hexadecimal digits; returns `None` for any other text.
    pub fn parse(digits: &str) -> Option<Self> {
        let well_formed =
            digits.len() == 64 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        well_formed.then(|| Self(digits.to_owned()))
    }

    /// Returns all 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first twelve digits, for display.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl fmt::Display for ComponentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the bytes in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_sha_256_in_lower_case_digits() {
        let digits = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let digest = ComponentDigest::compute(b"");
        assert_eq!(digest.as_str(), digits);
        assert_eq!(digest.to_string(), digits);
        assert_eq!(digest.short(), "e3b0c44298fc");
        assert_eq!(ComponentDigest::parse(digits), Some(digest));
    }

    #[test]
    fn only_64_lower_case_digits_are_a_digest() {
        let (right, short, long) = ("a".repeat(64), "a".repeat(63), "a".repeat(65));
        assert!(ComponentDigest::parse(&right).is_some());
        let (capital, letter) = (format!("A{short}"), format!("g{short}"));
        for text in [&short, &long, &capital, &letter, &String::new()] {
            assert_eq!(ComponentDigest::parse(text), None, "{text}");
        }
    }
}
