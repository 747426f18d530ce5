//! What tools ask for, what they are given, and who decides.
//!
//! Acting on the outside world takes a [`Permit`], and a permit comes from [`Judge::decide`] or from the user's approval of the
//! [`PendingApproval`] that it returns: nowhere else. The room is pure: it reads no files and knows no clock.
//!
//! | mode | reading | commands | writes | requests |
//! |---|---|---|---|---|
//! | `ask` (default) | allowed | asked, one by one | asked | asked |
//! | `plan` | allowed | denied, until the user accepts a plan | denied, until the user accepts a plan | asked |
//! | `auto-edit` | allowed | asked | allowed | asked |
//! | `auto` | allowed | allowed | allowed | asked, unless a rule allows the host |
//!
//! That is what the mode makes of acts that no rule is about. Rules come from policy files, each a [`Layer`], and from
//! ready-made [`Profile`]s; [`Policy`] puts them together, and says how. Where nobody can be asked, what would be asked is
//! denied.

mod canonical;
mod capability;
mod caps;
mod changes;
mod command_line;
mod command_rules;
mod deed;
mod denial;
mod effect;
mod evaluation;
mod grants;
mod judge;
mod layer;
mod mode;
mod path;
mod pattern;
mod place;
mod profile;
mod programs;
mod protected;
mod resolved;
mod verdict;

pub use capability::{Capability, CapabilityKind};
pub use caps::{Cap, Caps, OutOfRange};
pub use changes::{Act, Change, Changes, Content};
pub use command_line::{CommandScope, SimpleCommand};
pub use command_rules::{CommandLimits, CommandRules, SandboxLevel};
pub use deed::{Deed, Kind};
pub use denial::{Code, Denial};
pub use effect::{Effect, Question, Scope};
pub use evaluation::{Check, Evaluation, Step};
pub use grants::{FileGrant, Grants};
pub use judge::{Basis, Decision, Explanation, Judge, Outcome, PendingApproval, Permit, ScopeApproval};
pub use layer::{Layer, Lending, Level, Located, Pattern, Placed, PluginOrigin, Protecting, Rule, SettingRules, Subject, ToolId};
pub use mode::{Mode, UnknownMode};
pub use path::{PathProblem, WorkspacePath};
pub use pattern::{BaseUrl, BaseUrlProblem, CommandPattern, HostAddress, HostPattern, Match, PathPattern, PatternProblem, RequestPattern};
pub use place::{Place, PolicyError, Source};
pub use profile::{Profile, UnknownProfile};
pub(crate) use protected::folded;
pub use protected::{AskedPath, AskedPaths, Author, BadPattern, BuiltInList, ListedPath, Names, Protected, ProtectedPaths};
pub use resolved::{ModelEndpoint, Policy, Refusal, Voice};
pub use verdict::{Because, Finding, RuleRef, Verdict};
