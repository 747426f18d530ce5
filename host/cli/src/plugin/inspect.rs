//! `cofferdam plugin inspect`: shows a component for review, based on its content rather than its
//! description.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use crate::error::CommandResult;
use crate::print::print_line;
use cofferdam::policy::Grants;
use cofferdam::sandbox::{DeclaredTool, LoadedPlugin};
use cofferdam::terminal_escape;
use cofferdam::tools::{compute_tier, explain};

pub(super) fn run(file: &Path, as_json: bool) -> CommandResult {
    let (_, plugin) = super::load_plugin(file)?;
    let text = if as_json {
        terminal_escape::escape_json(&format!("{:#}", to_json(&plugin)))
    } else {
        describe_plugin(&file.display().to_string(), &plugin)
    };
    print_line(&text);
    Ok(ExitCode::SUCCESS)
}

/// The meaning of imported interfaces, by prefix: what they can do with and without the permission.
const INTERFACE_DESCRIPTIONS: &[(&str, &str)] = &[
    (
        "cofferdam:plugin/workspace",
        "walk and read files of the workspace; only with a grant to read",
    ),
    (
        "cofferdam:plugin/commands",
        "propose commands; only with a grant, and each line is decided by itself",
    ),
    ("cofferdam:plugin/agents", "hand a task to a sub-agent; only with a grant"),
    ("cofferdam:plugin/plans", "show a plan to the user; only with a grant"),
    ("cofferdam:plugin/state", "keep notes between the calls of a session; only with a grant"),
    ("cofferdam:plugin/progress", "show the user a line while it works"),
    ("cofferdam:plugin/types", "types only"),
    ("wasi:filesystem/", "files; empty without a grant, the workspace with one"),
    ("wasi:http/", "requests over HTTP; only to granted hosts, and each is decided by itself"),
    ("wasi:sockets/", "sockets; every operation is refused"),
    ("wasi:cli/std", "standard streams; output goes to a capped log, input is empty"),
    ("wasi:cli/terminal", "terminals; there is none"),
    ("wasi:cli/environment", "arguments and environment; both empty"),
    ("wasi:cli/exit", "ends its own call"),
    ("wasi:clocks/", "the time"),
    ("wasi:random/", "random numbers"),
    ("wasi:io/", "streams and waiting, for the others"),
];

fn describe_interface(interface: &str) -> &'static str {
    let known = INTERFACE_DESCRIPTIONS.iter().find(|(prefix, _)| interface.starts_with(prefix));
    known.map_or("not known to this host", |(_, meaning)| *meaning)
}

fn to_json(plugin: &LoadedPlugin) -> serde_json::Value {
    let imports = plugin
        .declaration()
        .imports
        .interfaces
        .iter()
        .map(|name| json!({"interface": name, "meaning": describe_interface(name)}));
    let tools = plugin.declaration().tools.iter().map(|tool| {
        let grants = Grants::from_requested(&tool.asks);
        let tier = compute_tier(&tool.asks, tool.exclusive || tool.confirm);
        json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "asks": tool.asks,
            "grants": grants,
            "tier": tier,
            "reason": explain(tier, grants.has_side_effects()),
            "exclusive": tool.exclusive,
            "confirm": tool.confirm,
            "input_schema": tool.input_schema,
            "output_schema": tool.output_schema,
        })
    });
    json!({
        "digest": plugin.digest(),
        "size": plugin.size(),
        "imports": imports.collect::<Vec<_>>(),
        "tools": tools.collect::<Vec<_>>(),
    })
}

/// Formats a component for a decision; `from` names its source.
pub(super) fn describe_plugin(from: &str, plugin: &LoadedPlugin) -> String {
    let mut page = format!("{}\n", terminal_escape::escape_name(from, usize::MAX));
    let _ = writeln!(page, "  sha256   {}", plugin.digest());
    let _ = writeln!(page, "  size     {} KiB", plugin.size().div_ceil(1024));
    let _ = writeln!(
        page,
        "  exports  cofferdam:plugin/tools, {} of them",
        plugin.declaration().tools.len()
    );
    page.push_str("\nIts component imports, and here that means:\n");
    let interfaces = &plugin.declaration().imports.interfaces;
    if interfaces.is_empty() {
        page.push_str("  nothing: it can compute, and see what it is given\n");
    }
    for (meaning, names) in group_by_description(interfaces) {
        let _ = writeln!(page, "  {meaning}");
        let _ =
            writeln!(page, "      {}", terminal_escape::escape_name(&names.join(", "), usize::MAX));
    }
    for tool in &plugin.declaration().tools {
        page.push_str(&describe_tool(tool));
    }
    page.push_str(
        "\nWhat a component imports is all that it could ever use; what it was granted is all \
            that works. Each call gets a fresh\n\
         instance with the grants of its own tool.",
    );
    page
}

fn group_by_description(interfaces: &[String]) -> Vec<(&'static str, Vec<&str>)> {
    let mut groups: Vec<(&'static str, Vec<&str>)> = Vec::new();
    for name in interfaces {
        let meaning = describe_interface(name);
        match groups.iter_mut().find(|(known, _)| *known == meaning) {
            Some((_, names)) => names.push(name),
            None => groups.push((meaning, vec![name])),
        }
    }
    groups
}

fn describe_tool(tool: &DeclaredTool) -> String {
    let grants = Grants::from_requested(&tool.asks);
    let mut page = format!("\nTool {}\n", terminal_escape::escape_line(&tool.name, 64));
    if let Some(title) = &tool.title {
        let _ = writeln!(page, "  title       {}", terminal_escape::escape_name(title, usize::MAX));
    }
    let _ = writeln!(
        page,
        "  asks for    {}",
        join_or_nothing(tool.asks.iter().map(ToString::to_string))
    );
    let _ = writeln!(page, "  would get   {}", join_or_nothing(grants.describe().into_iter()));
    let tier = compute_tier(&tool.asks, tool.exclusive || tool.confirm);
    let _ = writeln!(
        page,
        "  tier        {}: {}",
        tier.name(),
        explain(tier, grants.has_side_effects())
    );
    let hints = [(tool.exclusive, "runs alone"), (tool.confirm, "asks the user before every call")];
    let _ = writeln!(
        page,
        "  wants       {}",
        join_or_nothing(hints.iter().filter(|(set, _)| *set).map(|(_, words)| (*words).to_owned()))
    );
    let _ = writeln!(page, "  says\n{}", indent(&terminal_escape::escape_exact(&tool.description)));
    let _ = writeln!(
        page,
        "  takes\n{}",
        indent(&terminal_escape::escape_exact(&format!("{:#}", tool.input_schema)))
    );
    if let Some(schema) = &tool.output_schema {
        let _ = writeln!(
            page,
            "  returns\n{}",
            indent(&terminal_escape::escape_exact(&format!("{schema:#}")))
        );
    }
    page
}

fn join_or_nothing(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        "nothing".to_owned()
    } else {
        terminal_escape::escape_name(&words.join("; "), usize::MAX)
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
