//! Adds the tools of sources, such as MCP servers.

use std::sync::Arc;

use super::{CatalogTool, PluginProvenance, RefusedPlugin, ToolCatalog};
use crate::sandbox::DeclaredTool;
use crate::terminal_escape::escape_line;
use crate::tools::arguments::ArgumentChecker;
use crate::tools::structured::StructuredResultChecker;
use crate::tools::tool_source::{
    SourceBackend, SourceDescription, SourceTool, ToolBackend, ToolSource,
};

/// The characters of the name of a tool of a source that are shown.
const MAX_SHOWN_NAME_LEN: usize = 100;

/// A tool of a source that the host cannot use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnusableTool {
    /// The name within the source.
    pub name: String,
    /// Why the tool cannot be used, as a sentence without a full stop.
    pub reason: String,
}

/// The names of a tool of a source that passed the check.
struct CheckedNames {
    name: String,
    model_name: String,
}

impl ToolCatalog {
    /// Adds the tools of a source. A tool that cannot be used is recorded as refused, with the
    /// reason; the others are added. No tool takes the name of another one.
    pub fn add_source(&mut self, source: &Arc<dyn ToolSource>) {
        let description = source.description();
        let origin = PluginProvenance::Source(description.name.clone());
        let mut new: Vec<CatalogTool> = Vec::with_capacity(description.tools.len());
        let mut refused = Vec::new();
        let mut names = Vec::with_capacity(description.tools.len());
        for tool in &description.tools {
            let checked = check_source_tool((tool, description), self.tools.iter(), &names);
            let built = checked.and_then(|(declared, model_name)| {
                let backend = SourceBackend { source: Arc::clone(source), tool: tool.name.clone() };
                let backend = (ToolBackend::Source(backend), model_name);
                let built = self.build_tool(&declared, &origin, backend);
                schema_problem(&built.arguments, &built.structured).map_or(Ok(built), Err)
            });
            match built {
                Ok(built) => {
                    let (name, model_name) =
                        (built.declaration.name.clone(), built.model_name.clone());
                    names.push(CheckedNames { name, model_name });
                    new.push(built);
                }
                Err(problem) => {
                    let shown = format!("{}/{}", description.name, tool.name);
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

    /// Returns the tools of a source that [`add_source`](Self::add_source) would refuse, with the
    /// reasons. Tools that this catalog already has of the same source do not count.
    pub fn unusable_tools(&self, description: &SourceDescription) -> Vec<UnusableTool> {
        let own = PluginProvenance::Source(description.name.clone());
        let others: Vec<&CatalogTool> =
            self.tools.iter().filter(|other| other.origin != own).collect();
        let mut names = Vec::with_capacity(description.tools.len());
        let mut unusable = Vec::new();
        for tool in &description.tools {
            let checked = check_source_tool((tool, description), others.iter().copied(), &names);
            let checked = checked.and_then(|(declared, model_name)| {
                let arguments = ArgumentChecker::new(declared.input_schema.clone());
                let structured = StructuredResultChecker::new(&declared);
                let names = CheckedNames { name: declared.name, model_name };
                schema_problem(&arguments, &structured).map_or(Ok(names), Err)
            });
            match checked {
                Ok(checked) => names.push(checked),
                Err(reason) => unusable.push(UnusableTool { name: tool.name.clone(), reason }),
            }
        }
        unusable
    }

    /// Records a source of tools that is not used, with the names of its tools.
    pub fn add_refused_source(&mut self, name: &str, reason: String, tools: Vec<String>) {
        let origin = PluginProvenance::Source(name.to_owned());
        self.refused_plugins.push(RefusedPlugin { origin, reason, tools, is_broken: false });
    }
}

/// Checks everything of a tool but whether its schemas compile. `others` are the tools of others,
/// and `before` are those that the source lists before it.
fn check_source_tool<'t>(
    (tool, description): (&SourceTool, &SourceDescription),
    others: impl Iterator<Item = &'t CatalogTool>,
    before: &[CheckedNames],
) -> Result<(DeclaredTool, String), String> {
    let (declared, model_name) = tool.declare(description)?;
    let own = PluginProvenance::Source(description.name.clone());
    let others = others
        .map(|other| (&*other.declaration.name, &*other.model_name, other.origin.to_string()));
    let before = before.iter().map(|names| (&*names.name, &*names.model_name, own.to_string()));
    let taken = others.chain(before).find(|(name, model, _)| {
        model.eq_ignore_ascii_case(&model_name) || name.eq_ignore_ascii_case(&declared.name)
    });
    match taken {
        None => Ok((declared, model_name)),
        Some((taken, _, origin)) => Err(format!(
            "its name for the model, {model_name}, is already used by the tool {taken} of {origin}"
        )),
    }
}

/// Returns why the schemas of a tool cannot be used.
fn schema_problem(
    arguments: &ArgumentChecker,
    structured: &StructuredResultChecker,
) -> Option<String> {
    if let Err(problem) = arguments.compiled_schema() {
        return Some(format!("its input schema cannot be used: {problem}"));
    }
    let problem = structured.schema_error()?;
    Some(format!("its output schema cannot be used: {problem}"))
}
