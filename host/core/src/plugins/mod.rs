//! Third-party plugins: their acceptance by the user, and those that were added by name.
//!
//! A [`PluginGate`] decides which plugins of a run are used.
//!
//! An added plugin is fetched from a [`PluginSource`], stored in a [`PluginStore`], and removed
//! again. It is only bytes in memory until the user accepts it.
//!
//! The store keeps each component in a file whose name contains the digest of its content. The lock
//! file names the components that are in use. It is replaced as a whole, so a crash leaves either
//! the old or the new component in force. Files that the lock file does not name are unused, and
//! the next change removes them.

mod acceptance;
mod fetch;
mod source;
mod store;

pub(crate) use acceptance::AcceptAll;
pub use acceptance::{
    AcceptanceDialog, AcceptanceDiff, AcceptanceStatus, AcceptedHttpServer, AcceptedPlugin,
    AcceptedPlugins, AcceptedProgram, AcceptedServer, AcceptedServerTool, AcceptedTool,
    AcceptedTransport, AddedPlugin, InvalidLockFile, LockFileError, MAX_SERVER_TOOLS,
    PluginAcceptance, PluginCandidate, PluginGate, PluginLockFile, PluginLockGuard, PluginReview,
    UnacceptedPluginError, UnacceptedPolicy,
};
pub use fetch::{FetchError, FetchProgress, fetch};
pub use source::{PluginSource, SourceError};
pub use store::{PluginStore, PluginStoreError};
