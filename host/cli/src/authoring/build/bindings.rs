//! Generated bindings to the WIT contract, for languages whose toolchain does not generate them.

use std::fs;
use std::io;
use std::path::Path;

use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::{Resolve, WorldId};

use super::step::BuildError;
use crate::authoring::PluginProject;

/// Reads the WIT world of a project from its `wit` directory.
pub(super) fn read_world(project: &PluginProject) -> Result<(Resolve, WorldId), BuildError> {
    let wit = project.directory().join("wit");
    let mut resolve = Resolve::default();
    let problem = |error| BuildError::InvalidComponent(format!("{}: {error:#}", wit.display()));
    check_files(&wit, &mut 0).map_err(|error| BuildError::Io(wit.clone(), error))?;
    let (package, _) = resolve.push_dir(&wit).map_err(problem)?;
    let world =
        resolve.select_world(&[package], Some(&project.name().to_kebab_case())).map_err(problem)?;
    Ok((resolve, world))
}

/// The most files and directories of a `wit` directory, and the largest file there.
const MAX_WIT_FILES: usize = 1000;
const MAX_WIT_SIZE: u64 = 4 << 20;

/// Checks that the files of a directory are regular and not too large, before all of them are read.
fn check_files(directory: &Path, count: &mut usize) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        *count += 1;
        let metadata = fs::metadata(&path)?;
        let problem = if *count > MAX_WIT_FILES {
            "its directory has too many files"
        } else if metadata.is_dir() {
            check_files(&path, count)?;
            continue;
        } else if !metadata.is_file() {
            "it is not a regular file"
        } else if metadata.len() > MAX_WIT_SIZE {
            "it is too large"
        } else {
            continue;
        };
        return Err(io::Error::other(format!("{}: {problem}", path.display())));
    }
    Ok(())
}

/// What the C bindings call the world, whatever the plugin's name is, so that `cofferdam.c` is the
/// same for all.
pub(super) const C_WORLD_NAME: &str = "bindings";

/// Writes `bindings/bindings.{c,h}` and the object file that embeds the world.
pub(super) fn generate_c(project: &PluginProject) -> Result<(), BuildError> {
    let (mut resolve, world) = read_world(project)?;
    let mut files = Files::default();
    let mut generator =
        wit_bindgen_c::Opts { rename_world: Some(C_WORLD_NAME.to_owned()), ..Default::default() }
            .build();
    generator
        .generate(&mut resolve, world, &mut files)
        .map_err(|error| BuildError::InvalidComponent(format!("{error:#}")))?;
    write_files(&files, &project.directory().join("bindings"))
}

/// Writes the Go packages of the world's interfaces, and `wit_exports.go`.
pub(super) fn generate_go(project: &PluginProject) -> Result<(), BuildError> {
    let (mut resolve, world) = read_world(project)?;
    let mut files = Files::default();
    let mut generator = wit_bindgen_go::Opts::default().build();
    generator
        .generate(&mut resolve, world, &mut files)
        .map_err(|error| BuildError::InvalidComponent(format!("{error:#}")))?;
    // The project has its own `go.mod`.
    files.remove("go.mod");
    write_files(&files, project.directory())
}

fn write_files(files: &Files, directory: &Path) -> Result<(), BuildError> {
    for (name, contents) in files.iter() {
        let path = directory.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| BuildError::Io(parent.to_owned(), error))?;
        }
        fs::write(&path, contents).map_err(|error| BuildError::Io(path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_world_that_has_no_end_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deps");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("a.wit"), "package a:b;").unwrap();
        check_files(directory.path(), &mut 0).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path.join("b.wit")).unwrap();
        let problem = check_files(directory.path(), &mut 0).unwrap_err().to_string();
        assert!(problem.ends_with("b.wit: it is not a regular file"), "{problem}");
        fs::remove_file(path.join("b.wit")).unwrap();
        // Without a test of depth this would be found by the length of the path.
        std::os::unix::fs::symlink("..", path.join("up")).unwrap();
        assert!(check_files(directory.path(), &mut 0).is_err());
    }
    use crate::authoring::PluginLanguage;

    #[test]
    fn a_go_project_contains_the_runtime_of_its_bindings() {
        let directory = tempfile::tempdir().unwrap();
        let project =
            PluginProject::create(directory.path(), "in_go".parse().unwrap(), PluginLanguage::Go)
                .unwrap();
        let (mut resolve, world) = read_world(&project).unwrap();
        let mut files = Files::default();
        wit_bindgen_go::Opts::default().build().generate(&mut resolve, world, &mut files).unwrap();
        let generated = files
            .iter()
            .find(|(name, _)| *name == "go.mod")
            .map(|(_, text)| String::from_utf8_lossy(text).into_owned());
        let needed = generated
            .as_deref()
            .unwrap()
            .lines()
            .find(|line| line.contains("go.bytecodealliance.org/pkg"))
            .unwrap();
        let needed = needed.trim().trim_start_matches("require ").to_owned();
        let own = fs::read_to_string(project.directory().join("go.mod")).unwrap();
        assert!(own.contains(&format!("require {needed}\n")), "{needed}: {own}");
        assert!(own.contains("replace go.bytecodealliance.org/pkg => ./wit-runtime"), "{own}");
        // The runtime contains each package that the bindings import, and each package that those
        // import.
        generate_go(&project).unwrap();
        let mut sources = Vec::new();
        collect_sources(project.directory(), &mut sources);
        assert!(sources.len() > 5);
        for source in sources {
            for line in fs::read_to_string(&source).unwrap().lines() {
                if let Some((_, rest)) = line.split_once("\"go.bytecodealliance.org/pkg/") {
                    let package =
                        project.directory().join("wit-runtime").join(rest.trim_end_matches('"'));
                    assert!(package.is_dir(), "{}: {line}", source.display());
                }
            }
        }
    }

    fn collect_sources(directory: &Path, sources: &mut Vec<std::path::PathBuf>) {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect_sources(&path, sources);
            } else if path.extension().is_some_and(|extension| extension == "go") {
                sources.push(path);
            }
        }
    }
}
