//! Builds the plugins of this workspace into the components that the host embeds, and knows whether
//! they are up to date.
//!
//! The host embeds the components of `host/core/embedded`, so that building it needs no WebAssembly
//! toolchain. Beside them lies a record of what each was built from. [`check`] compares the sources
//! with the record and the record with the components.

mod check;
mod compile;
mod lock;
mod plugins;
mod record;
mod sources;
mod toolchain;

pub use check::{Mismatch, check};
pub use compile::{Built, build, scratch};
pub use plugins::{Plugin, plugins, select};
pub use record::{Entry, Record};
pub use toolchain::Toolchain;
