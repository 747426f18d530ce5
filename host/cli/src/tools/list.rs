//! `cofferdam tools list`: lists all tools with their tier and permissions.

use std::process::ExitCode;

use serde_json::json;

use crate::args::CommonArgs;
use crate::context;
use crate::error::CommandResult;
use crate::json_text::json_page;
use crate::print::print_line;
use cofferdam::sandbox::InstanceAllocation;
use cofferdam::terminal_escape;
use cofferdam::tools::{CatalogTool, ToolCatalog};

pub(super) fn run(common: &CommonArgs, as_json: bool) -> CommandResult {
    let flags = common.common_flags();
    let context =
        context::load_context_for_inspection(common, flags, InstanceAllocation::OnDemand)?;
    print_line(&if as_json {
        format_json(context.catalog())
    } else {
        format_table(context.catalog())
    });
    Ok(ExitCode::SUCCESS)
}

/// Formats all tools as a table.
pub(crate) fn format_table(catalog: &ToolCatalog) -> String {
    let mut rows = vec![["TOOL", "TITLE", "TIER", "PERMISSIONS", "FROM"].map(str::to_owned)];
    for tool in catalog.tools() {
        let may = tool.grants.describe().join("; ");
        let may = if may.is_empty() { "none".to_owned() } else { may };
        rows.push([
            tool.declaration.name.clone(),
            terminal_escape::escape_line(tool.declaration.title.as_deref().unwrap_or(""), 40),
            tool.tier.name().to_owned(),
            may,
            terminal_escape::escape_line(&tool.origin.to_string(), 80),
        ]);
    }
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let (a, b, c, d) = (width(0), width(1), width(2), width(3));
    let mut lines: Vec<String> = rows
        .iter()
        .map(|[name, title, tier, may, from]| {
            format!("{name:a$}  {title:b$}  {tier:c$}  {may:d$}  {from}")
        })
        .collect();
    for refused in catalog.refused_plugins() {
        lines.push(terminal_escape::escape_line(
            &format!("{}: {}: {}", refused.status_label(), refused.origin, refused.reason),
            400,
        ));
    }
    lines.join("\n")
}

fn format_json(catalog: &ToolCatalog) -> String {
    let tool = |tool: &CatalogTool| {
        json!({
            "name": tool.declaration.name,
            "title": tool.declaration.title,
            "tier": tool.tier,
            "grants": tool.grants,
            "origin": tool.origin.to_string(),
            "digest": tool.backend.digest(),
        })
    };
    let tools: Vec<_> = catalog.tools().iter().map(tool).collect();
    let refused: Vec<_> = catalog
        .refused_plugins()
        .iter()
        .map(|refused| {
            json!({
                "origin": refused.origin.to_string(),
                "state": refused.status_label(),
                "reason": refused.reason,
            })
        })
        .collect();
    json_page(&json!({"tools": tools, "refused": refused}))
}
