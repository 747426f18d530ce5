//! The languages that have a plugin template.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A language with a plugin template. Any other language that compiles to a component works without
/// a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PluginLanguage {
    /// Rust, with the SDK in `sdk/rust`.
    Rust,
    /// Python: CPython, built with componentize-py.
    Python,
    /// JavaScript or TypeScript: QuickJS, built with jco.
    JavaScript,
    /// C, built with the compiler of Zig.
    C,
    /// Go, built with the standard toolchain.
    Go,
}

/// The error for a language without a template.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no template for language `{0}`: use rust, python, javascript, c or go")]
pub(crate) struct UnknownLanguage(String);

impl PluginLanguage {
    /// All languages, in the order of the help text.
    pub(crate) const ALL: [Self; 5] =
        [Self::Rust, Self::Python, Self::JavaScript, Self::C, Self::Go];

    /// Returns the name on the command line and in `plugin.toml`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::C => "c",
            Self::Go => "go",
        }
    }
}

impl fmt::Display for PluginLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PluginLanguage {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, UnknownLanguage> {
        let short = match text {
            "js" | "ts" | "typescript" => "javascript",
            "py" => "python",
            other => other,
        };
        Self::ALL
            .into_iter()
            .find(|language| language.name() == short)
            .ok_or_else(|| UnknownLanguage(text.to_owned()))
    }
}
