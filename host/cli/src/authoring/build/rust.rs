//! Builds Rust plugins with any installed toolchain that can compile components.

use std::fs;

use cofferdam_build_plugins::Toolchain;

use super::step::{BuildError, PluginBuildSteps};
use crate::authoring::PluginProject;

/// SIMD, which makes text search in WebAssembly fast.
const RUSTFLAGS: &str = "-Ctarget-feature=+simd128";

pub(super) fn build(
    project: &PluginProject,
    steps: &PluginBuildSteps<'_>,
) -> Result<(), BuildError> {
    let directory = project.directory();
    let toolchain = Toolchain::find(directory).map_err(BuildError::InvalidComponent)?;
    // All plugins share one target directory, because building the standard library takes longest.
    let target = steps.toolchains.join("rust");
    let mut cargo = toolchain
        .build(directory, &target, vec![RUSTFLAGS.to_owned()])
        .map_err(BuildError::InvalidComponent)?;
    steps.run(cargo.args(["--release", "--package", project.name().as_str()]))?;
    let built = target.join("wasm32-wasip2/release").join(format!("{}.wasm", project.name()));
    fs::copy(&built, project.component_path()).map_err(|error| BuildError::Io(built, error))?;
    Ok(())
}
