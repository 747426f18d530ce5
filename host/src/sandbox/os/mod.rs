//! What differs from one operating system to the next: one file each, which says what it enforces.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(super) use linux::{hide_from_own_user, limit_compiler};

#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
pub(super) use other::{hide_from_own_user, limit_compiler};
