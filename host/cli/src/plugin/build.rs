//! `cofferdam plugin build`: builds the component of a plugin.

use std::path::Path;
use std::process::ExitCode;

use crate::authoring::{PluginProject, build};
use crate::error::{CliError, CommandResult};
use crate::print::{eprint_line, print_line};
use crate::user_dirs;
use cofferdam::sandbox::{ArtifactCache, HostEnvironment};
use cofferdam::terminal_escape;

pub(super) fn run(environment: &HostEnvironment, directory: &Path) -> CommandResult {
    let project =
        PluginProject::open(directory).map_err(|error| CliError::new(error.to_string()))?;
    let user_dirs = user_dirs::for_current_user(environment)?;
    // Toolchains share the cache with compiled code, which is trusted only in a directory that
    // nobody else can write to.
    ArtifactCache::prepare(user_dirs.cache())?;
    let toolchains = user_dirs.toolchains();
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
