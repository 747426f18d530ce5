//! The directories of this program, which follow the XDG base directory specification.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use crate::own_file;
use crate::private_dir::PrivateDirError;

/// Written to find out whether anything can be.
const PROBE: [u8; 4096] = [0; 4096];

/// The directories of this program for the current user.
#[derive(Clone, Debug)]
pub struct UserDirectories {
    config: PathBuf,
    cache: PathBuf,
    state: PathBuf,
    /// The directory for data that may be lost after the run.
    ///
    /// It is the state directory if that is writable, and otherwise a temporary directory.
    scratch: PathBuf,
    /// The temporary directory, which is removed with the last clone of this value.
    temporary: Option<Arc<TempDir>>,
    has_home: bool,
}

/// The error for a missing home directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot determine your home directory: set HOME to the absolute path of a directory")]
pub struct HomeDirectoryError;

/// The reason why the directories of this user cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserDirectoryError {
    /// There is no home directory.
    #[error(transparent)]
    NoHome(#[from] HomeDirectoryError),
    /// Another user can write the state directory.
    #[error(
        "cannot use the state directory {}: it {reason}\nhint: make it a directory that you own \
            and that only you can write (`chown`, `chmod go-w`), or set XDG_STATE_HOME to another \
            directory", path.display()
    )]
    NotOwn {
        /// The state directory.
        path: PathBuf,
        /// The problem with the directory.
        reason: &'static str,
    },
}

impl UserDirectories {
    /// Uses the directory `cofferdam` below each of three absolute directories: for the
    /// configuration, the cache and the state.
    ///
    /// # Errors
    /// A directory is not absolute.
    pub fn from_base_dirs(directories: [PathBuf; 3]) -> Result<Self, HomeDirectoryError> {
        if !directories.iter().all(|directory| directory.is_absolute()) {
            return Err(HomeDirectoryError);
        }
        let [config, cache, state] = directories.map(|directory| directory.join("cofferdam"));
        Ok(Self { config, cache, scratch: state.clone(), state, temporary: None, has_home: true })
    }

    /// Creates a temporary directory below `temp_dir` in place of those in a home directory. It is
    /// removed with the last clone of this value.
    ///
    /// The cache of compiled tools does not depend on the user. If `cache` is an absolute path, the
    /// cache is the directory `cofferdam` below it.
    ///
    /// # Errors
    /// The temporary directory cannot be created.
    pub fn temporary(temp_dir: &Path, cache: Option<&Path>) -> io::Result<Self> {
        let temporary = create_temp_dir(temp_dir)?;
        let [config, temporary_cache, state] =
            ["config", "cache", "state"].map(|name| temporary.path().join(name));
        let cache = cache
            .filter(|directory| directory.is_absolute())
            .map_or(temporary_cache, |directory| directory.join("cofferdam"));
        Ok(Self {
            config,
            cache,
            scratch: state.clone(),
            state,
            temporary: Some(Arc::new(temporary)),
            has_home: false,
        })
    }

    /// Checks that only this user can write the state directory, whose content is trusted.
    ///
    /// # Errors
    /// Another user can write the state directory.
    pub fn check_state_directory(&self) -> Result<(), UserDirectoryError> {
        match own_file::find_dir(&self.state) {
            Err(PrivateDirError::NotPrivate(reason)) => {
                Err(UserDirectoryError::NotOwn { path: self.state.clone(), reason })
            }
            // A directory that cannot be inspected cannot be used either; a run does without it.
            Ok(_) | Err(PrivateDirError::Io(_)) => Ok(()),
        }
    }

    /// Uses a temporary scratch directory below `temp_dir` if the state directory is not writable,
    /// and adds a warning.
    pub fn with_temporary_fallback(mut self, temp_dir: &Path, warnings: &mut Vec<String>) -> Self {
        if let Err(error) = check_writable(&self.state) {
            let problem = format!("cannot save anything in {}: {error}", self.state.display());
            match create_temp_dir(temp_dir) {
                Ok(directory) => {
                    self.scratch = directory.path().to_owned();
                    self.temporary = Some(Arc::new(directory));
                    warnings.push(format!(
                        "{problem}; changes by tools cannot be undone after this run"
                    ));
                }
                Err(_) => warnings.push(problem),
            }
        }
        self
    }

    /// Returns whether there is a home directory, so that data can outlive the run.
    pub fn has_home(&self) -> bool {
        self.has_home
    }

    /// Returns the path of the configuration file, which may not exist.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Returns the path of the user policy, which may not exist.
    pub fn policy_file(&self) -> PathBuf {
        self.config.join("policy.toml")
    }

    /// Returns the path of the file that records the trusted project policies.
    pub fn trust_file(&self) -> PathBuf {
        self.state.join("trust.json")
    }

    /// Returns all directories; write access to them controls what this program runs and trusts.
    pub fn all(&self) -> [&Path; 4] {
        [&self.config, &self.cache, &self.state, &self.scratch]
    }

    /// Returns the directories with records of conversations and actions, and with permissions.
    pub(super) fn confidential(&self) -> [&Path; 2] {
        [&self.config, &self.state]
    }

    /// Returns the default directories below a home directory, for tests.
    #[cfg(test)]
    pub(super) fn under_home(home: &Path) -> Self {
        let names = [".config", ".cache", ".local/state"];
        Self::from_base_dirs(names.map(|name| home.join(name))).expect("the home is absolute")
    }

    /// Returns the directory for data that outlives a run.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Returns the directory for compiled components.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Returns the directory for secrets that this program generates for itself.
    pub fn keys(&self) -> PathBuf {
        self.state.join("keys")
    }

    /// Returns the directory for the toolchains that were installed to build plugins.
    pub fn toolchains(&self) -> PathBuf {
        self.cache.join("toolchains")
    }

    /// Returns the directory for session logs.
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// Returns the directory for files that commands created in a workspace without permission.
    pub fn set_aside_dir(&self) -> PathBuf {
        self.scratch.join("set-aside")
    }

    /// Returns the directory for the changes of running commands.
    pub fn command_layers(&self) -> PathBuf {
        self.scratch.join("layers")
    }

    /// Returns the directory for backups of files that tools changed.
    pub fn undo(&self) -> PathBuf {
        self.scratch.join("undo")
    }

    /// Returns the directory for the project instructions as they were in the newest sessions.
    pub fn instructions(&self) -> PathBuf {
        self.state.join("instructions")
    }

    /// Returns the path of the history of prompts that the user typed.
    pub fn prompt_history(&self) -> PathBuf {
        self.state.join("prompts.jsonl")
    }

    /// Returns the directory for the tokens of logins to MCP servers.
    pub fn mcp_logins(&self) -> PathBuf {
        self.state.join("mcp-logins")
    }

    /// Returns the directory for the audit log.
    pub fn audit(&self) -> PathBuf {
        self.state.join("audit")
    }
}

/// Creates a temporary directory below `parent` that only this user can access.
fn create_temp_dir(parent: &Path) -> io::Result<TempDir> {
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    tempfile::Builder::new().prefix("cofferdam-").permissions(private).tempdir_in(parent)
}

/// Checks by writing whether a directory is writable.
///
/// Neither permissions nor the kind of mount show that a disk is full.
fn check_writable(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    tempfile::NamedTempFile::new_in(directory)?.write_all(&PROBE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_home_directory_is_refused() {
        for home in ["", ".", "home"] {
            let directories =
                [".config", ".cache", ".local/state"].map(|name| Path::new(home).join(name));
            assert!(UserDirectories::from_base_dirs(directories).is_err(), "{home:?}");
        }
    }

    #[test]
    fn a_state_directory_of_others_is_refused() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let home = tempfile::tempdir().expect("a directory");
        let dirs = UserDirectories::under_home(home.path());
        dirs.check_state_directory().expect("it is not there");
        std::fs::create_dir_all(&dirs.state).expect("it can be made");
        dirs.check_state_directory().expect("it is ours");
        let set = |mode| {
            std::fs::set_permissions(&dirs.state, std::fs::Permissions::from_mode(mode))
                .expect("it is ours")
        };
        let problem = || dirs.check_state_directory().unwrap_err().to_string();
        set(0o777);
        assert!(problem().contains("it is writable by other users\nhint: "), "{}", problem());
        set(0o700);
        let moved = home.path().join("moved");
        std::fs::rename(&dirs.state, &moved).expect("it is moved");
        symlink(&moved, &dirs.state).expect("a link");
        assert!(problem().contains("it is a link"), "{}", problem());
        if rustix::process::geteuid().is_root() {
            std::fs::remove_file(&dirs.state).expect("it is ours");
            std::fs::rename(&moved, &dirs.state).expect("it is moved");
            std::os::unix::fs::chown(&dirs.state, Some(65_534), None).expect("root can");
            assert!(problem().contains("it belongs to another user"), "{}", problem());
        }
    }

    #[test]
    fn an_unwritable_state_directory_is_replaced() {
        let home = tempfile::tempdir().expect("a directory");
        let temp = tempfile::tempdir().expect("a directory");
        let mut warnings = Vec::new();
        let directories = UserDirectories::under_home(home.path())
            .with_temporary_fallback(temp.path(), &mut warnings);
        assert!(
            warnings.is_empty() && directories.undo().starts_with(home.path()),
            "{directories:?}"
        );
        // Nobody can write to a file in place of a directory, not even root.
        let home = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(home.path().join(".local")).expect("it can be made");
        std::fs::write(home.path().join(".local/state"), "").expect("it can be written");
        let fallback = UserDirectories::under_home(home.path())
            .with_temporary_fallback(temp.path(), &mut warnings);
        assert!(
            matches!(&warnings[..], [warning] if warning.contains("cannot save anything in")),
            "{warnings:?}"
        );
        assert!(
            fallback.undo().starts_with(temp.path())
                && fallback.sessions().starts_with(home.path()),
            "{fallback:?}"
        );
        let scratch = fallback.undo().parent().expect("it is below").to_owned();
        assert!(scratch.is_dir());
        drop(fallback);
        assert!(!scratch.exists(), "it is removed");
    }

    #[test]
    fn temporary_directories_are_removed() {
        let temp = tempfile::tempdir().expect("a directory");
        for cache in [None, Some(Path::new("relative"))] {
            let dirs = UserDirectories::temporary(temp.path(), cache).expect("it can be made");
            assert!(dirs.all().iter().all(|path| path.starts_with(temp.path())), "{dirs:?}");
            assert!(!dirs.has_home());
        }
        let cache = Some(Path::new("/srv/cache"));
        let dirs = UserDirectories::temporary(temp.path(), cache).expect("it can be made");
        assert_eq!(dirs.cache(), Path::new("/srv/cache/cofferdam"));
        assert_eq!(temp.path().read_dir().expect("it can be listed").count(), 1);
        drop(dirs);
        assert_eq!(temp.path().read_dir().expect("it can be listed").count(), 0);
    }
}
