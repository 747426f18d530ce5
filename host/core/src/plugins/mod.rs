//! Third-party plugins that were added by name.
//!
//! A plugin is fetched from a [`PluginSource`], stored in a [`PluginStore`], and removed again. It
//! is only bytes in memory until the user accepts it.
//!
//! The store keeps each component in a file whose name contains the digest of its content. The lock
//! file names the components that are in use. It is replaced as a whole, so a crash leaves either
//! the old or the new component in force. Files that the lock file does not name are unused, and
//! the next change removes them.

mod acceptance;
mod fetch;
mod source;
mod store;

pub use acceptance::{
    AcceptanceDiff, AcceptanceStatus, AcceptedPlugin, AcceptedPlugins, AcceptedTool, AddedPlugin,
    InvalidLockFile, LockFileError, PluginLockFile, PluginLockGuard,
};
pub use fetch::{FetchError, FetchProgress, fetch};
pub use source::{PluginSource, SourceError};
pub use store::{PluginStore, PluginStoreError};
