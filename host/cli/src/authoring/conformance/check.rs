//! The conformance checks and their results.

use std::fmt;

/// A single check of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConformanceCheck {
    /// A case of the plugin's author.
    Case(String),
    /// The declaration is the same each time, and no undeclared name is accepted.
    Declaration,
    /// Without any permission the tool reports a failure and does not crash.
    WithoutGrants,
    /// A file name that is not ASCII works like any other.
    UnicodePath,
    /// Text in all scripts, with control and format characters, does not crash the tool.
    UnicodeText,
    /// An input of 256 KiB does not crash the tool. That is more than a model writes, and less than
    /// a result may contain.
    LargeInput,
    /// A file of 8 MiB does not crash the tool.
    LargeFile,
    /// A path that does not exist is an error.
    MissingPath,
    /// A directory in place of a file does not crash the tool.
    DirectoryPath,
    /// A symbolic link to a path outside the workspace is an error.
    OutsidePath,
    /// A cancelled call ends.
    Cancelled,
}

/// The result of a check of one tool.
#[derive(Clone, Debug)]
pub(crate) struct CheckResult {
    /// The name of the tool.
    pub tool: String,
    /// The check that ran.
    pub check: ConformanceCheck,
    /// The reason for a failure; `None` if the check passed.
    pub error: Option<String>,
    /// The tool's log output; empty for the general checks.
    pub output: String,
}

impl fmt::Display for ConformanceCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Case(says) => return write!(f, "case: {says}"),
            Self::Declaration => "the declaration is stable, and calls to undeclared tools fail",
            Self::WithoutGrants => "without permissions it does not crash",
            Self::UnicodePath => "a file name in another script",
            Self::UnicodeText => "text in many scripts",
            Self::LargeInput => "256 KiB of input",
            Self::LargeFile => "a file of 8 MiB",
            Self::MissingPath => "a missing file is an error",
            Self::DirectoryPath => "a directory in place of a file",
            Self::OutsidePath => "a link out of the workspace is an error",
            Self::Cancelled => "a cancelled call ends",
        })
    }
}
