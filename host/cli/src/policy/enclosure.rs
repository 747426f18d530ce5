//! What the sandbox and the network of commands add to the explanation of an action.

use std::path::Path;

use super::explain::ExplanationReport;
use cofferdam::policy::{
    CommandNetwork, DirectDirectory, HostAddress, SandboxLevel, Verdict, WorkspaceAccess,
};
use cofferdam::sandbox::{self, CommandSandbox};

/// Adds the command sandbox to the explanation. Denies the action if no sufficient sandbox is
/// available.
pub(super) fn apply_sandbox(
    action_report: ExplanationReport,
    access: Option<WorkspaceAccess>,
    (commands, workspace): (&CommandSandbox, Option<&Path>),
) -> ExplanationReport {
    let Some(access) = access.filter(|_| action_report.verdict != Verdict::Deny) else {
        return action_report;
    };
    match (commands.allowed_level(), &commands.rules().required_by) {
        (Err(denial), _) => {
            let change = denial.remedy.unwrap_or_default();
            ExplanationReport {
                verdict: Verdict::Deny,
                reason: denial.reason,
                remedy: change,
                location: denial.place,
                ..action_report
            }
        }
        (Ok(level), required_by) => {
            let required = required_by.as_ref().map_or_else(String::new, |place| {
                format!(" It runs at sandbox level `{level}`, as required by {place}.")
            });
            let gap = describe_gap(level);
            let read_only = match access {
                WorkspaceAccess::ReadOnly(reason) if level != SandboxLevel::None => {
                    format!(" The workspace is read-only for it, because {reason}.")
                }
                WorkspaceAccess::ReadOnly(_) => String::new(),
                WorkspaceAccess::ReadWrite => describe_view(commands, workspace),
            };
            let reason = format!("{}{required}{read_only}{gap}", action_report.reason);
            ExplanationReport { reason, ..action_report }
        }
    }
}

/// Adds the network of commands to the explanation of a connection.
pub(super) fn apply_network(
    report: ExplanationReport,
    host: &HostAddress,
    names_address: bool,
    commands: &CommandSandbox,
) -> ExplanationReport {
    if commands.rules().network == CommandNetwork::All {
        return ExplanationReport {
            verdict: Verdict::Allow,
            reason: "`network = true` under [commands] lets commands reach everything.".to_owned(),
            remedy: "List hosts under [commands.network] instead.".to_owned(),
            location: None,
            steps: Vec::new(),
            ..report
        };
    }
    if report.verdict == Verdict::Deny {
        return report;
    }
    if !matches!(commands.rules().network, CommandNetwork::Listed(_)) {
        return ExplanationReport {
            verdict: Verdict::Deny,
            reason: "`network = false` under [commands] in the configuration closes the network."
                .to_owned(),
            remedy: "The user can remove that setting.".to_owned(),
            location: None,
            ..report
        };
    }
    if !matches!(commands.allowed_level(), Ok(SandboxLevel::Full)) {
        return ExplanationReport {
            verdict: Verdict::Deny,
            reason: "listed hosts need the sandbox level `full`, which commands do not have here."
                .to_owned(),
            remedy: "`cofferdam doctor` says why.".to_owned(),
            location: None,
            ..report
        };
    }
    match host.address().and_then(sandbox::special_address) {
        // An approval is for exactly this address.
        Some(what) if report.verdict == Verdict::Allow && !names_address => ExplanationReport {
            verdict: Verdict::Deny,
            reason: format!("{host} is {what}, which needs a rule for exactly this address."),
            remedy: format!(
                "The user can allow it in their policy file: `allow = [\"{host}\"]` under \
                    [commands.network]."
            ),
            location: None,
            ..report
        },
        Some(_) | None => report,
    }
}

/// Describes what is special about the private view of a command that may write.
fn describe_view(commands: &CommandSandbox, workspace: Option<&Path>) -> String {
    let rules = commands.rules();
    if rules.direct.is_empty() && !rules.review_changes {
        return String::new();
    }
    let has_view = workspace.is_some_and(|workspace| commands.private_view(workspace).is_ok());
    let mut text = String::new();
    if has_view && !rules.direct.is_empty() {
        let names: Vec<&str> = rules.direct.iter().map(DirectDirectory::as_str).collect();
        text += &format!(
            " It writes {} directly, and these changes cannot be undone.",
            names.join(", ")
        );
    }
    if rules.review_changes && has_view {
        text += " Its changes are shown before they are committed, except in mode `auto`.";
    } else if rules.review_changes {
        text +=
            " It is denied except in mode `auto`, because `review_changes` needs a private view.";
    }
    text
}

/// Describes the rules that a sandbox level cannot enforce for commands.
fn describe_gap(level: SandboxLevel) -> &'static str {
    match level {
        SandboxLevel::Full => "",
        SandboxLevel::Kernel => {
            " At sandbox level `kernel`, commands can read hidden files of the workspace."
        }
        SandboxLevel::None => {
            " Without a sandbox, no rule restricts what a command reads or sends."
        }
    }
}
