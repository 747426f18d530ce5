//! Settings of tools hold secrets: tokens in the addresses of repositories and registries, in
//! headers, in variables. A command is given copies of the settings without them.
//!
//! At the level `full` a copy is mounted over each file. At `kernel` a file that holds secrets
//! cannot be read, and git is told where the copy of its own settings is. Only in the workspace,
//! which a command has to read as a whole, settings stay as they are at `kernel`.

mod cargo;
mod close;
mod format;
mod found;
mod git_config;
mod lines;
mod secrets;
mod workspace_file;

use std::fs;
use std::path::{Path, PathBuf};

use super::protocol::{CommandPaths, SupervisorRequest};
use super::snapshot::EntryKind;
use super::worktree;
use crate::policy::{PathProtection, SandboxLevel};
use close::close;
use format::read;
pub(in crate::sandbox) use format::{LARGEST as MAX_SETTINGS_SIZE, SettingsFormat};
use found::{add_included, settings_in};

/// The settings of a workspace that are looked for before a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkspaceSettings<'a> {
    /// What is protected.
    pub(super) protected: &'a [(PathBuf, PathProtection, EntryKind)],
    /// The files whose names say that they hold settings of a package manager.
    pub(super) found: &'a [PathBuf],
}

/// The copies for one command.
#[derive(Debug, Default)]
pub(super) struct SettingsCopies {
    directory: PathBuf,
    /// Of what, and where: to be mounted.
    pub(super) mounts: Vec<(PathBuf, PathBuf)>,
    /// What tells programs of copies that cannot be mounted.
    pub(super) environment: Vec<(&'static str, PathBuf)>,
    /// What a command cannot do for want of settings.
    pub(super) remarks: Vec<String>,
}

impl SettingsCopies {
    /// Makes them in a folder of their own, for what a command sees. Gives what the command is to
    /// see then.
    pub(super) fn create(
        order: &SupervisorRequest,
        workspace: WorkspaceSettings<'_>,
        folder: &Path,
    ) -> std::io::Result<(Self, CommandPaths)> {
        fs::create_dir(folder)?;
        let mut copies = Self { directory: folder.to_owned(), ..Self::default() };
        let mut places = order.paths.clone();
        // What the user opened to commands by name is meant to be read.
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
                add_included(&mut settings, order.home.as_deref(), |path| {
                    is_shown(path) || is_inside(path)
                });
                for (path, format) in &settings {
                    // A mount goes to where a link leads.
                    let real = path.canonicalize().ok().filter(|real| is_inside(real));
                    let outside = (!is_inside(path)).then(|| path.clone());
                    // Settings of the user can be links into the workspace, where they can be read
                    // as well.
                    for target in outside.into_iter().chain(real) {
                        copies.add_mount(&target, *format)?;
                    }
                }
            }
            SandboxLevel::Kernel | SandboxLevel::None => {
                add_included(&mut settings, order.home.as_deref(), is_shown);
                settings.retain(|(path, format)| !is_inside(path) && format.clean(path).1);
                let closed: Vec<PathBuf> = settings.into_iter().map(|(path, _)| path).collect();
                copies.copy_git_settings(order.home.as_deref(), &closed, &mut places)?;
                close(&mut places, &closed);
                copies.tell_of_outer_repository(&order.workspace, &closed);
            }
        }
        Ok((copies, places))
    }

    /// Has a copy mounted over a file, if it holds secrets.
    fn add_mount(&mut self, path: &Path, format: SettingsFormat) -> std::io::Result<()> {
        let (text, has_changed) = format.clean(path);
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

    /// The user's and the system's settings of git, where the files themselves cannot be read then.
    fn copy_git_settings(
        &mut self,
        home: Option<&Path>,
        closed: &[PathBuf],
        places: &mut CommandPaths,
    ) -> std::io::Result<()> {
        // In the order in which git reads them.
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
                        let is_closed =
                            include.canonicalize().is_ok_and(|real| closed.contains(&real));
                        let is_seen = !is_closed
                            && places.read.iter().any(|place| include.starts_with(place));
                        is_seen.then(|| include.to_string_lossy().into_owned())
                    };
                    read(path).map_or((String::new(), true), |text| {
                        git_config::without_secrets(&text, included)
                    })
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

    /// Without the settings of its repository git does nothing.
    fn tell_of_outer_repository(&mut self, workspace: &Path, closed: &[PathBuf]) {
        let Some(repository) = worktree::find_outer_repository(workspace) else { return };
        let is_of_it = |path: &&PathBuf| {
            path.starts_with(&repository)
                && !path.ends_with("credentials")
                && !path.ends_with(".git-credentials")
        };
        self.remarks.extend(closed.iter().find(is_of_it).map(|path| {
            format!(
                "{} holds a secret, so commands in the sandbox `kernel` cannot read it, and git \
                    does not work there. Keep the secret \
                 in a credential helper, or install bubblewrap for the sandbox `full`",
                crate::terminal_escape::escape_line(&path.display().to_string(), 200)
            )
        }));
    }
}

/// The settings in a workspace.
fn of_workspace(root: &Path, workspace: WorkspaceSettings<'_>) -> Vec<(PathBuf, SettingsFormat)> {
    let protected = workspace
        .protected
        .iter()
        .filter(|(_, how, _)| *how == PathProtection::ReadOnly)
        .map(|(path, ..)| root.join(path));
    // A folder of git's own, in a workspace that is a home, is protected as a whole.
    let protected = protected
        .map(|path| if path.ends_with(".config/git") { path.join("config") } else { path });
    let of_git =
        protected.filter_map(|path| SettingsFormat::of(&path).map(|format| (path, format)));
    let found = workspace.found.iter().map(|path| root.join(path));
    of_git
        .chain(found.filter_map(|path| SettingsFormat::of(&path).map(|format| (path, format))))
        .collect()
}
