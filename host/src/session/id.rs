//! Names of sessions.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::random;

/// How many hexadecimal digits a name has.
const ID_DIGITS: usize = 12;

/// Twelve hexadecimal digits. Any unique beginning will do to name a session at the terminal
///
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// A new one. Nothing depends on its being hard to guess.
    pub(super) fn random() -> Self {
        Self(format!("{:012x}", random::next_u64() >> 16))
    }

    /// From a file name without its ending, if it is a name at all.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == ID_DIGITS && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// The digits.
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
    fn a_name_is_twelve_digits_and_nothing_else() {
        let id = SessionId::random();
        assert_eq!(SessionId::parse(id.as_str()), Some(id));
        for text in ["", "0123456789a", "0123456789abc", "0123456789AB", "../456789abcd"] {
            assert_eq!(SessionId::parse(text), None, "{text}");
        }
    }
}
