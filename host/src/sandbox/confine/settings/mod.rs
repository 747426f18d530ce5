//! Settings of tools hold secrets: tokens in the addresses of repositories and registries, in headers, in variables. A command
//! is given copies of the settings without them.
//!
//! At the level `full` a copy is mounted over each file. At `kernel` a file that holds secrets cannot be read, and git is told
//! where the copy is; a file in a folder that can be read as a whole, such as `.git/config`, stays readable there.

mod cargo;
mod git_config;
mod lines;
mod secrets;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::order::{Order, Places};
use super::watch::EntryKind;
use crate::policy::{Protected, SandboxLevel};
use crate::sandbox::git;

/// Longer settings nobody writes by hand; of these the copy is empty.
const LARGEST: u64 = 1 << 20;
/// Files that are looked for in one folder of toolchains.
const MOST_FOUND: usize = 200;

/// In what form a file of settings is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Git,
    Cargo,
    Lines,
    /// Only the addresses in it are understood.
    Text,
}

/// Where settings are in a folder that is shown to commands as a whole: that of a toolchain, of an environment of Python's, or
/// of a repository outside of the workspace. Those of git have a `HEAD` beside them.
const IN_FOLDERS: &[(&str, Format)] = &[
    ("config", Format::Git),
    ("config.worktree", Format::Git),
    (".git/config", Format::Git),
    ("modules/*/config", Format::Git),
    ("modules/*/modules/*/config", Format::Git),
    ("worktrees/*/config.worktree", Format::Git),
    ("plugins/*/.git/config", Format::Git),
    ("db/*/config", Format::Git),
    ("checkouts/*/*/.git/config", Format::Git),
    ("mod/cache/vcs/*/config", Format::Git),
    (".condarc", Format::Lines),
    ("condarc", Format::Lines),
    ("envs/*/.condarc", Format::Lines),
    ("envs/*/pip.conf", Format::Lines),
    ("pip.conf", Format::Lines),
    ("versions/*/pip.conf", Format::Lines),
    ("installs/*/*/pip.conf", Format::Lines),
    ("etc/npmrc", Format::Lines),
    ("local/etc/npmrc", Format::Lines),
    ("versions/node/*/etc/npmrc", Format::Lines),
    ("versions/*/etc/npmrc", Format::Lines),
    ("installs/*/*/etc/npmrc", Format::Lines),
    ("tools/image/node/*/etc/npmrc", Format::Lines),
    ("repo/repos-config", Format::Text),
    ("config.yaml", Format::Text),
    ("config.toml", Format::Text),
];

/// The same of tools that each have a folder of their own in there.
const OF_TOOLS: &[(&str, &str)] = &[("pipx/venvs", "*/pipx_metadata.json"), ("uv/tools", "*/uv-receipt.toml")];

impl Format {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let is_in = |folder: &str| path.parent().is_some_and(|parent| parent.ends_with(folder));
        match name {
            ".gitconfig" | "gitconfig" | ".gitmodules" | "config.worktree" => Some(Self::Git),
            "config" | "config.toml" if is_in(".cargo") || path.parent().is_some_and(|folder| folder.join("registry").is_dir()) => {
                Some(Self::Cargo)
            }
            "config" => Some(Self::Git),
            ".npmrc" | "npmrc" | ".yarnrc" | ".yarnrc.yml" | "pip.conf" | ".condarc" => Some(Self::Lines),
            _ => None,
        }
    }
}

/// The copies for one command.
#[derive(Debug, Default)]
pub(super) struct SettingsCopies {
    folder: PathBuf,
    /// Of what, and where: to be mounted.
    pub(super) mounts: Vec<(PathBuf, PathBuf)>,
    /// What tells programs of copies that cannot be mounted.
    pub(super) environment: Vec<(&'static str, PathBuf)>,
}

impl SettingsCopies {
    /// Makes them in a folder of their own, for what a command sees and what is protected in the workspace. Gives what the
    /// command is to see then.
    pub(super) fn make(order: &Order, protected: &[(PathBuf, Protected, EntryKind)], folder: &Path) -> std::io::Result<(Self, Places)> {
        fs::create_dir(folder)?;
        let mut copies = Self { folder: folder.to_owned(), ..Self::default() };
        let mut places = order.places.clone();
        // What the user opened to commands by name is meant to be read.
        let is_opened = |path: &Path| order.opened.iter().any(|opened| path.starts_with(opened));
        let shown = || order.places.read.iter().filter(|place| !is_opened(place));
        match order.level {
            SandboxLevel::Full => {
                for place in shown() {
                    if !place.is_dir() {
                        Format::of(place).map_or(Ok(()), |format| copies.mount(place, format))?;
                        continue;
                    }
                    let of_tools = OF_TOOLS.iter().filter(|(folder, _)| place.ends_with(folder));
                    let of_tools = of_tools.map(|(_, pattern)| (*pattern, Format::Text));
                    for (pattern, format) in IN_FOLDERS.iter().copied().chain(of_tools) {
                        // Of many toolchains `config` is something else.
                        let is_it = |path: &&PathBuf| format != Format::Git || path.with_file_name("HEAD").exists();
                        find(place, pattern).iter().filter(is_it).try_for_each(|path| copies.mount(path, format))?;
                    }
                }
                copies.of_workspace(&order.workspace, protected)?;
            }
            SandboxLevel::Kernel | SandboxLevel::None => {
                copies.of_git(order.home.as_deref(), &mut places)?;
                places.read.retain(|place| {
                    is_opened(place) || place.is_dir() || Format::of(place) != Some(Format::Cargo) || !clean(place, Format::Cargo).1
                });
            }
        }
        Ok((copies, places))
    }

    /// What is protected from being changed in the workspace, and what the settings of its repositories include.
    fn of_workspace(&mut self, workspace: &Path, protected: &[(PathBuf, Protected, EntryKind)]) -> std::io::Result<()> {
        let mut included = Vec::new();
        for (path, how, _) in protected.iter().filter(|(path, ..)| Format::of(path).is_some()) {
            let whole = workspace.join(path);
            let Some(format) = Format::of(path).filter(|_| *how == Protected::ReadOnly) else { continue };
            if format == Format::Git {
                included.extend(git::included_by(workspace, &whole));
            }
            self.mount(&whole, format)?;
        }
        let included = included.iter().filter(|path| protected.iter().any(|(known, ..)| known == *path));
        included.map(|path| workspace.join(path)).filter(|path| path.is_file()).try_for_each(|path| self.mount(&path, Format::Git))
    }

    /// Has a copy mounted over a file, if it holds secrets.
    fn mount(&mut self, path: &Path, format: Format) -> std::io::Result<()> {
        let (text, has_changed) = clean(path, format);
        if has_changed && !self.mounts.iter().any(|(known, _)| known == path) {
            let copy = self.write(&text)?;
            self.mounts.push((path.to_owned(), copy));
        }
        Ok(())
    }

    fn write(&self, text: &str) -> std::io::Result<PathBuf> {
        let mut number = self.mounts.len();
        let copy = loop {
            let copy = self.folder.join(number.to_string());
            if !copy.exists() {
                break copy;
            }
            number += 1;
        };
        fs::write(&copy, text)?;
        Ok(copy)
    }

    /// The user's and the system's settings of git, where the files themselves cannot be read then.
    fn of_git(&mut self, home: Option<&Path>, places: &mut Places) -> std::io::Result<()> {
        // In the order in which git reads them.
        let own: Vec<PathBuf> = home.iter().flat_map(|home| [home.join(".config/git/config"), home.join(".gitconfig")]).collect();
        for (variable, paths) in [("GIT_CONFIG_GLOBAL", own), ("GIT_CONFIG_SYSTEM", vec![PathBuf::from("/etc/gitconfig")])] {
            let there: Vec<_> = paths.iter().filter(|path| places.read.contains(path)).collect();
            let cleaned: Vec<_> = there
                .iter()
                .map(|path| {
                    let included = |include: &str| {
                        let include = match include.strip_prefix("~/") {
                            Some(rest) => home?.join(rest),
                            None => path.parent()?.join(include),
                        };
                        places.read.iter().any(|place| include.starts_with(place)).then(|| include.to_string_lossy().into_owned())
                    };
                    read(path).map_or((String::new(), true), |text| git_config::without_secrets(&text, included))
                })
                .collect();
            if cleaned.iter().any(|(_, has_changed)| *has_changed) {
                let text: String = cleaned.into_iter().map(|(text, _)| text).collect();
                self.environment.push((variable, self.write(&text)?));
                places.read.retain(|place| !paths.contains(place));
            }
        }
        if !self.environment.is_empty() {
            places.read.push(self.folder.clone());
        }
        Ok(())
    }
}

/// The settings without secrets, and whether that is less than there was.
fn clean(path: &Path, format: Format) -> (String, bool) {
    if !path.is_file() {
        return (String::new(), false);
    }
    let Some(text) = read(path) else { return (String::new(), true) };
    match format {
        // What is included and not there is no error.
        Format::Git => git_config::without_secrets(&text, |path| Some(path.to_owned())),
        Format::Cargo => cargo::without_secrets(&text),
        Format::Lines => lines::without_secrets(&text),
        Format::Text => lines::without_addresses(&text),
    }
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(LARGEST + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= LARGEST).then_some(text)
}

/// The files below a folder at a path in which `*` is any name.
fn find(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for part in pattern.split('/') {
        found = match part {
            "*" => {
                let entries =
                    found.iter().filter_map(|folder| fs::read_dir(folder).ok()).flat_map(|entries| entries.flatten().take(MOST_FOUND));
                entries.map(|entry| entry.path()).take(MOST_FOUND).collect()
            }
            name => found.into_iter().map(|folder| folder.join(name)).collect(),
        };
    }
    found.retain(|path| path.is_file());
    found
}
