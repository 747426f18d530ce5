//! The formats of settings files in a workspace, for tools that read them.

use super::format::SettingsFormat;
use super::names::{ends_with_folder, listed_format};

/// The names of settings that are not in the lists of [`super::names`], in lowercase.
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
    "npmrc",
];

impl SettingsFormat {
    /// Returns the format of a workspace file, or `None` if it is not a settings file.
    ///
    /// Ignores case, because the file system may. `is_there` returns whether a path of the
    /// workspace exists.
    pub fn of_workspace_file(path: &str, is_there: impl Fn(&str) -> bool) -> Option<Self> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if let Some(format) = listed_format(folder, name) {
            return Some(format);
        }
        // Most workspace files have none of these names.
        let other = OTHER_NAMES.iter().find(|other| name.eq_ignore_ascii_case(other))?;
        let is_in = |names: &str| ends_with_folder(folder, names);
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
            "config" if is_of_git() => Some(Self::Git),
            "config" | "config.toml" if is_of_cargo() => Some(Self::Cargo),
            "credentials" if is_of_git() => Some(Self::Credentials),
            "env" if is_of_cargo() => Some(Self::Lines),
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
            (".bunfig.toml", SettingsFormat::Lines),
            (".gemrc", SettingsFormat::Lines),
            ("pdm.toml", SettingsFormat::Lines),
            (".pdm.toml", SettingsFormat::Lines),
            (".config/pnpm/rc", SettingsFormat::Lines),
            (".bazelrc", SettingsFormat::Words),
            ("ci.bazelrc", SettingsFormat::Words),
            (".bazelrc.user", SettingsFormat::Words),
            (".jvmopts", SettingsFormat::Words),
            (".sbtopts", SettingsFormat::Words),
            (".mavenrc", SettingsFormat::Words),
            (".gradle/init.gradle", SettingsFormat::Code),
            (".gradle/init.d/mirror.gradle.kts", SettingsFormat::Code),
            (".hg/hgrc", SettingsFormat::Lines),
            (".hgrc", SettingsFormat::Lines),
            (".terraformrc", SettingsFormat::Lines),
            ("terraform.rc", SettingsFormat::Lines),
            (".cabal/config", SettingsFormat::Lines),
            (".config/go/env", SettingsFormat::Lines),
            ("mise.toml", SettingsFormat::Lines),
            (".mise.toml", SettingsFormat::Lines),
            ("mise.local.toml", SettingsFormat::Lines),
            (".config/mise/config.toml", SettingsFormat::Lines),
            ("poetry.toml", SettingsFormat::Lines),
            (".config/pypoetry/auth.toml", SettingsFormat::Credentials),
        ] {
            assert_eq!(format(path), Some(expected), "{path}");
        }
        for (path, expected) in [
            (".config/pnpm/rc", SettingsFormat::Lines),
            (".bazelrc", SettingsFormat::Words),
            (".gradle/init.gradle", SettingsFormat::Code),
            (".cabal/config", SettingsFormat::Lines),
            (".hgrc", SettingsFormat::Lines),
            (".config/go/env", SettingsFormat::Lines),
        ] {
            let path = std::path::Path::new("/ws").join(path);
            let (folder, name) = (path.parent().expect("a parent"), path.file_name());
            let name = name.and_then(|name| name.to_str()).expect("a name");
            assert!(SettingsFormat::is_looked_for(folder, name), "{}", path.display());
            assert_eq!(SettingsFormat::of(&path), Some(expected), "{}", path.display());
        }
        for (path, expected) in [
            (".GIT/Config", SettingsFormat::Git),
            (".NPMRC", SettingsFormat::Lines),
            (".CARGO/Config.TOML", SettingsFormat::Cargo),
            (".GitModules", SettingsFormat::Git),
        ] {
            assert_eq!(SettingsFormat::of(path.as_ref()), Some(expected), "{path}");
        }
        assert!(SettingsFormat::is_looked_for("a/.Cargo".as_ref(), "CONFIG.toml"));
        for path in [
            "build.gradle",
            "env",
            "rc",
            "mise.lock",
            "src/config",
            "a.cargo/config.toml",
            "x.git/config",
            "jvm.config",
            "main.rs",
            "",
        ] {
            assert_eq!(format(path), None, "{path}");
        }
    }
}
