//! The files of this program, which tools and commands must not access.

use std::path::{Path, PathBuf};

use super::{PluginPaths, UserDirectories, policy};

/// The directories and files of this program, as absolute paths without links.
#[derive(Clone, Debug)]
pub struct OwnPaths {
    all: Vec<PathBuf>,
    /// The paths with records of conversations and actions, and with permissions.
    confidential: Vec<PathBuf>,
}

impl OwnPaths {
    /// Collects the paths for a configuration file.
    pub fn new(directories: &UserDirectories, configuration: &Path) -> Self {
        let plugins = PluginPaths::next_to(configuration);
        let system =
            Path::new(policy::SYSTEM_POLICY).parent().unwrap_or(Path::new(policy::SYSTEM_POLICY));
        let (policy_file, plugin_dir) = (directories.policy_file(), plugins.plugin_dir());
        // Each of these can be a link, such as one into a directory with settings of many programs.
        let files =
            [plugins.lock_file(), configuration, &policy_file, &plugin_dir, system].into_iter();
        let all = directories.all().into_iter().chain(files);
        let mut all: Vec<PathBuf> = all.flat_map(link_chain).collect();
        all.dedup();
        Self { all, confidential: directories.confidential().map(resolve_links).to_vec() }
    }

    /// Returns an iterator over all paths.
    pub fn iter(&self) -> std::slice::Iter<'_, PathBuf> {
        self.all.iter()
    }

    /// Returns an own path that overlaps with a path that commands may write.
    pub(super) fn exposed_to_write(&self, path: &Path) -> Option<&Path> {
        first_overlapping(&self.all, path)
    }

    /// Returns a confidential path that overlaps with a path that commands may read.
    pub(super) fn exposed_to_read(&self, path: &Path) -> Option<&Path> {
        first_overlapping(&self.confidential, path)
    }
}

fn first_overlapping<'a>(own: &'a [PathBuf], path: &Path) -> Option<&'a Path> {
    let path = resolve_links(path);
    own.iter().find(|own| own.starts_with(&path) || path.starts_with(own)).map(PathBuf::as_path)
}

/// The number of links that are followed from one path, as in the kernel.
const MAX_LINKS: usize = 40;

/// Returns the absolute path without links, and the path of each link on the way from its last part
/// on: whoever changes one of them changes what the path leads to.
fn link_chain(path: &Path) -> Vec<PathBuf> {
    let mut chain = vec![resolve_links(path)];
    let mut link = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for _ in 0..MAX_LINKS {
        let (Some(above), Some(name)) = (link.parent(), link.file_name()) else { break };
        let above = resolve_links(above);
        let place = above.join(name);
        let Ok(target) = place.read_link() else { break };
        chain.push(place);
        link = above.join(target);
    }
    chain
}

/// Returns the absolute path without links; its last parts do not have to exist.
pub fn resolve_links(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing =
        absolute.ancestors().find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    match existing {
        // Collecting the components avoids a trailing separator if the rest is empty.
        Some((ancestor, real)) => real
            .components()
            .chain(absolute.strip_prefix(ancestor).unwrap_or(Path::new("")).components())
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

    /// Checks these lines under `[commands]`, in a home directory with a configuration.
    fn check_commands(home: &Path, lines: &str) -> Result<(), String> {
        let directories = UserDirectories::under_home(home);
        let raw = RawConfig::parse(
            &format!("[commands]\n{lines}"),
            &directories.config_file(),
            Some(home),
        )
        .map_err(|error| error.to_string())?;
        raw.check_own_paths(&OwnPaths::new(&directories, &directories.config_file()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_policy_that_is_a_link_counts_with_every_link_and_its_target() {
        let temp = tempfile::tempdir().expect("a directory");
        let home = temp.path().canonicalize().expect("it is there");
        let directories = UserDirectories::under_home(&home);
        fs::create_dir_all(home.join(".config/cofferdam")).expect("it can be made");
        fs::create_dir_all(home.join("dotfiles/real")).expect("it can be made");
        fs::write(home.join("dotfiles/real/p.toml"), "").expect("it is written");
        symlink("real/p.toml", home.join("dotfiles/policy.toml")).expect("a link");
        symlink(home.join("dotfiles/policy.toml"), directories.policy_file()).expect("a link");
        let own = OwnPaths::new(&directories, &directories.config_file());
        for path in ["dotfiles/policy.toml", "dotfiles/real/p.toml"] {
            assert!(own.iter().any(|own| *own == home.join(path)), "{path}: {own:?}");
        }
        let elsewhere = home.join("conf/my.toml");
        let own = OwnPaths::new(&directories, &elsewhere);
        for path in ["conf/my.toml", "conf/cofferdam.lock", "conf/plugins"] {
            assert!(own.iter().any(|own| *own == home.join(path)), "{path}: {own:?}");
        }
    }

    #[test]
    fn r123_commands_get_no_access_to_own_paths() {
        let temp = tempfile::tempdir().expect("a directory");
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
            let problem = check_commands(&home, &format!("write = [\"/srv\", \"{}\"]", at(path)))
                .expect_err(path);
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
            assert_eq!(
                check_commands(&home, &format!("read = [\"{}\"]", at(path))).is_err(),
                open,
                "{path}"
            );
        }
        for key in ["read", "write"] {
            assert!(
                check_commands(&home, &format!("{key} = [\"\"]"))
                    .expect_err("empty")
                    .contains("the path is empty")
            );
            assert!(
                check_commands(&home, &format!("{key} = [\".\"]")).is_err(),
                "the directory of the configuration"
            );
            assert_eq!(
                check_commands(&home, &format!("{key} = [\"{}\"]", at(".cache/ccache"))),
                Ok(())
            );
        }
        assert!(
            check_commands(&home, "write = [\"/etc\"]")
                .expect_err("the policy of the system")
                .contains("/etc/cofferdam")
        );
    }
}
