//! The store of added plugins.
//!
//! A file has the name of its plugin and the digest of its content, and is never changed.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::acceptance::{
    AcceptedPlugins, AddedPlugin, LockFileError, PluginLockFile, PluginLockGuard, record_acceptance,
};
use crate::own_file;
use crate::sandbox::{ComponentDigest, LoadedPlugin};
use crate::tools::AuthorityChange;

/// A lock file and the plugin directory next to it.
#[derive(Clone, Debug)]
pub struct PluginStore {
    lock_file: PluginLockFile,
    directory: PathBuf,
}

/// The reason why a plugin could not be added, replaced or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginStoreError {
    /// The lock file cannot be used.
    #[error(transparent)]
    LockFile(#[from] LockFileError),
    /// A file operation failed; contains the path.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// A plugin with this name already exists.
    #[error("plugin {name} already exists: {}, from {source_text}\nhint: `cofferdam plugin update \
        {name}` fetches it again; `--name` adds this one under another name", file.display())]
    NameTaken {
        /// The name of both plugins.
        name: String,
        /// The file of the existing plugin.
        file: PathBuf,
        /// The source of the existing plugin.
        source_text: String,
    },
    /// No plugin with this name was added.
    #[error(
        "no added plugin is named {name}{}",
        if .added.is_empty() {
            "; no plugins were added".to_owned()
        } else {
            format!("; added plugins: {}", .added.join(", "))
        }
    )]
    NotFound {
        /// The name that was not found.
        name: String,
        /// The names of all added plugins.
        added: Vec<String>,
    },
    /// Another process changed the plugin at the same time.
    #[error(
        "another process changed plugin {0} at the same time, and its change was kept\nhint: see \
            `cofferdam plugin list`"
    )]
    ConcurrentChange(String),
}

/// The prefix of a temporary file, which is renamed when it is complete.
const TEMP_PREFIX: &str = ".new-";

impl PluginStore {
    /// Creates the store for a lock file.
    pub fn new(lock_file: PluginLockFile) -> Self {
        Self { directory: lock_file.plugin_dir(), lock_file }
    }

    /// Reads the current lock file.
    ///
    /// # Errors
    /// The lock file cannot be read or is invalid.
    pub fn accepted_plugins(&self) -> Result<AcceptedPlugins, LockFileError> {
        self.lock_file.read()
    }

    /// Returns the path of the lock file.
    pub fn lock_file_path(&self) -> &Path {
        self.lock_file.path()
    }

    /// Returns the path of an added plugin.
    pub fn plugin_path(&self, added: &AddedPlugin) -> PathBuf {
        self.directory.join(&added.file)
    }

    /// Returns the path for a plugin with this content.
    pub fn component_path(&self, name: &str, digest: &ComponentDigest) -> PathBuf {
        self.directory.join(file_name(name, digest))
    }

    /// Finds an added plugin by its name.
    ///
    /// # Errors
    /// No plugin has this name, or the lock file cannot be read.
    pub fn find(&self, name: &str) -> Result<AddedPlugin, PluginStoreError> {
        let lock = self.accepted_plugins()?;
        let known = || lock.added_plugins().map(|(name, _)| name.to_owned()).collect();
        lock.find_added(name)
            .cloned()
            .ok_or_else(|| PluginStoreError::NotFound { name: name.to_owned(), added: known() })
    }

    /// Checks that no plugin with this name was added.
    ///
    /// # Errors
    /// The name is taken, or the lock file cannot be read.
    pub fn check_name_free(&self, name: &str) -> Result<(), PluginStoreError> {
        match self.accepted_plugins()?.find_added(name) {
            None => Ok(()),
            Some(added) => Err(self.name_taken_error(name, added)),
        }
    }

    /// Adds a plugin and accepts its current content. `record` is called before that takes effect.
    ///
    /// # Errors
    /// The name is taken, `record` failed, or a file cannot be written.
    pub fn add<E: From<PluginStoreError>>(
        &self,
        name: &str,
        source: String,
        plugin: &LoadedPlugin,
        record: impl FnOnce(&AuthorityChange<'_>) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let path = self.component_path(name, plugin.digest());
        let accepted = self.accepted_plugins().map_err(PluginStoreError::from)?;
        record_acceptance(&path, plugin, &accepted.new_permissions(&path, plugin), record)?;
        Ok(self.install(name, None, source, plugin)?)
    }

    /// Replaces an added plugin and accepts the new content. `record` is called before that takes
    /// effect.
    ///
    /// # Errors
    /// Another process changed the plugin, `record` failed, or a file cannot be written.
    pub fn replace<E: From<PluginStoreError>>(
        &self,
        name: &str,
        before: &AddedPlugin,
        plugin: &LoadedPlugin,
        record: impl FnOnce(&AuthorityChange<'_>) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let path = self.component_path(name, plugin.digest());
        let accepted = self.accepted_plugins().map_err(PluginStoreError::from)?;
        let difference = accepted.diff(&self.plugin_path(before), plugin);
        record_acceptance(&path, plugin, &difference.new_permissions, record)?;
        Ok(self.install(name, Some(before), before.source.clone(), plugin)?)
    }

    /// Restores the file of an added plugin whose current content is accepted.
    ///
    /// # Errors
    /// Another process changed the plugin, or a file cannot be written.
    pub fn restore(
        &self,
        name: &str,
        added: &AddedPlugin,
        plugin: &LoadedPlugin,
    ) -> Result<PathBuf, PluginStoreError> {
        let accepted = self.accepted_plugins()?;
        if accepted.accepted_digest(&self.plugin_path(added)) != Some(plugin.digest()) {
            return Err(PluginStoreError::ConcurrentChange(name.to_owned()));
        }
        self.install(name, Some(added), added.source.clone(), plugin)
    }

    /// Removes a plugin, first from the lock file and then from the disk. `record` is called before
    /// that takes effect.
    ///
    /// # Errors
    /// No plugin has this name, `record` failed, or the lock file cannot be written.
    pub fn remove<E: From<PluginStoreError>>(
        &self,
        name: &str,
        record: impl FnOnce(&AuthorityChange<'_>) -> Result<(), E>,
    ) -> Result<(AddedPlugin, PathBuf), E> {
        let path = self.plugin_path(&self.find(name)?).display().to_string();
        record(&AuthorityChange::PluginRemoved { name, path: &path })?;
        Ok(self.remove_recorded(name)?)
    }

    fn remove_recorded(&self, name: &str) -> Result<(AddedPlugin, PathBuf), PluginStoreError> {
        let guard = self.lock_file.acquire()?;
        let added = self.find(name)?;
        let (path, mut lock) = (self.plugin_path(&added), self.accepted_plugins()?);
        lock.remove_added(name, &path);
        self.lock_file.write(&guard, &lock)?;
        self.remove_unreferenced(&guard, &lock);
        Ok((added, path))
    }

    fn install(
        &self,
        name: &str,
        before: Option<&AddedPlugin>,
        source: String,
        plugin: &LoadedPlugin,
    ) -> Result<PathBuf, PluginStoreError> {
        let guard = self.lock_file.acquire()?;
        let mut lock = self.accepted_plugins()?;
        match (before, lock.find_added(name)) {
            (None, None) => {}
            (Some(before), Some(now)) if before == now => {}
            (None, Some(added)) => return Err(self.name_taken_error(name, added)),
            (Some(_), _) => return Err(PluginStoreError::ConcurrentChange(name.to_owned())),
        }
        let file = file_name(name, plugin.digest());
        let path = self.directory.join(&file);
        self.write_component(&path, plugin.component())
            .map_err(|error| PluginStoreError::Io(path.clone(), error))?;
        if let Some(before) = before {
            lock.remove_added(name, &self.plugin_path(before));
        }
        lock.add_plugin(name, AddedPlugin { source, file }, &path, plugin);
        // From here on, the new component is in force.
        self.lock_file.write(&guard, &lock)?;
        self.remove_unreferenced(&guard, &lock);
        Ok(path)
    }

    fn write_component(&self, path: &Path, component: &[u8]) -> io::Result<()> {
        own_file::create_dir_io(&self.directory)?;
        let mut file = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(&self.directory)?;
        file.write_all(component)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        fs::File::open(&self.directory)?.sync_all()
    }

    /// Removes the files that the lock file does not name.
    ///
    /// These are replaced components and leftovers of a crash. A file that cannot be removed stays
    /// until the next change: it is unused, and the operation has succeeded without it.
    fn remove_unreferenced(&self, _: &PluginLockGuard, lock: &AcceptedPlugins) {
        if !matches!(own_file::find_dir(&self.directory), Ok(true)) {
            return;
        }
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_referenced = lock.added_plugins().any(|(_, added)| added.file == name);
            if !is_referenced
                && is_store_file_name(&name)
                && entry.file_type().is_ok_and(|kind| kind.is_file())
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn name_taken_error(&self, name: &str, added: &AddedPlugin) -> PluginStoreError {
        PluginStoreError::NameTaken {
            name: name.to_owned(),
            file: self.plugin_path(added),
            source_text: added.source.clone(),
        }
    }
}

fn file_name(name: &str, digest: &ComponentDigest) -> String {
    format!("{name}-{}.wasm", digest.short())
}

/// Returns whether the store could have named this file; all other files belong to the user.
fn is_store_file_name(name: &str) -> bool {
    let is_digest = |text: &str| text.len() == 12 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let is_component = name
        .strip_suffix(".wasm")
        .and_then(|stem| stem.rsplit_once('-'))
        .is_some_and(|(_, digest)| is_digest(digest));
    is_component || name.starts_with(TEMP_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_named_by_the_store_are_removed() {
        let digest = ComponentDigest::compute(b"x");
        assert!(
            is_store_file_name(&file_name("word_count", &digest)) && is_store_file_name(".new-Ab3")
        );
        for name in [
            "word_count.wasm",
            "mine-0123456789.wasm",
            "notes.txt",
            "a-0123456789ab.txt",
            ".hidden",
        ] {
            assert!(!is_store_file_name(name), "{name}");
        }
    }

    #[test]
    fn files_that_cannot_be_removed_are_skipped() {
        let temp = tempfile::tempdir().expect("a directory");
        let file = PluginLockFile::next_to(&temp.path().join("config.toml"));
        let store = PluginStore::new(file.clone());
        fs::create_dir_all(file.plugin_dir().join("x-0123456789ab.wasm")).expect("it can be made");
        fs::write(file.plugin_dir().join("y-0123456789ab.wasm"), "old").expect("writable");
        let guard = file.acquire().expect("nobody holds it");
        store.remove_unreferenced(&guard, &AcceptedPlugins::new());
        let left: Vec<_> = fs::read_dir(file.plugin_dir())
            .expect("readable")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(left, ["x-0123456789ab.wasm"]);
    }
}
