//! MCP servers that the user accepted, with their commands, permissions and tools.
//!
//! A server is accepted as one command, or one address, with certain permissions and certain tools.
//! A server with another command, more permissions or another definition of a tool is another one,
//! and needs to be accepted again.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::accepted::{AcceptedPlugins, InvalidLockFile};
use super::locked_server::LockedServer;
use crate::config::{HttpServer, ProgramServer, SecretHeader, ServerSettings, ServerTransport};
use crate::policy::{FileGrant, NetworkRules};
use crate::sandbox::{ComponentDigest, ServerPermissions, ServerSpec};
use crate::tools::{SourceDescription, SourceTool};

/// The number of tools of a server.
pub const MAX_SERVER_TOOLS: usize = 256;

/// A server as the user accepted it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "LockedServer", into = "LockedServer")]
#[non_exhaustive]
pub struct AcceptedServer {
    /// The digest of everything else.
    pub digest: ComponentDigest,
    /// How the server is reached, and what it may do.
    pub transport: AcceptedTransport,
    /// The tools, in the order of the server.
    pub tools: Vec<AcceptedServerTool>,
}

/// How an accepted server is reached, with everything that it may do.
///
/// This enum is closed: code that starts servers has to treat each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptedTransport {
    /// A program on this machine.
    Program(AcceptedProgram),
    /// A server over HTTP.
    Http(AcceptedHttpServer),
}

/// The program of a server as the user accepted it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcceptedProgram {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The access to the files of the workspace.
    pub workspace: FileGrant,
    /// Patterns of the hosts that the server can connect to.
    pub network: Vec<String>,
    /// The names of environment variables that the server gets.
    pub env: Vec<String>,
    /// Absolute paths that the server can read.
    pub read: Vec<PathBuf>,
}

/// A server over HTTP as the user accepted it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcceptedHttpServer {
    /// The address of the server.
    pub url: String,
    /// The headers with secrets, described without the secrets.
    pub headers: Vec<String>,
    /// IP addresses that are not public, which the name of the server may have.
    pub addresses: Vec<String>,
    /// Whether the connection to another machine may be unencrypted.
    pub allow_plain_http: bool,
}

/// A tool of a server as the user accepted it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AcceptedServerTool {
    /// The name within the server.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for the model.
    #[serde(default)]
    pub description: String,
    /// The JSON text of the schema of the input.
    pub input_schema: String,
    /// The JSON text of the schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<String>,
    /// The JSON text of the annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<String>,
}

impl AcceptedServerTool {
    /// Creates a tool with a name and the JSON text of its input schema.
    pub fn new(name: impl Into<String>, input_schema: impl Into<String>) -> Self {
        Self { name: name.into(), input_schema: input_schema.into(), ..Self::default() }
    }

    /// Describes in which parts another definition of the tool differs.
    pub fn changed_parts(&self, other: &Self) -> Vec<&'static str> {
        let parts = [
            ("title", self.title != other.title),
            ("description", self.description != other.description),
            ("input schema", self.input_schema != other.input_schema),
            ("output schema", self.output_schema != other.output_schema),
            ("annotations", self.annotations != other.annotations),
        ];
        parts.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }

    /// Returns whether the annotations say that the tool changes something. Those that say that it
    /// does not are ignored: the permissions decide.
    pub fn says_it_changes(&self) -> bool {
        let hints: Option<serde_json::Value> =
            self.annotations.as_ref().and_then(|text| serde_json::from_str(text).ok());
        hints
            .is_some_and(|hints| hints["readOnlyHint"] == false || hints["destructiveHint"] == true)
    }
}

impl AcceptedServer {
    /// Pins a server with its settings and its tools.
    pub fn new(settings: &ServerSettings, tools: Vec<AcceptedServerTool>) -> Self {
        let transport = match &settings.transport {
            ServerTransport::Program(program) => AcceptedTransport::Program(AcceptedProgram {
                command: command_words(program),
                workspace: program.files,
                network: program.network.clone(),
                env: program.env.clone(),
                read: program.read.clone(),
            }),
            ServerTransport::Http(server) => AcceptedTransport::Http(AcceptedHttpServer {
                url: server.url.to_string(),
                headers: server.headers.iter().map(SecretHeader::describe).collect(),
                addresses: server.addresses.clone(),
                allow_plain_http: server.allow_plain_http,
            }),
        };
        let server = Self { digest: ComponentDigest::compute(b""), transport, tools };
        Self { digest: server.compute_digest(), ..server }
    }

    fn compute_digest(&self) -> ComponentDigest {
        let Self { digest: _, transport, tools } = self;
        // Texts and lists always have a JSON form.
        let text = match transport {
            AcceptedTransport::Program(program) => {
                let AcceptedProgram { command, workspace, network, env, read } = program;
                serde_json::to_vec(&(command, workspace, network, env, read, tools))
            }
            AcceptedTransport::Http(server) => {
                let AcceptedHttpServer { url, headers, addresses, allow_plain_http } = server;
                serde_json::to_vec(&("http", url, headers, addresses, allow_plain_http, tools))
            }
        };
        ComponentDigest::compute(&text.unwrap_or_default())
    }

    /// Describes what the configuration asks for and the user has not accepted. A server with fewer
    /// permissions than accepted needs no further acceptance.
    pub fn unaccepted_settings(&self, settings: &ServerSettings) -> Vec<String> {
        match (&self.transport, &settings.transport) {
            (AcceptedTransport::Program(accepted), ServerTransport::Program(configured)) => {
                accepted.unaccepted_settings(configured)
            }
            (AcceptedTransport::Http(accepted), ServerTransport::Http(configured)) => {
                accepted.unaccepted_settings(configured)
            }
            (accepted, ServerTransport::Program(_) | ServerTransport::Http(_)) => {
                vec![format!("it was accepted as `{}`", accepted.target_text())]
            }
        }
    }

    /// Describes how the tools of a server differ from the accepted ones.
    pub fn tool_changes(&self, live: &[AcceptedServerTool]) -> Vec<String> {
        let find = |tools: &[AcceptedServerTool], name: &str| {
            tools.iter().find(|tool| tool.name == name).cloned()
        };
        let mut changes = Vec::new();
        for tool in &self.tools {
            match find(live, &tool.name) {
                None => changes.push(format!("the tool {} is gone", tool.name)),
                Some(now) => {
                    let parts = tool.changed_parts(&now);
                    if !parts.is_empty() {
                        let parts = parts.join(" and ");
                        changes.push(format!("the {parts} of the tool {} changed", tool.name));
                    }
                }
            }
        }
        let new = live.iter().filter(|tool| find(&self.tools, &tool.name).is_none());
        changes.extend(new.map(|tool| format!("the tool {} is new", tool.name)));
        changes
    }

    /// Returns the tool with this name.
    pub fn find_tool(&self, name: &str) -> Option<&AcceptedServerTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Returns the description of the server as a source of tools, with the permissions of its
    /// settings.
    ///
    /// # Errors
    ///
    /// The name is not valid. The error is the end of a sentence.
    pub fn to_source(&self, settings: &ServerSettings) -> Result<SourceDescription, String> {
        let tools = self.tools.iter().map(|tool| SourceTool {
            name: tool.name.clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
            output_schema: tool.output_schema.clone(),
            says_it_changes: tool.says_it_changes(),
        });
        let source = SourceDescription::new(&settings.name, self.digest.clone(), tools.collect())?;
        Ok(source.with_permissions(settings.files(), settings.hosts()))
    }
}

impl AcceptedTransport {
    /// Returns the command or the URL, for the user.
    fn target_text(&self) -> String {
        match self {
            Self::Program(program) => program.command.join(" "),
            Self::Http(server) => server.url.clone(),
        }
    }
}

/// Describes what is configured and not accepted.
fn describe_new(what: &str, configured: &[String], accepted: &[String]) -> Vec<String> {
    let accepted: BTreeSet<&String> = accepted.iter().collect();
    let new = configured.iter().filter(|one| !accepted.contains(one));
    new.map(|one| format!("{what} {one} is new")).collect()
}

impl AcceptedProgram {
    fn unaccepted_settings(&self, configured: &ProgramServer) -> Vec<String> {
        let mut changes = Vec::new();
        if self.command != command_words(configured) {
            changes.push(format!("it was accepted as `{}`", self.command.join(" ")));
        }
        if configured.files > self.workspace {
            let word = match configured.files {
                FileGrant::None => "no access to",
                FileGrant::Read => "permission to read",
                FileGrant::ReadWrite => "permission to read and write",
            };
            changes.push(format!("it now has {word} files of the workspace"));
        }
        changes.extend(describe_new("the host", &configured.network, &self.network));
        changes.extend(describe_new("the variable", &configured.env, &self.env));
        let texts = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        let (read, accepted) = (texts(&configured.read), texts(&self.read));
        changes.extend(describe_new("the readable path", &read, &accepted));
        changes
    }
}

impl AcceptedHttpServer {
    fn unaccepted_settings(&self, configured: &HttpServer) -> Vec<String> {
        let mut changes = Vec::new();
        if self.url != configured.url.to_string() {
            changes.push(format!("it was accepted as `{}`", self.url));
        }
        let headers: Vec<String> = configured.headers.iter().map(SecretHeader::describe).collect();
        changes.extend(describe_new("the header", &headers, &self.headers));
        changes.extend(describe_new("the address", &configured.addresses, &self.addresses));
        if configured.allow_plain_http && !self.allow_plain_http {
            changes.push("its connection may now be unencrypted".to_owned());
        }
        changes
    }
}

/// Returns the program and its arguments as one list.
fn command_words(program: &ProgramServer) -> Vec<String> {
    std::iter::once(&program.command).chain(&program.args).cloned().collect()
}

impl ProgramServer {
    /// Returns what the sandbox needs to start the server.
    pub fn to_spec(&self) -> ServerSpec {
        // The patterns were checked when the configuration was read.
        let network = NetworkRules::parse(&self.network, &[]).unwrap_or_default();
        ServerSpec {
            command: self.command.clone(),
            args: self.args.clone(),
            files: self.files,
            permissions: ServerPermissions {
                network,
                read: self.read.clone(),
                variables: self.env.clone(),
                limits: self.limits,
            },
        }
    }
}

impl AcceptedPlugins {
    /// Returns all accepted servers, by name.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &AcceptedServer)> {
        self.servers.iter().map(|(name, server)| (name.as_str(), server))
    }

    /// Returns the accepted server with this name.
    pub fn find_server(&self, name: &str) -> Option<&AcceptedServer> {
        self.servers.get(name)
    }

    /// Accepts a server in place of the one with the same name.
    pub fn accept_server(&mut self, name: &str, server: AcceptedServer) {
        self.servers.insert(name.to_owned(), server);
    }

    /// Removes the acceptance of a server. Returns whether there was one.
    pub fn remove_server(&mut self, name: &str) -> bool {
        self.servers.remove(name).is_some()
    }

    /// Checks that nobody changed a server by hand: the user has accepted all parts of it together.
    pub(super) fn check_servers(&self) -> Result<(), InvalidLockFile> {
        let is_changed = |server: &AcceptedServer| server.digest != server.compute_digest();
        let changed = self.servers.iter().find(|(_, server)| is_changed(server));
        changed.map_or(Ok(()), |(name, _)| {
            Err(InvalidLockFile::Malformed(format!(
                "the server {name:?} does not match its digest; accept it again with `cofferdam \
                    mcp add`"
            )))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::RawConfig;

    fn settings(lines: &str) -> ServerSettings {
        let text = format!("[mcp.servers.x]\n{lines}");
        let raw = RawConfig::parse(&text, Path::new("/c/config.toml"), None).expect("it parses");
        raw.servers().expect("it is valid").remove(0)
    }

    fn tool(name: &str, description: &str) -> AcceptedServerTool {
        AcceptedServerTool {
            description: description.to_owned(),
            ..AcceptedServerTool::new(name, r#"{"type":"object"}"#)
        }
    }

    #[test]
    fn an_accepted_server_survives_a_round_trip_and_no_change_by_hand() {
        let configured = settings("command = \"node\"\nargs = [\"a b\"]\nworkspace = \"read\"");
        let server = AcceptedServer::new(&configured, vec![tool("t", "one \"two\"\nthree")]);
        let mut lock = AcceptedPlugins::new();
        lock.accept_server("x", server.clone());
        let text = lock.to_toml().expect("serializable");
        let read = AcceptedPlugins::parse(&text).expect("it is valid");
        assert_eq!(read.find_server("x"), Some(&server), "{text}");
        for (from, to) in [("three", "four"), ("node", "evil"), ("\"read\"", "\"read-write\"")] {
            let changed = text.replacen(from, to, 1);
            let error = AcceptedPlugins::parse(&changed).expect_err(to).to_string();
            assert!(error.contains("does not match its digest"), "{error}");
        }
        assert!(lock.remove_server("x") && !lock.remove_server("x"));
    }

    #[test]
    fn only_more_permissions_or_another_command_need_another_acceptance() {
        let wide = "command = \"x\"\nworkspace = \"read\"\nnetwork = [\"a.org\"]\nenv = [\"A\"]";
        let server = AcceptedServer::new(&settings(wide), Vec::new());
        let changes = |lines: &str| server.unaccepted_settings(&settings(lines));
        assert!(changes(wide).is_empty() && changes("command = \"x\"").is_empty());
        insta::assert_snapshot!(changes(
            "command = \"y\"\nworkspace = \"read-write\"\nnetwork = [\"a.org\", \"b.org\"]\nenv \
                = [\"B\"]\nread = [\"/d\"]"
        ).join("\n"), @r"
        it was accepted as `x`
        it now has permission to read and write files of the workspace
        the host b.org is new
        the variable B is new
        the readable path /d is new
        ");
        assert_eq!(changes("command = \"x\"\nargs = [\"\"]").len(), 1);
    }

    #[test]
    fn an_http_server_is_pinned_with_its_address_and_the_names_of_its_secrets() {
        let wide = "url = \"https://a.org/mcp\"\naddress = [\"10.0.0.5\"]\nheaders = { X-Key = { \
            env = \"A\" } }";
        let server = AcceptedServer::new(&settings(wide), vec![tool("t", "one")]);
        let mut lock = AcceptedPlugins::new();
        lock.accept_server("x", server.clone());
        let text = lock.to_toml().expect("serializable");
        let read = AcceptedPlugins::parse(&text).expect("it is valid");
        assert_eq!(read.find_server("x"), Some(&server), "{text}");
        for (from, to) in [("a.org", "b.org"), ("$A", "$B"), ("10.0.0.5", "10.0.0.6")] {
            let changed = text.replacen(from, to, 1);
            let error = AcceptedPlugins::parse(&changed).expect_err(to).to_string();
            assert!(error.contains("does not match its digest"), "{error}");
        }
        for more in ["command = [\"x\"]", "workspace = \"read\"", "env = [\"A\"]"] {
            let mixed = text.replacen("url = ", &format!("{more}\nurl = "), 1);
            assert!(AcceptedPlugins::parse(&mixed).is_err(), "{mixed}");
        }
        let changes = |lines: &str| server.unaccepted_settings(&settings(lines));
        assert!(changes(wide).is_empty() && changes("url = \"https://a.org/mcp\"").is_empty());
        insta::assert_snapshot!(changes(
            "url = \"http://b.org/mcp\"\nallow_plain_http = true\naddress = [\"10.0.0.6\"]\n\
                headers = { X-Key = { env = \"B\" } }"
        ).join("\n"), @r"
        it was accepted as `https://a.org/mcp`
        the header x-key: $B is new
        the address 10.0.0.6 is new
        its connection may now be unencrypted
        ");
        assert_eq!(changes("command = \"x\""), ["it was accepted as `https://a.org/mcp`"]);
    }

    #[test]
    fn changes_of_tools_are_described() {
        let pinned = vec![tool("a", "1"), tool("b", "1"), tool("c", "1")];
        let server = AcceptedServer::new(&settings("command = \"x\""), pinned.clone());
        assert!(server.tool_changes(&pinned).is_empty());
        let other_schema = AcceptedServerTool::new("b", "{}");
        let live = [tool("a", "2"), other_schema, tool("d", "1")];
        insta::assert_snapshot!(server.tool_changes(&live).join("\n"), @r"
        the description of the tool a changed
        the description and input schema of the tool b changed
        the tool c is gone
        the tool d is new
        ");
    }

    #[test]
    fn annotations_only_make_a_tool_stricter() {
        let says = |annotations: Option<&str>| {
            AcceptedServerTool { annotations: annotations.map(str::to_owned), ..tool("a", "") }
                .says_it_changes()
        };
        assert!(says(Some(r#"{"readOnlyHint":false}"#)));
        assert!(says(Some(r#"{"readOnlyHint":true,"destructiveHint":true}"#)));
        for harmless in [None, Some("{}"), Some("null"), Some(r#"{"readOnlyHint":true}"#)] {
            assert!(!says(harmless), "{harmless:?}");
        }
    }
}
