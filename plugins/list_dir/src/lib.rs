//! The `list_dir` tool: what a directory holds.

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

/// Which directory, and how much of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The directory, relative to the workspace. Default: the workspace itself.
    #[serde(default)]
    path: Option<WorkspacePath>,
    /// How many levels to list; 1 is the directory's own entries.
    #[serde(default = "default_depth")]
    #[schemars(range(min = 1, max = 5))]
    depth: u32,
    /// List hidden entries too.
    #[serde(default)]
    hidden: bool,
    /// List what ignore rules leave out.
    #[serde(default)]
    no_ignore: bool,
    /// How many entries to list at most.
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
    const DESCRIPTION: &'static str = "Lists a directory of the workspace, one entry a line, in \
        the order of paths. Paths are relative to the \
        workspace, so that they can be passed on as they are. Directories end with `/`, files \
        come with their size, symbolic links with \
        where they lead.\n\
        `depth` 2 or 3 gives an overview of a project. Entries that are hidden or named in \
        `.gitignore` are left out; `hidden` and `no_ignore` bring them \
        back (`.git` stays out). To find files by name use `glob`, to search in them `grep`.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::ReadFiles]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let path = input.path.clone().unwrap_or_default();
        let metadata = fs::metadata(&path).map_err(ToolError::io("list", &path))?;
        if !metadata.is_dir() {
            return Err(ToolError::failed(format!(
                "`{path}` is a file, not a directory. Use read_file to read it."
            )));
        }
        let mut walk = Walk::open(&WalkOptions {
            root: path.below_root().to_owned(),
            hidden: input.hidden,
            respect_ignore: !input.no_ignore,
            max_depth: Some(input.depth),
            ..WalkOptions::default()
        })?;
        let mut listing = Entries::new(&input);
        for entry in walk.entries() {
            let leads_to = |link: &str| {
                fs::read_link(link).ok().map(|target| target.to_string_lossy().into_owned())
            };
            if !listing.push(&entry?, leads_to) {
                break;
            }
        }
        Ok(listing.output(&walk.problems()?))
    }
}

export_tools!(ListDir);
