//! `cofferdam tools list`.

use std::process::ExitCode;

use serde_json::json;

use crate::cli::args::{CallArgs, Common, ModelArgs};
use crate::cli::assemble;
use crate::cli::error::Done;
use crate::cli::print::stdout_line;
use crate::sandbox::Allocation;
use crate::shown;
use crate::tools::{Catalog, Tool};

pub(super) fn run(common: &Common, as_json: bool) -> Done {
    let flags = common.flags(ModelArgs::default(), CallArgs::default(), None);
    let parts = assemble::parts_to_look_at(common, flags, Allocation::OnDemand)?;
    stdout_line(&if as_json { json(&parts.catalog) } else { text(&parts.catalog) });
    Ok(ExitCode::SUCCESS)
}

/// A table for people.
pub(in crate::cli) fn text(catalog: &Catalog) -> String {
    let mut rows = vec![["TOOL".to_owned(), "TIER".to_owned(), "MAY".to_owned(), "FROM".to_owned()]];
    for tool in catalog.tools() {
        let may = tool.grants.in_words().join("; ");
        let may = if may.is_empty() { "touch nothing".to_owned() } else { may };
        rows.push([tool.declared.name.clone(), tool.tier.name().to_owned(), may, shown::line(&tool.origin.to_string(), 80)]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (a, b, c) = (width(0), width(1), width(2));
    let mut lines: Vec<String> = rows.iter().map(|[name, tier, may, from]| format!("{name:a$}  {tier:b$}  {may:c$}  {from}")).collect();
    for refused in catalog.refused() {
        lines.push(shown::line(&format!("{}: {}: {}", refused.word(), refused.origin, refused.reason), 400));
    }
    lines.join("\n")
}

fn json(catalog: &Catalog) -> String {
    let tool = |tool: &Tool| {
        json!({
            "name": tool.declared.name, "tier": tool.tier, "grants": tool.grants, "origin": tool.origin.to_string(),
            "digest": tool.plugin.digest(),
        })
    };
    let tools: Vec<_> = catalog.tools().iter().map(tool).collect();
    let refused: Vec<_> = catalog
        .refused()
        .iter()
        .map(|refused| json!({"origin": refused.origin.to_string(), "state": refused.word(), "reason": refused.reason}))
        .collect();
    shown::json(&format!("{:#}", json!({"tools": tools, "refused": refused})))
}
