//! Rust, with whatever on this machine can compile it to a component.

use std::fs;

use cofferdam_build_plugins::Toolchain;

use super::step::{BuildError, PluginBuildSteps};
use crate::authoring::PluginProject;

/// What makes searching in WebAssembly fast.
const RUSTFLAGS: &str = "-Ctarget-feature=+simd128";

pub(super) fn build(
    project: &PluginProject,
    steps: &PluginBuildSteps<'_>,
) -> Result<(), BuildError> {
    let folder = project.directory();
    let toolchain = Toolchain::find(folder).map_err(BuildError::InvalidComponent)?;
    // One for all plugins: where the standard library has to be built, that takes longest.
    let target = steps.toolchains.join("rust");
    let mut cargo = toolchain
        .build(folder, &target, vec![RUSTFLAGS.to_owned()])
        .map_err(BuildError::InvalidComponent)?;
    steps.run(cargo.args(["--release", "--package", project.name().as_str()]))?;
    let built = target.join("wasm32-wasip2/release").join(format!("{}.wasm", project.name()));
    fs::copy(&built, project.component_path())
        .map(drop)
        .map_err(|error| BuildError::Io(built, error))
}
