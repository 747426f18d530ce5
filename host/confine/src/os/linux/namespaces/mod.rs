//! Namespaces that the supervisor of a command creates itself, without another program.
//!
//! - The child of the supervisor is the first process of new namespaces: of users, mounts,
//!   processes, network, IPC, host name and control groups ([`NamespaceStart`]). It gives itself
//!   the root that the plan describes. If it ends, the kernel kills all others there.
//! - The child of that process becomes the command.
//!
//! For a private view of the workspace, the supervisor itself has namespaces of users and mounts
//! ([`run_with_own_mounts`]), in which it mounts an overlay ([`WorkspaceOverlay`]).
//!
//! A supervisor that is started before there is a command creates all namespaces but those of the
//! command's users, mounts and processes, and mounts what all commands have in common
//! ([`PreparedSandbox`]).

mod command_root;
mod direct_mount;
mod first_process;
mod id_map;
mod loopback;
mod mount;
mod prepared_root;
mod private_view;
mod supervisor_process;

pub(crate) use direct_mount::DirectMount;
pub(crate) use first_process::NamespaceStart;
pub(crate) use private_view::{DetachedOverlay, WorkspaceOverlay};
pub(crate) use supervisor_process::{PreparedSandbox, run_with_own_mounts};
