//! Bindings to the contract, for languages whose toolchain does not make them itself.

use std::fs;
use std::path::Path;

use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::{Resolve, WorldId};

use super::step::BuildError;
use crate::authoring::Project;

/// The world of a project, read from its `wit` folder.
pub(super) fn world(project: &Project) -> Result<(Resolve, WorldId), BuildError> {
    let wit = project.folder().join("wit");
    let mut resolve = Resolve::default();
    let problem = |error| BuildError::Component(format!("{}: {error:#}", wit.display()));
    let (package, _) = resolve.push_dir(&wit).map_err(problem)?;
    let world = resolve.select_world(&[package], Some(&project.name().kebab())).map_err(problem)?;
    Ok((resolve, world))
}

/// What the C bindings call the world, whatever the plugin's name is, so that `cofferdam.c` is the same for all.
pub(super) const C_WORLD: &str = "bindings";

/// Writes `bindings/bindings.{c,h}` and the object file that carries the world.
pub(super) fn c(project: &Project) -> Result<(), BuildError> {
    let (mut resolve, world) = world(project)?;
    let mut files = Files::default();
    let mut generator = wit_bindgen_c::Opts { rename_world: Some(C_WORLD.to_owned()), ..Default::default() }.build();
    generator.generate(&mut resolve, world, &mut files).map_err(|error| BuildError::Component(format!("{error:#}")))?;
    write(&files, &project.folder().join("bindings"))
}

/// Writes the packages of the world's interfaces, and `wit_exports.go`.
pub(super) fn go(project: &Project) -> Result<(), BuildError> {
    let (mut resolve, world) = world(project)?;
    let mut files = Files::default();
    let mut generator = wit_bindgen_go::Opts::default().build();
    generator.generate(&mut resolve, world, &mut files).map_err(|error| BuildError::Component(format!("{error:#}")))?;
    // The project has a module file of its own.
    files.remove("go.mod");
    write(&files, project.folder())
}

fn write(files: &Files, folder: &Path) -> Result<(), BuildError> {
    for (name, contents) in files.iter() {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| BuildError::Io(parent.to_owned(), error))?;
        }
        fs::write(&path, contents).map_err(|error| BuildError::Io(path, error))?;
    }
    Ok(())
}
