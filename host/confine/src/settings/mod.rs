//! Copies of settings files without their secrets, for commands.
//!
//! Settings hold tokens in repository and registry addresses, in headers and in variables.
//!
//! - At the level `full`, a copy is mounted over each file.
//! - At the level `kernel`, files with secrets cannot be read, and variables point git to the
//!   copies of the user's and the system's settings. Settings in the workspace stay readable,
//!   because commands have to read the workspace as a whole.

mod cargo;
mod close;
mod code;
mod format;
mod found;
mod git_config;
mod included;
mod lines;
mod names;
mod reader;
mod secrets;
mod words;
mod workspace_file;

use std::fs;
use std::path::{Path, PathBuf};

use super::protocol::{CommandPaths, SupervisorRequest};
use super::snapshot::EntryKind;
use close::close;
use cofferdam_policy::{PathProtection, SandboxLevel};
pub use format::{LARGEST as MAX_SETTINGS_SIZE, SettingsFormat};
use found::{add_included, settings_in};
pub use included::{IncludedSettings, SettingsRoots};
use reader::{SettingsFileReader, SettingsText};

/// The settings of a workspace that are searched before a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkspaceSettings<'a> {
    /// The protected paths with their kinds.
    pub(super) protected: &'a [(PathBuf, PathProtection, EntryKind)],
    /// The files with names of package manager settings.
    pub(super) found: &'a [PathBuf],
}

/// The copies of settings for one command.
#[derive(Debug, Default)]
pub(super) struct SettingsCopies {
    directory: PathBuf,
    /// The pairs of an original file and the copy to mount over it.
    pub(super) mounts: Vec<(PathBuf, PathBuf)>,
    /// Variables that point programs to copies that cannot be mounted.
    pub(super) environment: Vec<(&'static str, PathBuf)>,
    /// Notices about functions that fail because settings are unreadable.
    pub(super) remarks: Vec<String>,
}

impl SettingsCopies {
    /// Creates the copies in a new directory `folder`, and returns them with the updated paths that
    /// the command can see.
    pub(super) fn create(
        order: &SupervisorRequest,
        workspace: WorkspaceSettings<'_>,
        folder: &Path,
    ) -> std::io::Result<(Self, CommandPaths)> {
        fs::create_dir(folder)?;
        let reader = &SettingsFileReader::default();
        let mut copies = Self { directory: folder.to_owned(), ..Self::default() };
        let mut places = order.paths.clone();
        // Paths that the user opened by name stay readable with their secrets.
        let is_opened =
            |path: &Path| order.opened_paths.iter().any(|opened| path.starts_with(opened));
        let shown: Vec<&PathBuf> =
            order.paths.read.iter().filter(|place| !is_opened(place)).collect();
        let is_shown =
            |path: &Path| !is_opened(path) && shown.iter().any(|place| path.starts_with(place));
        let is_inside = |path: &Path| path.starts_with(&order.workspace);
        let mut settings: Vec<(PathBuf, SettingsFormat)> =
            shown.iter().flat_map(|place| settings_in(place)).collect();
        match order.level {
            SandboxLevel::Full => {
                settings.extend(of_workspace(&order.workspace, workspace));
                add_included(&mut settings, order.home.as_deref(), reader, |path| {
                    is_shown(path) || is_inside(path)
                });
                for (path, format) in &settings {
                    // A mount over a link applies to its target.
                    let real = reader.resolver.canonicalize(path).ok();
                    let real = real.filter(|real| is_inside(real));
                    let outside = (!is_inside(path)).then(|| path.clone());
                    // Settings of the user can be links into the workspace, where they are readable
                    // too.
                    for target in outside.into_iter().chain(real) {
                        copies.add_mount(&target, *format, reader)?;
                    }
                }
            }
            SandboxLevel::Kernel | SandboxLevel::None => {
                add_included(&mut settings, order.home.as_deref(), reader, is_shown);
                settings.retain(|(path, format)| !is_inside(path) && format.clean(path, reader).1);
                let closed: Vec<PathBuf> = settings.into_iter().map(|(path, _)| path).collect();
                copies.copy_git_settings(order.home.as_deref(), &closed, &mut places, reader)?;
                close(&mut places, &closed, &reader.resolver);
                copies.tell_of_outer_repository(order.outer_repository.as_deref(), &closed);
            }
        }
        Ok((copies, places))
    }

    /// Adds a copy to mount over a file that holds secrets.
    fn add_mount(
        &mut self,
        path: &Path,
        format: SettingsFormat,
        reader: &SettingsFileReader,
    ) -> std::io::Result<()> {
        let (text, has_changed) = format.clean(path, reader);
        if has_changed && !self.mounts.iter().any(|(known, _)| known == path) {
            let copy = self.write(&text)?;
            self.mounts.push((path.to_owned(), copy));
        }
        Ok(())
    }

    fn write(&self, text: &str) -> std::io::Result<PathBuf> {
        let mut number = self.mounts.len();
        let copy = loop {
            let copy = self.directory.join(number.to_string());
            if !copy.exists() {
                break copy;
            }
            number += 1;
        };
        fs::write(&copy, text)?;
        Ok(copy)
    }

    /// Copies the git settings of the user and the system if the files hold secrets, since they
    /// cannot be read then.
    fn copy_git_settings(
        &mut self,
        home: Option<&Path>,
        closed: &[PathBuf],
        places: &mut CommandPaths,
        reader: &SettingsFileReader,
    ) -> std::io::Result<()> {
        // The order in which git reads the files.
        let own: Vec<PathBuf> = home
            .iter()
            .flat_map(|home| [home.join(".config/git/config"), home.join(".gitconfig")])
            .collect();
        for (variable, paths) in [
            ("GIT_CONFIG_GLOBAL", own),
            ("GIT_CONFIG_SYSTEM", vec![PathBuf::from("/etc/gitconfig")]),
        ] {
            let there: Vec<_> = paths.iter().filter(|path| places.read.contains(path)).collect();
            let cleaned: Vec<_> = there
                .iter()
                .map(|path| {
                    let included = |include: &str| {
                        let include = match include.strip_prefix("~/") {
                            Some(rest) => home?.join(rest),
                            None => path.parent()?.join(include),
                        };
                        let is_closed = reader
                            .resolver
                            .canonicalize(&include)
                            .is_ok_and(|real| closed.contains(&real));
                        let is_seen = !is_closed
                            && places.read.iter().any(|place| include.starts_with(place));
                        is_seen.then(|| include.to_string_lossy().into_owned())
                    };
                    match reader.read(path) {
                        SettingsText::Text(text) => git_config::without_secrets(&text, included),
                        SettingsText::Missing | SettingsText::Unreadable => (String::new(), true),
                    }
                })
                .collect();
            if cleaned.iter().any(|(_, has_changed)| *has_changed) {
                let text: String = cleaned.into_iter().map(|(text, _)| text).collect();
                self.environment.push((variable, self.write(&text)?));
                places.read.retain(|place| !paths.contains(place));
            }
        }
        if !self.environment.is_empty() {
            places.read.push(self.directory.clone());
        }
        Ok(())
    }

    /// Adds a notice if the settings of the outer repository are closed, because git fails without
    /// them.
    fn tell_of_outer_repository(&mut self, repository: Option<&Path>, closed: &[PathBuf]) {
        let Some(repository) = repository else { return };
        let is_of_it = |path: &&PathBuf| {
            path.starts_with(repository)
                && !path.ends_with("credentials")
                && !path.ends_with(".git-credentials")
        };
        self.remarks.extend(closed.iter().find(is_of_it).map(|path| {
            format!(
                "{} contains a secret, so commands in the sandbox `kernel` cannot read it, and git \
                    does not work there. Move the secret to a credential helper, or allow \
                    user namespaces for the sandbox `full`",
                cofferdam_policy::terminal_escape::escape_line(&path.display().to_string(), 200)
            )
        }));
    }
}

/// Returns the settings files in a workspace.
fn of_workspace(root: &Path, workspace: WorkspaceSettings<'_>) -> Vec<(PathBuf, SettingsFormat)> {
    let protected = workspace
        .protected
        .iter()
        .filter(|(_, how, _)| *how == PathProtection::ReadOnly)
        .map(|(path, ..)| root.join(path));
    // If the workspace is a home directory, `.config/git` is protected as a whole.
    let protected = protected
        .map(|path| if path.ends_with(".config/git") { path.join("config") } else { path });
    let of_git =
        protected.filter_map(|path| SettingsFormat::of(&path).map(|format| (path, format)));
    let found = workspace.found.iter().map(|path| root.join(path));
    of_git
        .chain(found.filter_map(|path| SettingsFormat::of(&path).map(|format| (path, format))))
        .collect()
}
