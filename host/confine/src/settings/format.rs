//! The formats of settings files, and the removal of secrets in each.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::{cargo, git_config, lines};

/// The maximum size of a settings file, in bytes. The copy of a larger file is empty.
pub const LARGEST: u64 = 1 << 20;

/// The format of a settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsFormat {
    /// The settings of git.
    Git,
    /// The settings of cargo, as TOML.
    Cargo,
    /// Other settings, which are searched line by line.
    Lines,
    /// The arguments of a program, such as `-Dname=value`.
    Words,
    /// Plain text, in which only addresses are understood.
    Text,
    /// XML with elements, and with pairs of the attributes `key` and `value`.
    Markup,
    /// A file that contains only secrets. The copy is empty.
    Credentials,
    /// A JSON file that contains only secrets. The copy is an empty object.
    JsonCredentials,
}

/// The names of settings files of package managers, which are searched for in every directory of a
/// workspace. Those of git and npm are protected paths, and are found as such.
pub(super) const IN_WORKSPACE: &[(&str, SettingsFormat)] = &[
    (".condarc", SettingsFormat::Lines),
    (".lfsconfig", SettingsFormat::Git),
    (".terraformrc", SettingsFormat::Lines),
    (".yarnrc", SettingsFormat::Lines),
    (".yarnrc.yml", SettingsFormat::Lines),
    ("auth.json", SettingsFormat::JsonCredentials),
    ("bunfig.toml", SettingsFormat::Lines),
    ("gradle.properties", SettingsFormat::Lines),
    // `.hg/hgrc` of Mercurial.
    ("hgrc", SettingsFormat::Lines),
    ("nuget.config", SettingsFormat::Markup),
    ("pip.conf", SettingsFormat::Lines),
    ("pip.ini", SettingsFormat::Lines),
    ("pnpm-workspace.yaml", SettingsFormat::Lines),
    ("poetry.toml", SettingsFormat::Lines),
    ("settings.xml", SettingsFormat::Markup),
    ("uv.toml", SettingsFormat::Lines),
];

impl SettingsFormat {
    /// Returns the format of a file, by its name and its directory.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let is_in = |folder: &str| path.parent().is_some_and(|parent| parent.ends_with(folder));
        let is_in_cargo_home = || {
            is_in(".cargo") || path.parent().is_some_and(|folder| folder.join("registry").is_dir())
        };
        let listed = || {
            IN_WORKSPACE
                .iter()
                .find(|(listed, _)| name.eq_ignore_ascii_case(listed))
                .map(|(_, format)| *format)
        };
        match name {
            ".gitconfig" | "gitconfig" | ".gitmodules" | "config.worktree" => Some(Self::Git),
            "config" | "config.toml" if is_in_cargo_home() => Some(Self::Cargo),
            "env" if is_in_cargo_home() => Some(Self::Lines),
            "config" if is_in(".bundle") => Some(Self::Lines),
            "jvm.config" | "maven.config" if is_in(".mvn") => Some(Self::Words),
            "config" => Some(Self::Git),
            ".npmrc" | "npmrc" => Some(Self::Lines),
            _ => listed(),
        }
    }

    /// Returns whether a workspace file with this name may hold settings of a package manager.
    pub fn is_looked_for(folder: &Path, name: &str) -> bool {
        match name {
            "config" | "config.toml" => {
                folder.ends_with(".cargo") || name == "config" && folder.ends_with(".bundle")
            }
            "jvm.config" | "maven.config" => folder.file_name().is_some_and(|name| name == ".mvn"),
            _ => IN_WORKSPACE.iter().any(|(listed, _)| name.eq_ignore_ascii_case(listed)),
        }
    }

    /// Returns the format of a file that is shown to commands by its own path, such as
    /// `config.toml` in a `CARGO_HOME` of any name.
    pub(super) fn of_named(path: &Path) -> Option<Self> {
        let is_of_git = path.parent().is_some_and(|parent| parent.ends_with(".config/git"));
        match path.file_name()?.to_str()? {
            "config" | "config.toml" if !is_of_git => Some(Self::Cargo),
            "env" => Some(Self::Lines),
            _ => Self::of(path),
        }
    }

    /// Reads a settings file without its secrets, and returns whether anything was removed.
    pub(super) fn clean(self, path: &Path) -> (String, bool) {
        if !path.is_file() {
            return (String::new(), false);
        }
        let Some(text) = read(path) else { return (String::new(), true) };
        self.clean_text(&text)
    }

    /// Removes the secrets from a text, and returns whether anything was removed.
    pub fn clean_text(self, text: &str) -> (String, bool) {
        match self {
            // An included file that does not exist is not an error.
            Self::Git => git_config::without_secrets(text, |path| Some(path.to_owned())),
            Self::Cargo => cargo::without_secrets(text),
            Self::Lines => lines::without_secrets(text),
            Self::Words => lines::without_secret_words(text),
            Self::Text => lines::without_url_passwords(text),
            Self::Markup => lines::without_secret_elements(text),
            Self::Credentials => (String::new(), !text.trim().is_empty()),
            Self::JsonCredentials => ("{}\n".to_owned(), !matches!(text.trim(), "" | "{}")),
        }
    }

    /// Returns the paths of the included files, as written.
    pub(super) fn included(self, path: &Path) -> Vec<String> {
        let text = if path.is_file() { read(path).unwrap_or_default() } else { String::new() };
        match self {
            Self::Git => git_config::included(&text),
            Self::Cargo => cargo::included(&text),
            Self::Lines
            | Self::Words
            | Self::Text
            | Self::Markup
            | Self::Credentials
            | Self::JsonCredentials => Vec::new(),
        }
    }
}

/// Reads a text file that does not exceed the maximum size.
pub(super) fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(LARGEST + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= LARGEST).then_some(text)
}
