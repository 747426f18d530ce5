//! What the model may ask for.

use cofferdam_sdk::WorkspacePath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to search for, where, and how to show it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The regular expression.
    pub pattern: String,
    /// The file or directory to search, relative to the workspace. Default: the whole workspace.
    #[serde(default)]
    pub path: Option<WorkspacePath>,
    /// Search only files that match one of these globs, such as `*.rs` or `src/**`; a glob that
    /// begins with `!` excludes files.
    #[serde(default)]
    pub glob: Vec<String>,
    /// Matching lines, paths of files with a match, or the number of matching lines per file.
    #[serde(default)]
    pub output_mode: OutputMode,
    /// Ignore case.
    #[serde(default)]
    pub ignore_case: bool,
    /// Treat the pattern as plain text.
    #[serde(default)]
    pub fixed_strings: bool,
    /// Match only whole words.
    #[serde(default)]
    pub word: bool,
    /// Allow matches across lines; `.` also matches line breaks.
    #[serde(default)]
    pub multiline: bool,
    /// Lines to show before each match.
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub before: u8,
    /// Lines to show after each match.
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub after: u8,
    /// Lines to show before and after each match.
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub context: u8,
    /// Also search hidden files.
    #[serde(default)]
    pub hidden: bool,
    /// Also search files that ignore rules exclude.
    #[serde(default)]
    pub no_ignore: bool,
    /// The maximum number of results: matches or files.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 2000))]
    pub limit: u32,
    /// The number of results to skip, to continue an earlier search.
    #[serde(default)]
    pub offset: u32,
}

/// What a result is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(
    missing_docs,
    reason = "said where it is used; documented variants would double the schema"
)]
pub enum OutputMode {
    #[default]
    Content,
    Files,
    Count,
}

fn default_limit() -> u32 {
    200
}

impl Input {
    /// Lines of context before and after each match.
    pub(crate) fn context_lines(&self) -> (usize, usize) {
        match self.output_mode {
            OutputMode::Content => {
                (self.before.max(self.context).into(), self.after.max(self.context).into())
            }
            OutputMode::Files | OutputMode::Count => (0, 0),
        }
    }
}

#[cfg(test)]
impl Input {
    /// The defaults, as the model gets them.
    pub(crate) fn of(pattern: &str) -> Self {
        Self {
            pattern: pattern.to_owned(),
            path: None,
            glob: Vec::new(),
            output_mode: OutputMode::Content,
            ignore_case: false,
            fixed_strings: false,
            word: false,
            multiline: false,
            before: 0,
            after: 0,
            context: 0,
            hidden: false,
            no_ignore: false,
            limit: default_limit(),
            offset: 0,
        }
    }
}
