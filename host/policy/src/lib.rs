//! Permissions of tools, policy files, and the decision about each effect.
//!
//! Each effect of a tool needs a [`Permit`]. A permit comes only from [`Authorizer::authorize`], or
//! from the user's approval of the [`PendingApproval`] that it returns. This crate is pure: it
//! reads no files and no clock.
//!
//! The mode applies to actions that no rule covers:
//!
//! | mode | reading | commands | writes | HTTP requests |
//! |---|---|---|---|---|
//! | `ask` (default) | allowed | ask, one by one | ask | ask |
//! | `plan` | allowed | denied, see below | denied, see below | ask |
//! | `auto-edit` | allowed | ask | allowed | ask |
//! | `auto` | allowed | allowed | allowed | ask, unless a rule allows the host |
//!
//! "Ask" means that the user's approval is needed. Mode `plan` denies commands and writes, even
//! those that a rule allows, until the user accepts a plan.
//!
//! Rules come from policy files, each a [`PolicyLayer`], and from built-in [`PolicyProfile`]s.
//! [`Policy`] combines them and documents the precedence. Without a user to ask, every action that
//! needs approval is denied.

mod action;
mod authorizer;
mod canonical;
mod capability;
mod caps;
mod change_risk;
mod changes;
mod chosen_caps;
mod command_line;
mod command_rules;
mod denial;
mod digest;
mod direct_directory;
mod effect;
mod evaluation;
mod grants;
mod http_url;
mod layer;
mod location;
mod mode;
mod network_rules;
mod path;
mod pattern;
mod profile;
mod programs;
mod protected;
mod resolved;
pub mod terminal_escape;
mod tier;
mod verdict;
mod workspace_access;

pub use action::{Action, ActionKind};
pub use authorizer::{
    AllowBasis, Authorization, Authorizer, CommandChangeVerdict, ConnectionVerdict,
    DecisionExplanation, DecisionOutcome, PendingApproval, Permit, ScopeApproval,
};
pub use capability::{Capability, CapabilityKind};
pub use caps::{CapName, CapOutOfRange, Caps};
pub use change_risk::ChangeRisk;
pub use changes::{ChangeKind, ChangeSet, ContentDigest, FileChange};
pub use chosen_caps::ChosenCaps;
pub use command_line::{CommandScope, SimpleCommand};
pub use command_rules::{CommandLimits, CommandRules, SandboxLevel};
pub use denial::{Denial, DenialCode};
pub use digest::{ComponentDigest, hex};
pub use direct_directory::{DirectDirectory, InvalidDirectDirectory};
pub use effect::{ApprovalQuestion, Effect, LastingRule, Scope};
pub use evaluation::{ActionEvaluation, DecisionCheck, DecisionStep};
pub use grants::{FileGrant, Grants};
pub use http_url::{HttpOrigin, HttpUrl, HttpUrlError};
pub use layer::{
    GrantRule, Located, PluginOrigin, PolicyLayer, PolicyLevel, PolicyRule, ProtectionRules,
    RulePattern, SettingRules, SourceLocated, ToolId, ToolSelector,
};
pub use location::{PolicyError, RuleOrigin, SourceLocation};
pub use mode::{ApprovalMode, UnknownMode};
pub use network_rules::{CommandNetwork, NetworkRules};
pub use path::{PathError, WorkspacePath};
pub use pattern::{
    BaseUrl, BaseUrlError, CommandPattern, HostAddress, HostPattern, PathPattern, PatternError,
    PatternMatch, RequestPattern,
};
pub use profile::{PolicyProfile, UnknownProfile};
pub use protected::fold_name;
pub use protected::{
    ApprovalPath, ApprovalPaths, BuiltInList, ListedPathEntry, PathProtection, PatternAuthor,
    ProtectedPathNames, ProtectedPaths, ProtectedPatternError,
};
pub use resolved::{ModelEndpoint, Policy, SettingRefusal, TrustLevel};
pub use tier::Tier;
pub use verdict::{ReasonedVerdict, RuleReference, Verdict, VerdictReason};
pub use workspace_access::{ReadOnlyReason, WorkspaceAccess};
