//! The acceptance of third-party plugins by the user.
//!
//! A plugin is accepted as one component, identified by its digest, that requests certain
//! capabilities. [`PluginLockFile`] records the [`AcceptedPlugins`].

mod accepted;
mod added;
mod lock_file;

pub use accepted::{
    AcceptanceStatus, AcceptedPlugin, AcceptedPlugins, AcceptedTool, InvalidLockFile,
};
pub use added::{AcceptanceDiff, AddedPlugin};
pub use lock_file::{LockFileError, PluginLockFile, PluginLockGuard};
