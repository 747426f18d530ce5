//! What is checked of every tool, and what came of it.

use std::fmt;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConformanceCheck {
    /// A case of the author.
    Case(String),
    /// It says the same of itself each time, and accepts no name that it did not declare.
    Declaration,
    /// With nothing granted it fails like a tool, not like a crash.
    WithoutGrants,
    /// A file whose name is not ASCII is a file like any other.
    UnicodePath,
    /// Text of all scripts, and of characters that are no letters, is taken.
    UnicodeText,
    /// A quarter of a megabyte of text is taken, or refused: more than a model writes, less than an
    /// answer may hold.
    LargeInput,
    /// A file of eight megabytes is read, or refused.
    LargeFile,
    /// A path to nothing is an error.
    MissingPath,
    /// A directory where a file belongs is no crash.
    DirectoryPath,
    /// A link that leads out of the workspace is an error.
    OutsidePath,
    /// A call that was stopped ends.
    Cancelled,
}

/// What came of a check of one tool.
#[derive(Clone, Debug)]
pub struct CheckResult {
    /// The tool.
    pub tool: String,
    /// What was looked at.
    pub check: ConformanceCheck,
    /// What is wrong, if anything.
    pub error: Option<String>,
    /// What the tool printed meanwhile; empty where that tells nothing.
    pub output: String,
}

impl fmt::Display for ConformanceCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Case(says) => return write!(f, "case: {says}"),
            Self::Declaration => "declares the same each time, and knows no other name",
            Self::WithoutGrants => "without grants it fails as a tool does",
            Self::UnicodePath => "a file with a name in another script",
            Self::UnicodeText => "text in all scripts",
            Self::LargeInput => "a quarter of a megabyte of input",
            Self::LargeFile => "a file of eight megabytes",
            Self::MissingPath => "a path to nothing is an error",
            Self::DirectoryPath => "a directory where a file belongs",
            Self::OutsidePath => "a link that leads out of the workspace is an error",
            Self::Cancelled => "a call that is stopped ends",
        })
    }
}
