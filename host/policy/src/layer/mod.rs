//! A parsed policy file, called a layer.

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

/// The level of a policy file: where the file is stored.
///
/// The level does not depend on trust. The authority of the file in a policy is its
/// [`TrustLevel`](crate::TrustLevel).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyLevel {
    /// A file of the administrator of the machine.
    System,
    /// A file of the user.
    User,
    /// A file of the current project.
    Project,
}

/// A parsed policy file, created by [`PolicyLayer::parse`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PolicyLayer {
    /// The file or profile that the layer comes from, with its level.
    pub source: RuleOrigin,
    /// The path of the file, or the name of the profile.
    pub file: String,
    /// The built-in profile that the file extends.
    pub profile: Option<(PolicyProfile, SourceLocation)>,
    /// The modes that may be chosen; `None` allows every mode.
    pub modes: Option<(BTreeSet<ApprovalMode>, SourceLocation)>,
    /// The rules in the order of the file. The order has no meaning.
    pub rules: Vec<PolicyRule>,
    /// The sections that have an `allow` list, even an empty one.
    pub allow_lists: BTreeMap<ActionKind, SourceLocation>,
    /// The minimum sandbox of commands.
    pub minimum_sandbox: Option<(SandboxLevel, SourceLocation)>,
    /// The rules about settings of the program.
    pub settings: SettingRules,
    /// Hosts of this machine and its network that a tool with permission for every host may reach.
    pub local_hosts: Vec<SourceLocated>,
    /// Paths that are hidden or read-only in addition to the built-in lists, and exceptions from
    /// these lists.
    pub protected: ProtectionRules,
    /// The rules about capabilities of tools.
    pub grants: Vec<GrantRule>,
    /// The tools that the file refers to, with their locations.
    pub named_tools: Vec<(ToolSelector, SourceLocation)>,
    /// The maximum values of limits, for all tools or for one.
    pub max_caps: Vec<(Option<ToolSelector>, Caps, SourceLocation)>,
}

impl PolicyLayer {
    /// Creates a layer without rules.
    pub(crate) fn empty(source: RuleOrigin, file: &str) -> Self {
        Self {
            source,
            file: file.to_owned(),
            profile: None,
            modes: None,
            rules: Vec::new(),
            allow_lists: BTreeMap::new(),
            minimum_sandbox: None,
            settings: SettingRules::default(),
            local_hosts: Vec::new(),
            protected: ProtectionRules::default(),
            grants: Vec::new(),
            named_tools: Vec::new(),
            max_caps: Vec::new(),
        }
    }
}

/// A rule with its verdict and its pattern.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PolicyRule {
    /// The tool that the rule is about; `None` for every tool.
    pub tool: Option<ToolSelector>,
    /// The actions that the rule covers.
    pub pattern: RulePattern,
    /// Whether the commands that the rule allows can change the workspace; `None` if the rule does
    /// not say so. Always `None` in rules of other kinds.
    pub writes: Option<bool>,
    /// The rule as written, with its verdict and its location.
    pub source_rule: RuleReference,
}

/// The pattern for the actions that a rule covers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RulePattern {
    /// A pattern for command lines.
    Command(CommandPattern),
    /// A pattern for paths to read.
    Read(PathPattern),
    /// A pattern for paths to write.
    Write(PathPattern),
    /// A pattern for HTTP requests.
    Fetch {
        /// The hosts that the rule covers.
        host: HostPattern,
        /// The methods that the rule covers; `None` for every method.
        methods: Option<BTreeSet<String>>,
    },
    /// A pattern for hosts that commands connect to.
    Connect(HostPattern),
    /// Every effect of the tool: commands, writes, HTTP requests and confirmed calls.
    Tool,
}

/// A selector for the tools that an entry applies to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolSelector {
    /// Every tool, written `*`.
    Every,
    /// The tool with this name, without regard to case. The name of a tool of a server is
    /// `server/tool`.
    Name(String),
    /// Every tool of the server with this name, written `server/*`.
    Server(String),
    /// The tool whose component has this SHA-256.
    Digest(String),
}

/// Additions to [`ProtectedPaths`](super::ProtectedPaths). The patterns match at any depth and
/// apply to every tool and command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtectionRules {
    /// Paths that cannot be read.
    pub hidden: Vec<SourceLocated>,
    /// Paths that cannot be changed.
    pub read_only: Vec<SourceLocated>,
    /// Paths that can be read although they match a pattern for secrets. Ignored in the file of an
    /// untrusted project.
    pub shown: Vec<SourceLocated>,
    /// Patterns of the built-in lists that do not apply. Ignored in the file of an untrusted
    /// project.
    pub writable: Vec<SourceLocated>,
}

/// A valid pattern with its location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLocated {
    /// The pattern as written.
    pub text: String,
    /// The location of the pattern.
    pub place: SourceLocation,
}

/// A rule that limits the capabilities of a tool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GrantRule {
    /// The tool that the rule applies to.
    pub tool: ToolSelector,
    /// The only capabilities that the tool may have; `None` for no restriction.
    pub allowed: Option<(BTreeSet<CapabilityKind>, SourceLocation)>,
    /// The capabilities that the tool never has.
    pub denied: Option<(BTreeSet<CapabilityKind>, SourceLocation)>,
}

/// A tool as rules identify it: by name and by component, independent of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolId<'a> {
    /// The name of the tool.
    pub name: &'a str,
    /// The SHA-256 of the component in lower-case hexadecimal; empty for a tool without a
    /// component.
    pub digest: &'a str,
}

impl<'a> ToolId<'a> {
    /// Creates the identity of a tool from its name and its component digest.
    pub fn new(name: &'a str, digest: &'a str) -> Self {
        Self { name, digest }
    }
}

/// Creates the identity of a test tool, whose component does not matter.
#[cfg(test)]
impl<'a> From<&'a str> for ToolId<'a> {
    fn from(name: &'a str) -> Self {
        Self::new(name, "")
    }
}

impl ToolSelector {
    /// Parses a selector as it is written in a policy file.
    fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Every);
        }
        if let Some(digest) = text.strip_prefix("sha256:") {
            let well_formed = digest.len() == 64
                && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            let problem = "a digest is `sha256:` and 64 lower-case hexadecimal digits, as \
                `cofferdam tools show` prints it";
            return match well_formed {
                true => Ok(Self::Digest(digest.to_owned())),
                false => Err(problem.to_owned()),
            };
        }
        let is_name = |text: &str, longest: usize, more: &[u8]| {
            let is_allowed = |b: u8| b.is_ascii_alphanumeric() || more.contains(&b);
            (1..=longest).contains(&text.len()) && text.bytes().all(is_allowed)
        };
        match text.split_once('/') {
            None if is_name(text, 64, b"_-") => Ok(Self::Name(text.to_owned())),
            Some((server, "*")) if is_name(server, 64, b"_-") => {
                Ok(Self::Server(server.to_owned()))
            }
            Some((server, tool)) if is_name(server, 64, b"_-") && is_name(tool, 128, b"_-.") => {
                Ok(Self::Name(text.to_owned()))
            }
            Some(_) | None => Err(format!(
                "{text:?} is not a tool: use a name, `server/tool` or `server/*` for a tool or all \
                    tools of a server, the digest of a component as `sha256:…`, or `*` for every \
                    tool"
            )),
        }
    }

    /// Returns whether this selector includes a tool.
    pub fn matches(&self, tool: ToolId<'_>) -> bool {
        match self {
            Self::Every => true,
            // Tool names are unique without regard to case.
            Self::Name(name) => name.eq_ignore_ascii_case(tool.name),
            Self::Server(name) => {
                let server = tool.name.split_once('/').map(|(server, _)| server);
                server.is_some_and(|server| name.eq_ignore_ascii_case(server))
            }
            Self::Digest(digest) => tool.digest == digest,
        }
    }
}

impl fmt::Display for ToolSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => f.write_str("*"),
            Self::Name(name) => f.write_str(name),
            Self::Server(name) => write!(f, "{name}/*"),
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
