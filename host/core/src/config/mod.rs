//! The configuration of a run.
//!
//! [`RawConfig`], [`SettingsFlags`] and the environment are the configuration as written.
//! [`RunSettings`] is the resolved configuration, which is the only form that other modules use.
//!
//! Each key has its value from the first of these sources: a flag, the environment, the
//! configuration file, the default. A file with a syntax error or an unknown key is an error with
//! its line and column, and nothing is started.

mod bounds;
mod command_network;
mod commands;
mod http_servers;
mod interventions;
mod own_paths;
mod plugin_paths;
mod policy;
mod presets;
mod raw;
mod server_edit;
mod servers;
mod settings;
mod timeout;
mod trusted_file;
mod user_dirs;

pub use bounds::{SettingInForce, SettingOrigins};
pub use command_network::{RawCommandHosts, RawCommandNetwork};
pub use http_servers::{HttpServer, LoginSettings, RawHeader, SecretHeader, SecretSource};
pub use own_paths::{OwnPaths, resolve_links};
pub use plugin_paths::PluginPaths;
pub use policy::{
    HostRuleError, LoadedPolicy, PolicyFileError, PolicyFileOwner, PolicyPaths, PolicySource,
    PolicyTrustError, PolicyTrustStore, ProjectPolicy, SourceState, TrustedFileError,
    allow_host_always,
};
pub use presets::{NetworkPreset, PresetHosts, PresetSearch};
pub use raw::{ConfigError, RawApi, RawConfig, RawCredential};
pub use server_edit::{ServerEditError, add_server, remove_server};
pub use servers::{ProgramServer, RawMcp, RawServer, ServerSettings, ServerTransport};
pub use settings::{AuditSettings, ProviderSettings, RunSettings, SettingsError, SettingsFlags};
pub use timeout::{InvalidTimeout, RequestTimeout};
pub(crate) use trusted_file::{MAX_BYTES as MAX_OWN_FILE_LEN, read_own_file};
pub use user_dirs::{HomeDirectoryError, UserDirectories, UserDirectoryError};
