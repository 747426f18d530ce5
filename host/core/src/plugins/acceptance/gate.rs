//! The decision which plugins of a run are used: those accepted before, and those that the user
//! accepts now.

use std::path::{Path, PathBuf};

use super::{
    AcceptanceStatus, LockFileError, PluginAcceptance, PluginCandidate, PluginLockFile,
    PluginReview,
};
use crate::config::resolve_links;
use crate::sandbox::LoadedPlugin;
use crate::tools::{AuthorityChange, RefusedPlugin};

/// What happens to plugins that are not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnacceptedPolicy {
    /// They are loaded for inspection. The caller must not call their tools.
    Allow,
    /// The user is asked.
    Ask,
    /// They are refused, and [`PluginGate::check_locked`] fails if there is one (`--locked`).
    Locked,
}

/// The user interface of a [`PluginGate`].
pub trait AcceptanceDialog {
    /// Asks the user whether to accept a plugin.
    ///
    /// # Errors
    ///
    /// Returns the reason of a refusal, such as that nobody can answer.
    fn ask(&self, candidate: &PluginCandidate<'_>) -> Result<(), String>;

    /// Records an acceptance. Called before the acceptance takes effect.
    ///
    /// # Errors
    ///
    /// Returns the reason why it cannot be recorded. The plugin is then refused.
    fn record(&self, change: &AuthorityChange<'_>) -> Result<(), String>;

    /// Called before a component is compiled, which can take seconds. `name` is the name of a
    /// built-in plugin or a path.
    fn compilation_started(&self, name: &str);

    /// Shows a warning.
    fn warn(&self, problem: &str);
}

/// Checks plugins against the lock file before their tools are offered.
pub struct PluginGate<'a> {
    unaccepted_policy: UnacceptedPolicy,
    acceptance: PluginAcceptance,
    dialog: &'a dyn AcceptanceDialog,
}

/// The error for a plugin that is refused although no plugin may be.
#[derive(Debug, thiserror::Error)]
#[error("{}: the plugin {plugin} is refused: {reason}", lock_file.display())]
pub struct UnacceptedPluginError {
    lock_file: PathBuf,
    plugin: String,
    reason: String,
}

impl<'a> PluginGate<'a> {
    /// Creates a gate for a lock file.
    ///
    /// # Errors
    ///
    /// Returns an error if the lock file cannot be used. With [`UnacceptedPolicy::Allow`] it is
    /// only a warning: a broken lock file does not prevent inspection.
    pub fn new(
        unaccepted_policy: UnacceptedPolicy,
        lock_file: PluginLockFile,
        dialog: &'a dyn AcceptanceDialog,
    ) -> Result<Self, LockFileError> {
        let acceptance = match (unaccepted_policy, PluginAcceptance::read(lock_file.clone())) {
            (_, Ok(acceptance)) => acceptance,
            (UnacceptedPolicy::Allow, Err(problem)) => {
                dialog.warn(&format!("cannot show the added plugins: {problem}"));
                PluginAcceptance::empty(lock_file)
            }
            (UnacceptedPolicy::Ask | UnacceptedPolicy::Locked, Err(problem)) => {
                return Err(problem);
            }
        };
        Ok(Self { unaccepted_policy, acceptance, dialog })
    }

    /// Returns the paths of the added plugins.
    pub fn added_paths(&self) -> Vec<PathBuf> {
        let directory = self.acceptance.lock_file().plugin_dir();
        self.acceptance.added_plugins().map(|added| directory.join(&added.file)).collect()
    }

    /// With [`UnacceptedPolicy::Locked`], checks that no plugin was refused.
    ///
    /// # Errors
    ///
    /// Returns an error that names the first refused plugin.
    pub fn check_locked(&self, refused: &[RefusedPlugin]) -> Result<(), UnacceptedPluginError> {
        match (self.unaccepted_policy, refused.first()) {
            (UnacceptedPolicy::Locked, Some(refused)) => Err(UnacceptedPluginError {
                lock_file: self.acceptance.lock_file().path().to_owned(),
                plugin: refused.origin.to_string(),
                reason: refused.reason.clone(),
            }),
            (UnacceptedPolicy::Locked | UnacceptedPolicy::Allow | UnacceptedPolicy::Ask, _) => {
                Ok(())
            }
        }
    }
}

impl PluginReview for PluginGate<'_> {
    /// Returns the path of the file with links resolved, and the source of an added plugin.
    fn origins(&self, path: &Path) -> Vec<String> {
        let directory = self.acceptance.lock_file().plugin_dir();
        let sources = self
            .acceptance
            .added_plugins()
            .filter(|added| directory.join(&added.file) == path)
            .map(|added| added.source.clone());
        std::iter::once(resolve_links(path).display().to_string()).chain(sources).collect()
    }

    fn compilation_started(&self, name: &str) {
        self.dialog.compilation_started(name);
    }

    /// Accepts a plugin that the lock file or the user accepts. The user's acceptance is recorded
    /// and saved at once.
    fn review(&mut self, path: &Path, plugin: &LoadedPlugin) -> Result<(), String> {
        let candidate = self.acceptance.compare(path, plugin);
        match (self.unaccepted_policy, &candidate.status) {
            (UnacceptedPolicy::Allow, _) | (_, AcceptanceStatus::Accepted) => Ok(()),
            (
                UnacceptedPolicy::Locked,
                AcceptanceStatus::New | AcceptanceStatus::Changed { .. },
            ) => Err(format!("{}; `--locked` never asks", candidate.status.describe())),
            (UnacceptedPolicy::Ask, AcceptanceStatus::New | AcceptanceStatus::Changed { .. }) => {
                self.dialog.ask(&candidate)?;
                self.acceptance.accept(&candidate, |change| self.dialog.record(change))?;
                self.acceptance.write().map_err(|error| error.to_string())
            }
        }
    }
}
