//! The languages that there is a template for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A language to write a plugin in. Any other that compiles to a component works too, without a
/// template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginLanguage {
    /// With the SDK in `sdk/rust`.
    Rust,
    /// CPython, by componentize-py.
    Python,
    /// QuickJS, by jco. TypeScript is taken too.
    JavaScript,
    /// By the C compiler that comes with Zig.
    C,
    /// The Go toolchain as it comes.
    Go,
}

/// There is no template for it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no template for '{0}'; there is one for rust, python, javascript, c and go")]
pub struct UnknownLanguage(String);

impl PluginLanguage {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Rust, Self::Python, Self::JavaScript, Self::C, Self::Go];

    /// The word for it on the command line and in `plugin.toml`.
    pub fn name(self) -> &'static str {
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
