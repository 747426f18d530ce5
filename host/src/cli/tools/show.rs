//! `cofferdam tools show`: everything about one tool that decides what it can do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;

use crate::cli::args::{CallArgs, Common, ModelArgs};
use crate::cli::assemble;
use crate::cli::error::{CliError, Done};
use crate::cli::print::stdout_line;
use crate::policy::Cap;
use crate::sandbox::Allocation;
use crate::shown;
use crate::tools::{Catalog, Tool, why};

pub(super) fn run(common: &Common, name: &str, as_json: bool) -> Done {
    let mut common = common.clone();
    let is_file = name.ends_with(".wasm");
    if is_file && !common.plugins.iter().any(|plugin| plugin.as_os_str() == name) {
        common.plugins.push(name.into());
    }
    let flags = common.flags(ModelArgs::default(), CallArgs::default(), None);
    let parts = assemble::parts_to_look_at(&common, flags, Allocation::OnDemand)?;
    let tools: Vec<&Tool> = parts.catalog.tools().iter().filter(|tool| tool.declared.name == name || tool.origin.is_file(name)).collect();
    if tools.is_empty() {
        return Err(CliError::new(not_found(&parts.catalog, name)));
    }
    let shown: Vec<String> =
        tools.iter().map(|tool| if as_json { shown::json(&format!("{:#}", as_value(tool))) } else { page(tool) }).collect();
    stdout_line(&shown.join("\n\n"));
    Ok(ExitCode::SUCCESS)
}

fn not_found(catalog: &Catalog, name: &str) -> String {
    match catalog.refused().iter().find(|refused| refused.origin.is_file(name)) {
        Some(refused) => format!("{name} is {}: {}", refused.word(), shown::line(&refused.reason, 600)),
        None => catalog.unknown(name),
    }
}

fn as_value(tool: &Tool) -> serde_json::Value {
    json!({
        "name": tool.declared.name, "origin": tool.origin.to_string(), "digest": tool.plugin.digest(), "size": tool.plugin.size(),
        "description": tool.declared.description, "tier": tool.tier, "asks": tool.declared.asks, "grants": tool.grants,
        "limits": limits(tool).map(|(cap, value)| (cap.name(), value)).collect::<BTreeMap<_, _>>(), "not_lent": tool.not_lent, "imports": tool.plugin.declaration().imports, "input_schema": tool.declared.input_schema,
    })
}

fn page(tool: &Tool) -> String {
    let mut page = format!("{}  ({})\n", tool.declared.name, shown::line(&tool.origin.to_string(), 200));
    let _ = writeln!(page, "  component   sha256 {}, {} KiB", tool.plugin.digest(), tool.plugin.size().div_ceil(1024));
    let _ = writeln!(page, "  tier        {}: {}", tool.tier.name(), why(tool.tier, tool.grants.can_change_anything()));
    let _ = writeln!(page, "  asks for    {}", list(tool.declared.asks.iter().map(ToString::to_string)));
    let _ = writeln!(page, "  is granted  {}", list(tool.grants.in_words().into_iter()));
    if !tool.not_lent.is_empty() {
        let _ = writeln!(page, "  not lent    {} (this host cannot lend it)", list(tool.not_lent.iter().map(ToString::to_string)));
    }
    let _ = writeln!(page, "  limits      {}", list(limits(tool).map(|(cap, value)| format!("{cap} {value}"))));
    let lent = &tool.plugin.declaration().imports.lent;
    let _ = writeln!(page, "  imports     {} of this host, {} of WASI", list(lent.iter().map(ToString::to_string)), wasi(tool));
    let _ = writeln!(page, "\n{}\n", indent(&shown::block(&tool.declared.description)));
    let _ = write!(page, "  input schema\n{}", indent(&shown::block(&format!("{:#}", tool.declared.input_schema))));
    page
}

/// The limits in force, after configuration and policy.
fn limits(tool: &Tool) -> impl Iterator<Item = (Cap, u64)> {
    Cap::ALL.into_iter().map(|cap| (cap, tool.caps.value(cap)))
}

fn wasi(tool: &Tool) -> usize {
    tool.plugin.declaration().imports.interfaces.iter().filter(|name| name.starts_with("wasi:")).count()
}

fn list(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    if words.is_empty() { "nothing".to_owned() } else { shown::line(&words.join("; "), 1000) }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
