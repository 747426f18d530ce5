//! What tools ask for, what they are given, and who decides.
//!
//! Acting on the outside world takes a [`Permit`], and a permit comes from [`Judge::decide`] or from the
//! user's answer to the [`Question`] it asks: nowhere else. The room is pure: it reads no files and knows no clock.
//!
//! | mode | reading | commands and writes |
//! |---|---|---|
//! | `ask` (default) | allowed | asked, one by one |
//! | `plan` | allowed | denied |
//! | `auto-edit` | allowed | writes allowed, commands asked |
//! | `auto` | allowed | allowed |
//!
//! Where nobody can be asked, what would be asked is denied.

mod capability;
mod command_line;
mod command_rules;
mod denial;
mod effect;
mod grants;
mod judge;
mod mode;
mod path;
mod protected;

pub use capability::Capability;
pub use command_line::{CommandScope, SimpleCommand};
pub use command_rules::{CommandLimits, CommandRules, MoreProtected, SandboxLevel};
pub use denial::{Code, Denial};
pub use effect::{Effect, Question, Scope};
pub use grants::{FileGrant, Grants};
pub use judge::{Decision, Judge, Permit};
pub use mode::{Mode, UnknownMode};
pub use path::{PathProblem, WorkspacePath};
pub use protected::{BadPattern, Protected, ProtectedPaths};
