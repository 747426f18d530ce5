//! Adds the tools of sources, such as MCP servers.

use std::sync::Arc;

use super::{CatalogTool, PluginProvenance, RefusedPlugin, ToolCatalog};
use crate::terminal_escape::escape_line;
use crate::tools::tool_source::{SourceBackend, ToolBackend, ToolSource};

/// The characters of the name of a tool of a source that are shown.
const MAX_SHOWN_NAME_LEN: usize = 100;

impl ToolCatalog {
    /// Adds the tools of a source. A tool that cannot be used is recorded as refused, with the
    /// reason; the others are added. No tool takes the name of another one.
    pub fn add_source(&mut self, source: &Arc<dyn ToolSource>) {
        let description = source.description();
        let origin = PluginProvenance::Source(description.name.clone());
        let mut new: Vec<CatalogTool> = Vec::with_capacity(description.tools.len());
        let mut refused = Vec::new();
        for tool in &description.tools {
            let shown = format!("{}/{}", description.name, tool.name);
            let built = tool.declare(description).and_then(|(declared, model_name)| {
                let is_taken = |other: &&CatalogTool| {
                    other.model_name.eq_ignore_ascii_case(&model_name)
                        || other.declaration.name.eq_ignore_ascii_case(&declared.name)
                };
                if let Some(taken) = self.tools.iter().chain(&new).find(is_taken) {
                    return Err(format!(
                        "its name for the model, {model_name}, is already used by the tool {} of \
                            {}",
                        taken.declaration.name, taken.origin
                    ));
                }
                let backend = SourceBackend { source: Arc::clone(source), tool: tool.name.clone() };
                let backend = ToolBackend::Source(backend);
                let built = self.build_tool(&declared, &origin, (backend, model_name));
                schema_problem(&built).map_or(Ok(built), Err)
            });
            match built {
                Ok(built) => new.push(built),
                Err(problem) => {
                    let reason = format!("{}: {problem}", escape_line(&shown, MAX_SHOWN_NAME_LEN));
                    let origin = origin.clone();
                    refused.push(RefusedPlugin {
                        origin,
                        reason,
                        tools: vec![shown],
                        is_broken: true,
                    });
                }
            }
        }
        self.offer(new);
        self.refused_plugins.extend(refused);
    }

    /// Records a source of tools that is not used, with the names of its tools.
    pub fn add_refused_source(&mut self, name: &str, reason: String, tools: Vec<String>) {
        let origin = PluginProvenance::Source(name.to_owned());
        self.refused_plugins.push(RefusedPlugin { origin, reason, tools, is_broken: false });
    }
}

/// Returns why the schemas of a tool cannot be used.
fn schema_problem(tool: &CatalogTool) -> Option<String> {
    if let Err(problem) = tool.arguments.compiled_schema() {
        return Some(format!("its input schema cannot be used: {problem}"));
    }
    let problem = tool.structured.schema_error()?;
    Some(format!("its output schema cannot be used: {problem}"))
}
