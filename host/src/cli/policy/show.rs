//! `cofferdam policy show`: every layer, and everything that they say together.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::settings;
use crate::cli::args::{CallArgs, Common, ModelArgs};
use crate::cli::assemble;
use crate::cli::error::Done;
use crate::cli::print::{stdout_line, stdout_piece};
use crate::config::{LoadedPolicy, PolicyPlaces, SourceState};
use crate::policy::{BuiltInList, Mode, Policy, Subject, Verdict, Voice};
use crate::sandbox::Allocation;
use crate::shown;

pub(super) fn run(common: &Common, lists: bool) -> Done {
    if lists {
        stdout_line(lists_page().trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(profile) = common.profile {
        stdout_piece(profile.text());
        return Ok(ExitCode::SUCCESS);
    }
    let flags = || common.flags(ModelArgs::default(), CallArgs::default(), None);
    let (settings, folders) = assemble::chosen_settings(common, flags())?;
    let loaded = PolicyPlaces::of_this_user(&folders, &common.workspace).load(settings.profile)?;
    let mut page = page(&loaded);
    section(&mut page, "Settings in force, as far as a policy can bound them", settings::in_force(settings, &loaded.policy));
    let unknown = assemble::parts_to_look_at(common, flags(), Allocation::OnDemand)?.catalog.unknown_subjects();
    section(&mut page, "Without effect", unknown.iter().map(ToString::to_string).collect());
    stdout_line(&shown::block(page.trim_end()));
    Ok(ExitCode::SUCCESS)
}

fn page(loaded: &LoadedPolicy) -> String {
    let mut page = String::from("Layers\n");
    for source in &loaded.sources {
        let state = match &source.state {
            SourceState::Absent => "not there",
            SourceState::InForce => "in force",
            SourceState::Untrusted { .. } => "NOT TRUSTED: it tightens and does not loosen; `cofferdam trust` changes that",
        };
        let _ = writeln!(page, "  {:8} {}: {state}", source.level.to_string(), source.name);
    }
    let _ = writeln!(page, "\nModes\n  {}", modes(&loaded.policy));
    section(&mut page, "Rules (deny wins over ask, ask over allow)", rules(&loaded.policy));
    section(&mut page, "Lists of what is allowed (what is not on them is asked)", lists(&loaded.policy));
    section(&mut page, "The sandbox of commands, at least", minima(&loaded.policy));
    section(&mut page, "Models, plugins and sessions (every line holds)", settings::rules(&loaded.policy));
    section(&mut page, "Reached by tools that ask for every host, though not for everybody", local(&loaded.policy));
    section(&mut page, "What tools are given of what they ask for", lending(&loaded.policy));
    section(&mut page, "Limits at most", maxima(&loaded.policy));
    section(&mut page, "Protected at any depth, besides the built-in lists", protected(&loaded.policy));
    let counts = BuiltInList::ALL.map(|list| format!("{:3} {}", list.entries().len(), list.title()));
    section(&mut page, "The built-in lists of paths (`cofferdam policy show --lists` shows them, with reasons)", counts.to_vec());
    page
}

/// The built-in lists with their reasons.
fn lists_page() -> String {
    let mut page = String::new();
    for list in BuiltInList::ALL {
        let width = list.entries().iter().map(|entry| entry.pattern.len()).max().unwrap_or_default();
        let _ = writeln!(page, "{}", list.title());
        for entry in list.entries() {
            let _ = writeln!(page, "  {:width$}  {}", entry.pattern, entry.reason);
        }
        page.push('\n');
    }
    page
}

fn section(page: &mut String, title: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        let _ = writeln!(page, "\n{title}");
        lines.iter().for_each(|line| {
            let _ = writeln!(page, "  {line}");
        });
    }
}

fn modes(policy: &Policy) -> String {
    let mode = |mode: Mode| match policy.forbids(mode) {
        None => mode.name().to_owned(),
        Some(place) => format!("not {mode} ({place})"),
    };
    Mode::FROM_STRICT.map(mode).join(", ")
}

fn rules(policy: &Policy) -> Vec<String> {
    let mut all = Vec::new();
    for (voice, rule) in policy.layers().flat_map(|(voice, layer)| layer.rules.iter().map(move |rule| (voice, rule))) {
        let tool = match &rule.tool {
            Some(Subject::Every) | None => String::new(),
            Some(tool) => format!(", for {tool}"),
        };
        let written = &rule.written;
        let counts = if voice == Voice::Stranger && written.verdict == Verdict::Allow { "; does not count" } else { "" };
        let what = format!("{:5} [{}] {}{tool}", written.verdict.name(), written.kind.section(), written.text);
        all.push((written.verdict, format!("{what}  ({}{counts})", written.place)));
    }
    all.sort_by_key(|(verdict, _)| std::cmp::Reverse(*verdict));
    all.into_iter().map(|(_, line)| line).collect()
}

fn lists(policy: &Policy) -> Vec<String> {
    let all = policy.layers().flat_map(|(_, layer)| &layer.lists);
    all.map(|(kind, place)| format!("[{}]  ({place})", kind.section())).collect()
}

fn minima(policy: &Policy) -> Vec<String> {
    let all = policy.layers().filter_map(|(_, layer)| layer.minimum.as_ref());
    all.map(|(level, place)| format!("{level}  ({place})")).collect()
}

fn local(policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    for (voice, layer) in policy.layers() {
        let counts = if voice == Voice::Stranger { "; does not count" } else { "" };
        lines.extend(layer.local.iter().map(|placed| format!("{}  ({}{counts})", placed.text, placed.place)));
    }
    lines
}

fn lending(policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    for lending in policy.layers().flat_map(|(_, layer)| &layer.lending) {
        for (words, list) in [("at most", &lending.at_most), ("never", &lending.never)] {
            let Some((kinds, place)) = list else { continue };
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            let kinds = if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") };
            lines.push(format!("{}: {words} {kinds}  ({place})", lending.tool));
        }
    }
    lines
}

fn maxima(policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    for (_, layer) in policy.layers() {
        for (tool, caps) in &layer.maxima {
            let tool = tool.as_ref().map_or("*".to_owned(), ToString::to_string);
            let caps: Vec<String> = caps.iter().map(|(cap, value)| format!("{cap} = {value}")).collect();
            lines.push(format!("{tool}: {}  ({})", caps.join(", "), layer.file));
        }
    }
    lines
}

fn protected(policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    for (voice, layer) in policy.layers() {
        let counts = if voice == Voice::Stranger { "; does not count" } else { "" };
        let protected = &layer.protected;
        for (words, patterns, counts) in [
            ("not to be read", &protected.hidden, ""),
            ("not to be changed", &protected.read_only, ""),
            ("to be read all the same", &protected.shown, counts),
            ("off the built-in lists", &protected.writable, counts),
        ] {
            lines.extend(patterns.iter().map(|pattern| format!("{words}: {}  ({}{counts})", pattern.text, pattern.place)));
        }
    }
    lines
}
