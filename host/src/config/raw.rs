//! The configuration file as written.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::interventions::RawInterventions;
use super::own_paths::OwnPaths;
use super::trusted_file::{self, TrustedFileError};
use crate::policy::{ApprovalMode, CapName, Caps, PolicyProfile, SandboxLevel, SourceLocation};
use crate::tools::{ChosenCaps, ReorderPolicy};

/// In the words of errors.
const CONFIGURATION: &str = "configuration";

/// `config.toml`. Every key is optional.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawConfig {
    /// Such as `anthropic:claude-…` or `ollama:…`.
    pub model: Option<Spanned<String>>,
    /// What is allowed without asking.
    pub mode: Option<Spanned<ApprovalMode>>,
    /// Turns with calls in one request.
    pub max_tool_iterations: Option<u32>,
    /// How long one request may be at work.
    pub timeout_seconds: Option<u64>,
    /// Components to load besides the built-in ones; relative to this file.
    pub plugins: Vec<PathBuf>,
    /// The ready-made policy to build on.
    pub profile: Option<PolicyProfile>,
    /// The caps of each call.
    limits: RawConfigCaps,
    /// By name: what is special about a tool.
    tools: BTreeMap<String, RawConfigTool>,
    /// How calls run.
    pub dispatch: RawDispatch,
    /// Which remarks the host may make to the model.
    pub interventions: RawInterventions,
    /// How the model is reached.
    pub provider: RawProvider,
    /// How approved commands run.
    pub commands: RawCommands,
    /// The audit log.
    pub audit: RawAuditSettings,
    /// Secrets that the host adds to the requests of tools, by the hosts they are for.
    pub credentials: BTreeMap<String, RawCredential>,
    /// Where all this stands, for errors that only show later.
    #[serde(skip)]
    source: ConfigFile,
}

/// A file by name, and its text.
#[derive(Clone, Debug, Default, PartialEq)]
struct ConfigFile {
    file: String,
    text: String,
}

/// `[commands]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawCommands {
    /// With less of a sandbox than this, commands are refused.
    pub minimum: Option<Spanned<SandboxLevel>>,
    /// No more than this is used.
    pub at_most: Option<SandboxLevel>,
    /// Whether they reach the network.
    pub network: Option<Spanned<bool>>,
    /// What they may read besides the usual; relative to this file, `~/` is the home.
    pub read: Vec<Spanned<PathBuf>>,
    /// What they may write besides the workspace; likewise.
    pub write: Vec<Spanned<PathBuf>>,
    /// Processes and threads of each.
    pub max_processes: Option<u64>,
    /// Open files of each process.
    pub max_descriptors: Option<u64>,
    /// MiB of each file that is written.
    pub max_file_mib: Option<u64>,
    /// MiB of memory of each process.
    pub max_memory_mib: Option<u64>,
    /// Seconds that each may run.
    pub max_seconds: Option<u64>,
}

/// Caps with the place of each value.
type RawConfigCaps = BTreeMap<CapName, Spanned<u64>>;

/// `[tools.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawConfigTool {
    limits: RawConfigCaps,
}

/// `[dispatch]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawDispatch {
    /// Calls at the same time, 1 to 64.
    pub max_parallel: Option<usize>,
    /// How far reads are moved ahead of writes.
    pub reorder: Option<ReorderPolicy>,
}

/// `[credentials."HOST"]`: a header whose value is in the environment, so that no file has to hold
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawCredential {
    /// Its name.
    pub header: String,
    /// The variable.
    pub env: String,
    /// What stands before the secret, such as `Bearer `.
    #[serde(default)]
    pub prefix: String,
}

/// `[audit]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawAuditSettings {
    /// Whether a log is kept; it is, unless this says otherwise.
    pub enabled: Option<Spanned<bool>>,
    /// Whether nothing may happen without its record.
    pub required: Option<Spanned<bool>>,
}

/// A format of OpenAI's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RawApi {
    /// `/v1/chat/completions`
    ChatCompletions,
    /// `/v1/responses`
    Responses,
}

/// `[provider]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawProvider {
    /// In place of the provider's own address.
    pub base_url: Option<Spanned<String>>,
    /// In tokens, in place of what is known of the model.
    pub context_window: Option<u64>,
    /// In tokens for each response.
    pub max_output: Option<u64>,
    /// In the provider's own words.
    pub reasoning_effort: Option<String>,
    /// In which format OpenAI, or a server like it, is spoken to; in place of what is known of the
    /// model.
    pub api: Option<RawApi>,
    /// Lets a key travel unencrypted to another machine.
    pub allow_plain_http: bool,
    /// If a response does not begin for so long, it is given up.
    pub first_event_timeout_seconds: Option<u64>,
    /// Without any event for so long, a response is given up.
    pub idle_timeout_seconds: Option<u64>,
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read, or must not be believed.
    #[error(transparent)]
    File(#[from] TrustedFileError),
    /// It says something that is not understood.
    #[error("{path}:{line}:{column}: {problem}")]
    Parse {
        /// The file.
        path: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
}

impl RawConfig {
    /// Reads the file; one that is not there says nothing.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        trusted_file::read_own_file(path, CONFIGURATION)?
            .map_or_else(|| Ok(Self::default()), |text| Self::parse(&text, path))
    }

    /// Reads a file that was named, and so has to be there.
    pub fn read_required(path: &Path) -> Result<Self, ConfigError> {
        let text = trusted_file::read_own_file(path, CONFIGURATION)?;
        Self::parse(
            &text
                .ok_or_else(|| trusted_file::file_error(path, "there is no such configuration"))?,
            path,
        )
    }

    /// Parses the text of the file at `path`, below whose folder its relative paths are.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let source = ConfigFile { file: path.display().to_string(), text: text.to_owned() };
        let at = |span: Range<usize>, problem: String| source.error(&span, problem);
        let mut raw: Self = toml::from_str(text)
            .map_err(|error| at(error.span().unwrap_or_default(), error.message().to_owned()))?;
        for caps in raw.tools.values().map(|tool| &tool.limits).chain([&raw.limits]) {
            parse_caps(caps).map_err(|(span, problem)| at(span, problem))?;
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        raw.plugins.iter_mut().for_each(|plugin| *plugin = folder.join(&*plugin));
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        for path in raw.commands.read.iter_mut().chain(&mut raw.commands.write) {
            if path.get_ref().as_os_str().is_empty() {
                return Err(at(
                    path.span(),
                    "an empty path names no folder; `.` is the folder of this file".into(),
                ));
            }
            let below_home = path
                .get_ref()
                .strip_prefix("~")
                .ok()
                .and_then(|rest| Some(home.as_ref()?.join(rest)));
            *path.get_mut() = below_home.unwrap_or_else(|| folder.join(path.get_ref()));
        }
        raw.source = source;
        Ok(raw)
    }

    /// Whether `[commands]` leaves closed what this program keeps: who can write there decides what
    /// it runs and believes, and can change what is on record; and what was said and done is
    /// nobody's to read who only runs a command.
    pub fn check_own_paths(&self, own: &OwnPaths) -> Result<(), ConfigError> {
        let problem = |path: &Spanned<PathBuf>, key: &str, does: &str, own: &Path| {
            let written = self.source.text.get(path.span()).unwrap_or_default();
            let own = own.display();
            let problem = format!(
                "{key} = {written} would let commands {does} what this program keeps in {own}: \
                    name a folder that is neither above nor below that"
            );
            self.source.error(&path.span(), problem)
        };
        let changed = self.commands.write.iter().find_map(|path| {
            Some(problem(path, "commands.write", "change", own.exposed_to_write(path.get_ref())?))
        });
        let read = || {
            self.commands.read.iter().find_map(|path| {
                Some(problem(path, "commands.read", "read", own.exposed_to_read(path.get_ref())?))
            })
        };
        changed.or_else(read).map_or(Ok(()), Err)
    }

    /// The place of something in the file.
    pub(super) fn location(&self, span: Range<usize>) -> SourceLocation {
        SourceLocation::at_offset(&self.source.file, &self.source.text, span.start)
    }

    /// The caps that were chosen. They were found to be in their ranges when the file was read.
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
        RawConfig::parse(text, Path::new("/c/config.toml")).map_err(|error| error.to_string())
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
            "/c/config.toml:2:11: seconds = 0 is out of its range: use 1 to 3600"
        );
        assert!(
            parse("[dispatch]\nmax_parallel = -1").unwrap_err().starts_with("/c/config.toml:2:16:")
        );
    }

    #[test]
    fn paths_of_commands_can_begin_at_the_home() {
        let raw = parse("[commands]\nread = [\"~/tools\", \"data\"]\nminimum = \"full\"")
            .expect("it parses");
        let home = std::env::home_dir().expect("there is a home");
        let read: Vec<&PathBuf> = raw.commands.read.iter().map(Spanned::get_ref).collect();
        assert_eq!(read, [&home.join("tools"), &PathBuf::from("/c/data")]);
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
