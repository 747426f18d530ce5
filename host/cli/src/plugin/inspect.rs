//! `cofferdam plugin inspect`: shows a component for review, based on its content rather than its
//! description.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use crate::error::CommandResult;
use crate::json_text::json_page;
use crate::print::print_line;
use cofferdam::policy::{Grants, Tier};
use cofferdam::sandbox::{DeclaredTool, HostEnvironment, LoadedPlugin};
use cofferdam::terminal_escape;

pub(super) fn run(environment: &HostEnvironment, file: &Path, as_json: bool) -> CommandResult {
    let (_, plugin) = super::load_plugin(environment, file)?;
    let text = if as_json {
        json_page(&to_json(&plugin))
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
        "list and read files of the workspace; needs the permission to read files",
    ),
    (
        "cofferdam:plugin/commands",
        "run commands; needs a permission, and each command line is checked separately",
    ),
    ("cofferdam:plugin/agents", "delegate a task to a sub-agent; needs a permission"),
    ("cofferdam:plugin/plans", "present a plan to the user; needs a permission"),
    ("cofferdam:plugin/state", "keep state between the calls of a session; needs a permission"),
    ("cofferdam:plugin/progress", "show the user a progress line"),
    ("cofferdam:plugin/types", "types only"),
    ("wasi:filesystem/", "files; empty without a permission, otherwise the workspace"),
    (
        "wasi:http/",
        "HTTP requests; only to hosts in its permissions, and each request is checked separately",
    ),
    ("wasi:sockets/", "sockets; every operation fails"),
    ("wasi:cli/std", "standard streams; output goes to a log of limited size, input is empty"),
    ("wasi:cli/terminal", "terminals; none is available"),
    ("wasi:cli/environment", "arguments and environment; both empty"),
    ("wasi:cli/exit", "ends its own call"),
    ("wasi:clocks/", "the time"),
    ("wasi:random/", "random numbers"),
    ("wasi:io/", "streams and polling, used by the other interfaces"),
];

fn describe_interface(interface: &str) -> &'static str {
    let known = INTERFACE_DESCRIPTIONS.iter().find(|(prefix, _)| interface.starts_with(prefix));
    known.map_or("unknown to this host", |(_, meaning)| *meaning)
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
        let tier = Tier::from_capabilities(&tool.asks, tool.exclusive || tool.confirm);
        json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "asks": tool.asks,
            "grants": grants,
            "tier": tier,
            "reason": tier.explain(grants.has_side_effects()),
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

/// Formats a component for a decision; `from` is its source.
pub(super) fn describe_plugin(from: &str, plugin: &LoadedPlugin) -> String {
    let mut page = format!("{}\n", terminal_escape::escape_name(from, usize::MAX));
    let _ = writeln!(page, "  sha256   {}", plugin.digest());
    let _ = writeln!(page, "  size     {} KiB", plugin.size().div_ceil(1024));
    let _ = writeln!(
        page,
        "  exports  cofferdam:plugin/tools (tools: {})",
        plugin.declaration().tools.len()
    );
    page.push_str("\nImports of the component, and what they allow here:\n");
    let interfaces = &plugin.declaration().imports.interfaces;
    if interfaces.is_empty() {
        page.push_str("  none: the component can only compute with its input\n");
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
        "\nA component can use only what it imports, and only with the permissions of its tool. \
            Each call gets a fresh\n\
         instance with the permissions of its own tool.",
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
        "  requests    {}",
        join_or_nothing(tool.asks.iter().map(ToString::to_string))
    );
    let _ = writeln!(page, "  permissions {}", join_or_nothing(grants.describe().into_iter()));
    let tier = Tier::from_capabilities(&tool.asks, tool.exclusive || tool.confirm);
    let _ = writeln!(
        page,
        "  tier        {}: {}",
        tier.name(),
        tier.explain(grants.has_side_effects())
    );
    let hints = [(tool.exclusive, "runs alone"), (tool.confirm, "needs confirmation of each call")];
    let _ = writeln!(
        page,
        "  behavior    {}",
        join_or_nothing(hints.iter().filter(|(set, _)| *set).map(|(_, words)| (*words).to_owned()))
    );
    let _ = writeln!(
        page,
        "  description\n{}",
        indent(&terminal_escape::escape_exact(&tool.description))
    );
    let _ = writeln!(
        page,
        "  input schema\n{}",
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
