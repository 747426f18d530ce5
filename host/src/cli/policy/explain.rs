//! `cofferdam policy explain`: may this tool do that, and why.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use super::args::ExplainArgs;
use super::lacking::{not_held, protected};
use crate::cli::args::{CallArgs, Common, ModelArgs};
use crate::cli::error::{CliError, Done};
use crate::cli::print::stdout_line;
use crate::cli::{assemble, exit};
use crate::config::without_links;
use crate::policy::{
    Act, Because, Change, Changes, Content, Deed, Denial, Effect, Evaluation, Finding, HostAddress, Judge, Place, Policy, ProtectedPaths,
    Step, Verdict, WorkspacePath,
};
use crate::sandbox::{Allocation, Commands};
use crate::shown;
use crate::tools::Tool;

/// What is told of one act.
struct Told {
    act: String,
    verdict: Verdict,
    why: String,
    change: String,
    place: Option<Place>,
    /// The checks of the decision, if it got as far as that.
    steps: Vec<Step>,
}

pub(super) fn run(common: &Common, args: &ExplainArgs) -> Done {
    let calls = CallArgs { mode: args.mode, max_parallel: None };
    let parts = assemble::parts_to_look_at(common, common.flags(ModelArgs::default(), calls, None), Allocation::OnDemand)?;
    let tool = parts.catalog.find(&args.tool).ok_or_else(|| CliError::new(parts.catalog.unknown(&args.tool)))?;
    let root = common.workspace.canonicalize().ok();
    let explained = Explained {
        tool,
        policy: parts.catalog.policy(),
        protected: root.as_deref().map_or_else(|| parts.catalog.policy().protected(), |root| parts.protected_in(root)),
        // Somebody to ask: where nobody is, what is asked is denied, and that is said.
        judge: Judge::new(parts.settings.mode, true).under(Arc::clone(parts.catalog.policy())),
    };
    let told: Vec<Told> =
        acts(args, root.as_deref())?.iter().map(|act| in_its_sandbox(explained.tell(act), act, &parts.commands)).collect();
    for told in &told {
        stdout_line(&if args.json { shown::json(&as_json(tool, told)) } else { in_words(tool, told) });
    }
    let allowed = told.iter().all(|told| told.verdict == Verdict::Allow);
    Ok(if allowed { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// What is asked about.
enum Asked {
    Run,
    Command(String),
    Read(Spelled),
    Write(Spelled),
    Fetch { host: HostAddress, method: String },
}

/// A path as it was written, and where links lead from there, if anywhere else.
struct Spelled {
    written: WorkspacePath,
    real: Option<WorkspacePath>,
}

fn acts(args: &ExplainArgs, root: Option<&Path>) -> Result<Vec<Asked>, CliError> {
    let mut acts: Vec<Asked> = args.command.iter().cloned().map(Asked::Command).collect();
    for path in &args.read {
        acts.push(Asked::Read(Spelled::of(path, root)?));
    }
    for path in &args.write {
        acts.push(Asked::Write(Spelled::of(path, root)?));
    }
    for host in &args.fetch {
        let host = HostAddress::parse(host).map_err(|problem| CliError::new(problem.to_string()))?;
        acts.push(Asked::Fetch { host, method: args.method.to_ascii_uppercase() });
    }
    if acts.is_empty() {
        acts.push(Asked::Run);
    }
    Ok(acts)
}

impl Asked {
    fn deed(&self) -> Deed<'_> {
        match self {
            Self::Run => Deed::Use,
            Self::Command(line) => Deed::Command(line),
            Self::Read(path) => Deed::Read(&path.written),
            Self::Write(path) => Deed::Write(Some(&path.written)),
            Self::Fetch { host, method } => Deed::Fetch { host, method },
        }
    }

    /// The same where links lead.
    fn real_deed(&self) -> Option<Deed<'_>> {
        match self {
            Self::Read(path) => path.real.as_ref().map(Deed::Read),
            Self::Write(path) => path.real.as_ref().map(|path| Deed::Write(Some(path))),
            Self::Run | Self::Command(_) | Self::Fetch { .. } => None,
        }
    }
}

impl Spelled {
    fn of(text: &str, root: Option<&Path>) -> Result<Self, CliError> {
        let problem = |problem: &dyn std::fmt::Display| CliError::new(problem.to_string());
        let written = WorkspacePath::parse(text, root).map_err(|error| problem(&error))?;
        let Some(root) = root else { return Ok(Self { written, real: None }) };
        let real = without_links(&root.join(written.as_str()));
        let below = real.strip_prefix(root).ok().and_then(Path::to_str);
        let below = below.ok_or_else(|| CliError::new(format!("{written} leads out of the workspace, to {}", real.display())))?;
        let real = WorkspacePath::parse(below, None).map_err(|error| problem(&error))?;
        Ok(Self { real: (real != written).then_some(real), written })
    }
}

/// Everything that is decided by.
struct Explained<'a> {
    tool: &'a Tool,
    policy: &'a Policy,
    protected: ProtectedPaths,
    judge: Judge,
}

impl Explained<'_> {
    /// What is told of an act, and of the same act where links lead: the stricter one.
    fn tell(&self, asked: &Asked) -> Told {
        let told = self.of(&asked.deed());
        match asked.real_deed().map(|real| (self.of(&real), real)) {
            Some((there, real)) if there.verdict > told.verdict => {
                Told { act: told.act, why: format!("a link leads there, so that it is to {real}: {}", there.why), ..there }
            }
            Some(_) | None => told,
        }
    }

    /// In the order in which it is found out: whether the tool runs, whether it can, whether the path is protected, and what the
    /// judge decides.
    fn of(&self, act: &Deed<'_>) -> Told {
        let denied = |(why, change, place)| Told { act: act.to_string(), verdict: Verdict::Deny, why, change, place, steps: Vec::new() };
        if let Some(Denial { reason, remedy, place, .. }) = &self.tool.forbidden {
            return denied((reason.clone(), remedy.clone().unwrap_or_default(), place.clone()));
        }
        if let Some(lacking) = not_held(self.tool, act) {
            return denied(lacking);
        }
        let decided = self.decided(act);
        match protected(&self.protected, act) {
            // A rule is the better reason.
            Some(kept) if decided.verdict != Verdict::Deny => denied(kept),
            Some(_) | None => decided,
        }
    }

    /// What the judge decides about everything that a call has decided which does this.
    fn decided(&self, act: &Deed<'_>) -> Told {
        let mut told = match act {
            // Reading is no effect: what rules deny of it is among the protected paths.
            Deed::Read(_) => {
                let Evaluation { finding, steps, .. } = self.policy.evaluate(self.judge.mode(), self.tool.id(), act.clone());
                Some(told(act, finding.verdict, &finding, act, steps))
            }
            Deed::Command(_) | Deed::Write(_) | Deed::Fetch { .. } | Deed::Use => None,
        };
        for effect in self.tool.decided_effects(effect(act)) {
            let explanation = self.judge.explain(self.tool.id(), &effect);
            let Some(Evaluation { act: by, finding, steps }) = explanation.decisive() else { continue };
            let next = self::told(act, explanation.outcome.verdict(), finding, by, steps.clone());
            // The first of the strictest.
            if told.as_ref().is_none_or(|told| next.verdict > told.verdict) {
                told = Some(next);
            }
        }
        told.unwrap_or_else(|| Told {
            act: act.to_string(),
            verdict: Verdict::Allow,
            why: "running it needs no approval; what it then does is decided act by act (--command, --read, --write, --fetch).".to_owned(),
            change: "`use = \"ask\"` or \"deny\" under `[tools]` of a policy file.".to_owned(),
            place: None,
            steps: Vec::new(),
        })
    }
}

/// The effect of an act, as a tool would ask for it.
fn effect(act: &Deed<'_>) -> Option<Effect> {
    match act {
        Deed::Use | Deed::Read(_) => None,
        Deed::Command(line) => Some(Effect::Command { line: (*line).to_owned(), directory: WorkspacePath::root() }),
        Deed::Write(path) => {
            let after = Content { size: 0, digest: String::new() };
            let change = |path: &WorkspacePath| Change { path: path.clone(), act: Act::Create { after }, diff: None };
            Some(Effect::Write { changes: Changes::new(path.map(change).into_iter().collect()), confirm: false })
        }
        Deed::Fetch { host, method } => {
            Some(Effect::Fetch { method: (*method).to_owned(), host: (*host).clone(), url: format!("https://{host}/") })
        }
    }
}

/// A finding about the act `by` that decides on `act`.
fn told(act: &Deed<'_>, verdict: Verdict, finding: &Finding, by: &Deed<'_>, steps: Vec<Step>) -> Told {
    let is_confirmation = *by == Deed::Use && finding.verdict != Verdict::Allow;
    let why = match &finding.because {
        Because::Mode(_) | Because::Reading if is_confirmation => "the tool itself asks to be confirmed before every call.".to_owned(),
        Because::Mode(_) | Because::Reading | Because::Rule(_) | Because::Perhaps(_) | Because::NotListed(..) | Because::Listed(_) => {
            let whole = if is_confirmation && *act != Deed::Use { "each call is confirmed: " } else { "" };
            format!("{whole}{}.", finding.why())
        }
    };
    Told { act: act.to_string(), verdict, why, change: finding.what_would_change_it(by), place: finding.place().cloned(), steps }
}

/// What is not denied yet runs in a sandbox, or is denied for want of one.
fn in_its_sandbox(told: Told, asked: &Asked, commands: &Commands) -> Told {
    if !matches!(asked, Asked::Command(_)) || told.verdict == Verdict::Deny {
        return told;
    }
    match (commands.admitted(), &commands.rules().demanded_at) {
        (Err(denial), _) => {
            let change = denial.remedy.unwrap_or_default();
            Told { verdict: Verdict::Deny, why: denial.reason, change, place: denial.place, ..told }
        }
        (Ok(level), Some(place)) => Told { why: format!("{} It runs in the sandbox `{level}`, as {place} demands.", told.why), ..told },
        (Ok(_), None) => told,
    }
}

fn in_words(tool: &Tool, told: &Told) -> String {
    let ask = if told.verdict == Verdict::Ask { " (denied where nobody can be asked)" } else { "" };
    let mut text =
        format!("{}: {}: {}{ask}\n  because    {}\n  to change  {}", tool.declared.name, told.act, told.verdict, told.why, told.change);
    if let Some((last, before)) = told.steps.split_last() {
        let before: String = before.iter().map(|step| format!("{}: no; ", step.check.in_words())).collect();
        text += &format!("\n  checked    {before}{}: yes", last.check.in_words());
    }
    shown::block(&text)
}

fn as_json(tool: &Tool, told: &Told) -> String {
    let Told { act, verdict, why, change, place, steps } = told;
    json!({"tool": tool.declared.name, "act": act, "verdict": verdict, "why": why, "change": change, "place": place, "steps": steps})
        .to_string()
}
