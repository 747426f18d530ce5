//! The folder of a plugin that is being written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{PluginLanguage, PluginName, template};
use crate::own_file;

/// The largest manifest that is read.
const MAX_MANIFEST_SIZE: u64 = 64 << 10;

const MANIFEST_FILE: &str = "plugin.toml";

/// A plugin that is being written.
#[derive(Clone, Debug)]
pub struct PluginProject {
    directory: PathBuf,
    manifest: PluginManifest,
}

/// `plugin.toml`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginManifest {
    name: PluginName,
    language: PluginLanguage,
}

/// A project that cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// There is something already.
    #[error("{0} exists already; choose another name, or remove it")]
    AlreadyExists(PathBuf),
    /// There is no project.
    #[error(
        "{0} has no {MANIFEST_FILE}: `cofferdam plugin new NAME --lang rust` begins a plugin; a \
            component without a project is tested by `cofferdam plugin test FILE.wasm --cases \
            FILE.json`"
    )]
    NotAProject(PathBuf),
    /// The manifest says something that is not understood.
    #[error("{path}: {message}")]
    InvalidManifest {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        message: String,
    },
    /// A file cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
}

impl PluginProject {
    /// Makes a folder with everything that the first build needs.
    pub fn create(
        within: &Path,
        name: PluginName,
        language: PluginLanguage,
    ) -> Result<Self, ProjectError> {
        let folder = within.join(name.as_str());
        if folder.symlink_metadata().is_ok() {
            return Err(ProjectError::AlreadyExists(folder));
        }
        let manifest = PluginManifest { name, language };
        for (path, text) in template::template_files(&manifest.name, language) {
            write_file(&folder.join(path), &text)?;
        }
        let text = format!("name = \"{}\"\nlanguage = \"{}\"\n", manifest.name, manifest.language);
        write_file(&folder.join(MANIFEST_FILE), &text)?;
        Ok(Self { directory: folder, manifest })
    }

    /// Reads the project in a folder.
    pub fn open(folder: &Path) -> Result<Self, ProjectError> {
        let path = folder.join(MANIFEST_FILE);
        let text = own_file::read_regular_text(&path, MAX_MANIFEST_SIZE);
        let text = text.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ProjectError::NotAProject(folder.to_owned()),
            _ => ProjectError::Io(path.clone(), error),
        })?;
        let manifest = toml::from_str(&text)
            .map_err(|error| ProjectError::InvalidManifest { path, message: error.to_string() })?;
        // Tools are run in the folder and must find it from anywhere.
        let folder =
            folder.canonicalize().map_err(|error| ProjectError::Io(folder.to_owned(), error))?;
        Ok(Self { directory: folder, manifest })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What it is called.
    pub fn name(&self) -> &PluginName {
        &self.manifest.name
    }

    /// What it is written in.
    pub fn language(&self) -> PluginLanguage {
        self.manifest.language
    }

    /// Where its component is, once it is built.
    pub fn component_path(&self) -> PathBuf {
        self.directory.join(format!("{}.wasm", self.manifest.name))
    }

    /// What its tools are expected to answer.
    pub fn cases_path(&self) -> PathBuf {
        self.directory.join("cases.json")
    }

    /// The files of the template, in order, for a person.
    pub fn template_files(&self) -> Vec<String> {
        template::template_files(&self.manifest.name, self.manifest.language)
            .map(|(path, _)| path)
            .collect()
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
        let folder = tempfile::tempdir().unwrap();
        for language in PluginLanguage::ALL {
            let name: PluginName = format!("say-{language}").parse().unwrap();
            let project = PluginProject::create(folder.path(), name.clone(), language).unwrap();
            assert!(matches!(
                PluginProject::create(folder.path(), name.clone(), language),
                Err(ProjectError::AlreadyExists(_))
            ));
            let opened = PluginProject::open(project.directory()).unwrap();
            assert_eq!((opened.name(), opened.language()), (&name, language));
            for file in opened.template_files() {
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
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MANIFEST_FILE);
        let problem = || PluginProject::open(folder.path()).unwrap_err().to_string();
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
    fn a_manifest_that_is_not_understood_says_where() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(PluginProject::open(folder.path()), Err(ProjectError::NotAProject(_))));
        fs::write(folder.path().join(MANIFEST_FILE), "name = \"a\"\nlanguage = \"cobol\"\n")
            .unwrap();
        let problem = PluginProject::open(folder.path()).unwrap_err().to_string();
        assert!(problem.contains("line 2") && problem.contains("cobol"), "{problem}");
    }
}
