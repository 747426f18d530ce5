//! Which tools there are, by name, and which plugins were not let in.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::arguments::Arguments;
use super::builtin::{builtin_components, builtin_names};
use super::tier::tier;
use crate::agent::events::Tier;
use crate::agent::ports::ToolDefinition;
use crate::policy::{Capability, Caps, Code, Denial, Grants, Place, Policy, Subject, Verdict, Voice};
use crate::sandbox::{ComponentBytes, DeclaredTool, LoadError, Plugin, Sandbox};

/// All tools of a run, in the order in which the model is told of them.
#[derive(Default)]
pub struct Catalog {
    tools: Vec<Tool>,
    refused: Vec<Refused>,
    definitions: Vec<ToolDefinition>,
    policy: Arc<Policy>,
    chosen: ChosenCaps,
}

/// The caps that the user chose, for all tools and for some.
#[derive(Clone, Debug, Default)]
pub struct ChosenCaps {
    /// For all.
    pub every: Caps,
    /// By the name of a tool, in place of those for all.
    pub by_tool: BTreeMap<String, Caps>,
}

/// Where a plugin comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is part of this program.
    BuiltIn(&'static str),
    /// It was read from a file.
    File(PathBuf),
}

/// A tool that can be called.
pub struct Tool {
    /// What its plugin says of it.
    pub declared: DeclaredTool,
    /// Where its plugin comes from.
    pub origin: Origin,
    /// What it holds.
    pub grants: Grants,
    /// What it asks for that this host cannot lend.
    pub not_lent: Vec<Capability>,
    /// What it asks for that the policy withholds, and where that is written.
    pub withheld: Vec<(Capability, Place)>,
    /// Why it does not run at all, if the policy says so. It is not offered then.
    pub forbidden: Option<Denial>,
    /// Whether each call is confirmed, since the tool or the policy wants it.
    pub confirm: bool,
    /// The caps of its calls, as far as they are not the usual ones.
    pub caps: Caps,
    /// How its calls are ordered.
    pub tier: Tier,
    /// Its component.
    pub plugin: Arc<Plugin>,
    /// Checks its input.
    pub arguments: Arguments,
}

/// A plugin that is not offered, and why.
#[derive(Debug)]
pub struct Refused {
    /// Which.
    pub origin: Origin,
    /// Why.
    pub reason: String,
    /// Names of the tools it declares, as far as that is known.
    pub tools: Vec<String>,
    /// Whether it cannot be used as it is, whoever would let it in.
    pub is_broken: bool,
}

impl Refused {
    /// How it stands, in a word.
    pub fn word(&self) -> &'static str {
        if self.is_broken { "broken" } else { "refused" }
    }
}

/// A tool that something is said about, and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTool {
    name: String,
    /// `None` for the configuration.
    place: Option<Place>,
    /// The user has said it, who may have meant another one.
    pub of_user: bool,
}

impl fmt::Display for UnknownTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: there is no tool {}, so what is said of it has no effect", self.name),
            None => write!(f, "[tools.{0}] in the configuration: there is no tool {0}, so its limits have no effect", self.name),
        }
    }
}

impl ChosenCaps {
    /// Those of one tool. No two tools have names that only differ in case.
    pub fn of(&self, tool: &str) -> Caps {
        let its_own = self.by_tool.iter().find(|(name, _)| name.eq_ignore_ascii_case(tool)).map(|(_, caps)| caps);
        its_own.map_or_else(|| self.every.clone(), |caps| caps.or(&self.every))
    }
}

/// Why a stranger's plugin would be offered by no run, whatever else is offered.
pub fn objection_to(plugin: &Plugin) -> Option<String> {
    let built_in = |declared: &DeclaredTool| {
        let name = builtin_names().find(|name| name.eq_ignore_ascii_case(&declared.name))?;
        Some(twice(name, &Origin::BuiltIn(name)))
    };
    // The author of a built-in plugin has it in hand as a file.
    let is_built_in = builtin_components().any(|(_, component)| component.digest() == plugin.digest());
    let taken = if is_built_in { None } else { plugin.declaration().tools.iter().find_map(built_in) };
    taken.or_else(|| unusable(plugin))
}

fn unusable(plugin: &Plugin) -> Option<String> {
    plugin.declaration().tools.iter().find_map(|tool| {
        let problem = Arguments::new(tool.input_schema.clone()).validator().err()?.to_owned();
        Some(format!("the input schema of {} cannot be used: {problem}", tool.name))
    })
}

fn twice(name: &str, origin: &Origin) -> String {
    format!("it has a tool named {name}, and so has {origin}; names are unique, whatever their case. Remove one of the two")
}

impl Catalog {
    /// An empty one for tools under a policy, with the caps that the user chose.
    pub fn under(policy: Policy, chosen: ChosenCaps) -> Self {
        Self { policy: Arc::new(policy), chosen, ..Self::default() }
    }

    /// The policy, which knows the tools by their digests too.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Loads a plugin and adds its tools, or notes why it cannot. One bad plugin does not take the others down.
    pub fn add(&mut self, sandbox: &Sandbox, origin: Origin, component: impl Into<ComponentBytes>, on_compile: &dyn Fn()) {
        self.add_if(sandbox, origin, component, on_compile, &mut |_| Ok(()));
    }

    /// The same, if somebody who has seen what it asks for lets it in.
    pub fn add_if(
        &mut self,
        sandbox: &Sandbox,
        origin: Origin,
        component: impl Into<ComponentBytes>,
        on_compile: &dyn Fn(),
        admits: &mut dyn FnMut(&Plugin) -> Result<(), String>,
    ) {
        match sandbox.load(component, on_compile) {
            Ok(plugin) => match admits(&plugin) {
                Ok(()) => self.add_loaded(origin, Arc::new(plugin)),
                Err(reason) => {
                    let tools = plugin.declaration().tools.iter().map(|tool| tool.name.clone()).collect();
                    self.refused.push(Refused { origin, reason, tools, is_broken: false });
                }
            },
            Err(error) => self.refuse(origin, &error),
        }
    }

    /// Notes a plugin that could not be loaded.
    pub fn refuse(&mut self, origin: Origin, error: &LoadError) {
        self.refused.push(Refused { origin, reason: error.to_string(), tools: Vec::new(), is_broken: true });
    }

    /// Why a plugin would not be offered beside the others, those of one origin left out.
    pub fn objection(&self, plugin: &Plugin, left_out: Option<&Origin>) -> Option<String> {
        self.taken(plugin, left_out).or_else(|| unusable(plugin))
    }

    fn taken(&self, plugin: &Plugin, left_out: Option<&Origin>) -> Option<String> {
        let others = || self.tools.iter().filter(|tool| Some(&tool.origin) != left_out);
        let taken = |declared: &DeclaredTool| others().find(|tool| tool.declared.name.eq_ignore_ascii_case(&declared.name));
        plugin.declaration().tools.iter().find_map(taken).map(|taken| twice(&taken.declared.name, &taken.origin))
    }

    fn add_loaded(&mut self, origin: Origin, plugin: Arc<Plugin>) {
        let names: Vec<String> = plugin.declaration().tools.iter().map(|tool| tool.name.clone()).collect();
        // A stranger's schema is tried out now; that of a built-in tool is known to be good, and costs time.
        let objection = match &origin {
            Origin::File(_) => self.objection(&plugin, None),
            Origin::BuiltIn(_) => self.taken(&plugin, None),
        };
        if let Some(reason) = objection {
            self.refused.push(Refused { origin, reason, tools: names, is_broken: true });
            return;
        }
        let mut new = Vec::with_capacity(names.len());
        for declared in &plugin.declaration().tools {
            let arguments = Arguments::new(declared.input_schema.clone());
            Arc::make_mut(&mut self.policy).know(&declared.name, plugin.digest().as_str());
            new.push(self.tool(declared, &origin, &plugin, arguments));
        }
        self.definitions.extend(new.iter().filter(|tool| tool.forbidden.is_none()).map(|tool| ToolDefinition {
            name: tool.declared.name.clone(),
            description: tool.declared.description.clone(),
            input_schema: tool.declared.input_schema.clone(),
        }));
        self.tools.extend(new);
    }

    /// The tools that can only read: those of a sub-agent.
    pub fn reading(&self) -> Self {
        let again = |tool: &Tool| self.tool(&tool.declared, &tool.origin, &tool.plugin, Arguments::new(tool.declared.input_schema.clone()));
        let tools: Vec<Tool> = self.tools.iter().filter(|tool| tool.tier == Tier::ReadOnly).map(again).collect();
        let named = |definition: &&ToolDefinition| tools.iter().any(|tool| tool.declared.name == definition.name);
        let definitions = self.definitions.iter().filter(named).cloned().collect();
        Self { tools, definitions, refused: Vec::new(), policy: Arc::clone(&self.policy), chosen: self.chosen.clone() }
    }

    /// A tool with what the policy leaves it.
    fn tool(&self, declared: &DeclaredTool, origin: &Origin, plugin: &Arc<Plugin>, arguments: Arguments) -> Tool {
        let name = &declared.name;
        let withheld: Vec<(Capability, Place)> = declared
            .asks
            .iter()
            .filter_map(|asked| self.policy.withholds(name, asked).map(|place| (asked.clone(), place.clone())))
            .collect();
        let given: Vec<Capability> =
            declared.asks.iter().filter(|asked| !withheld.iter().any(|(capability, _)| capability == *asked)).cloned().collect();
        let with_local: Vec<Capability> = given.iter().map(|asked| self.policy.with_local(asked)).collect();
        let (grants, not_lent) = Grants::for_asked(&with_local);
        let found = self.policy.on_tool(name);
        let forbidden = match (&found, withheld.first()) {
            (Some(finding), _) if finding.verdict == Verdict::Deny => {
                Some(Denial::found(Code::Policy, &format!("{name} may not run"), finding))
            }
            (_, Some((capability, place))) if given.is_empty() => Some(Denial::withheld(name, capability, place)),
            (Some(_) | None, _) => None,
        };
        let confirm = declared.confirm || found.is_some_and(|finding| finding.verdict == Verdict::Ask);
        let chosen = self.chosen.of(name);
        Tool {
            declared: declared.clone(),
            origin: origin.clone(),
            grants,
            not_lent,
            withheld,
            forbidden,
            confirm,
            caps: self.policy.caps(name, &chosen),
            tier: tier(&given, declared.exclusive || confirm),
            plugin: Arc::clone(plugin),
            arguments,
        }
    }

    /// A tool by its exact name.
    pub fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.declared.name == name)
    }

    /// All tools, in order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The plugins that were not let in.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// What a model is told.
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Tools that rules, or limits of the configuration, are about, and that are not there: each with its place. One that was
    /// refused is known.
    pub fn unknown_subjects(&self) -> Vec<UnknownTool> {
        let names = || self.tools.iter().map(|tool| &tool.declared.name).chain(self.refused.iter().flat_map(|refused| &refused.tools));
        let is_known = |name: &str| names().any(|known| known.eq_ignore_ascii_case(name));
        let in_policy = self.policy.layers().flat_map(|(voice, layer)| layer.named.iter().map(move |named| (voice, named)));
        let mut unknown: Vec<UnknownTool> = in_policy
            .filter(|(_, (subject, _))| match subject {
                Subject::Every => false,
                Subject::Name(name) => !is_known(name),
                Subject::Digest(digest) => !self.tools.iter().any(|tool| tool.plugin.digest().as_str() == digest),
            })
            .map(|(voice, (subject, place))| UnknownTool {
                name: subject.to_string(),
                place: Some(place.clone()),
                of_user: voice == Voice::User,
            })
            .collect();
        let limited = self.chosen.by_tool.keys().filter(|name| !is_known(name));
        unknown.extend(limited.map(|name| UnknownTool { name: name.clone(), place: None, of_user: true }));
        unknown
    }

    /// Why a name is not that of a tool, with the names there are.
    pub fn unknown(&self, name: &str) -> String {
        if let Some(refused) = self.refused.iter().find(|refused| refused.tools.iter().any(|tool| tool == name)) {
            return format!("the tool {name} is not offered: {} was refused, since {}", refused.origin, refused.reason);
        }
        let shown: String = name.chars().take(64).collect();
        let known: Vec<&str> = self.tools.iter().filter(|tool| tool.forbidden.is_none()).map(|tool| tool.declared.name.as_str()).collect();
        format!("there is no tool named {shown:?}. The tools are: {}.", known.join(", "))
    }
}

impl Origin {
    /// Whether it is the file of this name.
    pub fn is_file(&self, name: &str) -> bool {
        matches!(self, Self::File(path) if path.as_os_str() == name)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => write!(f, "built-in {name}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}
