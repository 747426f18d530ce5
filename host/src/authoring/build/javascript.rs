//! JavaScript and TypeScript, by jco: QuickJS with the bundled script.
//!
//! The engine has no file functions of its own; the template uses `wasi:filesystem` directly. The WIT of that comes with
//! jco, and is laid beside the contract before each build.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::step::{BuildError, Prerequisite, Steps};
use crate::authoring::Project;

/// Below `node_modules`; the version is that of `package.json`.
const WASI: &str = "@bytecodealliance/jco/lib/wit/builtin/0.2.12";
const WASI_PACKAGES: [&str; 3] = ["wasi-clocks", "wasi-filesystem", "wasi-io"];

pub(super) fn build(project: &Project, steps: &Steps<'_>) -> Result<(), BuildError> {
    const REMEDY: &str = "install Node.js 20 or newer, which brings npm along";
    let needed = |program, oldest| Prerequisite { program, oldest, language: "JavaScript", remedy: REMEDY };
    needed("node", (20, 0)).require(&["--version"])?;
    needed("npm", (0, 0)).require(&["--version"])?;
    let folder = project.folder();
    let modules = folder.join("node_modules");
    if !modules.join(WASI).exists() {
        steps.run(Command::new("npm").current_dir(folder).args(["install", "--no-fund", "--no-audit", "--loglevel=error"]))?;
    }
    for package in WASI_PACKAGES {
        let from = modules.join(WASI).join(package).join("package.wit");
        let to = folder.join("wit/deps").join(package).join("package.wit");
        copy(&from, &to).map_err(|error| BuildError::Io(from, error))?;
    }
    let source = if folder.join("plugin.ts").exists() { "plugin.ts" } else { "plugin.js" };
    let world = project.name().kebab();
    // By its whole path: what a relative one means beside `current_dir` is not the same everywhere.
    let mut command = Command::new(modules.join(".bin/jco"));
    command.current_dir(folder).args(["componentize", source, "--bundle", "--wit", "wit", "--world-name", &world]);
    // Without the second of these the component needs asynchronous WASI, which this host does not offer.
    command.args(["--backend", "qjs", "--backend-qjs-disable-async", "-o"]);
    steps.run(command.arg(project.component()))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).map(drop)
}
