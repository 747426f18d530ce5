//! Tools that are answered outside of the WebAssembly sandbox, such as those of MCP servers.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::policy::{Capability, ComponentDigest, FileGrant};
use crate::sandbox::{
    CallFailure, CallLimits, DeclaredTool, LoadedPlugin, ProgressSink, ServerAccess, SourceOutput,
    ToolTexts,
};

/// A source of tools whose calls are answered outside of the WebAssembly sandbox.
///
/// The host decides on everything: it checks the arguments, asks for approval, limits the time and
/// the output of a call, and records it. A source gets its calls one by one, and reaches files and
/// the network only through a process that it starts with [`SourceCall::server`].
pub trait ToolSource: Send + Sync {
    /// Returns the description of the source, which never changes.
    fn description(&self) -> &SourceDescription;

    /// Answers a call. Ends within half a second after the call is cancelled; the host waits no
    /// longer.
    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<SourceOutput, CallFailure>>;
}

/// A source of tools, as the user accepted it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SourceDescription {
    /// The name: 1 to 32 characters of `[a-zA-Z0-9_-]`. The tools are named `name/tool`.
    pub name: String,
    /// The digest of everything that the user accepted.
    pub digest: ComponentDigest,
    /// The access to the files of the workspace.
    pub files: FileGrant,
    /// The hosts that the source can connect to.
    pub hosts: Vec<String>,
    /// The tools, in the order of the source.
    pub tools: Vec<SourceTool>,
}

/// A tool of a source, as the user accepted it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceTool {
    /// The name within the source.
    pub name: String,
    /// The name for people, in one line.
    pub title: Option<String>,
    /// The description for the model.
    pub description: String,
    /// The JSON text of the schema of the input.
    pub input_schema: String,
    /// The JSON text of the schema of the structured result, if the tool returns one.
    pub output_schema: Option<String>,
    /// Whether the source says that the tool changes something. This can only make the tool
    /// stricter.
    pub says_it_changes: bool,
}

/// A call of a tool of a source.
pub struct SourceCall {
    /// The name of the tool within the source.
    pub tool: String,
    /// The arguments: a JSON object that the schema of the tool allows.
    pub arguments: Value,
    /// The limits of the call.
    pub limits: CallLimits,
    /// The receiver of progress messages.
    pub progress: ProgressSink,
    /// The receiver of notices for the user.
    pub notices: ProgressSink,
    /// What the call may do with the process of its server.
    pub server: ServerAccess,
    /// Cancelled when the call is cancelled, or exceeds its time limit.
    pub cancellation: CancellationToken,
}

/// What answers the calls of a tool.
///
/// This enum is closed: code that shows or runs tools has to treat each kind.
#[derive(Clone)]
pub enum ToolBackend {
    /// A component in the WebAssembly sandbox.
    Component(Arc<LoadedPlugin>),
    /// A source of tools.
    Source(SourceBackend),
}

/// One tool of a source of tools.
#[derive(Clone)]
pub struct SourceBackend {
    /// The source.
    pub source: Arc<dyn ToolSource>,
    /// The name of the tool within the source.
    pub tool: String,
}

/// The longest name of a source, in bytes.
const MAX_SOURCE_NAME_LEN: usize = 32;
/// The longest name of a tool within its source, by the specification of MCP.
const MAX_TOOL_NAME_LEN: usize = 128;
/// The longest name that models accept.
const MAX_MODEL_NAME_LEN: usize = 64;
/// The digits of the digest at the end of a name that had to be shortened.
const DIGEST_LEN: usize = 8;

impl ToolBackend {
    /// Returns the digest of the component, or of everything that the user accepted of a source.
    pub fn digest(&self) -> &ComponentDigest {
        match self {
            Self::Component(plugin) => plugin.digest(),
            Self::Source(backend) => &backend.source.description().digest,
        }
    }

    /// Returns the component; `None` for a source.
    pub fn component(&self) -> Option<&Arc<LoadedPlugin>> {
        match self {
            Self::Component(plugin) => Some(plugin),
            Self::Source(_) => None,
        }
    }
}

impl SourceDescription {
    /// Creates the description of a source without permissions.
    ///
    /// # Errors
    ///
    /// The name is not valid. The error is the end of a sentence.
    pub fn new(
        name: &str,
        digest: ComponentDigest,
        tools: Vec<SourceTool>,
    ) -> Result<Self, String> {
        check_source_name(name)?;
        Ok(Self { name: name.to_owned(), digest, files: FileGrant::None, hosts: Vec::new(), tools })
    }

    /// Sets the permissions.
    #[must_use]
    pub fn with_permissions(self, files: FileGrant, hosts: Vec<String>) -> Self {
        Self { files, hosts, ..self }
    }

    /// Returns the permissions in the words of plugins.
    pub fn capabilities(&self) -> Vec<Capability> {
        let files = match self.files {
            FileGrant::None => None,
            FileGrant::Read => Some(Capability::ReadFiles),
            FileGrant::ReadWrite => Some(Capability::WriteFiles),
        };
        let hosts = (!self.hosts.is_empty()).then(|| Capability::Fetch(self.hosts.clone()));
        files.into_iter().chain(hosts).collect()
    }

    /// Returns whether the source cannot change anything outside of its own processes, whatever it
    /// says about itself: it can neither write files nor connect to a host.
    pub fn is_read_only(&self) -> bool {
        self.files != FileGrant::ReadWrite && self.hosts.is_empty()
    }
}

/// Checks the name of a source.
///
/// # Errors
///
/// What is wrong with it, as the end of a sentence.
pub(super) fn check_source_name(name: &str) -> Result<(), String> {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if name.is_empty() || name.len() > MAX_SOURCE_NAME_LEN || !name.bytes().all(is_allowed) {
        return Err(format!("is not 1 to {MAX_SOURCE_NAME_LEN} of a-z, A-Z, 0-9, _ and -"));
    }
    Ok(())
}

impl SourceTool {
    /// Returns the declaration of the tool, named `source/tool`, and the name for the model.
    ///
    /// # Errors
    ///
    /// What is wrong with the tool, as a sentence without a full stop.
    pub(super) fn declare(
        &self,
        source: &SourceDescription,
    ) -> Result<(DeclaredTool, String), String> {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
        let name = &self.name;
        if name.is_empty() || name.len() > MAX_TOOL_NAME_LEN || !name.bytes().all(is_allowed) {
            let shown = crate::terminal_escape::escape_line(name, 64);
            return Err(format!(
                "the tool name {shown:?} is not 1 to {MAX_TOOL_NAME_LEN} of a-z, A-Z, 0-9, _, - \
                    and ."
            ));
        }
        let confirm = !source.is_read_only() || self.says_it_changes;
        let texts = ToolTexts {
            title: self.title.as_deref(),
            description: &self.description,
            input_schema: &self.input_schema,
            output_schema: self.output_schema.as_deref(),
        };
        let name_for_people = format!("{}/{name}", source.name);
        let declared =
            DeclaredTool::from_texts(name_for_people, texts, source.capabilities(), confirm)?;
        Ok((declared, model_name(&source.name, name)))
    }
}

/// Derives the name of a tool that models accept. The same tool always has the same name.
fn model_name(source: &str, tool: &str) -> String {
    let whole = format!("{source}__{tool}");
    let plain = whole.replace('.', "_");
    if plain.len() <= MAX_MODEL_NAME_LEN {
        return plain;
    }
    let digest = ComponentDigest::compute(whole.as_bytes());
    let digest: String = digest.as_str().chars().take(DIGEST_LEN).collect();
    let kept: String = plain.chars().take(MAX_MODEL_NAME_LEN - DIGEST_LEN - 1).collect();
    format!("{kept}_{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str) -> Result<SourceDescription, String> {
        SourceDescription::new(name, ComponentDigest::compute(b"x"), Vec::new())
    }

    fn tool(name: &str) -> SourceTool {
        SourceTool {
            name: name.to_owned(),
            input_schema: r#"{"type":"object"}"#.to_owned(),
            ..SourceTool::default()
        }
    }

    #[test]
    fn a_tool_has_one_name_for_people_and_one_for_the_model() {
        let fs = source("fs").expect("a name");
        let names = |tool: &SourceTool| {
            let (declared, model) = tool.declare(&fs).expect("it is valid");
            (declared.name, model)
        };
        assert_eq!(names(&tool("read")), ("fs/read".to_owned(), "fs__read".to_owned()));
        assert_eq!(names(&tool("a.b")), ("fs/a.b".to_owned(), "fs__a_b".to_owned()));
        let long = "x".repeat(100);
        let (_, first) = names(&tool(&format!("{long}1")));
        let (_, second) = names(&tool(&format!("{long}2")));
        assert!(first.len() == 64 && second.len() == 64 && first != second, "{first} {second}");
        assert_eq!(names(&tool(&format!("{long}1"))).1, first);
        for invalid in ["", "a/b", "a b", "r\u{435}ad", "a\u{202e}", &"x".repeat(129)] {
            assert!(tool(invalid).declare(&fs).is_err(), "{invalid:?}");
        }
        for invalid in ["", "a/b", "a.b", "a b", &"x".repeat(33)] {
            assert!(source(invalid).is_err(), "{invalid:?}");
        }
    }

    #[test]
    fn a_source_without_write_permission_and_network_is_not_confirmed() {
        let plain = source("s").expect("a name");
        let confirm = |source: &SourceDescription, tool: &SourceTool| {
            tool.declare(source).expect("it is valid").0.confirm
        };
        let changing = SourceTool { says_it_changes: true, ..tool("t") };
        assert!(!confirm(&plain, &tool("t")) && confirm(&plain, &changing));
        let reads = plain.clone().with_permissions(FileGrant::Read, Vec::new());
        assert!(!confirm(&reads, &tool("t")));
        let writes = plain.clone().with_permissions(FileGrant::ReadWrite, Vec::new());
        assert!(confirm(&writes, &tool("t")));
        let sends = plain.with_permissions(FileGrant::None, vec!["a.org".to_owned()]);
        assert!(confirm(&sends, &tool("t")));
    }
}
