//! The formats of settings files, and the removal of secrets in each.

use std::path::Path;

use super::reader::{SettingsFileReader, SettingsText};
use super::{cargo, code, git_config, lines, names, words};

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
    /// Program code, in which secrets are in quotes.
    Code,
    /// Plain text, in which only addresses are understood.
    Text,
    /// XML with elements, and with pairs of the attributes `key` and `value`.
    Markup,
    /// A file that contains only secrets. The copy is empty.
    Credentials,
    /// A JSON file that contains only secrets. The copy is an empty object.
    JsonCredentials,
}

impl SettingsFormat {
    /// Returns the format of a file, by its name and its directory. Ignores case, because the file
    /// system may, and because a copy by another name holds the same secrets.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let folder = path.parent().unwrap_or(Path::new("")).to_string_lossy();
        let is_in = |end: &str| names::ends_with_folder(&folder, end);
        let is_in_cargo_home = || {
            is_in(".cargo") || path.parent().is_some_and(|folder| folder.join("registry").is_dir())
        };
        match &*name {
            ".gitconfig" | "gitconfig" | ".gitmodules" | "config.worktree" => Some(Self::Git),
            "config" | "config.toml" if is_in_cargo_home() => Some(Self::Cargo),
            "env" if is_in_cargo_home() => Some(Self::Lines),
            ".npmrc" | "npmrc" => Some(Self::Lines),
            _ => names::listed_format(&folder, &name)
                .or_else(|| (name == "config").then_some(Self::Git)),
        }
    }

    /// Returns whether a workspace file with this name may hold settings of a package manager.
    pub fn is_looked_for(folder: &Path, name: &str) -> bool {
        let is_of_cargo = ["config", "config.toml"].iter().any(|of| name.eq_ignore_ascii_case(of))
            && folder.to_str().is_some_and(|folder| names::ends_with_folder(folder, ".cargo"));
        is_of_cargo || names::is_listed(folder, name)
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
    pub(super) fn clean(self, path: &Path, reader: &SettingsFileReader) -> (String, bool) {
        match reader.read(path) {
            SettingsText::Missing => (String::new(), false),
            SettingsText::Unreadable => (String::new(), true),
            SettingsText::Text(text) => self.clean_text(&text),
        }
    }

    /// Removes the secrets from a text, and returns whether anything was removed.
    pub fn clean_text(self, text: &str) -> (String, bool) {
        match self {
            // An included file that does not exist is not an error.
            Self::Git => git_config::without_secrets(text, |path| Some(path.to_owned())),
            Self::Cargo => cargo::without_secrets(text),
            Self::Lines => lines::without_secrets(text),
            Self::Words => words::without_secrets(text),
            Self::Code => code::without_secrets(text),
            Self::Text => lines::without_url_passwords(text),
            Self::Markup => lines::without_secret_elements(text),
            Self::Credentials => (String::new(), !text.trim().is_empty()),
            Self::JsonCredentials => ("{}\n".to_owned(), !matches!(text.trim(), "" | "{}")),
        }
    }

    /// Returns the paths of the included files, as written.
    pub(super) fn included(self, path: &Path, reader: &SettingsFileReader) -> Vec<String> {
        let SettingsText::Text(text) = reader.read(path) else { return Vec::new() };
        match self {
            Self::Git => git_config::included(&text),
            Self::Cargo => cargo::included(&text),
            Self::Lines => lines::included(&text),
            Self::Words => words::included(&text, path),
            Self::Code | Self::Text | Self::Markup | Self::Credentials | Self::JsonCredentials => {
                Vec::new()
            }
        }
    }
}
