//! `cofferdam tools show`: shows everything that determines what a tool can do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;

use crate::args::CommonArgs;
use crate::context;
use crate::error::{CliError, CommandResult};
use crate::json_text::json_page;
use crate::print::print_line;
use cofferdam::policy::CapName;
use cofferdam::sandbox::InstanceAllocation;
use cofferdam::terminal_escape;
use cofferdam::tools::{CatalogTool, ToolCatalog};

pub(super) fn run(common: &CommonArgs, name: &str, as_json: bool) -> CommandResult {
    let mut common = common.clone();
    let is_file = name.ends_with(".wasm");
    if is_file && !common.plugins.iter().any(|plugin| plugin.as_os_str() == name) {
        common.plugins.push(name.into());
    }
    let flags = common.common_flags();
    let context =
        context::load_context_for_inspection(&common, flags, InstanceAllocation::OnDemand)?;
    let tools: Vec<&CatalogTool> = context
        .catalog()
        .tools()
        .iter()
        .filter(|tool| {
            tool.declaration.name == name || tool.model_name == name || tool.origin.is_file(name)
        })
        .collect();
    if tools.is_empty() {
        return Err(CliError::new(unknown_tool_error(context.catalog(), name)));
    }
    let shown: Vec<String> = tools
        .iter()
        .map(|tool| if as_json { json_page(&to_json(tool)) } else { describe_tool(tool) })
        .collect();
    print_line(&shown.join("\n\n"));
    Ok(ExitCode::SUCCESS)
}

fn unknown_tool_error(catalog: &ToolCatalog, name: &str) -> String {
    match catalog.refused_plugins().iter().find(|refused| refused.origin.is_file(name)) {
        Some(refused) => format!(
            "{name} is {}: {}",
            refused.status_label(),
            terminal_escape::escape_line(&refused.reason, 600)
        ),
        None => catalog.unknown_tool_error(name),
    }
}

fn to_json(tool: &CatalogTool) -> serde_json::Value {
    let limits: BTreeMap<_, _> =
        effective_limits(tool).map(|(cap, value)| (cap.name(), value)).collect();
    json!({
        "name": tool.declaration.name,
        "title": tool.declaration.title,
        "origin": tool.origin.to_string(),
        "digest": tool.backend.digest(),
        "size": tool.backend.component().map(|plugin| plugin.size()),
        "description": tool.declaration.description,
        "tier": tool.tier,
        "asks": tool.declaration.asks,
        "grants": tool.grants,
        "limits": limits,
        "imports": tool.backend.component().map(|plugin| &plugin.declaration().imports),
        "input_schema": tool.declaration.input_schema,
        "output_schema": tool.declaration.output_schema,
    })
}

fn describe_tool(tool: &CatalogTool) -> String {
    let mut page = format!(
        "{}  ({})\n",
        tool.declaration.name,
        terminal_escape::escape_line(&tool.origin.to_string(), 200)
    );
    if let Some(title) = &tool.declaration.title {
        let _ = writeln!(page, "  title       {}", terminal_escape::escape_line(title, 200));
    }
    let _ = match tool.backend.component() {
        Some(plugin) => writeln!(
            page,
            "  component   sha256 {}, {} KiB",
            plugin.digest(),
            plugin.size().div_ceil(1024)
        ),
        None => {
            let _ = writeln!(page, "  for models  {}", tool.model_name);
            writeln!(page, "  accepted    sha256 {}", tool.backend.digest())
        }
    };
    let _ = writeln!(
        page,
        "  tier        {}: {}",
        tool.tier.name(),
        tool.tier.explain(tool.grants.has_side_effects())
    );
    let _ = writeln!(
        page,
        "  requests    {}",
        join_or_nothing(tool.declaration.asks.iter().map(ToString::to_string))
    );
    let _ = writeln!(page, "  permissions {}", join_or_nothing(tool.grants.describe().into_iter()));
    let _ = writeln!(
        page,
        "  limits      {}",
        join_or_nothing(effective_limits(tool).map(|(cap, value)| format!("{cap} {value}")))
    );
    if let Some(plugin) = tool.backend.component() {
        let imports = &plugin.declaration().imports;
        let _ = writeln!(
            page,
            "  imports     {}; WASI interfaces: {}",
            join_or_nothing(imports.lent.iter().map(ToString::to_string)),
            imports.interfaces.iter().filter(|name| name.starts_with("wasi:")).count()
        );
    }
    let _ = writeln!(
        page,
        "\n{}\n",
        indent(&terminal_escape::escape_text(&tool.declaration.description))
    );
    let _ = write!(
        page,
        "  input schema\n{}",
        indent(&terminal_escape::escape_text(&format!("{:#}", tool.declaration.input_schema)))
    );
    if let Some(schema) = &tool.declaration.output_schema {
        let _ = write!(
            page,
            "\n\n  output schema\n{}",
            indent(&terminal_escape::escape_text(&format!("{schema:#}")))
        );
    }
    page
}

/// Returns the limits in force, after configuration and policy.
fn effective_limits(tool: &CatalogTool) -> impl Iterator<Item = (CapName, u64)> {
    CapName::ALL.into_iter().map(|cap| (cap, tool.caps.value(cap)))
}

fn join_or_nothing(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        "none".to_owned()
    } else {
        terminal_escape::escape_line(&words.join("; "), 1000)
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
