//! What the user chose: as written ([`Raw`], [`Flags`], the environment), and as meant ([`Settings`]). Only the second
//! leaves this room.
//!
//! Precedence, for each key by itself: a flag, then the environment, then the configuration file, then the default. A file
//! that does not parse, or has a key nobody knows, is an error with its line and column; nothing starts with half of one.

mod believed;
mod bounds;
mod commands;
mod folders;
mod interventions;
mod lock_file;
mod own;
mod policy;
mod raw;
mod settings;
mod timeout;

pub use bounds::{SettingInForce, SettingOrigins};
pub use folders::{Folders, NoHome};
pub use lock_file::{LockFile, LockGuard, LockProblem};
pub use own::{OwnPlaces, without_links};
pub use policy::{
    FileProblem, LoadedPolicy, Owner, PolicyFileError, PolicyPlaces, PolicySource, ProjectPolicy, SourceState, Trust, TrustError,
};
pub use raw::{Api, ConfigError, Raw, RawCredential};
pub use settings::{AuditSettings, Flags, Provider, Settings, SettingsError};
pub use timeout::{InvalidTimeout, Timeout};
