//! `cofferdam policy explain`: may this tool do that, and why.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use super::args::ExplainArgs;
use crate::cli::args::{CallArgs, Common, ModelArgs};
use crate::cli::error::{CliError, Done};
use crate::cli::print::stdout_line;
use crate::cli::{assemble, exit};
use crate::config::without_links;
use crate::policy::{
    Author, Because, CapabilityKind, Deed, HostAddress, Kind, Mode, Place, Policy, Protected, ProtectedPaths, RequestPattern, Verdict,
    WorkspacePath,
};
use crate::sandbox::{self, Allocation, Commands};
use crate::shown;
use crate::tools::Tool;

/// What is told of one act.
struct Told {
    act: String,
    verdict: Verdict,
    why: String,
    change: String,
    place: Option<Place>,
}

pub(super) fn run(common: &Common, args: &ExplainArgs) -> Done {
    let calls = CallArgs { mode: args.mode, max_parallel: None };
    let parts = assemble::parts_to_look_at(common, common.flags(ModelArgs::default(), calls, None), Allocation::OnDemand)?;
    let tool = parts.catalog.find(&args.tool).ok_or_else(|| CliError::new(parts.catalog.unknown(&args.tool)))?;
    let root = common.workspace.canonicalize().ok();
    let host = |text: &String| HostAddress::parse(text).map_err(|problem| CliError::new(problem.to_string()));
    let read: Vec<Spelled> = args.read.iter().map(|path| Spelled::of(path, root.as_deref())).collect::<Result<_, _>>()?;
    let write: Vec<Spelled> = args.write.iter().map(|path| Spelled::of(path, root.as_deref())).collect::<Result<_, _>>()?;
    let hosts: Vec<HostAddress> = args.fetch.iter().map(host).collect::<Result<_, _>>()?;
    let method = args.method.to_ascii_uppercase();
    let mut acts: Vec<(Deed<'_>, Option<Deed<'_>>)> = args.command.iter().map(|line| (Deed::Command(line), None)).collect();
    acts.extend(read.iter().map(|path| (Deed::Read(&path.written), path.real.as_ref().map(Deed::Read))));
    acts.extend(write.iter().map(|path| (Deed::Write(Some(&path.written)), path.real.as_ref().map(|path| Deed::Write(Some(path))))));
    acts.extend(hosts.iter().map(|host| (Deed::Fetch { host, method: &method }, None)));
    if acts.is_empty() {
        acts.push((Deed::Use, None));
    }
    let judged = Judged {
        tool,
        policy: parts.catalog.policy(),
        protected: root.as_deref().map_or_else(|| parts.catalog.policy().protected(), |root| parts.protected_in(root)),
        mode: parts.settings.mode,
    };
    let told = acts.iter().map(|(act, real)| in_its_sandbox(judged.both(act, real.as_ref()), act, &parts.commands));
    let told: Vec<Told> = told.collect();
    for told in &told {
        stdout_line(&if args.json { shown::json(&as_json(tool, told)) } else { in_words(tool, told) });
    }
    let allowed = told.iter().all(|told| told.verdict == Verdict::Allow);
    Ok(if allowed { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// A path as it was written, and where links lead from there, if anywhere else.
struct Spelled {
    written: WorkspacePath,
    real: Option<WorkspacePath>,
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
struct Judged<'a> {
    tool: &'a Tool,
    policy: &'a Policy,
    protected: ProtectedPaths,
    mode: Mode,
}

impl Judged<'_> {
    /// What is told of an act, and of the same act where links lead: the stricter one.
    fn both(&self, act: &Deed<'_>, real: Option<&Deed<'_>>) -> Told {
        let told = self.tell(act);
        match real.map(|real| (self.tell(real), real)) {
            Some((there, real)) if there.verdict > told.verdict => {
                Told { act: told.act, why: format!("a link leads there, so that it is to {real}: {}", there.why), ..there }
            }
            Some(_) | None => told,
        }
    }

    fn tell(&self, act: &Deed<'_>) -> Told {
        let Self { tool, policy, mode, .. } = self;
        let act_words = act.to_string();
        if let Some(denial) = &tool.forbidden {
            let change = denial.remedy.clone().unwrap_or_default();
            return Told { act: act_words, verdict: Verdict::Deny, why: denial.reason.clone(), change, place: denial.place.clone() };
        }
        if let Some((why, change, place)) = not_held(tool, act) {
            return Told { act: act_words, verdict: Verdict::Deny, why, change, place };
        }
        if *act == Deed::Use && !tool.confirm {
            let why = "running it needs no approval; what it then does is decided act by act (--command, --read, --write, --fetch).";
            let change = "`use = \"ask\"` or \"deny\" under `[tools]` of a policy file.".to_owned();
            return Told { act: act_words, verdict: Verdict::Allow, why: why.to_owned(), change, place: None };
        }
        let found = policy.find(*mode, &tool.declared.name, act);
        if let (Some((why, change, place)), false) = (protected(&self.protected, act), found.verdict == Verdict::Deny) {
            return Told { act: act_words, verdict: Verdict::Deny, why, change, place };
        }
        // A call that is confirmed as a whole is so before any act of it, reading too.
        let whole = policy.find(*mode, &tool.declared.name, &Deed::Use);
        if tool.confirm && found.verdict == Verdict::Allow && whole.verdict != Verdict::Allow {
            let why = match &whole.because {
                Because::Mode(_) | Because::Reading => "the tool itself asks to be confirmed before every call.".to_owned(),
                Because::Rule(_) | Because::Perhaps(_) | Because::NotListed(..) | Because::Listed(_) => {
                    format!("each call is confirmed: {}.", whole.why())
                }
            };
            let change = whole.what_would_change_it();
            return Told { act: act_words, verdict: whole.verdict, why, change, place: whole.place().cloned() };
        }
        let (why, change) = (found.why() + ".", found.what_would_change_it());
        Told { act: act_words, verdict: found.verdict, why, change, place: found.place().cloned() }
    }
}

/// What is not denied yet runs in a sandbox, or is denied for want of one.
fn in_its_sandbox(told: Told, act: &Deed<'_>, commands: &Commands) -> Told {
    let is_command = matches!(act, Deed::Command(_));
    if !is_command || told.verdict == Verdict::Deny {
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

/// What an act takes, and why the tool does not have it.
fn not_held(tool: &Tool, act: &Deed<'_>) -> Option<(String, String, Option<Place>)> {
    let enough: &[CapabilityKind] = match act.kind() {
        Kind::Commands => &[CapabilityKind::RunCommands],
        Kind::Read => &[CapabilityKind::ReadFiles, CapabilityKind::WriteFiles],
        Kind::Write => &[CapabilityKind::WriteFiles],
        Kind::Fetch => &[CapabilityKind::Fetch],
        Kind::Use => return None,
    };
    let held = |kind: &CapabilityKind| {
        let is = |capability: &crate::policy::Capability| capability.kind() == *kind;
        tool.declared.asks.iter().any(is) && !tool.withheld.iter().any(|(capability, _)| is(capability)) && !tool.not_lent.iter().any(is)
    };
    if enough.iter().any(held) {
        return not_reached(tool, act);
    }
    if let Some((capability, place)) = tool.withheld.iter().find(|(capability, _)| enough.contains(&capability.kind())) {
        let why = format!("the tool asks to {capability}, and {place} withholds that.");
        return Some((why, format!("What {} says of it would have to change.", place.file), Some(place.clone())));
    }
    let asks: Vec<&str> = tool.declared.asks.iter().map(|asked| asked.kind().name()).collect();
    let asks = if asks.is_empty() { "nothing".to_owned() } else { asks.join(", ") };
    let why = format!("the tool holds no `{}`: it asks for {asks}, and is given never more than that.", enough[0].name());
    Some((why, "Nothing: that is for its author to change.".into(), None))
}

/// Why a tool that may send requests does not reach this host by this method.
fn not_reached(tool: &Tool, act: &Deed<'_>) -> Option<(String, String, Option<Place>)> {
    let Deed::Fetch { host, method } = act else { return None };
    let mut granted = tool.grants.fetch.iter().filter_map(|pattern| RequestPattern::parse(pattern).ok());
    let by_author = "Nothing: that is for its author to change.".to_owned();
    if !granted.clone().any(|pattern| pattern.covers(host, method)) {
        let why = format!("the tool asks to send requests to {}, which does not cover {method} to {host}.", tool.grants.fetch.join(", "));
        return Some((why, by_author, None));
    }
    let what = sandbox::special_address(host.address()?)?;
    let by_itself = granted.any(|pattern| pattern.names(host, method));
    (!by_itself).then(|| (format!("{host} is {what}, and the tool does not ask for it by itself."), by_author, None))
}

/// Whether a path is kept from everybody.
fn protected(paths: &ProtectedPaths, act: &Deed<'_>) -> Option<(String, String, Option<Place>)> {
    let (path, reads) = match act {
        Deed::Read(path) => (*path, true),
        Deed::Write(Some(path)) => (*path, false),
        Deed::Command(_) | Deed::Write(None) | Deed::Fetch { .. } | Deed::Use => return None,
    };
    let (protected, author) = paths.find(path.as_str().split('/'))?;
    let (what, key) = match (protected, reads) {
        (Protected::Hidden, _) => ("hidden from everyone", "shown"),
        (Protected::ReadOnly, false) => ("kept from changes", "writable"),
        (Protected::Pinned, false) => ("a folder that stays where it is and what it is", "writable"),
        (Protected::ReadOnly | Protected::Pinned, true) => return None,
    };
    let (change, place) = match author {
        Author::File(_, pattern) => (format!("What {} says of it would have to change.", pattern.place.file), Some(pattern.place.clone())),
        Author::BuiltIn if protected == Protected::Pinned => {
            ("Nothing: what is protected in it would else be moved away with it.".to_owned(), None)
        }
        Author::BuiltIn => (format!("A pattern under `{key}` in [protected] of the user's policy."), None),
        Author::Program => ("Nothing: what this program keeps there is nobody else's.".to_owned(), None),
    };
    Some((format!("it is {what} by {author}."), change, place))
}

fn in_words(tool: &Tool, told: &Told) -> String {
    let ask = if told.verdict == Verdict::Ask { " (denied where nobody can be asked)" } else { "" };
    let text =
        format!("{}: {}: {}{ask}\n  because    {}\n  to change  {}", tool.declared.name, told.act, told.verdict, told.why, told.change);
    shown::block(&text)
}

fn as_json(tool: &Tool, told: &Told) -> String {
    let Told { act, verdict, why, change, place } = told;
    json!({"tool": tool.declared.name, "act": act, "verdict": verdict, "why": why, "change": change, "place": place}).to_string()
}
