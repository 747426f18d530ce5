//! What the user chose: as written ([`RawConfig`], [`SettingsFlags`], the environment), and as
//! meant ([`RunSettings`]). Only the second leaves this room.
//!
//! Precedence, for each key by itself: a flag, then the environment, then the configuration file,
//! then the default. A file that does not parse, or has a key nobody knows, is an error with its
//! line and column; nothing starts with half of one.

mod bounds;
mod commands;
mod interventions;
mod lock_file;
mod own_paths;
mod policy;
mod raw;
mod settings;
mod timeout;
mod trusted_file;
mod user_dirs;

pub use bounds::{SettingInForce, SettingOrigins};
pub use lock_file::{LockFileError, PluginLockFile, PluginLockGuard};
pub use own_paths::{OwnPaths, resolve_links};
pub use policy::{
    LoadedPolicy, PolicyFileError, PolicyFileOwner, PolicyPaths, PolicySource, PolicyTrustError,
    PolicyTrustStore, ProjectPolicy, SourceState, TrustedFileError,
};
pub use raw::{ConfigError, RawApi, RawConfig, RawCredential};
pub use settings::{AuditSettings, ProviderSettings, RunSettings, SettingsError, SettingsFlags};
pub use timeout::{InvalidTimeout, RequestTimeout};
pub use user_dirs::{HomeDirectoryError, UserDirectories, UserDirectoryError};
