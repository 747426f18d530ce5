//! One policy file as it is meant.

mod parse;
mod raw;
mod rule;
mod settings;
mod size;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::capability::CapabilityKind;
use super::pattern::{CommandPattern, HostPattern, PathPattern};
use super::{
    ActionKind, ApprovalMode, Caps, PolicyProfile, RuleOrigin, RuleReference, SandboxLevel,
    SourceLocation,
};

pub(super) use rule::{ActionText, RuleMatchInput};
pub(super) use settings::is_within;
pub use settings::{Located, PluginOrigin, SettingRules};

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyLevel {
    /// Of whoever administers the machine.
    System,
    /// Of the user.
    User,
    /// Of the project that is worked on.
    Project,
}

/// A policy file. It is made by [`PolicyLayer::parse`].
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyLayer {
    /// Whose.
    pub source: RuleOrigin,
    /// The file as people know it.
    pub file: String,
    /// The ready-made profile that it builds on.
    pub profile: Option<(PolicyProfile, SourceLocation)>,
    /// The modes that may be chosen; absent: every one.
    pub modes: Option<(BTreeSet<ApprovalMode>, SourceLocation)>,
    /// In the order of the file, which means nothing.
    pub rules: Vec<PolicyRule>,
    /// Where a list `allow` is present, however empty.
    pub allow_lists: BTreeMap<ActionKind, SourceLocation>,
    /// The least sandbox that commands run in.
    pub minimum_sandbox: Option<(SandboxLevel, SourceLocation)>,
    /// What it says about settings of the program.
    pub settings: SettingRules,
    /// Places of this machine and its network that tools reach which ask for every host.
    pub local_hosts: Vec<SourceLocated>,
    /// What is hidden or kept from changes besides the built-in list, and what of that list is not.
    pub protected: ProtectionRules,
    /// What tools may be given.
    pub grants: Vec<GrantRule>,
    /// The tools that it names, and where.
    pub named_tools: Vec<(ToolSelector, SourceLocation)>,
    /// The largest caps that may be chosen, for all tools or for one.
    pub max_caps: Vec<(Option<ToolSelector>, Caps, SourceLocation)>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRule {
    /// The tool it is about; `None`: any.
    pub tool: Option<ToolSelector>,
    /// What it covers.
    pub pattern: RulePattern,
    /// What it says, as written, and where.
    pub source_rule: RuleReference,
}

/// What a rule covers.
#[derive(Clone, Debug, PartialEq)]
pub enum RulePattern {
    /// Command lines.
    Command(CommandPattern),
    /// Reading paths.
    Read(PathPattern),
    /// Changing paths.
    Write(PathPattern),
    /// Requests.
    Fetch {
        /// To where.
        host: HostPattern,
        /// `None`: by any method.
        methods: Option<BTreeSet<String>>,
    },
    /// Everything that the tool does to the outside world.
    Tool,
}

/// The tool that something is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolSelector {
    /// Each one.
    Every,
    /// By its name.
    Name(String),
    /// By the SHA-256 of its component.
    Digest(String),
}

/// Patterns of [`ProtectedPaths`](super::ProtectedPaths), which hold at any depth and for every
/// tool and command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtectionRules {
    /// Not to be read.
    pub hidden: Vec<SourceLocated>,
    /// Not to be changed.
    pub read_only: Vec<SourceLocated>,
    /// To be read although its name is that of a secret. Of a project nobody trusts this does not
    /// count.
    pub shown: Vec<SourceLocated>,
    /// Patterns of the built-in list that do not hold. Of a project nobody trusts this does not
    /// count.
    pub writable: Vec<SourceLocated>,
}

/// A pattern that was understood, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLocated {
    /// As written.
    pub text: String,
    /// Where.
    pub place: SourceLocation,
}

/// What a tool may be given of what it asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantRule {
    /// Which tool.
    pub tool: ToolSelector,
    /// At most these; absent: whatever it asks for.
    pub allowed: Option<(BTreeSet<CapabilityKind>, SourceLocation)>,
    /// Never these.
    pub denied: Option<(BTreeSet<CapabilityKind>, SourceLocation)>,
}

/// A tool as rules know it: by its name and by its component, so that no rule depends on who else
/// has heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolId<'a> {
    /// Its name.
    pub name: &'a str,
    /// The SHA-256 of its component in lowercase hexadecimal; of what has no component, the empty
    /// text.
    pub digest: &'a str,
}

impl<'a> ToolId<'a> {
    /// The tool of this name in this component.
    pub fn new(name: &'a str, digest: &'a str) -> Self {
        Self { name, digest }
    }
}

/// A tool of a test, whose component does not matter.
#[cfg(test)]
impl<'a> From<&'a str> for ToolId<'a> {
    fn from(name: &'a str) -> Self {
        Self::new(name, "")
    }
}

impl ToolSelector {
    /// Whether it means this tool.
    pub fn matches(&self, tool: ToolId<'_>) -> bool {
        match self {
            Self::Every => true,
            // No two tools have names that only differ in case.
            Self::Name(name) => name.eq_ignore_ascii_case(tool.name),
            Self::Digest(digest) => tool.digest == digest,
        }
    }
}

impl fmt::Display for ToolSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => f.write_str("*"),
            Self::Name(name) => f.write_str(name),
            Self::Digest(digest) => write!(f, "sha256:{digest}"),
        }
    }
}

impl fmt::Display for PolicyLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::User => "user",
            Self::Project => "project",
        })
    }
}

#[cfg(test)]
mod tests;
