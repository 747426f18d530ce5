//! The hosts that commands may connect to.

use super::pattern::{HostAddress, HostPattern, PatternError, PatternMatch};
use super::{
    ActionKind, PolicyLayer, PolicyLevel, PolicyRule, RuleOrigin, RulePattern, RuleReference,
    SourceLocation, Verdict,
};

/// The network access of commands, as the user chose it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CommandNetwork {
    /// None, not even to this machine, unless policy files list hosts.
    #[default]
    None,
    /// None, whatever policy files list.
    Closed,
    /// The hosts that these rules and the policy allow, through a proxy of the host.
    Listed(NetworkRules),
    /// Everything that the user can reach.
    All,
}

impl CommandNetwork {
    /// Returns the value as `[commands] network` shows it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None | Self::Closed => "false",
            Self::Listed(_) => "listed hosts",
            Self::All => "true",
        }
    }
}

/// The user's rules for the hosts that commands may connect to. They have the authority of the
/// user's policy file.
///
/// ```
/// use cofferdam_policy::{
///     Action, ApprovalMode, HostAddress, NetworkRules, Policy, ToolId, Verdict,
/// };
///
/// let allow = ["*.example.com".to_owned(), "github.com:22".to_owned()];
/// let deny = ["evil.example.com".to_owned()];
/// let mut policy = Policy::default();
/// policy.add_layer(NetworkRules::parse(&allow, &deny)?.to_layer());
/// let verdict = |host| {
///     let host = HostAddress::parse(host).expect("a host");
///     policy.verdict(ApprovalMode::Auto, ToolId::new("bash", ""), &Action::Connect(&host)).verdict
/// };
/// assert_eq!(verdict("docs.example.com"), Verdict::Allow);
/// assert_eq!(verdict("github.com:22"), Verdict::Allow);
/// assert_eq!(verdict("evil.example.com"), Verdict::Deny);
/// assert_eq!(verdict("github.com"), Verdict::Deny);
/// # Ok::<(), cofferdam_policy::PatternError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkRules {
    allow: Vec<(String, HostPattern)>,
    ask: Vec<(String, HostPattern)>,
    deny: Vec<(String, HostPattern)>,
    unlisted: Option<Verdict>,
    place: Option<SourceLocation>,
}

impl NetworkRules {
    /// Parses host patterns. Without a port, an `allow` pattern covers port 443 only, and a `deny`
    /// pattern covers every port.
    ///
    /// # Errors
    ///
    /// Returns an error if a text is not a host pattern.
    pub fn parse(allow: &[String], deny: &[String]) -> Result<Self, PatternError> {
        Ok(Self { allow: parse_all(allow)?, deny: parse_all(deny)?, ..Self::default() })
    }

    /// Adds patterns of hosts that need approval.
    ///
    /// # Errors
    ///
    /// Returns an error if a text is not a host pattern.
    pub fn with_ask(mut self, ask: &[String]) -> Result<Self, PatternError> {
        self.ask.extend(parse_all(ask)?);
        Ok(self)
    }

    /// Adds patterns of hosts that are allowed.
    ///
    /// # Errors
    ///
    /// Returns an error if a text is not a host pattern.
    pub fn with_allow(mut self, allow: &[String]) -> Result<Self, PatternError> {
        self.allow.extend(parse_all(allow)?);
        Ok(self)
    }

    /// Sets the verdict about hosts that no list contains. Without it, they are denied.
    #[must_use]
    pub fn with_unlisted(self, unlisted: Verdict) -> Self {
        Self { unlisted: Some(unlisted), ..self }
    }

    /// Sets the location that explanations name.
    #[must_use]
    pub fn at(self, place: SourceLocation) -> Self {
        Self { place: Some(place), ..self }
    }

    /// Returns the patterns of the allowed hosts, as written.
    pub fn allowed(&self) -> impl Iterator<Item = &str> {
        self.allow.iter().map(|(text, _)| text.as_str())
    }

    /// Returns whether the list of allowed hosts contains a host, and the list of denied ones does
    /// not.
    pub fn allows(&self, host: &HostAddress) -> bool {
        let contains = |patterns: &[(String, HostPattern)], verdict: Verdict| {
            let matches = |pattern: &HostPattern| pattern.matches(host, verdict);
            patterns.iter().any(|(_, pattern)| matches(pattern) == PatternMatch::Yes)
        };
        contains(&self.allow, Verdict::Allow) && !contains(&self.deny, Verdict::Deny)
    }

    /// Returns whether the list of allowed hosts contains this IP address itself, rather than every
    /// host.
    pub fn allows_address(&self, address: &HostAddress) -> bool {
        self.allow.iter().any(|(_, pattern)| {
            pattern.is_address() && pattern.matches(address, Verdict::Allow) == PatternMatch::Yes
        })
    }

    /// Returns whether the rules say nothing.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty()
            && self.ask.is_empty()
            && self.deny.is_empty()
            && self.unlisted.is_none()
    }

    /// Returns the rules as a layer of a policy, with the authority of the user.
    pub fn to_layer(&self) -> PolicyLayer {
        let place = self.place.clone().unwrap_or_else(|| SourceLocation {
            file: "the settings of the host".to_owned(),
            line: 1,
            column: 1,
        });
        let source = RuleOrigin::File(PolicyLevel::User);
        let mut layer = PolicyLayer::empty(source, &place.file);
        for (verdict, patterns) in
            [(Verdict::Allow, &self.allow), (Verdict::Ask, &self.ask), (Verdict::Deny, &self.deny)]
        {
            layer.rules.extend(patterns.iter().map(|(text, pattern)| PolicyRule {
                tool: None,
                pattern: RulePattern::Connect(pattern.clone()),
                writes: None,
                source_rule: RuleReference {
                    verdict,
                    kind: ActionKind::Connect,
                    text: text.clone(),
                    place: place.clone(),
                    source,
                },
            }));
        }
        if !self.allow.is_empty() {
            layer.allow_lists.insert(ActionKind::Connect, place.clone());
        }
        layer.settings.unlisted_hosts = self.unlisted.map(|verdict| (verdict, place));
        layer
    }
}

fn parse_all(texts: &[String]) -> Result<Vec<(String, HostPattern)>, PatternError> {
    texts.iter().map(|text| Ok((text.clone(), HostPattern::parse(text)?))).collect()
}
