//! Which tools there are, by name, and which plugins were not let in.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::arguments::ArgumentChecker;
use super::builtin::{builtin_components, builtin_names};
use super::tier::compute_tier;
use crate::agent::events::Tier;
use crate::agent::ports::ToolDefinition;
use crate::policy::{
    Action, Capability, Caps, Denial, DenialCode, Grants, Policy, SourceLocation, ToolId,
    ToolSelector, TrustLevel, Verdict,
};
use crate::sandbox::{ComponentBytes, DeclaredTool, LoadError, LoadedPlugin, WasmSandbox};

/// All tools of a run, in the order in which the model is told of them.
#[derive(Default)]
pub struct ToolCatalog {
    tools: Vec<CatalogTool>,
    refused_plugins: Vec<RefusedPlugin>,
    definitions: Vec<ToolDefinition>,
    policy: Arc<Policy>,
    chosen_caps: ChosenCaps,
}

/// The caps that the user chose, for all tools and for some.
#[derive(Clone, Debug, Default)]
pub struct ChosenCaps {
    /// For all.
    pub defaults: Caps,
    /// By the name of a tool, in place of those for all.
    pub by_tool: BTreeMap<String, Caps>,
}

/// Where a plugin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginProvenance {
    /// It is part of this program.
    BuiltIn(&'static str),
    /// It was read from a file.
    File(PathBuf),
}

/// A tool that can be called.
pub struct CatalogTool {
    /// What its plugin says of it.
    pub declaration: DeclaredTool,
    /// Where its plugin comes from.
    pub origin: PluginProvenance,
    /// What it holds.
    pub grants: Grants,
    /// What it asks for that this host cannot lend.
    pub unsupported: Vec<Capability>,
    /// What it asks for that the policy withholds, and where that is written.
    pub denied_by_policy: Vec<(Capability, SourceLocation)>,
    /// Why it does not run at all, if the policy says so. It is not offered then.
    pub denial: Option<Denial>,
    /// Whether each call is confirmed, since the tool or the policy wants it.
    pub confirm: bool,
    /// The caps of its calls, as far as they are not the usual ones.
    pub caps: Caps,
    /// How its calls are ordered.
    pub tier: Tier,
    /// Its component.
    pub plugin: Arc<LoadedPlugin>,
    /// Checks its input.
    pub arguments: ArgumentChecker,
}

/// A plugin that is not offered, and why.
#[derive(Debug)]
pub struct RefusedPlugin {
    /// Which.
    pub origin: PluginProvenance,
    /// Why.
    pub reason: String,
    /// Names of the tools it declares, as far as that is known.
    pub tools: Vec<String>,
    /// Whether it cannot be used as it is, whoever would let it in.
    pub is_broken: bool,
}

impl RefusedPlugin {
    /// How it stands, in a word.
    pub fn status_label(&self) -> &'static str {
        if self.is_broken { "broken" } else { "refused" }
    }
}

/// A tool that something is said about, and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTool {
    name: String,
    /// `None` for the configuration.
    location: Option<SourceLocation>,
    /// The user has said it, who may have meant another one.
    pub is_from_user: bool,
}

impl fmt::Display for UnknownTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Some(place) => write!(
                f,
                "{place}: there is no tool {}, so what is said of it has no effect",
                self.name
            ),
            None => write!(
                f,
                "[tools.{0}] in the configuration: there is no tool {0}, so its limits have no \
                    effect",
                self.name
            ),
        }
    }
}

impl ChosenCaps {
    /// Those of one tool. No two tools have names that only differ in case.
    pub fn for_tool(&self, tool: &str) -> Caps {
        let its_own = self
            .by_tool
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(tool))
            .map(|(_, caps)| caps);
        its_own.map_or_else(|| self.defaults.clone(), |caps| caps.or(&self.defaults))
    }
}

/// Why a stranger's plugin would be offered by no run, whatever else is offered.
pub fn load_error(plugin: &LoadedPlugin) -> Option<String> {
    let built_in = |declared: &DeclaredTool| {
        let name = builtin_names().find(|name| name.eq_ignore_ascii_case(&declared.name))?;
        Some(duplicate_name_error(name, &PluginProvenance::BuiltIn(name)))
    };
    // The author of a built-in plugin has it in hand as a file.
    let is_built_in =
        builtin_components().any(|(_, component)| component.digest() == plugin.digest());
    let taken =
        if is_built_in { None } else { plugin.declaration().tools.iter().find_map(built_in) };
    taken.or_else(|| schema_error(plugin))
}

fn schema_error(plugin: &LoadedPlugin) -> Option<String> {
    plugin.declaration().tools.iter().find_map(|tool| {
        let problem =
            ArgumentChecker::new(tool.input_schema.clone()).compiled_schema().err()?.to_owned();
        Some(format!("the input schema of {} cannot be used: {problem}", tool.name))
    })
}

fn duplicate_name_error(name: &str, origin: &PluginProvenance) -> String {
    format!(
        "it has a tool named {name}, and so has {origin}; names are unique, whatever their case. \
            Remove one of the two"
    )
}

impl ToolCatalog {
    /// An empty one for tools under a policy, with the caps that the user chose.
    pub fn with_policy(policy: Policy, chosen_caps: ChosenCaps) -> Self {
        Self { policy: Arc::new(policy), chosen_caps, ..Self::default() }
    }

    /// The policy.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Loads a plugin and adds its tools, or notes why it cannot. One bad plugin does not take the
    /// others down.
    pub fn add(
        &mut self,
        sandbox: &WasmSandbox,
        origin: PluginProvenance,
        component: impl Into<ComponentBytes>,
        on_compile: &dyn Fn(),
    ) {
        self.add_if(sandbox, origin, component, on_compile, &mut |_| Ok(()));
    }

    /// The same, if somebody who has seen what it asks for lets it in.
    pub fn add_if(
        &mut self,
        sandbox: &WasmSandbox,
        origin: PluginProvenance,
        component: impl Into<ComponentBytes>,
        on_compile: &dyn Fn(),
        admits: &mut dyn FnMut(&LoadedPlugin) -> Result<(), String>,
    ) {
        match sandbox.load(component, on_compile) {
            Ok(plugin) => match admits(&plugin) {
                Ok(()) => self.add_loaded(origin, Arc::new(plugin)),
                Err(reason) => {
                    let tools =
                        plugin.declaration().tools.iter().map(|tool| tool.name.clone()).collect();
                    self.refused_plugins.push(RefusedPlugin {
                        origin,
                        reason,
                        tools,
                        is_broken: false,
                    });
                }
            },
            Err(error) => self.add_broken(origin, &error),
        }
    }

    /// Notes a plugin that is not loaded, for this reason.
    pub fn add_denied(&mut self, origin: PluginProvenance, reason: String) {
        self.refused_plugins.push(RefusedPlugin {
            origin,
            reason,
            tools: Vec::new(),
            is_broken: false,
        });
    }

    /// Notes a plugin that could not be loaded.
    pub fn add_broken(&mut self, origin: PluginProvenance, error: &LoadError) {
        self.refused_plugins.push(RefusedPlugin {
            origin,
            reason: error.to_string(),
            tools: Vec::new(),
            is_broken: true,
        });
    }

    /// Why a plugin would not be offered beside the others, those of one origin left out.
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
            others().find(|tool| tool.declaration.name.eq_ignore_ascii_case(&declared.name))
        };
        plugin
            .declaration()
            .tools
            .iter()
            .find_map(taken)
            .map(|taken| duplicate_name_error(&taken.declaration.name, &taken.origin))
    }

    fn add_loaded(&mut self, origin: PluginProvenance, plugin: Arc<LoadedPlugin>) {
        let names: Vec<String> =
            plugin.declaration().tools.iter().map(|tool| tool.name.clone()).collect();
        // A stranger's schema is tried out now; that of a built-in tool is known to be good, and
        // costs time.
        let objection = match &origin {
            PluginProvenance::File(_) => self.conflict(&plugin, None),
            PluginProvenance::BuiltIn(_) => self.name_conflict(&plugin, None),
        };
        if let Some(reason) = objection {
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
            let arguments = ArgumentChecker::new(declared.input_schema.clone());
            new.push(self.build_tool(declared, &origin, &plugin, arguments));
        }
        self.definitions.extend(new.iter().filter(|tool| tool.denial.is_none()).map(|tool| {
            ToolDefinition {
                name: tool.declaration.name.clone(),
                description: tool.declaration.description.clone(),
                input_schema: tool.declaration.input_schema.clone(),
            }
        }));
        self.tools.extend(new);
    }

    /// The tools that can only read: those of a sub-agent.
    pub fn read_only(&self) -> Self {
        let again = |tool: &CatalogTool| {
            self.build_tool(
                &tool.declaration,
                &tool.origin,
                &tool.plugin,
                ArgumentChecker::new(tool.declaration.input_schema.clone()),
            )
        };
        let tools: Vec<CatalogTool> =
            self.tools.iter().filter(|tool| tool.tier == Tier::ReadOnly).map(again).collect();
        let named = |definition: &&ToolDefinition| {
            tools.iter().any(|tool| tool.declaration.name == definition.name)
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

    /// A tool with what the policy leaves it.
    fn build_tool(
        &self,
        declared: &DeclaredTool,
        origin: &PluginProvenance,
        plugin: &Arc<LoadedPlugin>,
        arguments: ArgumentChecker,
    ) -> CatalogTool {
        let name = &declared.name;
        let id = ToolId::new(name, plugin.digest().as_str());
        let withheld: Vec<(Capability, SourceLocation)> = declared
            .asks
            .iter()
            .filter_map(|asked| {
                self.policy
                    .capability_denied_by(id, asked)
                    .map(|place| (asked.clone(), place.clone()))
            })
            .collect();
        let given: Vec<Capability> = declared
            .asks
            .iter()
            .filter(|asked| !withheld.iter().any(|(capability, _)| capability == *asked))
            .cloned()
            .collect();
        let with_local: Vec<Capability> =
            given.iter().map(|asked| self.policy.with_local_hosts(asked)).collect();
        let (grants, not_lent) = Grants::from_requested(&with_local);
        let found = self.policy.tool_verdict(id);
        let forbidden = match (&found, withheld.first()) {
            (Some(finding), _) if finding.verdict == Verdict::Deny => Some(Denial::from_verdict(
                DenialCode::Policy,
                &format!("{name} may not run"),
                &Action::Use,
                finding,
            )),
            (_, Some((capability, place))) if given.is_empty() => {
                Some(Denial::denied_by_policy(name, capability, place))
            }
            (Some(_) | None, _) => None,
        };
        let confirm =
            declared.confirm || found.is_some_and(|finding| finding.verdict == Verdict::Ask);
        let chosen = self.chosen_caps.for_tool(name);
        CatalogTool {
            declaration: declared.clone(),
            origin: origin.clone(),
            grants,
            unsupported: not_lent,
            denied_by_policy: withheld,
            denial: forbidden,
            confirm,
            caps: self.policy.effective_caps(id, &chosen),
            tier: compute_tier(&given, declared.exclusive || confirm),
            plugin: Arc::clone(plugin),
            arguments,
        }
    }

    /// A tool by its exact name.
    pub fn find(&self, name: &str) -> Option<&CatalogTool> {
        self.tools.iter().find(|tool| tool.declaration.name == name)
    }

    /// All tools, in order.
    pub fn tools(&self) -> &[CatalogTool] {
        &self.tools
    }

    /// The plugins that were not let in.
    pub fn refused_plugins(&self) -> &[RefusedPlugin] {
        &self.refused_plugins
    }

    /// What a model is told.
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Tools that rules, or limits of the configuration, are about, and that are not there: each
    /// with its place. One that was refused is known.
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
            .flat_map(|(voice, layer)| layer.named_tools.iter().map(move |named| (voice, named)));
        let mut unknown: Vec<UnknownTool> = in_policy
            .filter(|(_, (subject, _))| match subject {
                ToolSelector::Every => false,
                ToolSelector::Name(name) => !is_known(name),
                ToolSelector::Digest(digest) => {
                    !self.tools.iter().any(|tool| tool.plugin.digest().as_str() == digest)
                }
            })
            .map(|(voice, (subject, place))| UnknownTool {
                name: subject.to_string(),
                location: Some(place.clone()),
                is_from_user: voice == TrustLevel::User,
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

    /// Why a name is not that of a tool, with the names there are.
    pub fn unknown_tool_error(&self, name: &str) -> String {
        if let Some(refused) = self
            .refused_plugins
            .iter()
            .find(|refused| refused.tools.iter().any(|tool| tool == name))
        {
            return format!(
                "the tool {name} is not offered: {} was refused, since {}",
                refused.origin, refused.reason
            );
        }
        let shown: String = name.chars().take(64).collect();
        let known: Vec<&str> = self
            .tools
            .iter()
            .filter(|tool| tool.denial.is_none())
            .map(|tool| tool.declaration.name.as_str())
            .collect();
        format!("there is no tool named {shown:?}. The tools are: {}.", known.join(", "))
    }
}

impl PluginProvenance {
    /// Whether it is the file of this name.
    pub fn is_file(&self, name: &str) -> bool {
        matches!(self, Self::File(path) if path.as_os_str() == name)
    }
}

impl fmt::Display for PluginProvenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => write!(f, "built-in {name}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}
