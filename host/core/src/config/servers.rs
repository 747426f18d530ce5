//! The section `[mcp.servers]`: MCP servers whose tools the model can call.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::http_servers::{HttpServer, RawHeader};
use super::raw::{ConfigError, RawConfig};
use crate::policy::{CommandLimits, FileGrant, NetworkRules};

/// The longest name of a server, so that the names of its tools stay short.
const MAX_NAME_LEN: usize = 32;
/// The number of servers.
const MAX_SERVERS: usize = 64;

/// The `[mcp]` section.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RawMcp {
    /// MCP servers whose tools the model can call, by name.
    pub servers: BTreeMap<Spanned<String>, RawServer>,
}

/// A `[mcp.servers.NAME]` section, with the keys of both kinds of servers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RawServer {
    /// The program of the server, which runs in the sandbox of commands.
    pub command: Option<Spanned<String>>,
    /// The arguments of the program.
    pub args: Option<Spanned<Vec<String>>>,
    /// The access to the files of the workspace.
    pub workspace: Option<Spanned<FileGrant>>,
    /// The hosts that the server can connect to.
    pub network: Vec<Spanned<String>>,
    /// The names of environment variables that the server gets.
    pub env: Vec<Spanned<String>>,
    /// Additional paths that the server can read, resolved like those of `[commands]`.
    pub read: Vec<Spanned<PathBuf>>,
    /// The limit on processes and threads of the server.
    pub max_processes: Option<Spanned<u64>>,
    /// The limit on the memory of each process, in MiB.
    pub max_memory_mib: Option<Spanned<u64>>,
    /// The URL of the server, in place of a program.
    pub url: Option<Spanned<String>>,
    /// Headers of all requests to the server, whose values come from elsewhere.
    pub headers: BTreeMap<Spanned<String>, RawHeader>,
    /// IP addresses that are not public, which the name of the server may have.
    pub address: Vec<Spanned<String>>,
    /// Allows an unencrypted connection to another machine, which exposes all secrets.
    pub allow_plain_http: Option<Spanned<bool>>,
    /// The ID of this program at the login server, if it cannot register there.
    pub client_id: Option<Spanned<String>>,
    /// The scopes that a login asks for.
    pub scopes: Vec<Spanned<String>>,
    /// The port of this machine where a login ends. Without it, a free port is chosen.
    pub callback_port: Option<Spanned<u16>>,
}

/// An MCP server as the user configured it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// The name, which is a part of the names of its tools.
    pub name: String,
    /// How the server is reached.
    pub transport: ServerTransport,
}

/// How an MCP server is reached, with everything that it may do.
///
/// This enum is closed: code that starts or shows servers has to treat each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTransport {
    /// A program on this machine, on its standard streams.
    Program(ProgramServer),
    /// A server over streamable HTTP.
    Http(HttpServer),
}

/// An MCP server that is a program on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramServer {
    /// The program, which runs in the sandbox of commands.
    pub command: String,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The access to the files of the workspace.
    pub files: FileGrant,
    /// Patterns of the hosts that the server can connect to.
    pub network: Vec<String>,
    /// The names of environment variables that the server gets.
    pub env: Vec<String>,
    /// Absolute paths that the server can read.
    pub read: Vec<PathBuf>,
    /// The limits of its processes.
    pub limits: CommandLimits,
}

impl ProgramServer {
    /// Creates a program without permissions.
    pub fn new(command: &str, args: Vec<String>) -> Self {
        Self {
            command: command.to_owned(),
            args,
            files: FileGrant::None,
            network: Vec::new(),
            env: Vec::new(),
            read: Vec::new(),
            limits: CommandLimits::default(),
        }
    }

    /// Returns the program with its arguments, for the user.
    pub fn command_text(&self) -> String {
        let words: Vec<&str> =
            std::iter::once(&self.command).chain(&self.args).map(String::as_str).collect();
        words.join(" ")
    }
}

impl ServerSettings {
    /// Creates the settings of a server.
    pub fn new(name: &str, transport: ServerTransport) -> Self {
        Self { name: name.to_owned(), transport }
    }

    /// Returns the command or the URL, for the user.
    pub fn target_text(&self) -> String {
        match &self.transport {
            ServerTransport::Program(program) => program.command_text(),
            ServerTransport::Http(server) => server.url.to_string(),
        }
    }

    /// Returns the access to the files of the workspace.
    pub fn files(&self) -> FileGrant {
        match &self.transport {
            ServerTransport::Program(program) => program.files,
            ServerTransport::Http(_) => FileGrant::None,
        }
    }

    /// Returns patterns of the hosts that tools of the server reach.
    pub fn hosts(&self) -> Vec<String> {
        match &self.transport {
            ServerTransport::Program(program) => program.network.clone(),
            ServerTransport::Http(server) => vec![server.url.origin().host().to_string()],
        }
    }
}

impl RawConfig {
    /// Returns the configured MCP servers.
    ///
    /// # Errors
    /// A name or a value of a server is not valid.
    pub fn servers(&self) -> Result<Vec<ServerSettings>, ConfigError> {
        let servers = &self.mcp.servers;
        if let (true, Some((name, _))) = (servers.len() > MAX_SERVERS, servers.iter().next()) {
            let problem = format!("there are more than {MAX_SERVERS} servers");
            return Err(self.error(&name.span(), problem));
        }
        let resolve = |(name, raw): (&Spanned<String>, &RawServer)| {
            raw.resolve(name).map_err(|(span, problem)| self.error(&span, problem))
        };
        servers.iter().map(resolve).collect()
    }
}

pub(super) type ServerProblem = (Range<usize>, String);

impl RawServer {
    fn resolve(&self, name: &Spanned<String>) -> Result<ServerSettings, ServerProblem> {
        let at_name = |problem: String| (name.span(), problem);
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let text = name.get_ref();
        if text.is_empty() || text.len() > MAX_NAME_LEN || !text.bytes().all(is_allowed) {
            return Err(at_name(format!(
                "the name of a server is 1 to {MAX_NAME_LEN} of a-z, A-Z, 0-9, _ and -"
            )));
        }
        let transport = match (&self.command, &self.url) {
            (Some(command), None) => {
                self.refuse_keys(&self.http_keys(), "a server with `url`")?;
                ServerTransport::Program(self.resolve_program(command)?)
            }
            (None, Some(url)) => {
                self.refuse_keys(&self.program_keys(), "a server with `command`")?;
                ServerTransport::Http(HttpServer::resolve(self, url)?)
            }
            (Some(_), Some(url)) => {
                let problem = "a server has `command` or `url`, not both";
                return Err((url.span(), problem.to_owned()));
            }
            (None, None) => {
                let problem = "a server needs `command`, the program, or `url`, the address";
                return Err(at_name(problem.to_owned()));
            }
        };
        Ok(ServerSettings { name: text.clone(), transport })
    }

    /// Returns the keys in use that only a program has.
    fn program_keys(&self) -> Vec<UsedKey> {
        let span_of = |list: &[Spanned<String>]| list.first().map(Spanned::span);
        let keys = [
            ("args", self.args.as_ref().map(Spanned::span)),
            ("workspace", self.workspace.as_ref().map(Spanned::span)),
            ("network", span_of(&self.network)),
            ("env", span_of(&self.env)),
            ("read", self.read.first().map(Spanned::span)),
            ("max_processes", self.max_processes.as_ref().map(Spanned::span)),
            ("max_memory_mib", self.max_memory_mib.as_ref().map(Spanned::span)),
        ];
        keys.into_iter().filter_map(|(key, span)| Some((key, span?))).collect()
    }

    /// Returns the keys in use that only a server over HTTP has.
    fn http_keys(&self) -> Vec<UsedKey> {
        let span_of = |list: &[Spanned<String>]| list.first().map(Spanned::span);
        let keys = [
            ("headers", self.headers.keys().next().map(Spanned::span)),
            ("address", span_of(&self.address)),
            ("allow_plain_http", self.allow_plain_http.as_ref().map(Spanned::span)),
            ("client_id", self.client_id.as_ref().map(Spanned::span)),
            ("scopes", span_of(&self.scopes)),
            ("callback_port", self.callback_port.as_ref().map(Spanned::span)),
        ];
        keys.into_iter().filter_map(|(key, span)| Some((key, span?))).collect()
    }

    fn refuse_keys(&self, keys: &[UsedKey], kind: &str) -> Result<(), ServerProblem> {
        match keys.first() {
            None => Ok(()),
            Some((key, span)) => Err((span.clone(), format!("only {kind} has the key `{key}`"))),
        }
    }

    fn resolve_program(&self, command: &Spanned<String>) -> Result<ProgramServer, ServerProblem> {
        if command.get_ref().trim().is_empty() {
            return Err((command.span(), "the program of a server has a name".to_owned()));
        }
        for host in &self.network {
            NetworkRules::parse(std::slice::from_ref(host.get_ref()), &[])
                .map_err(|problem| (host.span(), problem.to_string()))?;
        }
        for variable in &self.env {
            if !is_variable_name(variable.get_ref()) {
                let problem = "an entry of `env` is the name of a variable".to_owned();
                return Err((variable.span(), problem));
            }
        }
        let defaults = CommandLimits::default();
        let limits = CommandLimits {
            processes: at_least("max_processes", self.max_processes.as_ref(), 4)?
                .unwrap_or(MAX_SERVER_PROCESSES),
            memory: at_least("max_memory_mib", self.max_memory_mib.as_ref(), 64)?
                .map(|mib| mib.saturating_mul(1 << 20)),
            ..defaults
        };
        Ok(ProgramServer {
            command: command.get_ref().clone(),
            args: self.args.as_ref().map(|args| args.get_ref().clone()).unwrap_or_default(),
            files: self.workspace.as_ref().map(|files| *files.get_ref()).unwrap_or_default(),
            network: plain(&self.network),
            env: plain(&self.env),
            read: self.read.iter().map(|path| path.get_ref().clone()).collect(),
            limits,
        })
    }
}

/// A key of a section with its span.
type UsedKey = (&'static str, Range<usize>);

/// Returns texts without their spans.
pub(super) fn plain(texts: &[Spanned<String>]) -> Vec<String> {
    texts.iter().map(|text| text.get_ref().clone()).collect()
}

/// Returns whether a text can be the name of an environment variable.
pub(super) fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// The default limit on processes and threads of a server. Runtimes start a few for each core.
const MAX_SERVER_PROCESSES: u64 = 512;

fn at_least(
    key: &str,
    value: Option<&Spanned<u64>>,
    least: u64,
) -> Result<Option<u64>, ServerProblem> {
    match value {
        Some(value) if *value.get_ref() < least => {
            Err((value.span(), format!("`{key}` is too low; use {least} or more")))
        }
        value => Ok(value.map(|value| *value.get_ref())),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn servers(text: &str) -> Result<Vec<ServerSettings>, String> {
        let raw = RawConfig::parse(text, Path::new("/c/config.toml"), Some(Path::new("/home/me")))
            .map_err(|error| error.to_string())?;
        raw.servers().map_err(|error| error.to_string())
    }

    fn program(server: &ServerSettings) -> &ProgramServer {
        match &server.transport {
            ServerTransport::Program(program) => program,
            ServerTransport::Http(_) => panic!("{} is not a program", server.name),
        }
    }

    #[test]
    fn a_server_has_no_permissions_unless_they_are_listed() {
        let found = servers("[mcp.servers.notes]\ncommand = \"node\"\nargs = [\"n.js\"]");
        let notes = &found.expect("it is valid")[0];
        assert_eq!((notes.name.as_str(), notes.files()), ("notes", FileGrant::None));
        assert_eq!(notes.target_text(), "node n.js");
        let notes = program(notes);
        assert!(notes.network.is_empty() && notes.env.is_empty() && notes.read.is_empty());
    }

    #[test]
    fn permissions_are_parsed_with_their_paths() {
        let found = servers(
            "[mcp.servers.git]\ncommand = \"g\"\nworkspace = \"read-write\"\nnetwork = \
                [\"*.example.com\"]\nenv = [\"TOKEN\"]\nread = [\"~/x\", \"y\"]\nmax_processes = 9",
        );
        let found = found.expect("it is valid");
        let git = program(&found[0]);
        assert_eq!(git.files, FileGrant::ReadWrite);
        assert_eq!(git.read, [PathBuf::from("/home/me/x"), PathBuf::from("/c/y")]);
        assert_eq!((git.network.len(), git.env.len(), git.limits.processes), (1, 1, 9));
    }

    #[test]
    fn what_makes_no_sense_is_an_error_with_its_line() {
        let table = [
            ("", "needs `command`, the program, or `url`, the address"),
            ("command = \"x\"\nurl = \"https://a.com/\"", "`command` or `url`, not both"),
            ("command = \"x\"\naddress = [\"10.0.0.1\"]", "only a server with `url` has"),
            ("command = \"x\"\nscopes = [\"a\"]", "has the key `scopes`"),
            ("url = \"https://a.com/\"\nargs = []", "only a server with `command` has"),
            ("url = \"https://a.com/\"\nworkspace = \"read\"", "has the key `workspace`"),
            ("url = \"https://a.com/\"\nnetwork = [\"a.com\"]", "has the key `network`"),
            ("command = \" \"", "the program of a server has a name"),
            ("command = \"x\"\nnetwork = [\"*\\u0000\"]", "is not a host pattern"),
            ("command = \"x\"\nenv = [\"A=1\"]", "the name of a variable"),
            ("command = \"x\"\nmax_processes = 1", "use 4 or more"),
            ("command = \"x\"\nworkspace = \"all\"", "unknown variant"),
            ("command = \"x\"\nshell = true", "unknown field"),
        ];
        for (lines, expected) in table {
            let problem = servers(&format!("[mcp.servers.x]\n{lines}")).expect_err(lines);
            assert!(problem.contains(expected) && problem.starts_with("/c/"), "{problem}");
        }
        for name in ["\"a/b\"", "\"a b\"", "\"\"", &"x".repeat(33)] {
            let problem = servers(&format!("[mcp.servers.{name}]\ncommand = \"x\""));
            assert!(problem.is_err(), "{name}");
        }
    }
}
