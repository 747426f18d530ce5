//! What tools ask for, what they are given, and who decides.
//!
//! Acting on the outside world takes a [`Permit`], and a permit comes from [`Authorizer::decide`]
//! or from the user's approval of the [`PendingApproval`] that it returns: nowhere else. The room
//! is pure: it reads no files and knows no clock.
//!
//! | mode | reading | commands | writes | requests |
//! |---|---|---|---|---|
//! | `ask` (default) | allowed | asked, one by one | asked | asked |
//! | `plan` | allowed | denied, until the user accepts a plan | denied, until the user accepts a plan | asked |
//! | `auto-edit` | allowed | asked | allowed | asked |
//! | `auto` | allowed | allowed | allowed | asked, unless a rule allows the host |
//!
//! That is what the mode makes of acts that no rule is about. Rules come from policy files, each a
//! [`PolicyLayer`], and from ready-made [`PolicyProfile`]s; [`Policy`] puts them together, and says
//! how. Where nobody can be asked, what would be asked is denied.

mod action;
mod authorizer;
mod canonical;
mod capability;
mod caps;
mod changes;
mod command_line;
mod command_rules;
mod denial;
mod effect;
mod evaluation;
mod grants;
mod layer;
mod location;
mod mode;
mod path;
mod pattern;
mod profile;
mod programs;
mod protected;
mod resolved;
mod verdict;

pub use action::{Action, ActionKind};
pub use authorizer::{
    AllowBasis, Authorization, Authorizer, DecisionExplanation, DecisionOutcome, PendingApproval,
    Permit, ScopeApproval,
};
pub use capability::{Capability, CapabilityKind};
pub use caps::{CapName, CapOutOfRange, Caps};
pub use changes::{ChangeKind, ChangeSet, ContentDigest, FileChange};
pub use command_line::{CommandScope, SimpleCommand};
pub use command_rules::{CommandLimits, CommandRules, SandboxLevel};
pub use denial::{Denial, DenialCode};
pub use effect::{ApprovalQuestion, Effect, Scope};
pub use evaluation::{ActionEvaluation, DecisionCheck, DecisionStep};
pub use grants::{FileGrant, Grants};
pub use layer::{
    GrantRule, Located, PluginOrigin, PolicyLayer, PolicyLevel, PolicyRule, ProtectionRules,
    RulePattern, SettingRules, SourceLocated, ToolId, ToolSelector,
};
pub use location::{PolicyError, RuleOrigin, SourceLocation};
pub use mode::{ApprovalMode, UnknownMode};
pub use path::{PathError, WorkspacePath};
pub use pattern::{
    BaseUrl, BaseUrlError, CommandPattern, HostAddress, HostPattern, PathPattern, PatternError,
    PatternMatch, RequestPattern,
};
pub use profile::{PolicyProfile, UnknownProfile};
pub(crate) use protected::fold_name;
pub use protected::{
    ApprovalPath, ApprovalPaths, BuiltInList, ListedPathEntry, PathProtection, PatternAuthor,
    ProtectedPathNames, ProtectedPaths, ProtectedPatternError,
};
pub use resolved::{ModelEndpoint, Policy, SettingRefusal, TrustLevel};
pub use verdict::{ReasonedVerdict, RuleReference, Verdict, VerdictReason};
