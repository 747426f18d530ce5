//! Where this program keeps what it keeps, after the XDG base directories.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::BaseStrategy as _;
use tempfile::TempDir;

use crate::own_file;
use crate::private_dir::PrivateDirError;

/// Written to find out whether anything can be.
const PROBE: [u8; 4096] = [0; 4096];

/// The folders of this user.
#[derive(Clone, Debug)]
pub struct UserDirectories {
    config: PathBuf,
    cache: PathBuf,
    state: PathBuf,
    /// What is only needed as long as a run lasts, unless it can be kept: below the state folder,
    /// if that can be written.
    scratch: PathBuf,
    /// Removed with the last copy of this value.
    temporary: Option<Arc<TempDir>>,
    has_home: bool,
}

/// There is no home folder.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell where your home folder is: set HOME to the absolute path of a folder")]
pub struct HomeDirectoryError;

/// The directories of this user cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UserDirectoryError {
    /// There is no home.
    #[error(transparent)]
    NoHome(#[from] HomeDirectoryError),
    /// Somebody else can have written what is in the state directory.
    #[error(
        "cannot use the state directory {}: it {reason}\nhint: make it a directory that is yours \
            and that nobody else can write (`chown`, `chmod go-w`), or set XDG_STATE_HOME to \
            another one", path.display()
    )]
    NotOwn {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl UserDirectories {
    /// `$XDG_CONFIG_HOME/cofferdam`, `$XDG_CACHE_HOME/cofferdam` and `$XDG_STATE_HOME/cofferdam`,
    /// or their defaults below the home folder. A path that is not absolute is none: a project
    /// could choose what is there.
    ///
    /// # Errors
    /// There is no home, or the state directory is not this user's alone: what is in it is
    /// believed.
    pub fn for_current_user() -> Result<Self, UserDirectoryError> {
        let base = etcetera::base_strategy::Xdg::new().map_err(|_| HomeDirectoryError)?;
        // Such as `/dev/null`, which users have that nobody logs in as.
        if base.home_dir().metadata().is_ok_and(|home| !home.is_dir()) {
            return Err(HomeDirectoryError.into());
        }
        let state = base.state_dir().unwrap_or_else(|| base.data_dir());
        let folders = Self::from_base_dirs([base.config_dir(), base.cache_dir(), state])?;
        folders.check_state_directory()?;
        Ok(folders)
    }

    fn check_state_directory(&self) -> Result<(), UserDirectoryError> {
        match own_file::find_dir(&self.state) {
            Err(PrivateDirError::NotPrivate(reason)) => {
                Err(UserDirectoryError::NotOwn { path: self.state.clone(), reason })
            }
            // What cannot be looked at cannot be used either, and is done without.
            Ok(_) | Err(PrivateDirError::Io(_)) => Ok(()),
        }
    }

    fn from_base_dirs(folders: [PathBuf; 3]) -> Result<Self, HomeDirectoryError> {
        if !folders.iter().all(|folder| folder.is_absolute()) {
            return Err(HomeDirectoryError);
        }
        let [config, cache, state] = folders.map(|folder| folder.join("cofferdam"));
        Ok(Self { config, cache, scratch: state.clone(), state, temporary: None, has_home: true })
    }

    /// Those of a run, which does without what cannot be kept: what it does without is added to
    /// `warnings`. Without a home nothing is read from one either, neither a configuration nor a
    /// policy of the user.
    pub fn for_run(warnings: &mut Vec<String>) -> Result<Self, UserDirectoryError> {
        match Self::for_current_user() {
            Ok(folders) => Ok(folders.with_temporary_fallback(warnings)),
            Err(not_own @ UserDirectoryError::NotOwn { .. }) => Err(not_own),
            Err(UserDirectoryError::NoHome(no_home)) => {
                let folders = Self::without_home()?;
                warnings.push(format!(
                    "{no_home}. There is no configuration, and nothing is kept after this run"
                ));
                Ok(folders)
            }
        }
    }

    /// Nothing is there yet, and nothing will be.
    fn without_home() -> Result<Self, HomeDirectoryError> {
        let temporary = create_temp_dir().map_err(|_| HomeDirectoryError)?;
        let [config, cache, state] =
            ["config", "cache", "state"].map(|name| temporary.path().join(name));
        // Compiled tools are nobody's in particular, and can be elsewhere.
        let named = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute());
        let cache = named.map_or(cache, |folder| folder.join("cofferdam"));
        Ok(Self {
            config,
            cache,
            scratch: state.clone(),
            state,
            temporary: Some(Arc::new(temporary)),
            has_home: false,
        })
    }

    /// If nothing can be written to the state folder, what a run cannot do without goes to a
    /// temporary one.
    fn with_temporary_fallback(mut self, warnings: &mut Vec<String>) -> Self {
        if let Err(error) = check_writable(&self.state) {
            let problem = format!("nothing can be kept in {}: {error}", self.state.display());
            match create_temp_dir() {
                Ok(folder) => {
                    self.scratch = folder.path().to_owned();
                    self.temporary = Some(Arc::new(folder));
                    warnings.push(format!(
                        "{problem}. What tools change cannot be undone after this run"
                    ));
                }
                Err(_) => warnings.push(problem),
            }
        }
        self
    }

    /// Whether there is anything that outlives the run.
    pub fn has_home(&self) -> bool {
        self.has_home
    }

    /// The configuration file, whether or not it is there.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The policy of the user, whether or not it is there.
    pub fn policy_file(&self) -> PathBuf {
        self.config.join("policy.toml")
    }

    /// Which policy files of projects the user trusts.
    pub fn trust_file(&self) -> PathBuf {
        self.state.join("trust.json")
    }

    /// All of them: who can write there can have this program run or believe anything.
    pub fn all(&self) -> [&Path; 4] {
        [&self.config, &self.cache, &self.state, &self.scratch]
    }

    /// Those that hold what was said and done, and what is allowed.
    pub(super) fn confidential(&self) -> [&Path; 2] {
        [&self.config, &self.state]
    }

    /// For a test: the defaults below this home.
    #[cfg(test)]
    pub(super) fn under_home(home: &Path) -> Self {
        Self::from_base_dirs([".config", ".cache", ".local/state"].map(|folder| home.join(folder)))
            .expect("the home is absolute")
    }

    /// Compiled components.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Secrets that this program makes for itself.
    pub fn keys(&self) -> PathBuf {
        self.state.join("keys")
    }

    /// What builds plugins, as far as it was installed for that.
    pub fn toolchains(&self) -> PathBuf {
        self.cache.join("toolchains")
    }

    /// What was said and done.
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// What commands put into a workspace and have no business to.
    pub fn set_aside_dir(&self) -> PathBuf {
        self.scratch.join("set-aside")
    }

    /// What was there before tools changed it.
    pub fn undo(&self) -> PathBuf {
        self.scratch.join("undo")
    }

    /// What the instruction files of projects held when their newest sessions began.
    pub fn instructions(&self) -> PathBuf {
        self.state.join("instructions")
    }

    /// What was typed at the prompt.
    pub fn prompt_history(&self) -> PathBuf {
        self.state.join("prompts.jsonl")
    }

    /// What was decided and done.
    pub fn audit(&self) -> PathBuf {
        self.state.join("audit")
    }
}

/// A folder of this user's alone.
fn create_temp_dir() -> std::io::Result<TempDir> {
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    tempfile::Builder::new().prefix("cofferdam-").permissions(private).tempdir()
}

/// Finds out by writing: neither permissions nor the kind of mount tell of a disk that is full.
fn check_writable(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    tempfile::NamedTempFile::new_in(folder)?.write_all(&PROBE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_that_is_not_absolute_is_none() {
        for home in ["", ".", "home"] {
            let folders =
                [".config", ".cache", ".local/state"].map(|folder| Path::new(home).join(folder));
            assert!(UserDirectories::from_base_dirs(folders).is_err(), "{home:?}");
        }
    }

    #[test]
    fn a_state_directory_of_others_is_refused() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let home = tempfile::tempdir().expect("a folder");
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
        assert!(problem().contains("it can be written by others\nhint: "), "{}", problem());
        set(0o700);
        let moved = home.path().join("moved");
        std::fs::rename(&dirs.state, &moved).expect("it is moved");
        symlink(&moved, &dirs.state).expect("a link");
        assert!(problem().contains("it is a link"), "{}", problem());
        if rustix::process::geteuid().is_root() {
            std::fs::remove_file(&dirs.state).expect("it is ours");
            std::fs::rename(&moved, &dirs.state).expect("it is moved");
            std::os::unix::fs::chown(&dirs.state, Some(65_534), None).expect("root can");
            assert!(problem().contains("it belongs to somebody else"), "{}", problem());
        }
    }

    #[test]
    fn a_state_folder_that_cannot_be_written_is_done_without() {
        let home = tempfile::tempdir().expect("a folder");
        let mut warnings = Vec::new();
        let kept = UserDirectories::under_home(home.path()).with_temporary_fallback(&mut warnings);
        assert!(warnings.is_empty() && kept.undo().starts_with(home.path()), "{kept:?}");
        // A file where a folder belongs cannot be written to by anybody, root included.
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(home.path().join(".local")).expect("it can be made");
        std::fs::write(home.path().join(".local/state"), "").expect("it can be written");
        let without =
            UserDirectories::under_home(home.path()).with_temporary_fallback(&mut warnings);
        assert!(
            matches!(&warnings[..], [warning] if warning.contains("nothing can be kept in")),
            "{warnings:?}"
        );
        assert!(
            !without.undo().starts_with(home.path()) && without.sessions().starts_with(home.path()),
            "{without:?}"
        );
        let scratch = without.undo().parent().expect("it is below").to_owned();
        assert!(scratch.is_dir());
        drop(without);
        assert!(!scratch.exists(), "it is removed");
    }
}
