//! `cofferdam policy explain`: tells whether a tool may do something, and why.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use super::args::ExplainArgs;
use super::enclosure::{apply_network, apply_sandbox};
use super::missing_permission::{missing_capability, path_protection};
use crate::args::CommonArgs;
use crate::error::{CliError, CommandResult};
use crate::json_text::json_line;
use crate::print::print_line;
use crate::{context, exit};
use cofferdam::config::resolve_links;
use cofferdam::policy::{
    Action, ActionEvaluation, ApprovalMode, Authorizer, ChangeKind, ChangeSet, ContentDigest,
    DecisionStep, Denial, Effect, FileChange, HostAddress, Policy, ProtectedPaths, ReasonedVerdict,
    SourceLocation, Verdict, VerdictReason, WorkspaceAccess, WorkspacePath,
};
use cofferdam::sandbox::{InstanceAllocation, may_be_repository_part};
use cofferdam::terminal_escape;
use cofferdam::tools::CatalogTool;

/// The explanation of one action.
pub(super) struct ExplanationReport {
    pub(super) action: String,
    pub(super) verdict: Verdict,
    pub(super) reason: String,
    pub(super) remedy: String,
    pub(super) location: Option<SourceLocation>,
    /// The checks of the decision; empty if another rule denied the action first.
    pub(super) steps: Vec<DecisionStep>,
    /// A common wrong expectation of the policy.
    pub(super) note: Option<&'static str>,
}

/// Rules about writing, and commands.
pub(super) const WRITE_RULES_NOTE: &str =
    "rules under [write] apply to changes by commands only if they have a private view";

/// Names of hosts, which are looked up when they are used.
const REPOSITORY_NOTE: &str = "a call also looks at the other files of the directory: a write that \
    makes it a git repository, or changes what git runs in one, is denied";
const ADDRESS_NOTE: &str = "a call also checks the address of the host: for one of this machine or \
    of a private network, a rule must contain that address";

pub(super) fn run(common: &CommonArgs, args: &ExplainArgs) -> CommandResult {
    let parts = context::load_context_for_inspection(
        common,
        common.common_flags(),
        InstanceAllocation::OnDemand,
    )?;
    let tool = parts
        .catalog()
        .find(&args.tool)
        .ok_or_else(|| CliError::new(parts.catalog().unknown_tool_error(&args.tool)))?;
    let root = common.workspace.canonicalize().ok();
    let policy = parts.policy();
    let mode = args.mode.unwrap_or(parts.settings.mode);
    let explained = ExplainContext {
        tool,
        policy,
        protected: root
            .as_deref()
            .map_or_else(|| policy.protected_paths(), |root| parts.prepared.protected_paths(root)),
        // Somebody to ask: where nobody is, what is asked is denied, and that is said.
        authorizer: Authorizer::new(mode, true).with_policy(Arc::clone(policy)),
    };
    let in_place = explained.authorizer.mode();
    let mode_notice = args.mode.and_then(|mode| mode_notice(policy, mode, in_place));
    let action_report: Vec<ExplanationReport> = subjects(args, root.as_deref())?
        .iter()
        .map(|act| match act {
            ExplainSubject::Connect(host) => {
                let named = policy.names_address(host);
                apply_network(explained.explain(act), host, named, parts.commands())
            }
            _ => {
                let place = (&**parts.commands(), root.as_deref());
                apply_sandbox(explained.explain(act), explained.access(act), place)
            }
        })
        .map(|action_report| match &mode_notice {
            Some(notice) => ExplanationReport {
                reason: format!("{notice}{}", action_report.reason),
                ..action_report
            },
            None => action_report,
        })
        .collect();
    for action_report in &action_report {
        print_line(&if args.json {
            json_line(&to_json(tool, action_report))
        } else {
            describe(tool, action_report)
        });
    }
    let allowed = action_report.iter().all(|action_report| action_report.verdict == Verdict::Allow);
    Ok(if allowed { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILURE) })
}

/// A mode that is not allowed, and the mode that applies instead.
fn mode_notice(policy: &Policy, mode: ApprovalMode, in_place: ApprovalMode) -> Option<String> {
    let place = policy.mode_denied_by(mode)?;
    let allowed: Vec<&str> = ApprovalMode::STRICTEST_FIRST
        .into_iter()
        .filter(|mode| policy.mode_denied_by(*mode).is_none())
        .map(ApprovalMode::name)
        .collect();
    let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
    Some(format!(
        "mode `{mode}` is not allowed by {place} (allowed: {allowed}), so mode `{in_place}` \
            applies: "
    ))
}

/// What is asked about.
enum ExplainSubject {
    Run,
    Command(String),
    Read(SpelledPath),
    Write(SpelledPath),
    Fetch { host: HostAddress, method: String },
    Connect(HostAddress),
}

/// A path as written, and its target if it contains links.
struct SpelledPath {
    path: WorkspacePath,
    resolved: Option<WorkspacePath>,
}

fn subjects(args: &ExplainArgs, root: Option<&Path>) -> Result<Vec<ExplainSubject>, CliError> {
    let mut acts: Vec<ExplainSubject> =
        args.command.iter().cloned().map(ExplainSubject::Command).collect();
    for path in &args.read {
        acts.push(ExplainSubject::Read(SpelledPath::resolve(path, root)?));
    }
    for path in &args.write {
        acts.push(ExplainSubject::Write(SpelledPath::resolve(path, root)?));
    }
    for host in &args.fetch {
        let host =
            HostAddress::parse(host).map_err(|problem| CliError::new(problem.to_string()))?;
        acts.push(ExplainSubject::Fetch { host, method: args.method.to_ascii_uppercase() });
    }
    for host in &args.connect {
        let host =
            HostAddress::parse(host).map_err(|problem| CliError::new(problem.to_string()))?;
        acts.push(ExplainSubject::Connect(host));
    }
    if acts.is_empty() {
        acts.push(ExplainSubject::Run);
    }
    Ok(acts)
}

impl ExplainSubject {
    fn action(&self) -> Action<'_> {
        match self {
            Self::Run => Action::Use,
            Self::Command(line) => Action::Command(line),
            Self::Read(path) => Action::Read(&path.path),
            Self::Write(path) => Action::Write(Some(&path.path)),
            Self::Fetch { host, method } => Action::Fetch { host, method },
            Self::Connect(host) => Action::Connect(host),
        }
    }

    /// Returns the same action on the target of the links.
    fn resolved_action(&self) -> Option<Action<'_>> {
        match self {
            Self::Read(path) => path.resolved.as_ref().map(Action::Read),
            Self::Write(path) => path.resolved.as_ref().map(|path| Action::Write(Some(path))),
            Self::Run | Self::Command(_) | Self::Fetch { .. } | Self::Connect(_) => None,
        }
    }
}

impl SpelledPath {
    fn resolve(text: &str, root: Option<&Path>) -> Result<Self, CliError> {
        let problem = |problem: &dyn std::fmt::Display| CliError::new(problem.to_string());
        let written = WorkspacePath::parse(text, root).map_err(|error| problem(&error))?;
        let Some(root) = root else { return Ok(Self { path: written, resolved: None }) };
        let real = resolve_links(&root.join(written.as_str()));
        let below = real.strip_prefix(root).ok().and_then(Path::to_str);
        let below = below.ok_or_else(|| {
            CliError::new(format!(
                "`{written}` is outside the workspace: it links to {}",
                real.display()
            ))
        })?;
        let real = WorkspacePath::parse(below, None).map_err(|error| problem(&error))?;
        Ok(Self { resolved: (real != written).then_some(real), path: written })
    }
}

/// Everything that the explanation of an action depends on.
struct ExplainContext<'a> {
    tool: &'a CatalogTool,
    policy: &'a Policy,
    protected: ProtectedPaths,
    authorizer: Authorizer,
}

impl ExplainContext<'_> {
    /// Returns the access of a command to the workspace; `None` for other actions.
    fn access(&self, asked: &ExplainSubject) -> Option<WorkspaceAccess> {
        let ExplainSubject::Command(line) = asked else { return None };
        Some(self.policy.workspace_access(self.tool.id(), line))
    }

    /// Explains an action. If the path contains links, the stricter explanation of both paths
    /// applies.
    fn explain(&self, asked: &ExplainSubject) -> ExplanationReport {
        let action_report = self.explain_action(&asked.action());
        match asked.resolved_action().map(|real| (self.explain_action(&real), real)) {
            Some((there, real)) if there.verdict > action_report.verdict => ExplanationReport {
                action: action_report.action,
                reason: format!("the path resolves to {real}: {}", there.reason),
                ..there
            },
            Some(_) | None => action_report,
        }
    }

    /// Explains an action in the order of the real checks: whether the tool is offered, whether it
    /// has the permission, whether the path is protected, and what the policy decides.
    fn explain_action(&self, act: &Action<'_>) -> ExplanationReport {
        let denied = |(why, change, place)| ExplanationReport {
            action: act.to_string(),
            verdict: Verdict::Deny,
            reason: why,
            remedy: change,
            location: place,
            steps: Vec::new(),
            note: None,
        };
        if let Some(Denial { reason, remedy, place, .. }) = &self.tool.denial {
            return denied((reason.clone(), remedy.clone().unwrap_or_default(), place.clone()));
        }
        if let Some(lacking) = missing_capability(self.tool, act) {
            return denied(lacking);
        }
        let decided = self.explain_decision(act);
        match path_protection(&self.protected, act) {
            // A rule is the better reason.
            Some(kept) if decided.verdict != Verdict::Deny => denied(kept),
            Some(_) | None => decided,
        }
    }

    /// Explains the policy's decision on all effects of a call that performs this action.
    fn explain_decision(&self, act: &Action<'_>) -> ExplanationReport {
        let mut action_report = match act {
            // Reading is no effect: what rules deny of it is among the protected paths.
            Action::Read(_) => {
                let ActionEvaluation { finding, steps, .. } =
                    self.policy.evaluate(self.authorizer.mode(), self.tool.id(), act.clone());
                let remedy = self.remedy(act, &finding);
                Some(report(act, finding.verdict, &finding, act, steps, remedy))
            }
            Action::Command(_)
            | Action::Input(_)
            | Action::Write(_)
            | Action::Fetch { .. }
            | Action::Connect(_)
            | Action::Use => None,
        };
        for effect in self.tool.decided_effects(effect_of(act)) {
            let explanation = self.authorizer.explain(self.tool.id(), &effect);
            let Some(ActionEvaluation { action: by, finding, steps }) = explanation.decisive()
            else {
                continue;
            };
            let (verdict, remedy) = (explanation.outcome.verdict(), self.remedy(by, finding));
            let mut next = self::report(act, verdict, finding, by, steps.clone(), remedy);
            next.note = match act {
                Action::Command(_) => self.policy.has_write_rules().then_some(WRITE_RULES_NOTE),
                Action::Fetch { .. } | Action::Connect(_) => {
                    (next.verdict != Verdict::Deny).then_some(ADDRESS_NOTE)
                }
                Action::Write(Some(path)) => {
                    let is_part = may_be_repository_part(path.as_str());
                    (next.verdict != Verdict::Deny && is_part).then_some(REPOSITORY_NOTE)
                }
                Action::Read(_) | Action::Input(_) | Action::Write(None) | Action::Use => None,
            };
            // The first of the strictest.
            if action_report
                .as_ref()
                .is_none_or(|action_report| next.verdict > action_report.verdict)
            {
                action_report = Some(next);
            }
        }
        action_report.unwrap_or_else(|| ExplanationReport {
            action: act.to_string(),
            verdict: Verdict::Allow,
            reason: "the call itself needs no approval; each of its actions is checked separately \
                (`--command`, `--read`, `--write`, `--fetch`, `--connect`)."
                .to_owned(),
            remedy: "Set `use` to \"ask\" or \"deny\" for the tool under [tools] in a policy file."
                .to_owned(),
            location: None,
            steps: Vec::new(),
            note: None,
        })
    }

    fn remedy(&self, act: &Action<'_>, finding: &ReasonedVerdict) -> String {
        self.policy.remedy(self.tool.id(), self.authorizer.mode(), act, finding)
    }
}

/// Returns the effect of an action, as a tool would request it.
fn effect_of(act: &Action<'_>) -> Option<Effect> {
    match act {
        Action::Use | Action::Read(_) => None,
        Action::Input(text) => {
            let (text, ruled) = ((*text).to_owned(), (*text).to_owned());
            Some(Effect::Input { line: String::new(), text, ruled })
        }
        Action::Command(line) => {
            let (line, directory) = ((*line).to_owned(), WorkspacePath::root());
            Some(Effect::Command { line, directory, background: false })
        }
        Action::Write(path) => {
            let after = ContentDigest { size: 0, digest: String::new() };
            let change = |path: &WorkspacePath| FileChange {
                path: path.clone(),
                kind: ChangeKind::Create { after },
                diff: None,
            };
            Some(Effect::Write {
                changes: ChangeSet::new(path.map(change).into_iter().collect()),
                confirm: false,
            })
        }
        Action::Fetch { host, method } => Some(Effect::Fetch {
            method: (*method).to_owned(),
            host: (*host).clone(),
            url: format!("https://{host}/"),
        }),
        Action::Connect(host) => {
            Some(Effect::Connect { host: (*host).clone(), line: String::new() })
        }
    }
}

/// Converts a finding about the action `by`, which decides on `act`, to a report.
fn report(
    act: &Action<'_>,
    verdict: Verdict,
    finding: &ReasonedVerdict,
    by: &Action<'_>,
    steps: Vec<DecisionStep>,
    remedy: String,
) -> ExplanationReport {
    let is_confirmation = *by == Action::Use && finding.verdict != Verdict::Allow;
    let why = match &finding.reason {
        VerdictReason::Mode(_) | VerdictReason::Reading if is_confirmation => {
            "the tool itself requires confirmation of each call.".to_owned()
        }
        VerdictReason::Mode(_)
        | VerdictReason::Reading
        | VerdictReason::Rule(_)
        | VerdictReason::Perhaps(_)
        | VerdictReason::NotListed(..)
        | VerdictReason::UnlistedHost(..)
        | VerdictReason::NoNetwork(_)
        | VerdictReason::Listed(_) => {
            let whole = if is_confirmation && *act != Action::Use {
                "each call needs confirmation: "
            } else {
                ""
            };
            format!("{whole}{}.", finding.describe_reason_for(by))
        }
    };
    ExplanationReport {
        action: act.to_string(),
        verdict,
        reason: why,
        remedy,
        location: finding.location().cloned(),
        steps,
        note: None,
    }
}

fn describe(tool: &CatalogTool, action_report: &ExplanationReport) -> String {
    let ask =
        if action_report.verdict == Verdict::Ask { " (denied without a terminal)" } else { "" };
    let mut text = format!(
        "{}: {}: {}{ask}\n  because    {}\n  to change  {}",
        tool.declaration.name,
        action_report.action,
        action_report.verdict,
        action_report.reason,
        action_report.remedy
    );
    if let Some((last, before)) = action_report.steps.split_last() {
        let before: String =
            before.iter().map(|step| format!("{}: no; ", step.check.describe())).collect();
        text += &format!("\n  checked    {before}{}: yes", last.check.describe());
    }
    if let Some(note) = action_report.note {
        text += &format!("\n  note       {note}");
    }
    terminal_escape::escape_text(&text)
}

fn to_json(tool: &CatalogTool, action_report: &ExplanationReport) -> Value {
    let ExplanationReport {
        action: act,
        verdict,
        reason: why,
        remedy: change,
        location: place,
        steps,
        note,
    } = action_report;
    let mut all = json!({
        "tool": tool.declaration.name, "act": act, "verdict": verdict, "why": why,
        "change": change, "place": place, "steps": steps,
    });
    if let Some(note) = note {
        all["note"] = json!(note);
    }
    all
}
