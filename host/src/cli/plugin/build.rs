//! `cofferdam plugin build`: the component of a plugin.

use std::path::Path;
use std::process::ExitCode;

use crate::authoring::{PluginProject, build};
use crate::cli::error::{CliError, CommandResult};
use crate::cli::print::{eprint_line, print_line};
use crate::config::UserDirectories;
use crate::sandbox::ArtifactCache;
use crate::terminal_escape;

pub(super) fn run(folder: &Path) -> CommandResult {
    let project = PluginProject::open(folder).map_err(|error| CliError::new(error.to_string()))?;
    let folders = UserDirectories::for_current_user()?;
    // What is compiled goes there too, and is believed only in a folder that nobody else can write
    // to.
    ArtifactCache::prepare(folders.cache())?;
    let toolchains = folders.toolchains();
    let say = |step: &str| eprint_line(&terminal_escape::escape_line(step, 1000));
    let component = build::build(&project, &toolchains, &say)
        .map_err(|error| CliError::new(error.to_string()))?;
    let size = std::fs::metadata(&component)?.len();
    print_line(&format!(
        "{} ({} KiB)",
        terminal_escape::escape_line(&component.display().to_string(), 1000),
        size.div_ceil(1024)
    ));
    Ok(ExitCode::SUCCESS)
}
