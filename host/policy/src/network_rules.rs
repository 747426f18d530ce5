//! The hosts that commands may connect to.

use super::pattern::{HostAddress, HostPattern, PatternError, PatternMatch};
use crate::Verdict;

/// The network access of commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CommandNetwork {
    /// None, not even to this machine.
    #[default]
    None,
    /// The hosts that these rules allow, through a proxy of the host.
    Listed(NetworkRules),
    /// Everything that the user can reach.
    All,
}

impl CommandNetwork {
    /// Returns the value as `[commands] network` shows it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "false",
            Self::Listed(_) => "listed hosts",
            Self::All => "true",
        }
    }
}

/// Rules for the hosts that commands may connect to. A `deny` rule has priority.
///
/// ```
/// use cofferdam_policy::{HostAddress, NetworkRules};
///
/// let allow = ["*.example.com".to_owned(), "github.com:22".to_owned()];
/// let deny = ["evil.example.com".to_owned()];
/// let rules = NetworkRules::parse(&allow, &deny)?;
/// let allows = |host| HostAddress::parse(host).is_ok_and(|host| rules.allows(&host));
/// assert!(allows("docs.example.com") && allows("github.com:22"));
/// assert!(!allows("evil.example.com") && !allows("github.com"));
/// # Ok::<(), cofferdam_policy::PatternError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkRules {
    allow: Vec<HostPattern>,
    deny: Vec<HostPattern>,
}

impl NetworkRules {
    /// Parses host patterns. Without a port, an `allow` pattern covers port 443 only, and a `deny`
    /// pattern covers every port.
    ///
    /// # Errors
    ///
    /// Returns an error if a text is not a host pattern.
    pub fn parse(allow: &[String], deny: &[String]) -> Result<Self, PatternError> {
        let allow = allow.iter().map(|text| HostPattern::parse(text));
        let deny = deny.iter().map(|text| HostPattern::parse(text));
        Ok(Self { allow: allow.collect::<Result<_, _>>()?, deny: deny.collect::<Result<_, _>>()? })
    }

    /// Returns whether commands may connect to a host.
    pub fn allows(&self, host: &HostAddress) -> bool {
        let is_covered = |rules: &[HostPattern], verdict| {
            rules.iter().any(|rule| rule.matches(host, verdict) == PatternMatch::Yes)
        };
        !is_covered(&self.deny, Verdict::Deny) && is_covered(&self.allow, Verdict::Allow)
    }

    /// Returns whether a rule allows this IP address itself, rather than a name or every host.
    pub fn names_address(&self, address: &HostAddress) -> bool {
        let mut named = self.allow.iter().filter(|rule| rule.is_address());
        named.any(|rule| rule.matches(address, Verdict::Allow) == PatternMatch::Yes)
            && self.allows(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> NetworkRules {
        let owned =
            |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        NetworkRules::parse(&owned(allow), &owned(deny)).expect("they are patterns")
    }

    fn host(text: &str) -> HostAddress {
        HostAddress::parse(text).expect(text)
    }

    #[test]
    fn deny_rules_have_priority_and_ports_are_exact() {
        let rules = rules(
            &["docs.rs", "*.example.com", "git.example.org:22", "127.0.0.1:8080", "*:9999"],
            &["secret.example.com", "bad.example.net"],
        );
        for (text, expected) in [
            ("docs.rs", true),
            ("DOCS.rs.", true),
            ("docs.rs:80", false),
            ("a.example.com", true),
            ("example.com", false),
            ("secret.example.com", false),
            ("secret.example.com:9999", false),
            ("git.example.org:22", true),
            ("git.example.org", false),
            ("127.0.0.1:8080", true),
            ("127.0.0.1:8081", false),
            ("other.example.net:9999", true),
            ("bad.example.net:9999", false),
        ] {
            assert_eq!(rules.allows(&host(text)), expected, "{text}");
        }
    }

    #[test]
    fn only_a_rule_for_an_address_names_it() {
        let rules = rules(&["10.0.0.1:443", "*"], &["10.0.0.2"]);
        assert!(rules.names_address(&host("10.0.0.1")));
        assert!(!rules.names_address(&host("10.0.0.3")), "a star covers no special address");
        assert!(!rules.names_address(&host("10.0.0.1:80")));
    }
}
