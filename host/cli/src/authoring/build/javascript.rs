//! Builds JavaScript and TypeScript plugins with jco: QuickJS with the bundled script.
//!
//! The engine has no file functions, so the template uses `wasi:filesystem` directly. Its WIT files
//! come with jco; each build copies them beside the contract.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::step::{BuildError, BuildPrerequisite, PluginBuildSteps};
use crate::authoring::PluginProject;

/// The WIT directory of jco below `node_modules`. Its version matches `package.json`.
const WASI_DIRECTORY: &str = "@bytecodealliance/jco/lib/wit/builtin/0.2.12";
const WASI_PACKAGES: [&str; 3] = ["wasi-clocks", "wasi-filesystem", "wasi-io"];

pub(super) fn build(
    project: &PluginProject,
    steps: &PluginBuildSteps<'_>,
) -> Result<(), BuildError> {
    const REMEDY: &str = "install Node.js 20 or newer, which includes npm";
    let prerequisite = |program, min_version| BuildPrerequisite {
        program,
        min_version,
        language: "JavaScript",
        hint: REMEDY,
    };
    prerequisite("node", (20, 0)).check_version(&["--version"])?;
    prerequisite("npm", (0, 0)).check_version(&["--version"])?;
    let directory = project.directory();
    let modules = directory.join("node_modules");
    if !modules.join(WASI_DIRECTORY).exists() {
        steps.run(Command::new("npm").current_dir(directory).args([
            "install",
            "--no-fund",
            "--no-audit",
            "--loglevel=error",
        ]))?;
    }
    for package in WASI_PACKAGES {
        let from = modules.join(WASI_DIRECTORY).join(package).join("package.wit");
        let to = directory.join("wit/deps").join(package).join("package.wit");
        copy_directory(&from, &to).map_err(|error| BuildError::Io(from, error))?;
    }
    let source = if directory.join("plugin.ts").exists() { "plugin.ts" } else { "plugin.js" };
    let world = project.name().to_kebab_case();
    // Absolute path: how a relative one resolves together with `current_dir` depends on the
    // platform.
    let mut command = Command::new(modules.join(".bin/jco"));
    command.current_dir(directory).args([
        "componentize",
        source,
        "--bundle",
        "--wit",
        "wit",
        "--world-name",
        &world,
    ]);
    // Without `--backend-qjs-disable-async` the component imports asynchronous WASI, which this
    // host does not provide.
    command.args(["--backend", "qjs", "--backend-qjs-disable-async", "-o"]);
    steps.run(command.arg(project.component_path()))
}

fn copy_directory(from: &Path, to: &Path) -> std::io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).map(drop)
}
