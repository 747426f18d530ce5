//! C, by the compiler that comes with Zig, which has a C library for WASI. The bindings are
//! generated anew each time.

use std::fs;
use std::process::Command;

use super::bindings;
use super::componentize::componentize;
use super::step::{BuildError, PluginBuildSteps};
use crate::authoring::PluginProject;

const ZIG_PACKAGE: &str = "ziglang==0.17.1";
/// Zig would give 16 MiB, and other compilers give 64 KiB.
const STACK_BYTES: &str = "-Wl,-z,stack-size=1048576";

pub(super) fn build(
    project: &PluginProject,
    steps: &PluginBuildSteps<'_>,
) -> Result<(), BuildError> {
    let python = steps.python_environment("C", ZIG_PACKAGE)?;
    let folder = project.directory();
    bindings::generate_c(project)?;
    let core = folder.join("build/core.wasm");
    let sources =
        ["plugin.c", "cofferdam.c", "bindings/bindings.c", "bindings/bindings_component_type.o"];
    fs::create_dir_all(folder.join("build"))
        .map_err(|error| BuildError::Io(folder.join("build"), error))?;
    let mut command = Command::new(python);
    command.current_dir(folder).args([
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
