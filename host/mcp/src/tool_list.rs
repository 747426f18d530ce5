//! The tools as clients see them.

use std::sync::Arc;

use cofferdam::policy::{CommandNetwork, FileGrant, Grants, SandboxLevel};
use cofferdam::sandbox::CommandSandbox;
use cofferdam::tools::{CatalogTool, ToolCatalog};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

/// Returns whether a tool is offered. A tool that needs a model of this host, or that changes the
/// mode of a chat, cannot work here.
pub(crate) fn is_offered(tool: &CatalogTool) -> bool {
    tool.denial.is_none() && !tool.grants.agents && !tool.grants.plans
}

/// Returns the offered tools, in the order of the catalog.
pub(crate) fn list_tools(catalog: &ToolCatalog, commands: &CommandSandbox) -> Vec<Tool> {
    let reaches_network = commands_reach_network(commands);
    let offered = catalog.tools().iter().filter(|tool| is_offered(tool));
    offered.map(|tool| describe(tool, reaches_network)).collect()
}

fn describe(tool: &CatalogTool, commands_reach_network: bool) -> Tool {
    let declared = &tool.declaration;
    let mut described = Tool::new_with_raw(
        tool.model_name.clone(),
        Some(declared.description.clone().into()),
        Arc::new(to_object(&declared.input_schema)),
    );
    described.title = declared.title.clone().or_else(|| {
        // Names of sources have a form for people, too.
        (declared.name != tool.model_name).then(|| declared.name.clone())
    });
    described.output_schema =
        declared.output_schema.as_ref().map(|schema| Arc::new(to_object(schema)));
    described.annotations = Some(annotate(&tool.grants, commands_reach_network));
    described
}

/// Schemas are objects, as the catalog has checked.
fn to_object(schema: &Value) -> JsonObject {
    schema.as_object().cloned().unwrap_or_default()
}

/// Computes the hints from the permissions. Each one is true of everything that a tool with these
/// permissions can do, whatever the tool says about itself.
fn annotate(grants: &Grants, commands_reach_network: bool) -> ToolAnnotations {
    let read_only = !grants.has_side_effects();
    // A request can do anything at its destination, except if every method is safe by its
    // definition.
    let only_safe_requests = grants.fetch.iter().all(|pattern| {
        let methods = pattern.split_once(' ').map_or("", |(methods, _)| methods);
        !methods.is_empty() && methods.split(',').all(|method| matches!(method, "GET" | "HEAD"))
    });
    let is_destructive =
        grants.commands || grants.files == FileGrant::ReadWrite || !only_safe_requests;
    ToolAnnotations::new()
        .read_only(read_only)
        .destructive(!read_only && is_destructive)
        // A tool with state can answer differently each time, and what a change does when it is
        // repeated is unknown.
        .idempotent(read_only && !grants.state)
        .open_world(
            !grants.fetch.is_empty()
                || grants.agents
                || (grants.commands && commands_reach_network),
        )
}

/// Returns whether commands can reach other machines.
fn commands_reach_network(commands: &CommandSandbox) -> bool {
    match &commands.rules().network {
        CommandNetwork::None | CommandNetwork::Closed => {
            commands.rules().minimum == SandboxLevel::None
        }
        CommandNetwork::Listed(_) | CommandNetwork::All => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam::policy::Capability;

    fn hints(requested: &[Capability], network: bool) -> [bool; 4] {
        let hints = annotate(&Grants::from_requested(requested), network);
        [hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint]
            .map(|hint| hint.expect("each hint is set"))
    }

    #[test]
    fn hints_follow_from_the_permissions() {
        let fetch = |pattern: &str| [Capability::Fetch(vec![pattern.to_owned()])];
        assert_eq!(hints(&[], true), [true, false, true, false]);
        assert_eq!(hints(&[Capability::ReadFiles], true), [true, false, true, false]);
        assert_eq!(hints(&[Capability::WriteFiles], true), [false, true, false, false]);
        assert_eq!(hints(&[Capability::RunCommands], false), [false, true, false, false]);
        assert_eq!(hints(&[Capability::RunCommands], true), [false, true, false, true]);
        assert_eq!(hints(&[Capability::KeepState], true), [true, false, false, false]);
        assert_eq!(hints(&fetch("GET,HEAD docs.rs"), false), [false, false, false, true]);
        for changes in ["docs.rs", "*", "GET,POST docs.rs", "DELETE *"] {
            assert_eq!(hints(&fetch(changes), false), [false, true, false, true], "{changes}");
        }
    }
}
