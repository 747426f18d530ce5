//! `cofferdam plugin build`: the component of a plugin.

use std::path::Path;
use std::process::ExitCode;

use crate::authoring::{Project, build};
use crate::cli::error::{CliError, Done};
use crate::cli::print::{stderr_line, stdout_line};
use crate::config::Folders;
use crate::sandbox::Cache;
use crate::shown;

pub(super) fn run(folder: &Path) -> Done {
    let project = Project::open(folder).map_err(|error| CliError::new(error.to_string()))?;
    let folders = Folders::of_this_user()?;
    // What is compiled goes there too, and is believed only in a folder that nobody else can write to.
    Cache::prepare(folders.cache())?;
    let toolchains = folders.toolchains();
    let say = |step: &str| stderr_line(&shown::line(step, 1000));
    let component = build::build(&project, &toolchains, &say).map_err(|error| CliError::new(error.to_string()))?;
    let size = std::fs::metadata(&component)?.len();
    stdout_line(&format!("{} ({} KiB)", shown::line(&component.display().to_string(), 1000), size.div_ceil(1024)));
    Ok(ExitCode::SUCCESS)
}
