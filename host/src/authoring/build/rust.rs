//! Rust, with whatever on this machine can compile it to a component.

use std::fs;

use cofferdam_build_plugins::Toolchain;

use super::step::{BuildError, Steps};
use crate::authoring::Project;

/// What makes searching in WebAssembly fast.
const FLAGS: &str = "-Ctarget-feature=+simd128";

pub(super) fn build(project: &Project, steps: &Steps<'_>) -> Result<(), BuildError> {
    let folder = project.folder();
    let toolchain = Toolchain::find(folder).map_err(BuildError::Component)?;
    // One for all plugins: where the standard library has to be built, that takes longest.
    let target = steps.toolchains.join("rust");
    let mut cargo = toolchain.build(folder, &target, vec![FLAGS.to_owned()]).map_err(BuildError::Component)?;
    steps.run(cargo.args(["--release", "--package", project.name().as_str()]))?;
    let built = target.join("wasm32-wasip2/release").join(format!("{}.wasm", project.name()));
    fs::copy(&built, project.component()).map(drop).map_err(|error| BuildError::Io(built, error))
}
