//! The `glob` tool: finds files by name.

mod file_list;
mod pattern;

use cofferdam_sdk::workspace::{EntryKind, Walk, WalkOptions, WorkspaceError};
use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath, export_tools};
use file_list::FileList;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct Glob;

/// The files to find.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The glob, such as `*.rs`, `src/**/*.{ts,tsx}` or `!*.md`.
    pattern: String,
    /// The directory to search, relative to the workspace. Default: the whole workspace.
    #[serde(default)]
    path: Option<WorkspacePath>,
    /// Include hidden files and directories whose names are not in the pattern.
    #[serde(default)]
    hidden: bool,
    /// Include ignored files.
    #[serde(default)]
    no_ignore: bool,
    /// The maximum number of files to return.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 2000))]
    limit: u32,
}

fn default_limit() -> u32 {
    200
}

impl Tool for Glob {
    const NAME: &'static str = "glob";
    const TITLE: Option<&'static str> = Some("Find files");
    const DESCRIPTION: &'static str = "Finds files of the workspace by name. Returns their paths, \
        one per line, sorted by path. Equivalent to `rg --files -g PATTERN`.\n- A pattern without \
        `/` matches the file name at any depth: `*.rs`. A pattern with `/` matches the whole path \
        from the workspace, even if `path` is set: `src/**/*.rs`. `*` matches within one \
        directory, `**` matches across directories, `{a,b}` matches either, and `[0-9]` matches \
        one of the characters. A pattern that begins with `!` matches everything else.\n- Hidden \
        directories and directories in `.gitignore` are skipped unless `hidden` and `no_ignore` \
        are set or the pattern contains their names. So prefer `*.rs` to `**/*`.\n- To search in \
        files, use `grep`. To list a directory, use `list_dir`.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::ReadFiles]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let mut walk = Walk::open(&WalkOptions {
            root: input.path.as_ref().map_or("", WorkspacePath::relative_to_root).to_owned(),
            globs: vec![pattern::glob(&input.pattern)?],
            hidden: input.hidden,
            respect_ignore: !input.no_ignore,
            ..WalkOptions::default()
        })
        .map_err(|error| match error {
            WorkspaceError::InvalidGlob(message) => ToolError::invalid_input("/pattern", message),
            other => other.into(),
        })?;
        let mut list = FileList::new(&input);
        for entry in walk.entries() {
            let entry = entry?;
            if entry.kind == EntryKind::File && !list.push(&entry.path) {
                break;
            }
        }
        Ok(list.output(&walk.problems()))
    }
}

export_tools!(Glob);
