//! Plugin projects on the disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{PluginLanguage, PluginName, template};
use cofferdam::own_file;

/// The largest manifest that is read.
const MAX_MANIFEST_SIZE: u64 = 64 << 10;

const MANIFEST_FILE: &str = "plugin.toml";

/// The directory of a plugin under development, with its manifest.
#[derive(Clone, Debug)]
pub(crate) struct PluginProject {
    directory: PathBuf,
    manifest: PluginManifest,
}

/// The content of `plugin.toml`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginManifest {
    name: PluginName,
    language: PluginLanguage,
}

/// An error while creating or opening a project.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProjectError {
    /// The directory of the new project already exists.
    #[error("{0} already exists; choose another name, or remove it")]
    AlreadyExists(PathBuf),
    /// The directory has no `plugin.toml`.
    #[error(
        "{0} has no {MANIFEST_FILE}\nhint: `cofferdam plugin new NAME --lang rust` creates a \
            plugin; `cofferdam plugin test FILE.wasm --cases FILE.json` tests a component without \
            a project"
    )]
    NotAProject(PathBuf),
    /// The manifest is not valid.
    #[error("{path}: {message}")]
    InvalidManifest {
        /// The path of the manifest.
        path: PathBuf,
        /// The problem, with its line.
        message: String,
    },
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
}

impl PluginProject {
    /// Creates a directory `within/name` with everything that the first build needs.
    ///
    /// # Errors
    ///
    /// If the directory exists or cannot be written.
    pub(crate) fn create(
        within: &Path,
        name: PluginName,
        language: PluginLanguage,
    ) -> Result<Self, ProjectError> {
        let directory = within.join(name.as_str());
        if directory.symlink_metadata().is_ok() {
            return Err(ProjectError::AlreadyExists(directory));
        }
        let manifest = PluginManifest { name, language };
        for (path, text) in template::template_files(&manifest.name, language) {
            write_file(&directory.join(path), &text)?;
        }
        let text = format!("name = \"{}\"\nlanguage = \"{}\"\n", manifest.name, manifest.language);
        write_file(&directory.join(MANIFEST_FILE), &text)?;
        Ok(Self { directory, manifest })
    }

    /// Reads the project in a directory.
    pub(crate) fn open(directory: &Path) -> Result<Self, ProjectError> {
        let path = directory.join(MANIFEST_FILE);
        let text = own_file::read_regular_text(&path, MAX_MANIFEST_SIZE);
        let text = text.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ProjectError::NotAProject(directory.to_owned()),
            _ => ProjectError::Io(path.clone(), error),
        })?;
        let manifest = toml::from_str(&text)
            .map_err(|error| ProjectError::InvalidManifest { path, message: error.to_string() })?;
        // Build tools run inside the directory, so the path must be absolute.
        let directory = directory
            .canonicalize()
            .map_err(|error| ProjectError::Io(directory.to_owned(), error))?;
        Ok(Self { directory, manifest })
    }

    /// Returns the directory of the project.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the name of the plugin.
    pub(crate) fn name(&self) -> &PluginName {
        &self.manifest.name
    }

    /// Returns the language of the plugin.
    pub(crate) fn language(&self) -> PluginLanguage {
        self.manifest.language
    }

    /// Returns the path of the component that a build writes.
    pub(crate) fn component_path(&self) -> PathBuf {
        self.directory.join(format!("{}.wasm", self.manifest.name))
    }

    /// Returns the path of the conformance cases.
    pub(crate) fn cases_path(&self) -> PathBuf {
        self.directory.join("cases.json")
    }
}

fn write_file(path: &Path, text: &str) -> Result<(), ProjectError> {
    let problem = |error| ProjectError::Io(path.to_owned(), error);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(problem)?;
    }
    fs::write(path, text).map_err(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_project_has_its_name_everywhere_and_can_be_opened() {
        let directory = tempfile::tempdir().unwrap();
        for language in PluginLanguage::ALL {
            let name: PluginName = format!("say-{language}").parse().unwrap();
            let project = PluginProject::create(directory.path(), name.clone(), language).unwrap();
            assert!(matches!(
                PluginProject::create(directory.path(), name.clone(), language),
                Err(ProjectError::AlreadyExists(_))
            ));
            let opened = PluginProject::open(project.directory()).unwrap();
            assert_eq!((opened.name(), opened.language()), (&name, language));
            for (file, _) in template::template_files(&opened.manifest.name, language) {
                let text = fs::read_to_string(opened.directory().join(&file)).unwrap();
                assert!(
                    !text.contains("count_lines") && !text.contains("count-lines"),
                    "{language}: {file}"
                );
            }
        }
    }

    #[test]
    fn a_manifest_that_is_no_file_or_has_no_end_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(MANIFEST_FILE);
        let problem = || PluginProject::open(directory.path()).unwrap_err().to_string();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(problem().contains("it is not a regular file"), "{}", problem());
        fs::remove_file(&path).unwrap();
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, rustix::fs::Mode::RWXU, 0).unwrap();
        assert!(problem().contains("it is not a regular file"), "{}", problem());
        fs::remove_file(&path).unwrap();
        fs::write(&path, " ".repeat((64 << 10) + 1)).unwrap();
        assert!(problem().contains("it has more than 65536 bytes"), "{}", problem());
    }

    #[test]
    fn an_invalid_manifest_is_an_error_with_its_line() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(PluginProject::open(directory.path()), Err(ProjectError::NotAProject(_))));
        fs::write(directory.path().join(MANIFEST_FILE), "name = \"a\"\nlanguage = \"cobol\"\n")
            .unwrap();
        let problem = PluginProject::open(directory.path()).unwrap_err().to_string();
        assert!(problem.contains("line 2") && problem.contains("cobol"), "{problem}");
    }
}
