//! Builds of plugin projects with the toolchain of their language.
//!
//! A missing toolchain is installed from the language's own registry into the cache, at the version
//! pinned in the language's module. Nothing is installed system-wide. Each command line is reported
//! before it runs, so that authors can run it by hand.

mod bindings;
mod c;
mod componentize;
mod go;
mod javascript;
mod python;
mod rust;
mod step;

use std::path::{Path, PathBuf};

pub(crate) use step::BuildError;

use super::{PluginLanguage, PluginProject};
use step::PluginBuildSteps;

/// Builds a project and returns the path of its component.
///
/// Toolchains are installed in the directory `toolchains`. `say` receives each command line and
/// each installation.
///
/// # Errors
///
/// If a prerequisite is missing or too old, or a build step fails.
pub(crate) fn build(
    project: &PluginProject,
    toolchains: &Path,
    say: &dyn Fn(&str),
) -> Result<PathBuf, BuildError> {
    let steps = PluginBuildSteps { toolchains, report: say };
    match project.language() {
        PluginLanguage::Rust => rust::build(project, &steps)?,
        PluginLanguage::Python => python::build(project, &steps)?,
        PluginLanguage::JavaScript => javascript::build(project, &steps)?,
        PluginLanguage::C => c::build(project, &steps)?,
        PluginLanguage::Go => go::build(project, &steps)?,
    }
    Ok(project.component_path())
}
