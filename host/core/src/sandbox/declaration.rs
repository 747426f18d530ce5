//! The declaration of a plugin, read in an empty sandbox and checked.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bindings::exports::cofferdam::plugin::tools as wit;
use super::schema;
use crate::policy::{Capability, RequestPattern};

/// The tools of a plugin and the imports of its component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginDeclaration {
    /// The tools, in the plugin's order.
    pub tools: Vec<DeclaredTool>,
    /// The interfaces that the component imports.
    pub imports: ComponentImports,
}

/// A tool as its plugin describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeclaredTool {
    /// The name: 1 to 64 characters of `[a-zA-Z0-9_-]`.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of the input, of type `object`.
    pub input_schema: Value,
    /// The capabilities that the tool requests.
    pub asks: Vec<Capability>,
    /// Whether the tool asks to run alone.
    pub exclusive: bool,
    /// Whether the tool asks for a confirmation of each call.
    pub confirm: bool,
}

/// The interfaces that a component imports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentImports {
    /// The names of all imported interfaces, sorted.
    pub interfaces: Vec<String>,
    /// The imported interfaces that give access to the outside world.
    pub lent: BTreeSet<HostInterface>,
}

/// A host interface that gives access to something outside of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostInterface {
    /// Access to the files of the workspace.
    Workspace,
    /// Running shell commands.
    Commands,
    /// Sending HTTP requests.
    Http,
    /// Presenting plans to the user.
    Plans,
    /// Delegating tasks to sub-agents.
    Agents,
    /// Key-value storage of the tool.
    State,
}

impl HostInterface {
    const ALL: [Self; 6] =
        [Self::Workspace, Self::Commands, Self::Http, Self::Plans, Self::Agents, Self::State];

    /// Returns the name of the interface in the WIT contract.
    pub fn interface(self) -> &'static str {
        match self {
            Self::Workspace => "cofferdam:plugin/workspace",
            Self::Commands => "cofferdam:plugin/commands",
            // The types of `wasi:http` alone give no access.
            Self::Http => "wasi:http/outgoing-handler",
            Self::Plans => "cofferdam:plugin/plans",
            Self::Agents => "cofferdam:plugin/agents",
            Self::State => "cofferdam:plugin/state",
        }
    }

    /// Returns whether a request for `capability` needs this interface.
    pub fn is_requested_by(self, capability: &Capability) -> bool {
        let interface = match capability {
            Capability::ReadFiles | Capability::WriteFiles => Self::Workspace,
            Capability::RunCommands => Self::Commands,
            Capability::Fetch(_) => Self::Http,
            Capability::PresentPlan => Self::Plans,
            Capability::Delegate => Self::Agents,
            Capability::KeepState => Self::State,
            Capability::ReadEnvironment(_) => return false,
        };
        self == interface
    }
}

impl fmt::Display for HostInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.interface())
    }
}

impl ComponentImports {
    pub(super) fn from_names<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut interfaces: Vec<String> = names.map(str::to_owned).collect();
        interfaces.sort();
        let imports = |lent: &HostInterface| {
            interfaces.iter().any(|name| name.split('@').next() == Some(lent.interface()))
        };
        let lent = HostInterface::ALL.into_iter().filter(imports).collect();
        Self { interfaces, lent }
    }
}

/// The limits of the WIT contract.
const MAX_TOOLS: usize = 64;
const MAX_NAME_LEN: usize = 64;
const MAX_DESCRIPTION_LEN: usize = 16 << 10;
/// The number of hosts, variable names and other capabilities that one tool may request. Each is
/// shown to the user and compared with what was accepted.
const MAX_REQUESTED: usize = 256;
/// The longest host or variable name, in bytes.
const MAX_REQUESTED_LEN: usize = 512;
/// The number of imported interfaces, counting each version. WASI has about thirty.
const MAX_IMPORTS: usize = 256;

impl PluginDeclaration {
    /// Checks the result of `list-tools`, or returns what is wrong with it.
    pub(super) fn from_wit(
        tools: Vec<wit::Tool>,
        imports: ComponentImports,
    ) -> Result<Self, String> {
        if imports.interfaces.len() > MAX_IMPORTS {
            return Err(format!(
                "it imports {} interfaces; the limit is {MAX_IMPORTS}",
                imports.interfaces.len()
            ));
        }
        if tools.is_empty() || tools.len() > MAX_TOOLS {
            return Err(format!(
                "it declares {} tools; a plugin must have 1 to {MAX_TOOLS}",
                tools.len()
            ));
        }
        let mut names = BTreeSet::new();
        let tools = tools
            .into_iter()
            .map(|tool| {
                let tool = check_tool(tool)?;
                if !names.insert(tool.name.to_ascii_lowercase()) {
                    return Err(format!("it declares the tool `{}` twice", tool.name));
                }
                Ok(tool)
            })
            .collect::<Result<Vec<_>, String>>()?;
        Ok(Self { tools, imports })
    }

    /// Returns the imported interfaces that no tool requests.
    pub fn unrequested_imports(&self) -> Vec<HostInterface> {
        let is_requested = |lent: &HostInterface| {
            self.tools
                .iter()
                .flat_map(|tool| &tool.asks)
                .any(|capability| lent.is_requested_by(capability))
        };
        self.imports.lent.iter().copied().filter(|lent| !is_requested(lent)).collect()
    }
}

fn check_tool(tool: wit::Tool) -> Result<DeclaredTool, String> {
    let name = tool.name;
    let well_formed = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if name.is_empty() || name.len() > MAX_NAME_LEN || !well_formed {
        let shown: String = name.chars().take(MAX_NAME_LEN).collect();
        return Err(format!(
            "the tool name {shown:?} is not valid: use 1 to {MAX_NAME_LEN} of a-z, A-Z, 0-9, _ and \
                -"
        ));
    }
    if tool.description.len() > MAX_DESCRIPTION_LEN {
        return Err(format!(
            "the description of `{name}` is longer than {MAX_DESCRIPTION_LEN} bytes"
        ));
    }
    let request_size = |capability: &wit::Capability| match capability {
        wit::Capability::Fetch(texts) | wit::Capability::ReadEnvironment(texts) => {
            (texts.len().max(1), texts.iter().map(String::len).max().unwrap_or_default())
        }
        _ => (1, 0),
    };
    let (count, longest) = tool
        .capabilities
        .iter()
        .map(request_size)
        .fold((0, 0), |(count, longest), (more, length)| (count + more, longest.max(length)));
    if count > MAX_REQUESTED || longest > MAX_REQUESTED_LEN {
        return Err(format!(
            "`{name}` requests more than {MAX_REQUESTED} hosts and variables, or one with a name \
                of more than {MAX_REQUESTED_LEN} bytes"
        ));
    }
    for capability in &tool.capabilities {
        if let wit::Capability::Fetch(hosts) = capability
            && let Some(problem) = hosts.iter().find_map(|host| RequestPattern::parse(host).err())
        {
            return Err(format!("`{name}` requests an invalid host: {problem}"));
        }
    }
    let input_schema = schema::check(&tool.input_schema)
        .map_err(|problem| format!("the input schema of `{name}` {problem}"))?;
    Ok(DeclaredTool {
        description: tool.description,
        input_schema,
        asks: tool.capabilities.into_iter().map(Capability::from).collect(),
        exclusive: tool.hints.contains(wit::Hints::EXCLUSIVE),
        confirm: tool.hints.contains(wit::Hints::CONFIRM),
        name,
    })
}

impl From<wit::Capability> for Capability {
    fn from(capability: wit::Capability) -> Self {
        match capability {
            wit::Capability::ReadFiles => Self::ReadFiles,
            wit::Capability::WriteFiles => Self::WriteFiles,
            wit::Capability::RunCommands => Self::RunCommands,
            wit::Capability::Fetch(hosts) => Self::Fetch(hosts),
            wit::Capability::ReadEnvironment(names) => Self::ReadEnvironment(names),
            wit::Capability::Delegate => Self::Delegate,
            wit::Capability::KeepState => Self::KeepState,
            wit::Capability::PresentPlan => Self::PresentPlan,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: &str) -> wit::Tool {
        wit::Tool {
            name: name.into(),
            description: String::new(),
            input_schema: schema.into(),
            capabilities: vec![],
            hints: wit::Hints::empty(),
        }
    }

    fn problem(tools: Vec<wit::Tool>) -> String {
        PluginDeclaration::from_wit(tools, ComponentImports::from_names([].into_iter()))
            .unwrap_err()
    }

    const OBJECT: &str = r#"{"type":"object"}"#;

    #[test]
    fn r024_names_are_checked() {
        for name in ["", "a b", "r\u{435}ad", "a\u{200b}", "../x", &"x".repeat(65)] {
            assert!(problem(vec![tool(name, OBJECT)]).contains("the tool name"), "{name:?}");
        }
        assert!(problem(vec![tool("read", OBJECT), tool("READ", OBJECT)]).contains("twice"));
        assert!(problem(vec![]).contains("0 tools"));
    }

    #[test]
    fn the_number_and_length_of_requests_are_limited() {
        let asking = |capabilities: Vec<wit::Capability>| {
            let mut tool = tool("other", OBJECT);
            tool.capabilities = capabilities;
            PluginDeclaration::from_wit(vec![tool], ComponentImports::from_names([].into_iter()))
        };
        let hosts = |count: usize| {
            wit::Capability::Fetch((0..count).map(|n| format!("h{n}.example")).collect())
        };
        assert!(asking(vec![hosts(200), wit::Capability::ReadFiles]).is_ok());
        for capabilities in [
            vec![hosts(257)],
            vec![hosts(200), hosts(57)],
            vec![wit::Capability::ReadFiles; 257],
            vec![wit::Capability::ReadEnvironment(vec![String::new(); 257])],
            vec![wit::Capability::ReadEnvironment(vec!["x".repeat(513)])],
        ] {
            assert!(asking(capabilities).is_err_and(|problem| problem.contains(
                "requests more than 256 hosts and \
                        variables"
            )));
        }
    }

    #[test]
    fn the_number_of_imports_is_limited() {
        let names: Vec<String> = (0..300).map(|n| format!("wasi:cli/exit@0.2.{n}")).collect();
        let imports = ComponentImports::from_names(names.iter().map(String::as_str));
        let problem =
            PluginDeclaration::from_wit(vec![tool("other", OBJECT)], imports).unwrap_err();
        assert!(problem.contains("it imports 300 interfaces"), "{problem}");
    }

    #[test]
    fn imports_are_recognised_whatever_their_version() {
        let imports = ComponentImports::from_names(
            [
                "wasi:cli/exit@0.2.6",
                "cofferdam:plugin/commands@0.1.7",
                "cofferdam:plugin/types@0.1.0",
            ]
            .into_iter(),
        );
        assert_eq!(imports.lent, BTreeSet::from([HostInterface::Commands]));
    }
}
