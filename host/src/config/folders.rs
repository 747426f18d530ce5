//! Where this program keeps what it keeps, after the XDG base directories.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

/// The folders of this user.
#[derive(Clone, Debug)]
pub struct Folders {
    config: PathBuf,
    cache: PathBuf,
    state: PathBuf,
}

/// There is no home folder.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell where your home folder is: set HOME")]
pub struct NoHome;

impl Folders {
    /// `$XDG_CONFIG_HOME/cofferdam`, `$XDG_CACHE_HOME/cofferdam` and `$XDG_STATE_HOME/cofferdam`, or their defaults
    /// below the home folder.
    pub fn of_this_user() -> Result<Self, NoHome> {
        let base = etcetera::base_strategy::Xdg::new().map_err(|_| NoHome)?;
        let state = base.state_dir().unwrap_or_else(|| base.data_dir());
        Ok(Self { config: base.config_dir().join("cofferdam"), cache: base.cache_dir().join("cofferdam"), state: state.join("cofferdam") })
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
    pub fn all(&self) -> [&Path; 3] {
        [&self.config, &self.cache, &self.state]
    }

    /// Those that hold what was said and done, and what is allowed.
    pub(super) fn confidential(&self) -> [&Path; 2] {
        [&self.config, &self.state]
    }

    /// For a test: the defaults below this home.
    #[cfg(test)]
    pub(super) fn below(home: &Path) -> Self {
        let [config, cache, state] = [".config", ".cache", ".local/state"].map(|folder| home.join(folder).join("cofferdam"));
        Self { config, cache, state }
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
    pub fn set_aside(&self) -> PathBuf {
        self.state.join("set-aside")
    }

    /// What was there before tools changed it.
    pub fn undo(&self) -> PathBuf {
        self.state.join("undo")
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
