//! What this program keeps, and what it believes: no tool changes it, and no command is let in.

use std::path::{Path, PathBuf};

use super::{PluginLockFile, UserDirectories, policy};

/// The folders and files that are this program's own, as absolute paths without links.
#[derive(Clone, Debug)]
pub struct OwnPaths {
    all: Vec<PathBuf>,
    /// Of these, where it stands what was said and done, and what is allowed.
    confidential: Vec<PathBuf>,
}

impl OwnPaths {
    /// With this configuration file.
    pub fn new(folders: &UserDirectories, configuration: &Path) -> Self {
        let lock = PluginLockFile::next_to(configuration);
        let system =
            Path::new(policy::SYSTEM_POLICY).parent().unwrap_or(Path::new(policy::SYSTEM_POLICY));
        let all = folders.all().into_iter().chain([lock.path(), configuration, system]);
        Self {
            all: all.map(resolve_links).collect(),
            confidential: folders.confidential().map(resolve_links).to_vec(),
        }
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, PathBuf> {
        self.all.iter()
    }

    /// One that could be changed by whoever may write this path and all below it.
    pub(super) fn exposed_to_write(&self, path: &Path) -> Option<&Path> {
        first_overlapping(&self.all, path)
    }

    /// One that could be read by whoever may read this path and all below it, and should not be.
    pub(super) fn exposed_to_read(&self, path: &Path) -> Option<&Path> {
        first_overlapping(&self.confidential, path)
    }
}

fn first_overlapping<'a>(own: &'a [PathBuf], path: &Path) -> Option<&'a Path> {
    let path = resolve_links(path);
    own.iter().find(|own| own.starts_with(&path) || path.starts_with(own)).map(PathBuf::as_path)
}

/// The absolute path without links, of which the last part need not be there yet.
pub fn resolve_links(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = absolute.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match there {
        // Put together part by part, so that nothing is left of an empty rest.
        Some((above, real)) => real
            .components()
            .chain(absolute.strip_prefix(above).unwrap_or(Path::new("")).components())
            .collect(),
        None => absolute,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::RawConfig;
    use super::*;

    /// What is said of these lines under `[commands]`, in a home with a configuration.
    fn said(home: &Path, lines: &str) -> Result<(), String> {
        let folders = UserDirectories::under_home(home);
        let raw = RawConfig::parse(&format!("[commands]\n{lines}"), &folders.config_file())
            .map_err(|error| error.to_string())?;
        raw.check_own_paths(&OwnPaths::new(&folders, &folders.config_file()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn r123_what_this_program_keeps_is_not_opened_to_commands() {
        let temp = tempfile::tempdir().expect("a folder");
        let home = temp.path().canonicalize().expect("it is there");
        fs::create_dir_all(home.join(".config/cofferdam")).expect("it can be made");
        symlink(home.join(".config"), home.join("link")).expect("a link");
        let at = |path: &str| home.join(path).display().to_string();
        for path in [
            "",
            ".config",
            ".config/cofferdam/policy.toml",
            ".cache",
            ".cache/cofferdam/x",
            ".local",
            ".local/state/cofferdam/audit",
            "link",
        ] {
            let problem =
                said(&home, &format!("write = [\"/srv\", \"{}\"]", at(path))).expect_err(path);
            let start = format!(
                "{}:2:18: commands.write = \"{}\" would let commands change",
                at(".config/cofferdam/config.toml"),
                at(path)
            );
            assert!(problem.starts_with(&start), "{path}: {problem}");
        }
        for (path, open) in [
            (".config", true),
            (".local/state", true),
            ("", true),
            (".cache", false),
            ("data", false),
        ] {
            assert_eq!(said(&home, &format!("read = [\"{}\"]", at(path))).is_err(), open, "{path}");
        }
        for key in ["read", "write"] {
            assert!(
                said(&home, &format!("{key} = [\"\"]"))
                    .expect_err("empty")
                    .contains("names no folder")
            );
            assert!(
                said(&home, &format!("{key} = [\".\"]")).is_err(),
                "the folder of the configuration"
            );
            assert_eq!(said(&home, &format!("{key} = [\"{}\"]", at(".cache/ccache"))), Ok(()));
        }
        assert!(
            said(&home, "write = [\"/etc\"]")
                .expect_err("the policy of the system")
                .contains("/etc/cofferdam")
        );
    }
}
