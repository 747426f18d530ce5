//! The tools of a run by name, and the plugins that were refused.

mod sources;

pub use sources::UnusableTool;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::arguments::ArgumentChecker;
use super::builtin::{builtin_components, builtin_names};
use super::structured::StructuredResultChecker;
use super::tool_source::ToolBackend;
use crate::agent::ports::ToolDefinition;
use crate::policy::{
    Action, Capability, Caps, ChosenCaps, Denial, DenialCode, Grants, Policy, SourceLocation, Tier,
    ToolId, ToolSelector, TrustLevel, Verdict,
};
use crate::sandbox::{ComponentBytes, DeclaredTool, LoadError, LoadedPlugin, WasmSandbox};

/// All tools of a run, in the order in which they are listed for the model.
#[derive(Default)]
pub struct ToolCatalog {
    tools: Vec<CatalogTool>,
    refused_plugins: Vec<RefusedPlugin>,
    definitions: Vec<ToolDefinition>,
    policy: Arc<Policy>,
    chosen_caps: ChosenCaps,
}

/// The origin of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginProvenance {
    /// A part of this program, by name.
    BuiltIn(&'static str),
    /// A file on disk.
    File(PathBuf),
    /// A source of tools, such as an MCP server, by name.
    Source(String),
}

/// A tool that the model can call.
#[non_exhaustive]
pub struct CatalogTool {
    /// The declaration by its plugin.
    pub declaration: DeclaredTool,
    /// The origin of its plugin.
    pub origin: PluginProvenance,
    /// The permissions of the tool.
    pub grants: Grants,
    /// The requested capabilities that the policy denies, each with the location of the rule.
    pub denied_by_policy: Vec<(Capability, SourceLocation)>,
    /// Why the policy denies the tool altogether. The model does not see a denied tool.
    pub denial: Option<Denial>,
    /// Whether each call needs a confirmation, because the tool or the policy asks for it.
    pub confirm: bool,
    /// The caps of its calls that differ from the defaults.
    pub caps: Caps,
    /// The tier of the tool, which orders its calls.
    pub tier: Tier,
    /// What answers the calls of the tool.
    pub backend: ToolBackend,
    /// The name by which the model calls the tool. Models do not accept the names of tools of
    /// sources.
    pub model_name: String,
    /// The checker of its arguments.
    pub arguments: ArgumentChecker,
    /// Checks the structured results of the tool.
    pub structured: StructuredResultChecker,
}

/// A plugin that is not offered to the model.
#[derive(Debug)]
#[non_exhaustive]
pub struct RefusedPlugin {
    /// The origin of the plugin.
    pub origin: PluginProvenance,
    /// The reason, for the user.
    pub reason: String,
    /// The names of its tools, as far as they are known.
    pub tools: Vec<String>,
    /// Whether the plugin is unusable, rather than just not accepted.
    pub is_broken: bool,
}

impl RefusedPlugin {
    /// Returns the status of the plugin in one word.
    pub fn status_label(&self) -> &'static str {
        if self.is_broken { "broken" } else { "refused" }
    }
}

/// A tool that a rule or the configuration names and that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownTool {
    name: String,
    /// The location of the rule; `None` for the configuration.
    location: Option<SourceLocation>,
    /// Whether the name comes from the user, who may have mistyped it.
    pub is_from_user: bool,
}

impl fmt::Display for UnknownTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Some(place) => {
                write!(f, "{place}: there is no tool `{}`, so the rule has no effect", self.name)
            }
            None => write!(
                f,
                "[tools.{0}] in the configuration: there is no tool `{0}`, so the limits have no \
                    effect",
                self.name
            ),
        }
    }
}

/// Returns why a third-party plugin cannot be offered in any run, whatever other plugins there are.
pub fn load_error(plugin: &LoadedPlugin) -> Option<String> {
    let built_in = |declared: &DeclaredTool| {
        let name = builtin_names().find(|name| name.eq_ignore_ascii_case(&declared.name))?;
        Some(duplicate_name_error(name, &PluginProvenance::BuiltIn(name)))
    };
    // The author of a built-in plugin may load the same component from a file.
    let is_built_in =
        builtin_components().any(|(_, component)| component.digest() == plugin.digest());
    let taken =
        if is_built_in { None } else { plugin.declaration().tools.iter().find_map(built_in) };
    taken.or_else(|| schema_error(plugin))
}

fn schema_error(plugin: &LoadedPlugin) -> Option<String> {
    plugin.declaration().tools.iter().find_map(|tool| {
        let name = &tool.name;
        let input = ArgumentChecker::new(tool.input_schema.clone());
        if let Err(problem) = input.compiled_schema() {
            return Some(format!("the input schema of `{name}` cannot be used: {problem}"));
        }
        let output = StructuredResultChecker::new(tool);
        let problem = output.schema_error()?;
        Some(format!("the output schema of `{name}` cannot be used: {problem}"))
    })
}

fn duplicate_name_error(name: &str, origin: &PluginProvenance) -> String {
    format!(
        "the tool name {name} is already used by {origin} (case is ignored); remove one of the two \
            plugins"
    )
}

impl ToolCatalog {
    /// Creates an empty catalog with a policy and the caps that the user configured.
    pub fn with_policy(policy: Policy, chosen_caps: ChosenCaps) -> Self {
        Self { policy: Arc::new(policy), chosen_caps, ..Self::default() }
    }

    /// Returns the policy of the run.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Loads a plugin and adds its tools, or records why it was refused. A bad plugin does not
    /// affect the others. `on_compile` is called before a component is compiled.
    pub fn add(
        &mut self,
        sandbox: &WasmSandbox,
        origin: PluginProvenance,
        component: impl Into<ComponentBytes>,
        on_compile: &dyn Fn(),
    ) {
        match sandbox.load(component, on_compile) {
            Ok(plugin) => self.add_reviewed(origin, plugin, None),
            Err(error) => self.add_broken(origin, &error),
        }
    }

    /// Adds the tools of a loaded plugin, or records the reason of its refusal.
    pub fn add_reviewed(
        &mut self,
        origin: PluginProvenance,
        plugin: LoadedPlugin,
        refusal: Option<String>,
    ) {
        let Some(reason) = refusal else { return self.add_loaded(origin, Arc::new(plugin)) };
        let tools = plugin.declaration().tools.iter().map(|tool| tool.name.clone()).collect();
        self.refused_plugins.push(RefusedPlugin { origin, reason, tools, is_broken: false });
    }

    /// Records a plugin that is refused without being loaded.
    pub fn add_denied(&mut self, origin: PluginProvenance, reason: String) {
        self.refused_plugins.push(RefusedPlugin {
            origin,
            reason,
            tools: Vec::new(),
            is_broken: false,
        });
    }

    /// Records a plugin that failed to load.
    pub fn add_broken(&mut self, origin: PluginProvenance, error: &LoadError) {
        self.refused_plugins.push(RefusedPlugin {
            origin,
            reason: error.to_string(),
            tools: Vec::new(),
            is_broken: true,
        });
    }

    /// Returns why a plugin cannot be added beside the others. Plugins of the origin `left_out` are
    /// ignored.
    pub fn conflict(
        &self,
        plugin: &LoadedPlugin,
        left_out: Option<&PluginProvenance>,
    ) -> Option<String> {
        self.name_conflict(plugin, left_out).or_else(|| schema_error(plugin))
    }

    fn name_conflict(
        &self,
        plugin: &LoadedPlugin,
        left_out: Option<&PluginProvenance>,
    ) -> Option<String> {
        let others = || self.tools.iter().filter(|tool| Some(&tool.origin) != left_out);
        let taken = |declared: &DeclaredTool| {
            others().find(|tool| tool.model_name.eq_ignore_ascii_case(&declared.name))
        };
        plugin
            .declaration()
            .tools
            .iter()
            .find_map(taken)
            .map(|taken| duplicate_name_error(&taken.model_name, &taken.origin))
    }

    fn add_loaded(&mut self, origin: PluginProvenance, plugin: Arc<LoadedPlugin>) {
        let names: Vec<String> =
            plugin.declaration().tools.iter().map(|tool| tool.name.clone()).collect();
        // The schemas of third-party plugins are compiled now to find errors. Those of built-in
        // tools are known to be valid, and compiling them takes time.
        let conflict = match &origin {
            PluginProvenance::File(_) => self.conflict(&plugin, None),
            PluginProvenance::BuiltIn(_) | PluginProvenance::Source(_) => {
                self.name_conflict(&plugin, None)
            }
        };
        if let Some(reason) = conflict {
            self.refused_plugins.push(RefusedPlugin {
                origin,
                reason,
                tools: names,
                is_broken: true,
            });
            return;
        }
        let mut new = Vec::with_capacity(names.len());
        for declared in &plugin.declaration().tools {
            let backend = ToolBackend::Component(Arc::clone(&plugin));
            new.push(self.build_tool(declared, &origin, (backend, declared.name.clone())));
        }
        self.offer(new);
    }

    /// Adds tools, and offers those that the policy does not deny.
    fn offer(&mut self, new: Vec<CatalogTool>) {
        self.definitions.extend(new.iter().filter(|tool| tool.denial.is_none()).map(|tool| {
            ToolDefinition {
                name: tool.model_name.clone(),
                description: tool.declaration.description.clone(),
                input_schema: tool.declaration.input_schema.clone(),
            }
        }));
        self.tools.extend(new);
    }

    /// Returns a catalog of the read-only tools, for a sub-agent.
    pub fn read_only(&self) -> Self {
        let rebuild = |tool: &CatalogTool| {
            let backend = (tool.backend.clone(), tool.model_name.clone());
            self.build_tool(&tool.declaration, &tool.origin, backend)
        };
        let tools: Vec<CatalogTool> =
            self.tools.iter().filter(|tool| tool.tier == Tier::ReadOnly).map(rebuild).collect();
        let named = |definition: &&ToolDefinition| {
            tools.iter().any(|tool| tool.model_name == definition.name)
        };
        let definitions = self.definitions.iter().filter(named).cloned().collect();
        Self {
            tools,
            definitions,
            refused_plugins: Vec::new(),
            policy: Arc::clone(&self.policy),
            chosen_caps: self.chosen_caps.clone(),
        }
    }

    /// Builds a tool with the permissions that the policy leaves it.
    fn build_tool(
        &self,
        declared: &DeclaredTool,
        origin: &PluginProvenance,
        (backend, model_name): (ToolBackend, String),
    ) -> CatalogTool {
        let name = &declared.name;
        let id = ToolId::new(name, backend.digest().as_str());
        let denied_by_policy: Vec<(Capability, SourceLocation)> = declared
            .asks
            .iter()
            .filter_map(|asked| {
                self.policy
                    .capability_denied_by(id, asked)
                    .map(|place| (asked.clone(), place.clone()))
            })
            .collect();
        let allowed: Vec<Capability> = declared
            .asks
            .iter()
            .filter(|asked| !denied_by_policy.iter().any(|(capability, _)| capability == *asked))
            .cloned()
            .collect();
        let with_local: Vec<Capability> =
            allowed.iter().map(|asked| self.policy.with_local_hosts(asked)).collect();
        let grants = Grants::from_requested(&with_local);
        let verdict = self.policy.tool_verdict(id);
        let denial = match (&verdict, denied_by_policy.first()) {
            (Some(verdict), _) if verdict.verdict == Verdict::Deny => Some(Denial::from_verdict(
                DenialCode::Policy,
                &format!("{name} cannot run"),
                &Action::Use,
                verdict,
            )),
            // The process of a source has its permissions as a whole.
            (_, Some((capability, place)))
                if allowed.is_empty() || matches!(backend, ToolBackend::Source(_)) =>
            {
                Some(Denial::denied_by_policy(name, capability, place))
            }
            (Some(_) | None, _) => None,
        };
        let confirm =
            declared.confirm || verdict.is_some_and(|verdict| verdict.verdict == Verdict::Ask);
        let chosen = self.chosen_caps.for_tool(name);
        CatalogTool {
            declaration: declared.clone(),
            origin: origin.clone(),
            grants,
            denied_by_policy,
            denial,
            confirm,
            caps: self.policy.effective_caps(id, &chosen),
            tier: Tier::from_capabilities(&allowed, declared.exclusive || confirm),
            backend,
            model_name,
            arguments: ArgumentChecker::new(declared.input_schema.clone()),
            structured: StructuredResultChecker::new(declared),
        }
    }

    /// Returns a tool by its exact name: the one for people, or the one for the model.
    pub fn find(&self, name: &str) -> Option<&CatalogTool> {
        self.tools.iter().find(|tool| tool.model_name == name || tool.declaration.name == name)
    }

    /// Returns all tools, in order.
    pub fn tools(&self) -> &[CatalogTool] {
        &self.tools
    }

    /// Returns the plugins that were refused.
    pub fn refused_plugins(&self) -> &[RefusedPlugin] {
        &self.refused_plugins
    }

    /// Returns the definitions of the offered tools, for the model.
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Returns the tools that rules or the configuration name and that do not exist, each with its
    /// location. A refused tool counts as existing.
    pub fn unknown_tools(&self) -> Vec<UnknownTool> {
        let names = || {
            self.tools
                .iter()
                .map(|tool| &tool.declaration.name)
                .chain(self.refused_plugins.iter().flat_map(|refused| &refused.tools))
        };
        let is_known = |name: &str| names().any(|known| known.eq_ignore_ascii_case(name));
        let in_policy = self
            .policy
            .layers()
            .flat_map(|(trust, layer)| layer.named_tools.iter().map(move |named| (trust, named)));
        let mut unknown: Vec<UnknownTool> = in_policy
            .filter(|(_, (subject, _))| match subject {
                ToolSelector::Every => false,
                ToolSelector::Name(name) => !is_known(name),
                ToolSelector::Server(server) => !names().any(|known| {
                    known.split_once('/').is_some_and(|(of, _)| of.eq_ignore_ascii_case(server))
                }),
                ToolSelector::Digest(digest) => {
                    !self.tools.iter().any(|tool| tool.backend.digest().as_str() == digest)
                }
            })
            .map(|(trust, (subject, place))| UnknownTool {
                name: subject.to_string(),
                location: Some(place.clone()),
                is_from_user: trust == TrustLevel::User,
            })
            .collect();
        let limited = self.chosen_caps.by_tool.keys().filter(|name| !is_known(name));
        unknown.extend(limited.map(|name| UnknownTool {
            name: name.clone(),
            location: None,
            is_from_user: true,
        }));
        unknown
    }

    /// Describes why no tool has this name, and lists the tools.
    pub fn unknown_tool_error(&self, name: &str) -> String {
        if let Some(refused) = self
            .refused_plugins
            .iter()
            .find(|refused| refused.tools.iter().any(|tool| tool == name))
        {
            if let PluginProvenance::Source(_) = refused.origin {
                return format!("the tool {name} is not available: {}", refused.reason);
            }
            return format!(
                "the tool {name} is not available: the plugin {} was refused: {}",
                refused.origin, refused.reason
            );
        }
        let shown: String = name.chars().take(64).collect();
        let known: Vec<&str> = self
            .tools
            .iter()
            .filter(|tool| tool.denial.is_none())
            .map(|tool| tool.model_name.as_str())
            .collect();
        format!("unknown tool {shown:?}. Available tools: {}.", known.join(", "))
    }
}

impl PluginProvenance {
    /// Returns whether the plugin was loaded from the file of this name.
    pub fn is_file(&self, name: &str) -> bool {
        matches!(self, Self::File(path) if path.as_os_str() == name)
    }
}

impl fmt::Display for PluginProvenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => write!(f, "built-in {name}"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Source(name) => write!(f, "server {name}"),
        }
    }
}
