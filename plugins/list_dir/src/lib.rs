//! The `list_dir` tool: lists a directory.

mod entries;
mod size;

use std::fs;

use cofferdam_sdk::workspace::{Walk, WalkOptions};
use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath, export_tools};
use entries::Entries;
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct ListDir;

/// The directory, and how much of it to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The directory, relative to the workspace. Default: the workspace.
    #[serde(default)]
    path: Option<WorkspacePath>,
    /// The number of levels to list; 1 lists only the entries of the directory.
    #[serde(default = "default_depth")]
    #[schemars(range(min = 1, max = 5))]
    depth: u32,
    /// Include hidden entries.
    #[serde(default)]
    hidden: bool,
    /// Include ignored entries.
    #[serde(default)]
    no_ignore: bool,
    /// The maximum number of entries to list.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 2000))]
    limit: u32,
}

fn default_depth() -> u32 {
    1
}

fn default_limit() -> u32 {
    500
}

impl Tool for ListDir {
    const NAME: &'static str = "list_dir";
    const TITLE: Option<&'static str> = Some("List a directory");
    const DESCRIPTION: &'static str = "Lists a directory of the workspace, one entry per line, \
        sorted by path. Paths are relative to the workspace, so other tools accept them unchanged. \
        Directories end with `/`. Files are listed with their size, and symbolic links with their \
        target.\nA `depth` of 2 or 3 gives an overview of a project. Hidden entries and entries in \
        `.gitignore` are skipped unless `hidden` and `no_ignore` are set. `.git` is always \
        skipped. To find files by name, use `glob`. To search in files, use `grep`.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::ReadFiles]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let path = input.path.clone().unwrap_or_default();
        let metadata = fs::metadata(&path).map_err(ToolError::io("list", &path))?;
        if !metadata.is_dir() {
            return Err(ToolError::failed(format!(
                "`{path}` is a file, not a directory. To read it, use read_file."
            )));
        }
        let mut walk = Walk::open(&WalkOptions {
            root: path.relative_to_root().to_owned(),
            hidden: input.hidden,
            respect_ignore: !input.no_ignore,
            max_depth: Some(input.depth),
            ..WalkOptions::default()
        })?;
        let mut listing = Entries::new(&input);
        for entry in walk.entries() {
            let link_target = |link: &str| {
                fs::read_link(link).ok().map(|target| target.to_string_lossy().into_owned())
            };
            if !listing.push(&entry?, link_target) {
                break;
            }
        }
        Ok(listing.output(&walk.problems()))
    }
}

export_tools!(ListDir);
