//! The declaration of a plugin, read in an empty sandbox and checked.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::contract::{Annotation, ParameterizedName, check_annotations};
use super::schema;
use crate::policy::{Capability, RequestPattern};
use crate::terminal_escape;

/// The tools of a plugin and the imports of its component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PluginDeclaration {
    /// The tools, in the plugin's order.
    pub tools: Vec<DeclaredTool>,
    /// The interfaces that the component imports.
    pub imports: ComponentImports,
}

/// A tool as its plugin describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeclaredTool {
    /// The name: 1 to 64 characters of `[a-zA-Z0-9_-]`, or `source/tool` for a tool of a source.
    pub name: String,
    /// The name for people, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of the input, of type `object`.
    pub input_schema: Value,
    /// The JSON Schema of the structured result, of type `object`, if the tool returns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The capabilities that the tool requests.
    pub asks: Vec<Capability>,
    /// Whether the tool asks to run alone.
    pub exclusive: bool,
    /// Whether the tool asks for a confirmation of each call.
    pub confirm: bool,
}

/// A tool as its plugin lists it, not checked yet.
#[derive(Clone, Debug)]
pub(super) struct ListedTool {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: String,
    pub(super) input_schema: String,
    pub(super) output_schema: Option<String>,
    pub(super) capabilities: Vec<ParameterizedName>,
    pub(super) hints: Vec<ParameterizedName>,
    pub(super) annotations: Vec<Annotation>,
}

/// The interfaces that a component imports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ComponentImports {
    /// The names of all imported interfaces, sorted.
    pub interfaces: Vec<String>,
    /// The imported interfaces that give access to the outside world.
    pub lent: BTreeSet<HostInterface>,
}

/// A host interface that gives access to something outside of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
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
const MAX_TITLE_LEN: usize = 128;
const MAX_DESCRIPTION_LEN: usize = 16 << 10;
/// The number of request patterns and other capabilities that one tool may request. Each is shown
/// to the user and compared with what was accepted.
const MAX_REQUESTED: usize = 256;
/// The longest request pattern, in bytes.
const MAX_REQUESTED_LEN: usize = 512;
/// The capabilities of the WIT contract.
const KNOWN_CAPABILITIES: [&str; 7] = [
    "read-files",
    "write-files",
    "run-commands",
    "fetch",
    "delegate",
    "keep-state",
    "present-plan",
];
/// The characters that end a line besides the control characters.
const LINE_SEPARATORS: [char; 2] = ['\u{2028}', '\u{2029}'];
/// The number of imported interfaces, counting each version. WASI has about thirty.
const MAX_IMPORTS: usize = 256;

impl PluginDeclaration {
    /// Checks the result of `list-tools`, or returns what is wrong with it.
    pub(super) fn check(tools: Vec<ListedTool>, imports: ComponentImports) -> Result<Self, String> {
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

/// The texts of a tool that is not declared by a component.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolTexts<'a> {
    /// The name for people, in one line.
    pub(crate) title: Option<&'a str>,
    /// The description for the model.
    pub(crate) description: &'a str,
    /// The JSON text of the schema of the input.
    pub(crate) input_schema: &'a str,
    /// The JSON text of the schema of the structured result.
    pub(crate) output_schema: Option<&'a str>,
}

impl DeclaredTool {
    /// Declares a tool of another source than a component. The host chooses its name and its
    /// permissions. Unlike a plugin, nobody can repair the texts, so they are shortened and
    /// escaped.
    pub(crate) fn from_texts(
        name: String,
        texts: ToolTexts<'_>,
        asks: Vec<Capability>,
        confirm: bool,
    ) -> Result<Self, String> {
        let title = texts.title.map(|title| terminal_escape::escape_line(title, MAX_TITLE_LEN / 2));
        let mut description = terminal_escape::escape_text(texts.description);
        if description.len() > MAX_DESCRIPTION_LEN {
            description.truncate(description.floor_char_boundary(MAX_DESCRIPTION_LEN - 4));
            description.push('\u{2026}');
        }
        let input_schema = schema::check(texts.input_schema)
            .map_err(|problem| format!("the input schema of `{name}` {problem}"))?;
        let output_schema = texts
            .output_schema
            .map(schema::check)
            .transpose()
            .map_err(|problem| format!("the output schema of `{name}` {problem}"))?;
        Ok(Self {
            title: title.filter(|title| !title.trim().is_empty()),
            description,
            input_schema,
            output_schema,
            asks,
            exclusive: false,
            confirm,
            name,
        })
    }
}

fn check_tool(tool: ListedTool) -> Result<DeclaredTool, String> {
    let name = tool.name;
    let well_formed = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if name.is_empty() || name.len() > MAX_NAME_LEN || !well_formed {
        let shown: String = name.chars().take(MAX_NAME_LEN).collect();
        return Err(format!(
            "the tool name {shown:?} is not valid: use 1 to {MAX_NAME_LEN} of a-z, A-Z, 0-9, _ and \
                -"
        ));
    }
    if let Some(title) = &tool.title
        && (title.trim().is_empty()
            || title.len() > MAX_TITLE_LEN
            || title.chars().any(|c| c.is_control() || LINE_SEPARATORS.contains(&c)))
    {
        return Err(format!(
            "the title of `{name}` is not 1 to {MAX_TITLE_LEN} bytes in one line without control \
                characters"
        ));
    }
    if tool.description.len() > MAX_DESCRIPTION_LEN {
        return Err(format!(
            "the description of `{name}` is longer than {MAX_DESCRIPTION_LEN} bytes"
        ));
    }
    check_annotations(&tool.annotations).map_err(|problem| format!("`{name}` {problem}"))?;
    let input_schema = schema::check(&tool.input_schema)
        .map_err(|problem| format!("the input schema of `{name}` {problem}"))?;
    let output_schema = tool
        .output_schema
        .map(|schema| schema::check(&schema))
        .transpose()
        .map_err(|problem| format!("the output schema of `{name}` {problem}"))?;
    let (exclusive, confirm) = parse_hints(&tool.hints);
    Ok(DeclaredTool {
        title: tool.title,
        description: tool.description,
        input_schema,
        output_schema,
        asks: parse_capabilities(&name, tool.capabilities)?,
        exclusive,
        confirm,
        name,
    })
}

/// Parses the capabilities that a tool requests. Refuses a name or a parameter that this version
/// does not know: the plugin may depend on it.
fn parse_capabilities(
    tool: &str,
    requested: Vec<ParameterizedName>,
) -> Result<Vec<Capability>, String> {
    let count: usize = requested.iter().map(|one| one.parameters.len().max(1)).sum();
    let mut parameters = requested.iter().flat_map(|one| &one.parameters);
    if count > MAX_REQUESTED || parameters.any(|parameter| parameter.len() > MAX_REQUESTED_LEN) {
        return Err(format!(
            "`{tool}` requests more than {MAX_REQUESTED} capabilities, or one with a parameter of \
                more than {MAX_REQUESTED_LEN} bytes"
        ));
    }
    requested.into_iter().map(|capability| parse_capability(tool, capability)).collect()
}

fn parse_capability(
    tool: &str,
    ParameterizedName { name, parameters }: ParameterizedName,
) -> Result<Capability, String> {
    let capability = match name.as_str() {
        "fetch" => {
            return match parameters.iter().find_map(|text| RequestPattern::parse(text).err()) {
                Some(problem) => Err(format!("`{tool}` requests an invalid host: {problem}")),
                None => Ok(Capability::Fetch(parameters)),
            };
        }
        "read-files" => Capability::ReadFiles,
        "write-files" => Capability::WriteFiles,
        "run-commands" => Capability::RunCommands,
        "delegate" => Capability::Delegate,
        "keep-state" => Capability::KeepState,
        "present-plan" => Capability::PresentPlan,
        _ => {
            return Err(format!(
                "`{tool}` requests the unknown capability `{}`; this version knows {}",
                terminal_escape::escape_line(&name, MAX_NAME_LEN),
                KNOWN_CAPABILITIES.map(|known| format!("`{known}`")).join(", ")
            ));
        }
    };
    match parameters.first() {
        None => Ok(capability),
        Some(parameter) => Err(format!(
            "`{tool}` requests `{name}` with the unknown parameter `{}`; `{name}` has no \
                parameters",
            terminal_escape::escape_line(parameter, MAX_NAME_LEN)
        )),
    }
}

/// Returns whether the hints ask for exclusive runs, and for a confirmation of each call. A hint
/// that this version does not know asks for both, because a hint only makes a tool stricter.
fn parse_hints(hints: &[ParameterizedName]) -> (bool, bool) {
    let (mut exclusive, mut confirm) = (false, false);
    for hint in hints {
        match (hint.name.as_str(), hint.parameters.as_slice()) {
            ("exclusive", []) => exclusive = true,
            ("confirm", []) => confirm = true,
            _ => (exclusive, confirm) = (true, true),
        }
    }
    (exclusive, confirm)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: &str) -> ListedTool {
        ListedTool {
            name: name.into(),
            title: None,
            description: String::new(),
            input_schema: schema.into(),
            output_schema: None,
            capabilities: vec![],
            hints: vec![],
            annotations: vec![],
        }
    }

    fn named(name: &str, parameters: &[&str]) -> ParameterizedName {
        let parameters = parameters.iter().map(|&text| text.to_owned()).collect();
        ParameterizedName { name: name.into(), parameters }
    }

    fn check(tools: Vec<ListedTool>) -> Result<PluginDeclaration, String> {
        PluginDeclaration::check(tools, ComponentImports::from_names([].into_iter()))
    }

    fn problem(tools: Vec<ListedTool>) -> String {
        check(tools).unwrap_err()
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

    fn requesting(capabilities: Vec<ParameterizedName>) -> Result<Vec<Capability>, String> {
        check(vec![ListedTool { capabilities, ..tool("other", OBJECT) }])
            .map(|declaration| declaration.tools[0].asks.clone())
    }

    #[test]
    fn the_number_and_length_of_requests_are_limited() {
        let hosts = |count: usize| ParameterizedName {
            name: "fetch".into(),
            parameters: (0..count).map(|n| format!("h{n}.example")).collect(),
        };
        assert!(requesting(vec![hosts(200), named("read-files", &[])]).is_ok());
        for capabilities in [
            vec![hosts(257)],
            vec![hosts(200), hosts(57)],
            vec![named("read-files", &[]); 257],
            vec![named("fetch", &["x".repeat(513).as_str()])],
        ] {
            assert!(
                requesting(capabilities)
                    .is_err_and(|problem| problem.contains("more than 256 capabilities"))
            );
        }
    }

    #[test]
    fn known_capabilities_are_parsed_and_unknown_ones_are_named() {
        for name in KNOWN_CAPABILITIES {
            let asks = requesting(vec![named(name, &[])]).expect(name);
            assert_eq!(asks[0].kind().name(), name);
        }
        assert_eq!(
            requesting(vec![named("fetch", &["GET,POST a.example:8443"])]),
            Ok(vec![Capability::Fetch(vec!["GET,POST a.example:8443".into()])])
        );
        let table = [
            (
                named("read-environment", &["HOME"]),
                "`other` requests the unknown capability `read-environment`; this version knows \
                `read-files`, `write-files`, `run-commands`, `fetch`, `delegate`, `keep-state`, \
                `present-plan`",
            ),
            (
                named("read-files", &["src"]),
                "`other` requests `read-files` with the unknown parameter `src`; `read-files` has \
                no parameters",
            ),
        ];
        for (capability, expected) in table {
            assert_eq!(requesting(vec![capability]), Err(expected.to_owned()));
        }
        let problem = requesting(vec![named("fetch", &["no host!"])]).unwrap_err();
        assert!(problem.starts_with("`other` requests an invalid host: "), "{problem}");
        let problem = requesting(vec![named(&"x\u{1b}\n".repeat(9999), &[])]).unwrap_err();
        assert!(problem.len() < 500 && !problem.contains('\u{1b}'), "{problem:?}");
    }

    #[test]
    fn an_unknown_hint_makes_a_tool_as_strict_as_possible() {
        let table = [
            (vec![], (false, false)),
            (vec![named("exclusive", &[])], (true, false)),
            (vec![named("confirm", &[])], (false, true)),
            (vec![named("exclusive", &[]), named("confirm", &[])], (true, true)),
            (vec![named("careful", &[])], (true, true)),
            (vec![named("exclusive", &["on-monday"])], (true, true)),
        ];
        for (hints, expected) in table {
            let declared =
                check(vec![ListedTool { hints, ..tool("other", OBJECT) }]).expect("it is fine");
            let DeclaredTool { exclusive, confirm, .. } = declared.tools[0];
            assert_eq!((exclusive, confirm), expected);
        }
    }

    #[test]
    fn a_title_is_one_short_line() {
        let titled = |title: &str| {
            let title = Some(title.to_owned());
            check(vec![ListedTool { title, ..tool("other", OBJECT) }])
        };
        let longest = "x".repeat(128);
        for title in ["Count lines", "Zeilen z\u{e4}hlen", &longest] {
            assert_eq!(titled(title).expect(title).tools[0].title.as_deref(), Some(title));
        }
        let too_long = "x".repeat(129);
        for title in ["", " ", "a\nb", "a\u{1b}[2J", "a\u{2028}b", "a\u{85}b", &too_long] {
            let problem = titled(title).expect_err(title);
            assert!(problem.starts_with("the title of `other`"), "{problem}");
        }
    }

    #[test]
    fn an_output_schema_obeys_the_rules_of_an_input_schema() {
        let with = |schema: &str| {
            let output_schema = Some(schema.to_owned());
            check(vec![ListedTool { output_schema, ..tool("other", OBJECT) }])
        };
        let declared = with(OBJECT).expect("it is fine");
        assert_eq!(declared.tools[0].output_schema, serde_json::from_str(OBJECT).ok());
        for schema in ["", "{", "[]", r#"{"type":"string"}"#, r##"{"type":"object","$ref":"#"}"##] {
            let problem = with(schema).expect_err(schema);
            assert!(problem.starts_with("the output schema of `other`"), "{problem}");
        }
    }

    #[test]
    fn annotations_are_ignored_and_bounded() {
        let with = |annotations: Vec<Annotation>| {
            check(vec![ListedTool { annotations, ..tool("other", OBJECT) }])
        };
        let annotation = |bytes: usize| Annotation { name: "x-a".into(), value: "1".repeat(bytes) };
        assert_eq!(with(vec![annotation(9); 64]), check(vec![tool("other", OBJECT)]));
        for too_much in [vec![annotation(1); 65], vec![annotation(16 << 10)]] {
            assert!(with(too_much).is_err_and(|problem| problem.contains("annotations")));
        }
    }

    #[test]
    fn the_number_of_imports_is_limited() {
        let names: Vec<String> = (0..300).map(|n| format!("wasi:cli/exit@0.2.{n}")).collect();
        let imports = ComponentImports::from_names(names.iter().map(String::as_str));
        let problem = PluginDeclaration::check(vec![tool("other", OBJECT)], imports).unwrap_err();
        assert!(problem.contains("it imports 300 interfaces"), "{problem}");
    }

    #[test]
    fn imports_are_recognised_whatever_their_version() {
        let imports = ComponentImports::from_names(
            [
                "wasi:cli/exit@0.2.6",
                "cofferdam:plugin/commands@0.2.7",
                "cofferdam:plugin/types@0.2.0",
            ]
            .into_iter(),
        );
        assert_eq!(imports.lent, BTreeSet::from([HostInterface::Commands]));
    }
}
