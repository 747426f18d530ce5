//! The decision about a connection of a running command.

use super::{Authorizer, DecisionOutcome, PendingApproval, Permit, ScopeApproval};
use crate::{
    Action, Denial, Effect, HostAddress, LastingRule, NetworkRules, Scope, ToolId, Verdict,
};

/// The decision about a connection of a command that runs.
///
/// This enum is closed: code that connects has to treat each answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionVerdict {
    /// A rule or an approval of this session covers the host.
    Allow,
    /// The host needs approval, as an [`Effect::Connect`].
    Ask,
    /// The host is denied.
    Deny(Denial),
}

impl Authorizer {
    /// Sets the user's policy file, to which the answer "always" adds rules. Without it, that
    /// answer is not offered.
    #[must_use]
    pub fn with_rules_file(mut self, file: impl Into<String>) -> Self {
        self.set_rules_file(file);
        self
    }

    /// Sets the user's policy file, as [`with_rules_file`](Self::with_rules_file) does.
    pub fn set_rules_file(&mut self, file: impl Into<String>) {
        self.rules_file = Some(file.into());
    }

    /// Decides whether a running command of a tool may connect to a host. The mode has no
    /// influence.
    pub fn judge_connection<'t>(
        &self,
        tool: impl Into<ToolId<'t>>,
        host: &HostAddress,
    ) -> ConnectionVerdict {
        let effect = Effect::Connect { host: host.clone(), line: String::new() };
        match self.explain(tool, &effect).outcome {
            DecisionOutcome::Allow(_) => ConnectionVerdict::Allow,
            DecisionOutcome::Ask { .. } => ConnectionVerdict::Ask,
            DecisionOutcome::Deny(denial) => ConnectionVerdict::Deny(denial),
        }
    }

    /// Returns whether a rule or an approval of this session contains this IP address itself,
    /// rather than every host.
    pub fn names_address(&self, address: &HostAddress) -> bool {
        let is_approved =
            |scope: &Scope| matches!(scope, Scope::Connect { host } if host == address);
        self.policy.names_address(address) || self.approved_scopes.iter().any(is_approved)
    }

    /// Turns the user's approval for all sessions into a permit. The caller writes the rule.
    ///
    /// # Errors
    ///
    /// Returns a denial in the same cases as [`approve`](Self::approve).
    pub fn approve_always(
        &self,
        pending: PendingApproval,
    ) -> Result<(Permit, Option<ScopeApproval>, Option<LastingRule>), Denial> {
        let rule = pending.question.lasting.clone();
        self.approve_scope(pending).map(|(permit, approval)| (permit, approval, rule))
    }

    /// Returns the rule that allows an effect in later sessions, if the user can write one: no
    /// other rule would still require approval.
    pub(super) fn lasting_rule(&self, tool: ToolId<'_>, effect: &Effect) -> Option<LastingRule> {
        let Effect::Connect { host, .. } = effect else { return None };
        let file = self.rules_file.clone()?;
        let mut policy = (*self.policy).clone();
        policy.add_layer(NetworkRules::parse(&[host.to_string()], &[]).ok()?.to_layer());
        let found = policy.verdict(self.mode, tool, &Action::Connect(host));
        (found.verdict == Verdict::Allow).then(|| LastingRule { host: host.clone(), file })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{ApprovalMode, Authorization, Policy, PolicyLayer, PolicyLevel};

    const ASKING: &str = "[commands.network]\nunlisted = \"ask\"\ndeny = [\"evil.org\"]";

    fn authorizer(layers: &[(PolicyLevel, &str)], has_approver: bool) -> Authorizer {
        let mut policy = Policy::default();
        for (level, text) in layers {
            policy.add_layer(PolicyLayer::parse(*level, "p.toml", text).expect(text));
        }
        Authorizer::new(ApprovalMode::Auto, has_approver)
            .with_policy(Arc::new(policy))
            .with_rules_file("/home/a/policy.toml")
    }

    fn connect(host: &str) -> Effect {
        let host = HostAddress::parse(host).expect(host);
        Effect::Connect { host, line: "make".into() }
    }

    fn ask(authorizer: &Authorizer, host: &str) -> PendingApproval {
        match authorizer.authorize("bash", "{}", connect(host)) {
            Authorization::Ask(pending) => pending,
            other => panic!("{other:?}"),
        }
    }

    fn judge(authorizer: &Authorizer, host: &str) -> ConnectionVerdict {
        authorizer.judge_connection("bash", &HostAddress::parse(host).expect(host))
    }

    #[test]
    fn an_approval_for_the_session_covers_one_host_and_one_port() {
        let mut authorizer = authorizer(&[(PolicyLevel::User, ASKING)], true);
        let (permit, approval) =
            authorizer.approve_scope(ask(&authorizer, "docs.rs")).expect("a permit");
        assert_eq!(permit.into_effect(), connect("docs.rs"));
        assert_eq!(judge(&authorizer, "docs.rs"), ConnectionVerdict::Ask);
        authorizer.remember(approval.expect("a scope"));
        assert_eq!(judge(&authorizer, "docs.rs"), ConnectionVerdict::Allow);
        assert_eq!(judge(&authorizer, "docs.rs:22"), ConnectionVerdict::Ask);
        assert_eq!(judge(&authorizer, "a.docs.rs"), ConnectionVerdict::Ask);
        assert!(matches!(judge(&authorizer, "evil.org"), ConnectionVerdict::Deny(_)));
    }

    #[test]
    fn r041_without_a_user_an_unlisted_host_is_denied_with_its_name_and_a_remedy() {
        let ConnectionVerdict::Deny(denial) =
            judge(&authorizer(&[(PolicyLevel::User, ASKING)], false), "docs.rs:8443")
        else {
            panic!("not denied")
        };
        assert_eq!(
            denial.to_string(),
            "denied (nobody-to-ask): bash needs approval to connect to docs.rs:8443, and there is \
                no terminal to ask for it: no list of [commands.network] contains it, and \
                `unlisted` at p.toml:2:12 decides. The user can run cofferdam in a terminal, or \
                allow it in their policy file: `allow = [\"docs.rs:8443\"]` under \
                [commands.network]."
        );
    }

    #[test]
    fn always_is_offered_only_where_the_rule_would_help() {
        let system = "[commands.network]\nunlisted = \"ask\"";
        let rule = "[commands.network]\nunlisted = \"ask\"\nask = [\"docs.rs\"]";
        for (layers, expected) in [
            (&[(PolicyLevel::User, ASKING)][..], true),
            (&[(PolicyLevel::System, system)], false),
            (&[(PolicyLevel::User, rule)], false),
        ] {
            let authorizer = authorizer(layers, true);
            let lasting = ask(&authorizer, "docs.rs").question().lasting.clone();
            assert_eq!(lasting.is_some(), expected, "{layers:?}");
            if let Some(rule) = lasting {
                assert_eq!(
                    rule.to_string(),
                    "`allow = [\"docs.rs\"]` under [commands.network] in /home/a/policy.toml"
                );
            }
        }
        let without_file =
            Authorizer { rules_file: None, ..authorizer(&[(PolicyLevel::User, ASKING)], true) };
        assert_eq!(ask(&without_file, "docs.rs").question().lasting, None);
    }
}
