//! `cofferdam policy show`: shows all layers and their combined rules.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::settings;
use crate::args::CommonArgs;
use crate::context;
use crate::error::CommandResult;
use crate::print::{print_line, print_text};
use cofferdam::config::{LoadedPolicy, PolicyPaths, SourceState};
use cofferdam::policy::{
    ActionKind, ApprovalMode, BuiltInList, Policy, ToolSelector, TrustLevel, Verdict,
};
use cofferdam::sandbox::InstanceAllocation;
use cofferdam::terminal_escape;

pub(super) fn run(common: &CommonArgs, lists: bool) -> CommandResult {
    if lists {
        print_line(lists_page().trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(profile) = common.profile {
        print_text(profile.text());
        return Ok(ExitCode::SUCCESS);
    }
    let flags = || common.common_flags();
    let (settings, user_dirs) = context::load_chosen_settings(common, flags())?;
    let loaded =
        PolicyPaths::for_current_user(&user_dirs, &common.workspace).load(settings.profile)?;
    let mut page = policy_page(&loaded);
    push_section(
        &mut page,
        "Settings that a policy can limit",
        settings::describe_settings(settings, &loaded.policy, common.environment.home.as_deref()),
    );
    let unknown =
        context::load_context_for_inspection(common, flags(), InstanceAllocation::OnDemand)?
            .catalog()
            .unknown_tools();
    push_section(
        &mut page,
        "Rules without effect",
        unknown.iter().map(ToString::to_string).collect(),
    );
    print_line(&terminal_escape::escape_text(page.trim_end()));
    Ok(ExitCode::SUCCESS)
}

fn policy_page(loaded: &LoadedPolicy) -> String {
    let mut page = String::from("Layers\n");
    for source in &loaded.sources {
        let state = match &source.state {
            SourceState::Absent => "no file",
            SourceState::InForce => "in force",
            SourceState::Untrusted { .. } => {
                "NOT TRUSTED: it can only tighten the rules until you run `cofferdam trust`"
            }
        };
        let _ = writeln!(page, "  {:8} {}: {state}", source.level.to_string(), source.name);
    }
    let _ = writeln!(page, "\nModes\n  {}", allowed_modes(&loaded.policy));
    push_section(
        &mut page,
        "Rules (`deny` wins over `ask`, `ask` wins over `allow`)",
        rule_lines(&loaded.policy),
    );
    if loaded.policy.has_write_rules() {
        let _ = writeln!(page, "  note: {}", super::explain::WRITE_RULES_NOTE);
    }
    push_section(
        &mut page,
        "`allow` lists (everything else in these sections needs approval)",
        allow_list_lines(&loaded.policy),
    );
    push_section(
        &mut page,
        "Minimum sandbox level of commands",
        sandbox_minimum_lines(&loaded.policy),
    );
    push_section(
        &mut page,
        "Paths, models, plugins and sessions (all entries apply)",
        settings::describe_rules(&loaded.policy),
    );
    push_section(
        &mut page,
        "Local hosts for tools with permission for every host",
        local_host_lines(&loaded.policy),
    );
    push_section(&mut page, "Permissions of tools", grant_rule_lines(&loaded.policy));
    push_section(&mut page, "Maximum limits", limit_lines(&loaded.policy));
    push_section(
        &mut page,
        "Protected paths at any depth, in addition to the built-in lists",
        protected_path_lines(&loaded.policy),
    );
    let counts =
        BuiltInList::ALL.map(|list| format!("{:3} {}", list.entries().len(), list.title()));
    push_section(
        &mut page,
        "Built-in lists of paths (`cofferdam policy show --lists` shows them with reasons)",
        counts.to_vec(),
    );
    page
}

/// Formats the built-in lists of paths with their reasons.
fn lists_page() -> String {
    let mut page = String::new();
    for list in BuiltInList::ALL {
        let width =
            list.entries().iter().map(|entry| entry.pattern.len()).max().unwrap_or_default();
        let _ = writeln!(page, "{}", list.title());
        for entry in list.entries() {
            let _ = writeln!(page, "  {:width$}  {}", entry.pattern, entry.reason);
        }
        page.push('\n');
    }
    page
}

fn push_section(page: &mut String, title: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        let _ = writeln!(page, "\n{title}");
        for line in &lines {
            let _ = writeln!(page, "  {line}");
        }
    }
}

fn allowed_modes(policy: &Policy) -> String {
    let mode = |mode: ApprovalMode| match policy.mode_denied_by(mode) {
        None => mode.name().to_owned(),
        Some(place) => format!("not {mode} ({place})"),
    };
    ApprovalMode::STRICTEST_FIRST.map(mode).join(", ")
}

fn rule_lines(policy: &Policy) -> Vec<String> {
    let mut all = Vec::new();
    for (trust, rule) in
        policy.layers().flat_map(|(trust, layer)| layer.rules.iter().map(move |rule| (trust, rule)))
    {
        let tool = match &rule.tool {
            Some(ToolSelector::Every) | None => String::new(),
            Some(tool) => format!(", for {tool}"),
        };
        let written = &rule.source_rule;
        let counts = if trust == TrustLevel::Stranger && written.verdict == Verdict::Allow {
            "; no effect until trusted"
        } else {
            ""
        };
        let what = format!(
            "{:5} [{}] {}{tool}",
            written.verdict.name(),
            written.kind.section(),
            written.text
        );
        all.push((written.verdict, format!("{what}  ({}{counts})", written.place)));
    }
    all.sort_by_key(|(verdict, _)| std::cmp::Reverse(*verdict));
    all.into_iter().map(|(_, line)| line).collect()
}

fn allow_list_lines(policy: &Policy) -> Vec<String> {
    let all = policy.layers().flat_map(|(_, layer)| &layer.allow_lists);
    all.map(|(kind, place)| {
        let rest = match kind {
            ActionKind::Connect => ": `unlisted` decides about the rest, by default `deny`",
            ActionKind::Commands
            | ActionKind::Read
            | ActionKind::Write
            | ActionKind::Fetch
            | ActionKind::Use => "",
        };
        format!("[{}]{rest}  ({place})", kind.section())
    })
    .collect()
}

fn sandbox_minimum_lines(policy: &Policy) -> Vec<String> {
    let all = policy.layers().filter_map(|(_, layer)| layer.minimum_sandbox.as_ref());
    all.map(|(level, place)| format!("{level}  ({place})")).collect()
}

fn local_host_lines(policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    for (trust, layer) in policy.layers() {
        let counts = if trust == TrustLevel::Stranger { "; no effect until trusted" } else { "" };
        lines.extend(
            layer
                .local_hosts
                .iter()
                .map(|placed| format!("{}  ({}{counts})", placed.text, placed.place)),
        );
    }
    lines
}

fn grant_rule_lines(policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    for grant_rule in policy.layers().flat_map(|(_, layer)| &layer.grants) {
        for (words, list) in [("at most", &grant_rule.allowed), ("never", &grant_rule.denied)] {
            let Some((kinds, place)) = list else { continue };
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            let kinds = if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") };
            lines.push(format!("{}: {words} {kinds}  ({place})", grant_rule.tool));
        }
    }
    lines
}

fn limit_lines(policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    for (_, layer) in policy.layers() {
        for (tool, caps, place) in &layer.max_caps {
            let tool = tool.as_ref().map_or("*".to_owned(), ToString::to_string);
            let caps: Vec<String> =
                caps.iter().map(|(cap, value)| format!("{cap} = {value}")).collect();
            lines.push(format!("{tool}: {}  ({})", caps.join(", "), place));
        }
    }
    lines
}

fn protected_path_lines(policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    for (trust, layer) in policy.layers() {
        let counts = if trust == TrustLevel::Stranger { "; no effect until trusted" } else { "" };
        let protected = &layer.protected;
        for (words, patterns, counts) in [
            ("hidden", &protected.hidden, ""),
            ("read_only", &protected.read_only, ""),
            ("shown", &protected.shown, counts),
            ("writable", &protected.writable, counts),
        ] {
            lines.extend(
                patterns.iter().map(|pattern| {
                    format!("{words}: {}  ({}{counts})", pattern.text, pattern.place)
                }),
            );
        }
    }
    lines
}
