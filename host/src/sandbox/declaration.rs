//! What a plugin says of itself, read in an empty enclosure and checked.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bindings::exports::cofferdam::plugin::tools as wit;
use super::schema;
use crate::policy::{Capability, RequestPattern};

/// A plugin's tools and what its component imports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginDeclaration {
    /// In the plugin's order.
    pub tools: Vec<DeclaredTool>,
    /// What the component could use if it were granted.
    pub imports: ComponentImports,
}

/// One tool as its plugin describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeclaredTool {
    /// 1 to 64 of `[a-zA-Z0-9_-]`.
    pub name: String,
    /// For the model.
    pub description: String,
    /// A JSON Schema of type `object`.
    pub input_schema: Value,
    /// What it asks for.
    pub asks: Vec<Capability>,
    /// It wants to run alone.
    pub exclusive: bool,
    /// It wants to be confirmed each time.
    pub confirm: bool,
}

/// What a component imports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentImports {
    /// The names of all imported interfaces, in order.
    pub interfaces: Vec<String>,
    /// Those among them that this host lends.
    pub lent: BTreeSet<HostInterface>,
}

/// An interface of this host that is a power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostInterface {
    /// Looking at files.
    Workspace,
    /// Running commands.
    Commands,
    /// Sending requests.
    Http,
    /// Presenting plans.
    Plans,
    /// Handing over tasks.
    Agents,
    /// Keeping state.
    State,
}

impl HostInterface {
    const ALL: [Self; 6] =
        [Self::Workspace, Self::Commands, Self::Http, Self::Plans, Self::Agents, Self::State];

    /// Its name in the contract.
    pub fn interface(self) -> &'static str {
        match self {
            Self::Workspace => "cofferdam:plugin/workspace",
            Self::Commands => "cofferdam:plugin/commands",
            // Its types alone can do nothing.
            Self::Http => "wasi:http/outgoing-handler",
            Self::Plans => "cofferdam:plugin/plans",
            Self::Agents => "cofferdam:plugin/agents",
            Self::State => "cofferdam:plugin/state",
        }
    }

    /// Whether asking for this is asking for the interface.
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

/// The contract's caps.
const MAX_TOOLS: usize = 64;
const MAX_NAME_LEN: usize = 64;
const MAX_DESCRIPTION_LEN: usize = 16 << 10;
/// What one tool asks for: hosts, names of variables, and capabilities. Each is shown to the user,
/// and compared with what was accepted.
const MAX_REQUESTED: usize = 256;
/// Bytes of a host or of the name of a variable.
const MAX_REQUESTED_LEN: usize = 512;
/// Interfaces that a component imports, in each of their versions. All of WASI has some thirty.
const MAX_IMPORTS: usize = 256;

impl PluginDeclaration {
    /// Takes what `list-tools` answered, or says what is wrong with it.
    pub(super) fn from_wit(
        tools: Vec<wit::Tool>,
        imports: ComponentImports,
    ) -> Result<Self, String> {
        if imports.interfaces.len() > MAX_IMPORTS {
            return Err(format!(
                "it imports {} interfaces; a plugin imports at most {MAX_IMPORTS}",
                imports.interfaces.len()
            ));
        }
        if tools.is_empty() || tools.len() > MAX_TOOLS {
            return Err(format!(
                "it declares {} tools; a plugin has 1 to {MAX_TOOLS}",
                tools.len()
            ));
        }
        let mut names = BTreeSet::new();
        let tools = tools
            .into_iter()
            .map(|tool| {
                let tool = check_tool(tool)?;
                if !names.insert(tool.name.to_ascii_lowercase()) {
                    return Err(format!("it declares the tool {} twice", tool.name));
                }
                Ok(tool)
            })
            .collect::<Result<Vec<_>, String>>()?;
        Ok(Self { tools, imports })
    }

    /// The interfaces that are imported and that no tool asks for.
    pub fn unrequested_imports(&self) -> Vec<HostInterface> {
        let asked = |lent: &HostInterface| {
            self.tools
                .iter()
                .flat_map(|tool| &tool.asks)
                .any(|capability| lent.is_requested_by(capability))
        };
        self.imports.lent.iter().copied().filter(|lent| !asked(lent)).collect()
    }
}

fn check_tool(tool: wit::Tool) -> Result<DeclaredTool, String> {
    let name = tool.name;
    let well_formed = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if name.is_empty() || name.len() > MAX_NAME_LEN || !well_formed {
        let shown: String = name.chars().take(MAX_NAME_LEN).collect();
        return Err(format!(
            "the tool name {shown:?} is not 1 to {MAX_NAME_LEN} of a-z, A-Z, 0-9, _ and -"
        ));
    }
    if tool.description.len() > MAX_DESCRIPTION_LEN {
        return Err(format!(
            "the description of {name} is longer than {MAX_DESCRIPTION_LEN} bytes"
        ));
    }
    let asked = |capability: &wit::Capability| match capability {
        wit::Capability::Fetch(texts) | wit::Capability::ReadEnvironment(texts) => {
            (texts.len().max(1), texts.iter().map(String::len).max().unwrap_or_default())
        }
        _ => (1, 0),
    };
    let (count, longest) = tool
        .capabilities
        .iter()
        .map(asked)
        .fold((0, 0), |(count, longest), (more, length)| (count + more, longest.max(length)));
    if count > MAX_REQUESTED || longest > MAX_REQUESTED_LEN {
        return Err(format!(
            "{name} asks for more than {MAX_REQUESTED} things, or for one with a name of more \
                than {MAX_REQUESTED_LEN} bytes"
        ));
    }
    for capability in &tool.capabilities {
        if let wit::Capability::Fetch(hosts) = capability
            && let Some(problem) = hosts.iter().find_map(|host| RequestPattern::parse(host).err())
        {
            return Err(format!("{name} asks for a host that cannot be understood: {problem}"));
        }
    }
    let input_schema = schema::check(&tool.input_schema)
        .map_err(|problem| format!("the input schema of {name} {problem}"))?;
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
    fn a_tool_asks_for_what_a_person_can_read() {
        let asking = |capabilities: Vec<wit::Capability>| {
            let mut tool = tool("other", OBJECT);
            tool.capabilities = capabilities;
            PluginDeclaration::from_wit(vec![tool], ComponentImports::from_names([].into_iter()))
        };
        let hosts = |count: usize| {
            wit::Capability::Fetch((0..count).map(|n| format!("h{n}.example")).collect())
        };
        assert!(asking(vec![hosts(200), wit::Capability::ReadFiles]).is_ok());
        for asked in [
            vec![hosts(257)],
            vec![hosts(200), hosts(57)],
            vec![wit::Capability::ReadFiles; 257],
            vec![wit::Capability::ReadEnvironment(vec![String::new(); 257])],
            vec![wit::Capability::ReadEnvironment(vec!["x".repeat(513)])],
        ] {
            assert!(
                asking(asked)
                    .is_err_and(|problem| problem.contains("asks for more than 256 things"))
            );
        }
    }

    #[test]
    fn a_component_imports_what_there_is() {
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
