//! From a project to a component, with the toolchain of its language.
//!
//! A toolchain that is not there is installed from the language's own registry, at the version
//! named in its file, into the cache; nothing is installed system-wide. Each command line is told
//! before it runs, so that an author can run it by hand.

mod bindings;
mod c;
mod componentize;
mod go;
mod javascript;
mod python;
mod rust;
mod step;

use std::path::{Path, PathBuf};

pub use step::{BuildError, BuildPrerequisite};

use super::{PluginLanguage, PluginProject};
use step::PluginBuildSteps;

/// Builds a project and returns the file of its component. `toolchains` is the folder for what has
/// to be installed; `say` is told each step.
pub fn build(
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
