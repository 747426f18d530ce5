//! The configuration files of well-known clients: where they are, and how a server is added to
//! their text and removed again.
//!
//! Editing is pure: text in, text out. It keeps everything else, with comments and formatting. The
//! result is checked against the meaning of the file before, so a file that is not understood is
//! never changed.

mod json_text;
mod toml_text;
mod yaml_text;

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A client whose configuration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KnownClient {
    /// Claude Code. Servers of the user are in `mcpServers` of `~/.claude.json`, as the page
    /// "Connect Claude Code to tools via MCP" of its documentation says ("user scope").
    Claude,
    /// Codex. Servers are tables `[mcp_servers.NAME]` in `~/.codex/config.toml`, as
    /// `docs/config.md` of the repository `openai/codex` says.
    Codex,
    /// Cursor. Servers are in `mcpServers` of `~/.cursor/mcp.json`, as the page "Model Context
    /// Protocol" of its documentation says ("global configuration").
    Cursor,
    /// Visual Studio Code. Servers are in `servers` of `mcp.json` in the directory of the user, as
    /// the page "MCP configuration reference" of its documentation says.
    Vscode,
    /// Goose. Servers are in `extensions` of `~/.config/goose/config.yaml`, as the page "Using
    /// Extensions" of its documentation says.
    Goose,
    /// Gemini CLI. Servers are in `mcpServers` of `~/.gemini/settings.json`, as
    /// `docs/tools/mcp-server.md` of the repository `google-gemini/gemini-cli` says.
    Gemini,
}

/// The server as a client starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEntry {
    /// The name of the server in the file of the client.
    pub name: String,
    /// The absolute path of the program.
    pub command: String,
    /// The arguments of the program.
    pub args: Vec<String>,
}

/// The reason why a file is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientFileError {
    /// The text is not valid in its format.
    #[error("it cannot be parsed: {0}")]
    Invalid(String),
    /// The text has a form that is not edited.
    #[error("it has a form that is not edited: {0}")]
    Unknown(String),
}

/// The formats of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileFormat {
    /// JSON, possibly with comments, with the servers in the object of this key.
    Json(&'static str),
    Toml,
    Yaml,
}

impl KnownClient {
    /// All clients.
    pub const ALL: [Self; 6] =
        [Self::Claude, Self::Codex, Self::Cursor, Self::Vscode, Self::Goose, Self::Gemini];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Goose => "goose",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the file of the user for a home directory. `config` is the directory for
    /// configuration files, such as `~/.config`.
    pub fn config_file(self, home: &Path, config: &Path) -> PathBuf {
        match self {
            Self::Claude => home.join(".claude.json"),
            Self::Codex => home.join(".codex/config.toml"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Vscode if cfg!(target_os = "macos") => {
                home.join("Library/Application Support/Code/User/mcp.json")
            }
            Self::Vscode => config.join("Code/User/mcp.json"),
            Self::Goose => config.join("goose/config.yaml"),
            Self::Gemini => home.join(".gemini/settings.json"),
        }
    }

    fn format(self) -> FileFormat {
        match self {
            Self::Claude | Self::Cursor | Self::Gemini => FileFormat::Json("mcpServers"),
            Self::Vscode => FileFormat::Json("servers"),
            Self::Codex => FileFormat::Toml,
            Self::Goose => FileFormat::Yaml,
        }
    }

    /// Returns what a server looks like in the file of this client.
    pub fn snippet(self, entry: &ServerEntry) -> String {
        // Adding to an empty file cannot fail.
        self.add(entry, "").unwrap_or_default()
    }

    /// Adds a server to the text of the file, or replaces the server of the same name.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not understood.
    pub fn add(self, entry: &ServerEntry, text: &str) -> Result<String, ClientFileError> {
        match self.format() {
            FileFormat::Json(section) => {
                json_text::set(text, section, &entry.name, &self.json_entry(entry))
            }
            FileFormat::Toml => toml_text::set(text, entry),
            FileFormat::Yaml => yaml_text::set(text, entry),
        }
    }

    /// Removes a server from the text of the file. Returns `None` if there is none of this name.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not understood.
    pub fn remove(self, name: &str, text: &str) -> Result<Option<String>, ClientFileError> {
        match self.format() {
            FileFormat::Json(section) => json_text::remove(text, section, name),
            FileFormat::Toml => toml_text::remove(text, name),
            FileFormat::Yaml => yaml_text::remove(text, name),
        }
    }

    fn json_entry(self, entry: &ServerEntry) -> Value {
        match self {
            Self::Claude | Self::Vscode => {
                json!({"type": "stdio", "command": entry.command, "args": entry.args})
            }
            Self::Cursor | Self::Gemini | Self::Codex | Self::Goose => {
                json!({"command": entry.command, "args": entry.args})
            }
        }
    }
}

impl fmt::Display for KnownClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
