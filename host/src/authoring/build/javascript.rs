//! JavaScript and TypeScript, by jco: QuickJS with the bundled script.
//!
//! The engine has no file functions of its own; the template uses `wasi:filesystem` directly. The
//! WIT of that comes with jco, and is laid beside the contract before each build.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::step::{BuildError, BuildPrerequisite, PluginBuildSteps};
use crate::authoring::PluginProject;

/// Below `node_modules`; the version is that of `package.json`.
const WASI_DIRECTORY: &str = "@bytecodealliance/jco/lib/wit/builtin/0.2.12";
const WASI_PACKAGES: [&str; 3] = ["wasi-clocks", "wasi-filesystem", "wasi-io"];

pub(super) fn build(
    project: &PluginProject,
    steps: &PluginBuildSteps<'_>,
) -> Result<(), BuildError> {
    const REMEDY: &str = "install Node.js 20 or newer, which brings npm along";
    let needed = |program, oldest| BuildPrerequisite {
        program,
        min_version: oldest,
        language: "JavaScript",
        hint: REMEDY,
    };
    needed("node", (20, 0)).check_version(&["--version"])?;
    needed("npm", (0, 0)).check_version(&["--version"])?;
    let folder = project.directory();
    let modules = folder.join("node_modules");
    if !modules.join(WASI_DIRECTORY).exists() {
        steps.run(Command::new("npm").current_dir(folder).args([
            "install",
            "--no-fund",
            "--no-audit",
            "--loglevel=error",
        ]))?;
    }
    for package in WASI_PACKAGES {
        let from = modules.join(WASI_DIRECTORY).join(package).join("package.wit");
        let to = folder.join("wit/deps").join(package).join("package.wit");
        copy_directory(&from, &to).map_err(|error| BuildError::Io(from, error))?;
    }
    let source = if folder.join("plugin.ts").exists() { "plugin.ts" } else { "plugin.js" };
    let world = project.name().to_kebab_case();
    // By its whole path: what a relative one means beside `current_dir` is not the same everywhere.
    let mut command = Command::new(modules.join(".bin/jco"));
    command.current_dir(folder).args([
        "componentize",
        source,
        "--bundle",
        "--wit",
        "wit",
        "--world-name",
        &world,
    ]);
    // Without the second of these the component needs asynchronous WASI, which this host does not
    // offer.
    command.args(["--backend", "qjs", "--backend-qjs-disable-async", "-o"]);
    steps.run(command.arg(project.component_path()))
}

fn copy_directory(from: &Path, to: &Path) -> std::io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).map(drop)
}
