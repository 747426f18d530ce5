//! Support for each operating system, one module each, which states what it enforces.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(super) use linux::*;

// The profile is plain text, and tests check it on every system.
#[cfg(any(target_os = "macos", test))]
mod seatbelt;

#[cfg(not(target_os = "linux"))]
mod without_namespaces;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub(super) use macos::*;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod other;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) use other::*;
