//! Python, by componentize-py: CPython and the plugin's modules, snapshotted after their imports.

use std::process::Command;

use super::step::{BuildError, Steps};
use crate::authoring::Project;

const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";

pub(super) fn build(project: &Project, steps: &Steps<'_>) -> Result<(), BuildError> {
    let python = steps.python("Python", COMPONENTIZE_PY)?;
    let program = python.with_file_name("componentize-py");
    let world = project.name().kebab();
    let mut command = Command::new(program);
    command.current_dir(project.folder()).args(["-d", "wit", "-w", &world, "componentize", "plugin", "-o"]);
    steps.run(command.arg(project.component()))
}
