//! What this program keeps, and what it believes: no tool changes it, and no command is let in.

use std::path::{Path, PathBuf};

use super::{Folders, LockFile, policy};

/// The folders and files that are this program's own, as absolute paths without links.
#[derive(Clone, Debug)]
pub struct OwnPlaces {
    all: Vec<PathBuf>,
    /// Of these, where it stands what was said and done, and what is allowed.
    confidential: Vec<PathBuf>,
}

impl OwnPlaces {
    /// With this configuration file.
    pub fn of(folders: &Folders, configuration: &Path) -> Self {
        let lock = LockFile::beside(configuration);
        let system = Path::new(policy::SYSTEM).parent().unwrap_or(Path::new(policy::SYSTEM));
        let all = folders.all().into_iter().chain([lock.path(), configuration, system]);
        Self { all: all.map(without_links).collect(), confidential: folders.confidential().map(without_links).to_vec() }
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, PathBuf> {
        self.all.iter()
    }

    /// One that could be changed by whoever may write this path and all below it.
    pub(super) fn written_by(&self, path: &Path) -> Option<&Path> {
        first_within_reach(&self.all, path)
    }

    /// One that could be read by whoever may read this path and all below it, and should not be.
    pub(super) fn read_by(&self, path: &Path) -> Option<&Path> {
        first_within_reach(&self.confidential, path)
    }
}

fn first_within_reach<'a>(own: &'a [PathBuf], path: &Path) -> Option<&'a Path> {
    let path = without_links(path);
    own.iter().find(|own| own.starts_with(&path) || path.starts_with(own)).map(PathBuf::as_path)
}

/// The absolute path without links, of which the last part need not be there yet.
pub fn without_links(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = absolute.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match there {
        // Put together part by part, so that nothing is left of an empty rest.
        Some((above, real)) => real.components().chain(absolute.strip_prefix(above).unwrap_or(Path::new("")).components()).collect(),
        None => absolute,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::Raw;
    use super::*;

    /// What is said of these lines under `[commands]`, in a home with a configuration.
    fn said(home: &Path, lines: &str) -> Result<(), String> {
        let folders = Folders::below(home);
        let raw = Raw::parse(&format!("[commands]\n{lines}"), &folders.config_file()).map_err(|error| error.to_string())?;
        raw.check(&OwnPlaces::of(&folders, &folders.config_file())).map_err(|error| error.to_string())
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
            let problem = said(&home, &format!("write = [\"/srv\", \"{}\"]", at(path))).expect_err(path);
            let start =
                format!("{}:2:18: commands.write = \"{}\" would let commands change", at(".config/cofferdam/config.toml"), at(path));
            assert!(problem.starts_with(&start), "{path}: {problem}");
        }
        for (path, open) in [(".config", true), (".local/state", true), ("", true), (".cache", false), ("data", false)] {
            assert_eq!(said(&home, &format!("read = [\"{}\"]", at(path))).is_err(), open, "{path}");
        }
        for key in ["read", "write"] {
            assert!(said(&home, &format!("{key} = [\"\"]")).expect_err("empty").contains("names no folder"));
            assert!(said(&home, &format!("{key} = [\".\"]")).is_err(), "the folder of the configuration");
            assert_eq!(said(&home, &format!("{key} = [\"{}\"]", at(".cache/ccache"))), Ok(()));
        }
        assert!(said(&home, "write = [\"/etc\"]").expect_err("the policy of the system").contains("/etc/cofferdam"));
    }
}
