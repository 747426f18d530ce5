//! The acceptance of third-party plugins by the user.
//!
//! A plugin is accepted as one component, identified by its digest, that requests certain
//! capabilities. [`PluginLockFile`] records the [`AcceptedPlugins`]. [`PluginAcceptance`] compares
//! plugins with them and accepts others. A [`PluginGate`] does so before the tools of a run are
//! offered: it asks the user through an [`AcceptanceDialog`].

mod accepted;
mod added;
mod candidate;
mod gate;
mod lock_file;
mod locked_server;
mod review;
mod servers;

pub use accepted::{
    AcceptanceStatus, AcceptedPlugin, AcceptedPlugins, AcceptedTool, InvalidLockFile,
};
pub use added::{AcceptanceDiff, AddedPlugin};
pub(super) use candidate::record_acceptance;
pub use candidate::{PluginAcceptance, PluginCandidate};
pub use gate::{AcceptanceDialog, PluginGate, UnacceptedPluginError, UnacceptedPolicy};
pub use lock_file::{LockFileError, PluginLockFile, PluginLockGuard};
pub(crate) use review::AcceptAll;
pub use review::PluginReview;
pub use servers::{
    AcceptedHttpServer, AcceptedProgram, AcceptedServer, AcceptedServerTool, AcceptedTransport,
    MAX_SERVER_TOOLS,
};
