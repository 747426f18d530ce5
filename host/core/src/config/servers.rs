//! The section `[mcp.servers]`: MCP servers whose tools the model can call.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

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

/// A `[mcp.servers.NAME]` section.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RawServer {
    /// The program of the server, which runs in the sandbox of commands.
    pub command: Spanned<String>,
    /// The arguments of the program.
    #[serde(default)]
    pub args: Vec<String>,
    /// The access to the files of the workspace.
    #[serde(default)]
    pub workspace: FileGrant,
    /// The hosts that the server can connect to.
    #[serde(default)]
    pub network: Vec<Spanned<String>>,
    /// The names of environment variables that the server gets.
    #[serde(default)]
    pub env: Vec<Spanned<String>>,
    /// Additional paths that the server can read, resolved like those of `[commands]`.
    #[serde(default)]
    pub read: Vec<Spanned<PathBuf>>,
    /// The limit on processes and threads of the server.
    pub max_processes: Option<Spanned<u64>>,
    /// The limit on the memory of each process, in MiB.
    pub max_memory_mib: Option<Spanned<u64>>,
}

/// An MCP server as the user configured it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// The name, which is a part of the names of its tools.
    pub name: String,
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

impl ServerSettings {
    /// Returns the program with its arguments, for the user.
    pub fn command_text(&self) -> String {
        let words: Vec<&str> =
            std::iter::once(&self.command).chain(&self.args).map(String::as_str).collect();
        words.join(" ")
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

type ServerProblem = (Range<usize>, String);

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
        if self.command.get_ref().trim().is_empty() {
            return Err((self.command.span(), "the program of a server has a name".to_owned()));
        }
        for host in &self.network {
            NetworkRules::parse(std::slice::from_ref(host.get_ref()), &[])
                .map_err(|problem| (host.span(), problem.to_string()))?;
        }
        for variable in &self.env {
            if variable.get_ref().is_empty() || variable.get_ref().contains(['=', '\0']) {
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
        let plain = |texts: &[Spanned<String>]| texts.iter().map(|t| t.get_ref().clone()).collect();
        Ok(ServerSettings {
            name: text.clone(),
            command: self.command.get_ref().clone(),
            args: self.args.clone(),
            files: self.workspace,
            network: plain(&self.network),
            env: plain(&self.env),
            read: self.read.iter().map(|path| path.get_ref().clone()).collect(),
            limits,
        })
    }
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

    #[test]
    fn a_server_has_no_permissions_unless_they_are_listed() {
        let found = servers("[mcp.servers.notes]\ncommand = \"node\"\nargs = [\"n.js\"]");
        let notes = &found.expect("it is valid")[0];
        assert_eq!((notes.name.as_str(), notes.files), ("notes", FileGrant::None));
        assert_eq!(notes.command_text(), "node n.js");
        assert!(notes.network.is_empty() && notes.env.is_empty() && notes.read.is_empty());
    }

    #[test]
    fn permissions_are_parsed_with_their_paths() {
        let found = servers(
            "[mcp.servers.git]\ncommand = \"g\"\nworkspace = \"read-write\"\nnetwork = \
                [\"*.example.com\"]\nenv = [\"TOKEN\"]\nread = [\"~/x\", \"y\"]\nmax_processes = 9",
        );
        let git = &found.expect("it is valid")[0];
        assert_eq!(git.files, FileGrant::ReadWrite);
        assert_eq!(git.read, [PathBuf::from("/home/me/x"), PathBuf::from("/c/y")]);
        assert_eq!((git.network.len(), git.env.len(), git.limits.processes), (1, 1, 9));
    }

    #[test]
    fn what_makes_no_sense_is_an_error_with_its_line() {
        let table = [
            ("", "missing field `command`"),
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
