//! The formats of settings files in a workspace, for tools that read them.

use super::format::{IN_WORKSPACE, SettingsFormat};

/// The names of settings that are not in [`IN_WORKSPACE`], in lowercase.
const OTHER_NAMES: &[&str] = &[
    ".git-credentials",
    ".gitconfig",
    ".gitmodules",
    ".npmrc",
    "config",
    "config.toml",
    "config.worktree",
    "credentials",
    "env",
    "gitconfig",
    "jvm.config",
    "maven.config",
    "npmrc",
];

impl SettingsFormat {
    /// Returns the format of a workspace file, or `None` if it is not a settings file.
    ///
    /// Ignores case, because the file system may. `is_there` returns whether a path of the
    /// workspace exists.
    pub fn of_workspace_file(path: &str, is_there: impl Fn(&str) -> bool) -> Option<Self> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let listed = || {
            let listed = IN_WORKSPACE.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
            listed.map(|(_, format)| *format)
        };
        // Most workspace files have none of these names.
        let Some(other) = OTHER_NAMES.iter().find(|other| name.eq_ignore_ascii_case(other)) else {
            return listed();
        };
        let is_in = |names: &str| {
            let at = folder.len().checked_sub(names.len());
            at.and_then(|at| folder.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(names))
                && at.is_some_and(|at| at == 0 || folder.as_bytes()[at - 1] == b'/')
        };
        let has_beside = |name: &str| {
            let beside = if folder.is_empty() { name.into() } else { format!("{folder}/{name}") };
            is_there(&beside)
        };
        let is_of_git = || is_in(".git") || is_in(".config/git") || has_beside("HEAD");
        let is_of_cargo = || is_in(".cargo") || has_beside("registry");
        match *other {
            ".git-credentials" => Some(Self::Credentials),
            ".gitconfig" | ".gitmodules" | "gitconfig" | "config.worktree" => Some(Self::Git),
            ".npmrc" | "npmrc" => Some(Self::Lines),
            "config" if is_in(".bundle") => Some(Self::Lines),
            "config" if is_of_git() => Some(Self::Git),
            "config" | "config.toml" if is_of_cargo() => Some(Self::Cargo),
            "credentials" if is_of_git() => Some(Self::Credentials),
            "env" if is_of_cargo() => Some(Self::Lines),
            "jvm.config" | "maven.config" if is_in(".mvn") => Some(Self::Words),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_known_by_name_and_directory() {
        let format = |path: &str| {
            SettingsFormat::of_workspace_file(path, |path| {
                matches!(path, "bare.git/HEAD" | "HEAD" | "cargo/registry")
            })
        };
        for (path, expected) in [
            (".git/config", SettingsFormat::Git),
            ("a/.GIT/Config", SettingsFormat::Git),
            ("bare.git/config", SettingsFormat::Git),
            ("config", SettingsFormat::Git),
            ("bare.git/credentials", SettingsFormat::Credentials),
            (".npmrc", SettingsFormat::Lines),
            ("a/.NPMRC", SettingsFormat::Lines),
            (".yarnrc.yml", SettingsFormat::Lines),
            (".m2/settings.xml", SettingsFormat::Markup),
            ("a/.cargo/config.toml", SettingsFormat::Cargo),
            ("cargo/config.toml", SettingsFormat::Cargo),
            ("NuGet.Config", SettingsFormat::Markup),
            ("auth.json", SettingsFormat::JsonCredentials),
            (".lfsconfig", SettingsFormat::Git),
            (".mvn/jvm.config", SettingsFormat::Words),
            (".bundle/config", SettingsFormat::Lines),
        ] {
            assert_eq!(format(path), Some(expected), "{path}");
        }
        for path in
            ["src/config", "a.cargo/config.toml", "x.git/config", "jvm.config", "main.rs", ""]
        {
            assert_eq!(format(path), None, "{path}");
        }
    }
}
