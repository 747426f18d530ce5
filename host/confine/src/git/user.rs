//! The git settings that apply to all repositories of the user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::HostEnvironment;

/// The paths where common builds of git look for the system settings.
const SYSTEM: &[&str] = &[
    "/etc/gitconfig",
    "/opt/homebrew/etc/gitconfig",
    "/usr/etc/gitconfig",
    "/usr/local/etc/gitconfig",
];

/// The maximum number of settings from environment variables.
const MOST_VARIABLES: usize = 1000;

/// The settings files that git reads in every repository, and the home directory that they refer
/// to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UserSettings {
    pub(super) files: Vec<PathBuf>,
    /// The names and values of settings from environment variables.
    #[serde(default)]
    pub(super) variables: Vec<(String, String)>,
    pub(super) home: Option<PathBuf>,
}

impl UserSettings {
    /// Returns the files of the user with this environment.
    ///
    /// The default files count even if variables name others, because another shell of the user may
    /// have other variables.
    pub fn new(environment: &HostEnvironment) -> Self {
        Self::of(environment.home.clone(), |name| environment.variable(name))
    }

    fn of(home: Option<PathBuf>, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let named = |name: &str| variable(name).map(PathBuf::from);
        let mut files: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        files.extend(named("GIT_CONFIG_SYSTEM"));
        files.extend(named("GIT_CONFIG_GLOBAL"));
        files.extend(named("XDG_CONFIG_HOME").map(|folder| folder.join("git/config")));
        files.extend(
            home.iter().flat_map(|home| [home.join(".config/git/config"), home.join(".gitconfig")]),
        );
        files.retain(|file| file.is_absolute());
        let text = |name: String| Some(variable(&name)?.to_string_lossy().into_owned());
        let count = text("GIT_CONFIG_COUNT".to_owned()).and_then(|count| count.parse().ok());
        let variables = (0..count.unwrap_or(0_usize).min(MOST_VARIABLES)).filter_map(|number| {
            let name = text(format!("GIT_CONFIG_KEY_{number}"))?;
            Some((name, text(format!("GIT_CONFIG_VALUE_{number}")).unwrap_or_default()))
        });
        let variables = variables.collect();
        Self { files, variables, home: home.filter(|home| home.is_absolute()) }
    }

    /// Returns the settings files.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the home directory of the user.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns the files that control git in every repository: the settings, and the attribute
    /// files beside them.
    pub(super) fn obeyed_files(&self) -> impl Iterator<Item = PathBuf> {
        let beside = self.files.iter().filter(|file| file.ends_with("git/config"));
        self.files.iter().cloned().chain(beside.map(|file| file.with_file_name("attributes")))
    }
}

/// Expands `~` and the user's own `~name` to the home directory. Homes of other users are not
/// resolved.
pub(crate) fn expanded(value: &str, home: Option<&Path>) -> PathBuf {
    let Some((name, rest)) =
        value.strip_prefix('~').map(|rest| rest.split_once('/').unwrap_or((rest, "")))
    else {
        return value.into();
    };
    match home {
        Some(home) if name.is_empty() || home.file_name().is_some_and(|own| own == name) => {
            home.join(rest.trim_start_matches('/'))
        }
        Some(_) | None => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_add_files_and_take_none_away() {
        let variable = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some("/xdg".into()),
            "GIT_CONFIG_GLOBAL" => Some("/global".into()),
            "GIT_CONFIG_SYSTEM" => Some("relative".into()),
            "GIT_CONFIG_COUNT" => Some("2".into()),
            "GIT_CONFIG_KEY_0" => Some("core.hooksPath".into()),
            "GIT_CONFIG_VALUE_0" => Some("/hooks".into()),
            _ => None,
        };
        let settings = UserSettings::of(Some("/home/u".into()), variable);
        let expected =
            ["/global", "/xdg/git/config", "/home/u/.config/git/config", "/home/u/.gitconfig"];
        assert_eq!(settings.files[SYSTEM.len()..], expected.map(PathBuf::from));
        assert_eq!(settings.variables, [("core.hooksPath".to_owned(), "/hooks".to_owned())]);
    }

    #[test]
    fn a_tilde_is_the_home_of_the_user() {
        let home = Some(Path::new("/home/u"));
        for (value, expected) in [
            ("~/a", "/home/u/a"),
            ("~u/a", "/home/u/a"),
            ("~", "/home/u"),
            ("~x/a", "~x/a"),
            ("a/~", "a/~"),
        ] {
            assert_eq!(expanded(value, home), Path::new(expected), "{value}");
        }
    }
}
