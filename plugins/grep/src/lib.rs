//! The `grep` tool: searches the workspace with ripgrep's own engine.
//!
//! The host walks and reads; this plugin searches what it is handed, in memory that does not grow
//! with the files.

mod binary;
mod input;
mod line;
mod pattern;
mod report;
mod required;
mod search;

use cofferdam_sdk::workspace::{Walk, WalkOptions, WorkspaceError};
use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath, export_tools};

pub use input::{Input, OutputMode};
use report::Report;
use required::Required;

/// How much the host hands over at once. Smaller batches cross too often, larger ones fall out of
/// the processor's cache.
const BATCH: u32 = 1 << 20;

/// The tool.
pub struct Grep;

impl Tool for Grep {
    const NAME: &'static str = "grep";
    const TITLE: Option<&'static str> = Some("Search files");
    const DESCRIPTION: &'static str = "Searches the contents of files in the workspace for a \
        regular expression, with ripgrep's engine and syntax. Prefer it to running `grep` or `rg` \
        as a command: it is faster and needs no approval.\n- Results are sorted by path: \
        `path:line:text` for a match, `path-line-text` for context. `output_mode` returns only the \
        paths, or the number of matching lines per file.\n- Patterns are Rust regular expressions: \
        `log.*Error`, `fn\\s+\\w+`. Write a literal brace as `\\{`. There is no look-around and \
        there are no back-references. With `fixed_strings` the pattern is plain text.\n- A match \
        lies within one line unless `multiline` is set.\n- Hidden files, binary files and files in \
        `.gitignore` are skipped. `hidden` includes hidden files, and `no_ignore` includes ignored \
        files.\n- By default at most 200 results and 256 KiB are returned. If there are more, the \
        result names the `offset` to continue with. Lines of more than 500 characters are cut \
        around the match.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::ReadFiles]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let matcher = pattern::matcher(&input)?;
        let required = Required::of(&input).unwrap_or_default();
        let mut walk = Walk::open(&WalkOptions {
            root: input.path.as_ref().map_or("", WorkspacePath::relative_to_root).to_owned(),
            globs: input.glob.clone(),
            hidden: input.hidden,
            respect_ignore: !input.no_ignore,
            max_depth: None,
            required: required.strings,
            required_ignore_case: required.ignore_case,
        })
        .map_err(|error| match error {
            WorkspaceError::InvalidGlob(message) => ToolError::invalid_input("/glob", message),
            other => other.into(),
        })?;
        let mut report = Report::new(&input, &matcher);
        search::search(&mut walk.files(BATCH), &mut pattern::searcher(&input), &mut report)?;
        for problem in walk.problems() {
            report.problem(problem);
        }
        Ok(report.output())
    }
}

export_tools!(Grep);
