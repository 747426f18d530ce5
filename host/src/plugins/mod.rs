//! Plugins of strangers that were added by name: fetched from a [`PluginSource`], kept in a
//! [`PluginStore`], and taken away again.
//!
//! What is fetched is bytes in memory until somebody has agreed to it. The shelf holds each
//! component under a name that tells its content, and the lock file says which of them are meant:
//! it is replaced as a whole, so that a stop at any moment leaves either the old component or the
//! new one in force. Files that the lock file does not name are nobody's, and are tidied up by the
//! next change.

mod fetch;
mod source;
mod store;

pub use fetch::{FetchError, FetchProgress, fetch};
pub use source::{PluginSource, SourceError};
pub use store::{PluginStore, PluginStoreError};
