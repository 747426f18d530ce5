//! The `glob` tool: finds files by their names.

mod found;
mod pattern;

use cofferdam_sdk::workspace::{EntryKind, Walk, WalkOptions, WorkspaceError};
use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath, export_tools};
use found::Found;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct Glob;

/// Which files to find, and where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The glob, such as `*.rs`, `src/**/*.{ts,tsx}` or `!*.md`.
    pattern: String,
    /// The directory to look in, relative to the workspace. Default: the whole workspace.
    #[serde(default)]
    path: Option<WorkspacePath>,
    /// Look into hidden directories, and find hidden files that the pattern does not name.
    #[serde(default)]
    hidden: bool,
    /// Look into what ignore rules leave out.
    #[serde(default)]
    no_ignore: bool,
    /// How many files to return at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 2000))]
    limit: u32,
}

fn default_limit() -> u32 {
    200
}

impl Tool for Glob {
    const NAME: &'static str = "glob";
    const DESCRIPTION: &'static str = "Finds files of the workspace by name and returns their \
        paths, one a line, in the order of paths; \
        the same as `rg --files -g PATTERN`.\n\
        - A pattern without `/` is compared with the file's name at any depth: `*.rs`. One with \
        `/` is compared with the whole path from the workspace on, \
        also if `path` is given: `src/**/*.rs`. `*` stays within one directory, `**` crosses \
        directories, `{a,b}` is either, `[0-9]` one of them, and `!` in \
        front finds everything else.\n\
        - Directories that are hidden or named in `.gitignore` are not looked into unless \
        `hidden` and `no_ignore` say so or the pattern matches \
        them by name; so prefer `*.rs` to `**/*`.\n\
        - To search in files use `grep`, to see what a directory holds `list_dir`.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::ReadFiles]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let mut walk = Walk::open(&WalkOptions {
            root: input.path.as_ref().map_or("", WorkspacePath::below_root).to_owned(),
            globs: vec![pattern::glob(&input.pattern)?],
            hidden: input.hidden,
            respect_ignore: !input.no_ignore,
            ..WalkOptions::default()
        })
        .map_err(|error| match error {
            WorkspaceError::InvalidGlob(message) => ToolError::invalid_input("/pattern", message),
            other => other.into(),
        })?;
        let mut found = Found::new(&input);
        for entry in walk.entries() {
            let entry = entry?;
            if entry.kind == EntryKind::File && !found.push(&entry.path) {
                break;
            }
        }
        Ok(found.output(&walk.problems()?))
    }
}

export_tools!(Glob);
