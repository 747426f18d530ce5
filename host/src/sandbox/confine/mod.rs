//! The sandbox of the operating system in which approved commands run.
//!
//! | process | what it is | what it does |
//! |---|---|---|
//! | host | this program, with many threads | sends an [`protocol`], reads the output, hears the report |
//! | guard | this program started anew | waits for the supervisor; if that is killed, ends what is left of the command and looks after protected paths |
//! | supervisor | this program started anew, one thread | makes the sandbox, ends all that is left of the command, looks after protected paths |
//! | (bubblewrap) | at the level `full` | namespaces: what is outside is not there |
//! | command | this program once more, and then `sh -c LINE` | gives up what it does not need, confines itself, becomes the command |
//!
//! The [`Level`](crate::policy::SandboxLevel) that a machine has is not what it says of itself, but
//! what a [`self_test`] measured.

mod archive;
mod confined_command;
mod guard;
mod journal;
mod level;
mod link;
mod modes;
mod new_repository;
mod probe;
pub(super) mod protocol;
mod queue;
mod reduce;
mod remove;
mod restore;
mod self_test;
mod set_aside;
mod settings;
mod snapshot;
mod supervisor;
mod visible_paths;
mod worktree;

pub use confined_command::exec_confined_command;
pub use guard::guard_supervisor;
pub(super) use level::{CommandLocation, SpawnPlan};
pub use level::{CommandSandbox, MeasuredLevel, outer_repository};
pub(super) use link::SupervisorLink;
pub(super) use protocol::{
    CommandExitKind, CommandJob, CommandPaths, ConfinementSpec, SupervisorReport,
};
pub(super) use settings::{MAX_SETTINGS_SIZE, SettingsFormat};
pub(super) use supervisor::SandboxSpec;
pub use supervisor::supervise_command;
