//! The sandbox of the operating system in which approved commands run.
//!
//! | process | what it is | what it does |
//! |---|---|---|
//! | host | this program, with many threads | sends an [`order`], reads the output, hears the report |
//! | guard | this program started anew | waits for the supervisor; if that is killed, ends what is left of the command and looks after protected paths |
//! | supervisor | this program started anew, one thread | makes the sandbox, ends all that is left of the command, looks after protected paths |
//! | (bubblewrap) | at the level `full` | namespaces: what is outside is not there |
//! | command | this program once more, and then `sh -c LINE` | gives up what it does not need, confines itself, becomes the command |
//!
//! The [`Level`](crate::policy::SandboxLevel) that a machine has is not what it says of itself, but what a [`self_test`] measured.

mod aside;
mod fresh;
mod guard;
mod journal;
mod level;
mod link;
mod modes;
pub(super) mod order;
mod places;
mod probe;
mod queue;
mod reduce;
mod remove;
mod restore;
mod self_test;
mod settings;
mod supervise;
mod turn;
mod watch;
mod worktree;

pub use guard::guard_supervisor;
pub use level::{Commands, Measured, outer_repository};
pub(super) use level::{Commission, Place};
pub(super) use link::Link;
pub(super) use order::{Confinement, Ending, Places, Report, Task};
pub(super) use supervise::Surroundings;
pub use supervise::supervise_command;
pub use turn::turn_into_command;
