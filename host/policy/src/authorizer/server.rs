//! The decisions about a server whose tools the user accepted: its command and its connections.

use super::{Authorizer, ConnectionVerdict, Permit};
use crate::{
    Action, Denial, DenialCode, Effect, FileGrant, HostAddress, NetworkRules, ReadOnlyReason,
    ToolId, WorkspaceAccess, WorkspacePath,
};

impl Authorizer {
    /// Permits the command of a server. The user approved exactly this command when they accepted
    /// the server, so only rules that deny it still count. `files` is the access of the server to
    /// the workspace, which rules can restrict to reading.
    ///
    /// # Errors
    ///
    /// A rule denies the command or the tool.
    pub fn permit_server<'t>(
        &self,
        tool: impl Into<ToolId<'t>>,
        line: &str,
        files: FileGrant,
    ) -> Result<Permit, Denial> {
        let tool = tool.into();
        let action = Action::Command(line);
        if let Some(verdict) = self.policy.denied_by_rule(tool, &action) {
            let what = format!("the server of {} cannot start", tool.name);
            return Err(Denial::from_verdict(DenialCode::Policy, &what, &action, &verdict));
        }
        let workspace_access = match files {
            FileGrant::ReadWrite => self.policy.workspace_access(tool, line),
            FileGrant::None | FileGrant::Read => {
                WorkspaceAccess::ReadOnly(ReadOnlyReason::NoPermission)
            }
        };
        let effect = Effect::Command {
            line: line.to_owned(),
            directory: WorkspacePath::root(),
            background: true,
        };
        Ok(Permit { effect, workspace_access })
    }

    /// Decides whether a server may connect to a host. `allowed` are the hosts that the user
    /// allowed this server. What the policy allows commands does not count for servers; what it
    /// denies them does.
    pub fn judge_server_connection<'t>(
        &self,
        tool: impl Into<ToolId<'t>>,
        host: &HostAddress,
        allowed: &NetworkRules,
    ) -> ConnectionVerdict {
        let tool = tool.into();
        if !allowed.allows(host) {
            return ConnectionVerdict::Deny(Denial::new(
                DenialCode::NotGranted,
                format!("the server has no permission to connect to {host}."),
                "The user can add the host to `network` of the server in the configuration.",
            ));
        }
        match self.policy.server_host_denied_by(tool, host) {
            None => ConnectionVerdict::Allow,
            Some(verdict) => ConnectionVerdict::Deny(Denial::from_verdict(
                DenialCode::Policy,
                &format!("the server may not connect to {host}"),
                &Action::Connect(host),
                &verdict,
            )),
        }
    }

    /// Decides whether the host may send requests to this HTTP server, or to the server where the
    /// user logs in to it. The user approved the server when they accepted it, so only rules that
    /// deny it still count: those for connections of commands, as for other servers, and those for
    /// HTTP requests.
    ///
    /// # Errors
    ///
    /// A rule denies the host or the tool.
    pub fn permit_server_requests<'t>(
        &self,
        tool: impl Into<ToolId<'t>>,
        host: &HostAddress,
    ) -> Result<(), Denial> {
        let tool = tool.into();
        let connect = Action::Connect(host);
        let fetch = Action::Fetch { host, method: "POST" };
        let denied =
            self.policy.server_host_denied_by(tool, host).map(|verdict| (&connect, verdict));
        let denied = denied
            .or_else(|| self.policy.denied_by_rule(tool, &fetch).map(|verdict| (&fetch, verdict)));
        match denied {
            None => Ok(()),
            Some((action, verdict)) => Err(Denial::from_verdict(
                DenialCode::Policy,
                &format!("the server may not be reached at {host}"),
                action,
                &verdict,
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{ApprovalMode, Policy, PolicyLayer, PolicyLevel};

    fn permit(policy: &str, files: FileGrant) -> Result<Permit, Denial> {
        let mut rules = Policy::default();
        let layer = PolicyLayer::parse(PolicyLevel::System, "p.toml", policy);
        rules.add_layer(layer.expect(policy));
        let authorizer = Authorizer::new(ApprovalMode::Ask, false).with_policy(Arc::new(rules));
        authorizer.permit_server(ToolId::new("notes/add", ""), "node server.js --all", files)
    }

    #[test]
    fn a_server_that_the_user_accepted_starts_unless_a_rule_denies_it() {
        let table = [
            ("", true),
            ("[commands]\nask = [\"node *\"]", true),
            ("[commands]\nallow = [\"make\"]", true),
            ("[commands]\ndeny = [\"node *\"]", false),
            ("[commands]\ndeny = [\"python3 *\"]", true),
            ("[tools.\"notes/add\"]\nuse = \"deny\"", false),
            ("[tools.\"notes/*\"]\nuse = \"deny\"", false),
            ("[tools.\"other/*\"]\nuse = \"deny\"", true),
        ];
        for (policy, starts) in table {
            let permitted = permit(policy, FileGrant::None);
            assert_eq!(permitted.is_ok(), starts, "{policy}: {permitted:?}");
        }
    }

    #[test]
    fn a_server_connects_only_to_its_own_hosts_and_only_if_no_rule_denies_them() {
        let allowed = NetworkRules::parse(&["*.example.com".to_owned()], &[]).expect("a pattern");
        let is_allowed = |policy: &str, host: &str| {
            let mut rules = Policy::default();
            let layer = PolicyLayer::parse(PolicyLevel::System, "p.toml", policy);
            rules.add_layer(layer.expect(policy));
            let authorizer = Authorizer::new(ApprovalMode::Auto, true).with_policy(Arc::new(rules));
            let host = HostAddress::parse(host).expect(host);
            let tool = ToolId::new("notes/add", "");
            let verdict = authorizer.judge_server_connection(tool, &host, &allowed);
            verdict == ConnectionVerdict::Allow
        };
        let table = [
            ("", "a.example.com", true),
            ("", "a.example.com:80", false),
            ("", "example.org", false),
            ("[commands.network]\nallow = [\"example.org\"]", "example.org", false),
            ("[commands.network]\nallow = [\"example.org\"]", "a.example.com", false),
            ("[commands.network]\nallow = [\"a.example.com\"]", "a.example.com", true),
            ("[commands.network]\ndeny = [\"a.example.com\"]", "a.example.com", false),
            ("[commands.network]\nask = [\"a.example.com\"]", "a.example.com", false),
            ("[commands.network]\nunlisted = \"ask\"", "a.example.com", false),
            ("[commands]\nnetwork = false", "a.example.com", false),
            ("[tools.\"notes/*\"]\nuse = \"ask\"", "a.example.com", true),
        ];
        for (policy, host, expected) in table {
            assert_eq!(is_allowed(policy, host), expected, "{policy} {host}");
        }
    }

    #[test]
    fn an_http_server_is_reached_unless_a_rule_denies_it() {
        let table = [
            ("", true),
            ("[fetch]\ndeny = [\"mcp.example.com\"]", false),
            ("[fetch]\ndeny = [\"*.example.com\"]", false),
            ("[fetch]\ndeny = [\"example.org\"]", true),
            ("[fetch]\nallow = [\"example.org\"]", true),
            ("[commands.network]\ndeny = [\"mcp.example.com\"]", false),
            ("[commands.network]\nallow = [\"example.org\"]", false),
            ("[commands]\nnetwork = false", false),
            ("[tools.\"notes/*\"]\nuse = \"deny\"", false),
        ];
        for (policy, expected) in table {
            let mut rules = Policy::default();
            let layer = PolicyLayer::parse(PolicyLevel::System, "p.toml", policy);
            rules.add_layer(layer.expect(policy));
            let authorizer = Authorizer::new(ApprovalMode::Auto, true).with_policy(Arc::new(rules));
            let host = HostAddress::parse("mcp.example.com").expect("a host");
            let tool = ToolId::new("notes/add", "");
            let permitted = authorizer.permit_server_requests(tool, &host);
            assert_eq!(permitted.is_ok(), expected, "{policy}: {permitted:?}");
        }
    }

    #[test]
    fn only_a_server_with_the_permission_gets_a_writable_workspace() {
        let access = |policy: &str, files| {
            let permit = permit(policy, files).expect("it is permitted");
            matches!(permit.workspace_access(), WorkspaceAccess::ReadWrite)
        };
        assert!(access("", FileGrant::ReadWrite));
        assert!(!access("", FileGrant::Read) && !access("", FileGrant::None));
        let read_only = "[commands]\nallow = [{ pattern = \"node *\", writes = false }]";
        assert!(!access(read_only, FileGrant::ReadWrite));
    }
}
