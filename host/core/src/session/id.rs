//! Session IDs and their parsing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::random;

/// The number of hexadecimal digits in an ID.
const ID_DIGITS: usize = 12;

/// The ID of a session: twelve hexadecimal digits.
///
/// On the command line, any unique prefix is enough.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// Creates a new random ID, which does not have to be hard to guess.
    pub(super) fn random() -> Self {
        Self(format!("{:012x}", random::next_u64() >> 16))
    }

    /// Parses a file name without its extension; `None` if it is not an ID.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == ID_DIGITS && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// Returns the hexadecimal digits of the ID.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_exactly_twelve_hexadecimal_digits() {
        let id = SessionId::random();
        assert_eq!(SessionId::parse(id.as_str()), Some(id));
        for text in ["", "0123456789a", "0123456789abc", "0123456789AB", "../456789abcd"] {
            assert_eq!(SessionId::parse(text), None, "{text}");
        }
    }
}
