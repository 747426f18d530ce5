//! The comparison of plugins with the lock file, and their acceptance.

use std::path::Path;

use super::{
    AcceptanceStatus, AcceptedPlugin, AcceptedPlugins, AddedPlugin, LockFileError, PluginLockFile,
};
use crate::sandbox::LoadedPlugin;
use crate::tools::AuthorityChange;

/// The accepted plugins, together with the lock file that records them.
#[derive(Debug)]
pub struct PluginAcceptance {
    lock_file: PluginLockFile,
    accepted: AcceptedPlugins,
    /// The plugins that were accepted and are not in the lock file yet, by their keys in it.
    unwritten: Vec<(String, AcceptedPlugin)>,
}

/// A plugin that the user may accept, with the facts for the decision.
pub struct PluginCandidate<'a> {
    /// The path that the plugin is loaded from.
    pub path: &'a Path,
    /// The plugin, of which nothing but its declaration was run.
    pub plugin: &'a LoadedPlugin,
    /// The comparison with the plugin that was accepted at the path.
    pub status: AcceptanceStatus,
    /// A notice if the plugin resembles another accepted plugin.
    pub similarity_notice: Option<String>,
}

impl PluginAcceptance {
    /// Reads a lock file; a missing file contains no accepted plugin.
    ///
    /// # Errors
    /// The lock file cannot be read, is invalid, or can be written by other users.
    pub fn read(lock_file: PluginLockFile) -> Result<Self, LockFileError> {
        let accepted = lock_file.read()?;
        Ok(Self { lock_file, accepted, unwritten: Vec::new() })
    }

    /// Ignores the content of a lock file: no plugin counts as accepted.
    pub(super) fn empty(lock_file: PluginLockFile) -> Self {
        Self { lock_file, accepted: AcceptedPlugins::new(), unwritten: Vec::new() }
    }

    /// Returns the lock file.
    pub fn lock_file(&self) -> &PluginLockFile {
        &self.lock_file
    }

    pub(super) fn added_plugins(&self) -> impl Iterator<Item = &AddedPlugin> {
        self.accepted.added_plugins().map(|(_, added)| added)
    }

    /// Compares the plugin at `path` with the one that was accepted there.
    pub fn compare<'a>(&self, path: &'a Path, plugin: &'a LoadedPlugin) -> PluginCandidate<'a> {
        PluginCandidate {
            path,
            plugin,
            status: self.accepted.status(path, plugin),
            similarity_notice: self.accepted.similarity_notice(path, plugin),
        }
    }

    /// Accepts a plugin in its current form. [`write`](Self::write) saves the acceptance.
    ///
    /// # Errors
    /// `record` failed, which is called before the acceptance takes effect. The plugin is then not
    /// accepted.
    pub fn accept<E>(
        &mut self,
        candidate: &PluginCandidate<'_>,
        record: impl FnOnce(&AuthorityChange<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let PluginCandidate { path, plugin, .. } = candidate;
        record_acceptance(path, plugin, &self.accepted.new_permissions(path, plugin), record)?;
        self.unwritten.push(self.accepted.accept_plugin(path, plugin));
        Ok(())
    }

    /// Adds the plugins that were accepted since the last call to the lock file.
    ///
    /// Another process may have accepted plugins since the lock file was read. Those stay accepted.
    ///
    /// # Errors
    /// The lock file cannot be read or written.
    pub fn write(&mut self) -> Result<(), LockFileError> {
        let unwritten = std::mem::take(&mut self.unwritten);
        self.lock_file.update(|accepted| accepted.plugins.extend(unwritten))
    }
}

/// Records that a plugin is accepted, before the acceptance takes effect.
pub(in crate::plugins) fn record_acceptance<E>(
    path: &Path,
    plugin: &LoadedPlugin,
    new_permissions: &[String],
    record: impl FnOnce(&AuthorityChange<'_>) -> Result<(), E>,
) -> Result<(), E> {
    record(&AuthorityChange::PluginAccepted {
        path: &path.display().to_string(),
        digest: plugin.digest(),
        new_permissions,
    })
}
