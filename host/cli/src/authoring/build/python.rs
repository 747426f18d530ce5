//! Builds Python plugins with componentize-py: CPython and the plugin's modules, snapshotted after
//! their imports.

use std::process::Command;

use super::step::{BuildError, PluginBuildSteps};
use crate::authoring::PluginProject;

const COMPONENTIZE_PY_PACKAGE: &str = "componentize-py==0.25.1";

pub(super) fn build(
    project: &PluginProject,
    steps: &PluginBuildSteps<'_>,
) -> Result<(), BuildError> {
    let python = steps.python_environment("Python", COMPONENTIZE_PY_PACKAGE)?;
    let program = python.with_file_name("componentize-py");
    let world = project.name().to_kebab_case();
    let mut command = Command::new(program);
    command.current_dir(project.directory()).args([
        "-d",
        "wit",
        "-w",
        &world,
        "componentize",
        "plugin",
        "-o",
    ]);
    steps.run(command.arg(project.component_path()))
}
