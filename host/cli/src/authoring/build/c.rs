//! Builds C plugins with the compiler of Zig, which includes a C library for WASI. Each build
//! regenerates the bindings.

use std::fs;
use std::process::Command;

use super::bindings;
use super::componentize::componentize;
use super::step::{BuildError, PluginBuildSteps};
use crate::authoring::PluginProject;

const ZIG_PACKAGE: &str = "ziglang==0.17.1";
/// Stack size of 1 MiB. The default is 16 MiB with Zig and 64 KiB with other compilers.
const STACK_BYTES: &str = "-Wl,-z,stack-size=1048576";

pub(super) fn build(
    project: &PluginProject,
    steps: &PluginBuildSteps<'_>,
) -> Result<(), BuildError> {
    let python = steps.python_environment("C", ZIG_PACKAGE)?;
    let directory = project.directory();
    bindings::generate_c(project)?;
    let core = directory.join("build/core.wasm");
    let sources = [
        "plugin.c",
        "cofferdam.c",
        "cofferdam_host.c",
        "cofferdam_http.c",
        "cofferdam_input.c",
        "bindings/bindings.c",
        "bindings/bindings_component_type.o",
    ];
    fs::create_dir_all(directory.join("build"))
        .map_err(|error| BuildError::Io(directory.join("build"), error))?;
    let mut command = Command::new(python);
    command.current_dir(directory).args([
        "-m",
        "ziglang",
        "cc",
        "-target",
        "wasm32-wasi",
        "-std=gnu17",
        "-Os",
        "-Wall",
        "-I.",
        "-Ibindings",
    ]);
    command.args(["-mexec-model=reactor", STACK_BYTES, "-s"]).args(sources).arg("-o").arg(&core);
    steps.run(&mut command)?;
    componentize(project, &core)
}
