//! The configuration file as written, before defaults are applied.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::command_network::RawCommandNetwork;
use super::interventions::RawInterventions;
use super::own_paths::OwnPaths;
use super::servers::RawMcp;
use super::trusted_file::{self, TrustedFileError};
use crate::agent::ReorderPolicy;
use crate::policy::{
    ApprovalMode, CapName, Caps, ChosenCaps, PolicyProfile, SandboxLevel, SourceLocation,
};

/// The key of the paths that a server can read.
const SERVER_READ_KEY: &str = "read";
/// The name of the file in error messages.
const CONFIGURATION: &str = "configuration";

/// The content of `config.toml`, in which every key is optional.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RawConfig {
    /// The model, such as `anthropic:claude-…` or `ollama:…`.
    pub model: Option<Spanned<String>>,
    /// The approval mode, which decides which calls need approval.
    pub mode: Option<Spanned<ApprovalMode>>,
    /// The limit on turns with tool calls in one request.
    pub max_tool_iterations: Option<u32>,
    /// The limit on the active time of one request, in seconds.
    pub timeout_seconds: Option<u64>,
    /// Components to load in addition to the built-in ones.
    ///
    /// Relative paths are resolved against the directory of this file.
    pub plugins: Vec<PathBuf>,
    /// The built-in policy profile to start from.
    pub profile: Option<PolicyProfile>,
    /// The caps of each call.
    limits: RawConfigCaps,
    /// The settings of single tools, by tool name.
    tools: BTreeMap<String, RawConfigTool>,
    /// The scheduling of calls.
    pub dispatch: RawDispatch,
    /// The notes that the host may send to the model.
    pub interventions: RawInterventions,
    /// The access to the model.
    pub provider: RawProvider,
    /// The sandbox and the limits of approved commands.
    pub commands: RawCommands,
    /// The settings of the audit log.
    pub audit: RawAuditSettings,
    /// Secrets that the host adds to requests of tools, by the host name they are for.
    pub credentials: BTreeMap<String, RawCredential>,
    /// MCP servers whose tools the model can call.
    pub mcp: RawMcp,
    /// The text of the file, for errors that are found later.
    #[serde(skip)]
    source: ConfigFile,
}

/// The name of a file and its text.
#[derive(Clone, Debug, Default, PartialEq)]
struct ConfigFile {
    file: String,
    text: String,
}

/// The `[commands]` section: sandbox and limits of approved commands.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RawCommands {
    /// The minimum sandbox level; commands are refused if it is not available.
    pub minimum: Option<Spanned<SandboxLevel>>,
    /// The maximum sandbox level that is used.
    pub at_most: Option<SandboxLevel>,
    /// The hosts that commands may connect to.
    pub network: Option<Spanned<RawCommandNetwork>>,
    /// Additional paths that commands may read.
    ///
    /// Relative paths are resolved against the directory of this file, and `~/` means the home
    /// directory.
    pub read: Vec<Spanned<PathBuf>>,
    /// Paths outside the workspace that commands may write, resolved like `read`.
    pub write: Vec<Spanned<PathBuf>>,
    /// Directories of the workspace that commands write directly, without a private view of them.
    pub direct: Vec<Spanned<String>>,
    /// Whether you review all changes of a command before they are committed, in modes that ask.
    pub review_changes: bool,
    /// The limit on processes and threads of each command.
    pub max_processes: Option<u64>,
    /// The limit on open files of each process.
    pub max_descriptors: Option<u64>,
    /// The limit on the size of each written file, in MiB.
    pub max_file_mib: Option<u64>,
    /// The limit on the memory of each process, in MiB.
    pub max_memory_mib: Option<u64>,
    /// The limit on the running time of each command, in seconds.
    pub max_seconds: Option<u64>,
}

/// Caps with the location of each value in the file.
type RawConfigCaps = BTreeMap<CapName, Spanned<u64>>;

/// A `[tools.NAME]` section.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawConfigTool {
    limits: RawConfigCaps,
}

/// The `[dispatch]` section: scheduling of calls.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RawDispatch {
    /// The maximum number of parallel calls, from 1 to 64.
    pub max_parallel: Option<usize>,
    /// The rule for moving reads ahead of writes.
    pub reorder: Option<ReorderPolicy>,
}

/// A `[credentials."HOST"]` section: a header whose value comes from the environment.
///
/// So no file has to contain the secret.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawCredential {
    /// The name of the header.
    pub header: String,
    /// The environment variable with the secret.
    pub env: String,
    /// The text before the secret, such as `Bearer `.
    #[serde(default)]
    pub prefix: String,
}

/// The `[audit]` section: settings of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RawAuditSettings {
    /// Whether the audit log is written; the default is `true`.
    pub enabled: Option<Spanned<bool>>,
    /// Whether an action is refused if it cannot be recorded.
    pub required: Option<Spanned<bool>>,
}

/// An API format of OpenAI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RawApi {
    /// The Chat Completions API, at `/v1/chat/completions`.
    ChatCompletions,
    /// The Responses API, at `/v1/responses`.
    Responses,
}

/// The `[provider]` section: access to the model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RawProvider {
    /// The address of the API, in place of the provider's own.
    pub base_url: Option<Spanned<String>>,
    /// The context window in tokens, in place of the known one of the model.
    pub context_window: Option<u64>,
    /// The limit on output tokens of each response.
    pub max_output: Option<u64>,
    /// The reasoning effort, in the provider's terms.
    pub reasoning_effort: Option<String>,
    /// The API format for OpenAI or a compatible server, in place of the known one of the model.
    pub api: Option<RawApi>,
    /// Allows an unencrypted connection to another machine, which exposes the API key.
    pub allow_plain_http: bool,
    /// The longest wait for the start of a response, in seconds.
    pub first_event_timeout_seconds: Option<u64>,
    /// The longest wait for the next event of a response, in seconds.
    pub idle_timeout_seconds: Option<u64>,
}

/// The reason why the configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read or cannot be trusted.
    #[error(transparent)]
    File(#[from] TrustedFileError),
    /// The file has a syntax error or an invalid value.
    #[error("{path}:{line}:{column}: {problem}")]
    Parse {
        /// The path of the file.
        path: String,
        /// The number of the line, from 1.
        line: usize,
        /// The number of the column, from 1.
        column: usize,
        /// A description of the error.
        problem: String,
    },
}

impl RawConfig {
    /// Reads the configuration file; a missing file counts as empty. `home` is the home directory
    /// of the user.
    ///
    /// # Errors
    /// The file cannot be read, cannot be trusted or is invalid.
    pub fn read(path: &Path, home: Option<&Path>) -> Result<Self, ConfigError> {
        trusted_file::read_own_file(path, CONFIGURATION)?
            .map_or_else(|| Ok(Self::default()), |text| Self::parse(&text, path, home))
    }

    /// Reads a file that the user named, and which therefore has to exist. `home` is the home
    /// directory of the user.
    ///
    /// # Errors
    /// The file is missing, cannot be read, cannot be trusted or is invalid.
    pub fn read_required(path: &Path, home: Option<&Path>) -> Result<Self, ConfigError> {
        let text = trusted_file::read_own_file(path, CONFIGURATION)?;
        Self::parse(
            &text.ok_or_else(|| {
                trusted_file::file_error(
                    path,
                    "the configuration file does not \
                    exist",
                )
            })?,
            path,
            home,
        )
    }

    /// Parses the text of the file at `path`.
    ///
    /// Relative paths in it are resolved against the directory of the file. `~/` in a path of
    /// `[commands]` means `home`, if that is an absolute path.
    ///
    /// # Errors
    /// The text has a syntax error, an unknown key or an invalid value.
    pub fn parse(text: &str, path: &Path, home: Option<&Path>) -> Result<Self, ConfigError> {
        let source = ConfigFile { file: path.display().to_string(), text: text.to_owned() };
        let at = |span: Range<usize>, problem: String| source.error(&span, problem);
        let mut raw: Self = toml::from_str(text)
            .map_err(|error| at(error.span().unwrap_or_default(), error.message().to_owned()))?;
        for caps in raw.tools.values().map(|tool| &tool.limits).chain([&raw.limits]) {
            parse_caps(caps).map_err(|(span, problem)| at(span, problem))?;
        }
        let directory = path.parent().unwrap_or(Path::new(""));
        for plugin in &mut raw.plugins {
            *plugin = directory.join(&*plugin);
        }
        let home = home.filter(|home| home.is_absolute());
        let of_servers = raw.mcp.servers.values_mut().flat_map(|server| &mut server.read);
        for path in raw.commands.read.iter_mut().chain(&mut raw.commands.write).chain(of_servers) {
            if path.get_ref().as_os_str().is_empty() {
                return Err(at(
                    path.span(),
                    "the path is empty; use `.` for the directory of this file".into(),
                ));
            }
            let below_home =
                path.get_ref().strip_prefix("~").ok().and_then(|rest| Some(home?.join(rest)));
            *path.get_mut() = below_home.unwrap_or_else(|| directory.join(path.get_ref()));
        }
        let headers = raw.mcp.servers.values_mut().flat_map(|server| server.headers.values_mut());
        for file in headers.filter_map(|header| header.file.as_mut()) {
            let below_home = file.strip_prefix("~").ok().and_then(|rest| Some(home?.join(rest)));
            *file = below_home.unwrap_or_else(|| directory.join(&*file));
        }
        raw.source = source;
        Ok(raw)
    }

    /// Checks that `[commands]` gives no access to the files of this program.
    ///
    /// A command that can write them could change what the program runs, trusts and has recorded. A
    /// command that can read them could read the records of other sessions.
    ///
    /// # Errors
    /// A path of `[commands]` overlaps with an own path.
    pub fn check_own_paths(&self, own: &OwnPaths) -> Result<(), ConfigError> {
        let overlap_error = |path: &Spanned<PathBuf>, key: &str, does: &str, own: &Path| {
            let written = self.source.text.get(path.span()).unwrap_or_default();
            let own = own.display();
            let who = if key == SERVER_READ_KEY { "the server" } else { "commands" };
            let problem = format!(
                "{key} = {written} would let {who} {does} the files of cofferdam in {own}; use \
                    a directory that does not overlap with it"
            );
            self.source.error(&path.span(), problem)
        };
        let write_error = self.commands.write.iter().find_map(|path| {
            let own = own.exposed_to_write(path.get_ref())?;
            Some(overlap_error(path, "commands.write", "change", own))
        });
        let read_error = || {
            self.commands.read.iter().find_map(|path| {
                let own = own.exposed_to_read(path.get_ref())?;
                Some(overlap_error(path, "commands.read", "read", own))
            })
        };
        let server_error = || {
            self.mcp.servers.values().flat_map(|server| &server.read).find_map(|path| {
                let own = own.exposed_to_read(path.get_ref())?;
                Some(overlap_error(path, SERVER_READ_KEY, "read", own))
            })
        };
        write_error.or_else(read_error).or_else(server_error).map_or(Ok(()), Err)
    }

    /// Returns an error at a span of the file.
    pub(super) fn error(&self, span: &Range<usize>, problem: String) -> ConfigError {
        self.source.error(span, problem)
    }

    /// Returns the location of a span in the file.
    pub(super) fn location(&self, span: Range<usize>) -> SourceLocation {
        SourceLocation::at_offset(&self.source.file, &self.source.text, span.start)
    }

    /// Returns the configured caps, whose ranges were checked when the file was parsed.
    pub fn caps(&self) -> ChosenCaps {
        let read = |caps| parse_caps(caps).unwrap_or_default();
        ChosenCaps {
            defaults: read(&self.limits),
            by_tool: self
                .tools
                .iter()
                .map(|(name, tool)| (name.clone(), read(&tool.limits)))
                .collect(),
        }
    }
}

impl ConfigFile {
    fn error(&self, span: &Range<usize>, problem: String) -> ConfigError {
        let SourceLocation { file: path, line, column } =
            SourceLocation::at_offset(&self.file, &self.text, span.start);
        ConfigError::Parse { path, line, column, problem }
    }
}

fn parse_caps(raw: &RawConfigCaps) -> Result<Caps, (Range<usize>, String)> {
    let mut caps = Caps::default();
    for (cap, value) in raw {
        caps.set(*cap, *value.get_ref()).map_err(|problem| (value.span(), problem.to_string()))?;
    }
    Ok(caps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RawConfig, String> {
        RawConfig::parse(text, Path::new("/c/config.toml"), Some(Path::new("/home/me")))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn errors_have_line_and_column() {
        assert_eq!(
            parse("model = \"x\"\n\nmodle = 1\n").unwrap_err().split(", expected").next(),
            Some("/c/config.toml:3:1: unknown field `modle`")
        );
        assert!(
            parse("mode = \"yolo\"")
                .unwrap_err()
                .starts_with("/c/config.toml:1:8: unknown variant `yolo`")
        );
        assert_eq!(
            parse("[tools.grep.limits]\nseconds = 0").unwrap_err(),
            "/c/config.toml:2:11: seconds = 0 is out of range: use 1 to 3600"
        );
        assert!(
            parse("[dispatch]\nmax_parallel = -1").unwrap_err().starts_with("/c/config.toml:2:16:")
        );
    }

    #[test]
    fn paths_of_commands_can_begin_with_the_home_directory() {
        let raw = parse("[commands]\nread = [\"~/tools\", \"data\"]\nminimum = \"full\"")
            .expect("it parses");
        let read: Vec<&PathBuf> = raw.commands.read.iter().map(Spanned::get_ref).collect();
        assert_eq!(read, [&PathBuf::from("/home/me/tools"), &PathBuf::from("/c/data")]);
        assert!(
            parse("[commands]\nminimum = \"some\"")
                .unwrap_err()
                .starts_with("/c/config.toml:2:11: unknown variant `some`")
        );
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let raw = parse("plugins = [\"a.wasm\", \"/b.wasm\"]").expect("it parses");
        assert_eq!(raw.plugins, [PathBuf::from("/c/a.wasm"), PathBuf::from("/b.wasm")]);
    }
}
