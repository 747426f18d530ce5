//! Names of plugins.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a plugin and of its first tool: 1 to 48 lowercase letters, digits and `_`. It works
/// as a file, crate, module and tool name, and with `-` for `_` as the name of a WIT world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PluginName(String);

/// The error for a text that is not a valid plugin name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid plugin name `{0}`: use 1 to 48 characters of a-z, 0-9 and _, with a letter at the \
        beginning of each word"
)]
pub struct InvalidName(String);

impl PluginName {
    /// Returns the name with `-` between its words.
    pub fn to_kebab_case(&self) -> String {
        self.0.replace('_', "-")
    }

    /// Returns the name with `_` between its words.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PluginName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let name = text.replace('-', "_");
        // WIT requires a letter at the beginning of each word.
        let is_word = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_lowercase())
                && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        if name.len() <= 48 && name.split('_').all(is_word) {
            Ok(Self(name))
        } else {
            Err(InvalidName(text.to_owned()))
        }
    }
}

impl TryFrom<String> for PluginName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<PluginName> for String {
    fn from(name: PluginName) -> Self {
        name.0
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_works_as_a_file_a_crate_a_tool_and_a_world() {
        for (text, name) in
            [("word_count", "word_count"), ("word-count", "word_count"), ("a1", "a1")]
        {
            assert_eq!(text.parse::<PluginName>().map(|n| n.to_string()), Ok(name.to_owned()));
        }
        for text in ["", "Word", "1a", "a_", "a__b", "a_1", "../x", "ä", &"a".repeat(49)] {
            assert!(text.parse::<PluginName>().is_err(), "{text}");
        }
    }
}
